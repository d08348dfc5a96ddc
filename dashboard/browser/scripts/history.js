// What Back leads to: the page and the sentence that were there. Streamlit makes a stop of each change that the server writes into
// the address, and none of a sentence that is typed. Here a stop is a page, or a sentence on it, or a head opened in a picture;
// whatever else is written into the address changes the stop that is there. It stands in the index page (server/index_page.py),
// before Streamlit: what the server writes while a page opens is no stop.
(() => {
  const { pushState, replaceState } = history;
  // free : the next stop may be made. wanted : whatever the address says next is a stop. before : the address when a person acted.
  // leaving : the path of the page that a person has turned to. passing : a person had turned on before this stop was there.
  const stops = {};
  const none = () => Object.assign(stops, { free: false, wanted: false, before: null, leaving: null, passing: false });
  const isIdle = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";

  // A person has done something, of which one stop may come. Until then it is the server that goes on writing.
  function noticePerson({ target, type, ctrlKey, metaKey, shiftKey }) {
    const link = type === "click" && !(ctrlKey || metaKey || shiftKey) && target.closest?.('[data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]');
    if (isIdle() || !stops.before || (link && !stops.leaving)) stops.before = location.href;
    if (isIdle() && type !== "click") stops.wanted = false; // what was opened in a picture was there already
    if (link && link.pathname !== location.pathname) stops.leaving = link.pathname;
    stops.free = true;
  }

  none();
  for (const type of ["pointerdown", "click", "keydown"]) document.addEventListener(type, noticePerson, true);
  addEventListener("popstate", none, true);

  // A control writes by replaceState, the server by pushState. On the way to another page Streamlit empties the address.
  const write = (byServer) => function (state, title, url) {
    const to = new URL(url ?? location.href, location.href), turned = to.pathname !== location.pathname;
    if (!turned && (stops.leaving || !stops.free || !isStop(to))) return replaceState.call(history, state, title, url);
    const { before, leaving } = stops, unseen = turned && stops.passing;
    if (byServer && before && !unseen) replaceState.call(history, history.state, title, before);
    none();
    if (turned && leaving && leaving !== to.pathname) Object.assign(stops, { leaving, passing: true });
    return (unseen ? replaceState : pushState).call(history, state, title, url);
  };
  Object.assign(history, { pushState: write(true), replaceState: write(false) });
  // What is opened by a click in a picture is a stop too (bridge.js).
  window.attnvizMakeStop = () => { stops.free = stops.wanted = true; };

  function isStop(to) {
    const here = new URL(location.href);
    const last = isDrawn(sentenceOf(here)) ? here : new URL(stops.before ?? here);
    return (isDrawn(sentenceOf(to)) && sentenceOf(to) !== sentenceOf(last)) || (stops.wanted && to.href !== here.href);
  }

  // The page keeps its picture for a sentence that it refuses, and the server then writes the address of that picture again.
  const isDrawn = (text) => text === undefined || (text.trim() !== "" && text.length <= Number(document.querySelector(".count")?.dataset.limit ?? Infinity));

  // An address without a sentence has the first one of its language pair, or of its model (see shell/widgets.py). A page without a
  // field only hands the sentence on.
  function sentenceOf({ searchParams }) {
    if (!document.querySelector(".st-key-text")) return undefined;
    const firsts = JSON.parse(document.querySelector(".count")?.dataset.firsts ?? "{}");
    return searchParams.get("text") ?? firsts[searchParams.get("model") ?? searchParams.get("pair") ?? ""];
  }
})();
