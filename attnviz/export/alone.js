// In a page that nbconvert has made, each view of a notebook (view.js) is drawn from the state that was saved with the notebook: the
// program that nbconvert names for this is fetched from the internet. A notebook that is open has no such state in its page.
(() => {
  if (document.readyState !== "loading" || window.attnvizAlone) return;
  window.attnvizAlone = true;
  const KIND = "application/vnd.jupyter.widget-";

  // What view.js asks of a model, without a kernel.
  function model(state) {
    const heard = {}, changed = new Set();
    return {
      get: (name) => state[name],
      set: (name, value) => { state[name] = value; changed.add(name); },
      save_changes: () => { for (const name of changed) { changed.delete(name); heard[`change:${name}`]?.forEach((act) => act()); } },
      on: (name, act) => (heard[name] ??= []).push(act),
      off: () => {},
    };
  }

  addEventListener("DOMContentLoaded", async () => {
    const saved = document.querySelector(`script[type="${KIND}state+json"]`);
    const { state } = JSON.parse(saved?.textContent ?? '{"state":{}}');
    for (const mark of document.querySelectorAll(`script[type="${KIND}view+json"]`)) {
      const own = state[JSON.parse(mark.textContent).model_id]?.state, el = document.createElement("div");
      if (!own?._pictures || !own._esm) continue; // another widget
      mark.replaceWith(el);
      const program = await import(URL.createObjectURL(new Blob([own._esm], { type: "text/javascript" })));
      program.default.render({ model: model(own), el });
    }
  });
})();
