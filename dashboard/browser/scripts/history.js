// What Back leads to: the page and the sentence that were there. Streamlit makes a stop of each change that the server writes into
// the address, and none of a sentence that is typed. Here a stop is a page, or a sentence on it, or a head opened in a picture;
// whatever else is written into the address changes the stop that is there. It stands in the index page (server/index_page.py),
// before Streamlit: what the server writes while a page opens is no stop.
(() => {
  // A page in a frame: ?embed=1. Streamlit knows it as embed=true, keeps it in the address, and tells the server.
  const opened = new URL(location.href);
  if (opened.searchParams.get("embed") === "1") {
    opened.searchParams.set("embed", "true");
    history.replaceState(history.state, "", opened);
  }
  const { pushState, replaceState } = history;
  // free : the next stop may be made. wanted : whatever the address says next is a stop. before : the address when a person acted.
  // leaving : the path of the page that a person has turned to. passing : a person had turned on before this stop was there.
  // typed : the address before a sentence that the server has still to draw. returning : from one that it has refused.
  const stops = {}, nothing = { free: false, wanted: false, before: null, leaving: null, passing: false, typed: null, returning: null };
  const none = () => Object.assign(stops, nothing);
  const isIdle = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";

  // A person has done something, of which one stop may come. Until then it is the server that goes on writing.
  function noticePerson({ target, type, ctrlKey, metaKey, shiftKey }) {
    const link = type === "click" && !(ctrlKey || metaKey || shiftKey) && target.closest?.('[data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]');
    if (isIdle() || !stops.before || (link && !stops.leaving)) stops.before = location.href;
    if (isIdle()) stops.typed = null;
    if (isIdle() && type !== "click") stops.wanted = false; // what was opened in a picture was there already
    if (link && link.pathname !== location.pathname) stops.leaving = link.pathname;
    stops.free = true;
  }

  function arrive(event) {
    const { returning } = stops;
    none();
    if (!returning) return;
    event.stopImmediatePropagation(); // the page shows what is here
    replaceState.call(history, history.state, "", returning);
  }

  none();
  for (const type of ["pointerdown", "click", "keydown"]) document.addEventListener(type, noticePerson, true);
  addEventListener("popstate", arrive, true);

  // A control writes by replaceState, the server by pushState. On the way to another page Streamlit empties the address.
  const write = (byServer) => function (state, title, url) {
    const to = new URL(url ?? location.href, location.href), turned = to.pathname !== location.pathname;
    if (!turned && !byServer && !isDrawn(sentenceOf(to))) return; // the page keeps its picture, and the address that of the picture
    if (!turned && (stops.leaving || !stops.free || !isStop(to))) return change(byServer, state, title, to);
    const { before, leaving } = stops, unseen = turned && stops.passing;
    if (byServer && before && !unseen) replaceState.call(history, history.state, title, before);
    const typed = byServer ? null : location.href;
    none();
    stops.typed = typed;
    if (turned && leaving && leaving !== to.pathname) Object.assign(stops, { leaving, passing: true });
    return (unseen ? replaceState : pushState).call(history, state, title, url);
  };

  // What is written into the address of the stop that is there. Where the server comes back to the sentence before, it has refused
  // the one that was typed: then this is no stop.
  function change(byServer, state, title, to) {
    const { typed } = stops;
    if (byServer) stops.typed = null;
    replaceState.call(history, state, title, to);
    if (!byServer || !typed || stops.leaving || sentenceOf(to) !== sentenceOf(new URL(typed))) return;
    stops.returning = to.href;
    history.back();
  }

  Object.assign(history, { pushState: write(true), replaceState: write(false) });
  // What is opened by a click in a picture is a stop too (bridge.js).
  window.attnvizMakeStop = () => { stops.free = stops.wanted = true; };

  function isStop(to) {
    const here = new URL(location.href);
    return sentenceOf(to) !== sentenceOf(here) || (stops.wanted && to.href !== here.href);
  }

  const isDrawn = (text) => text === undefined || (text.trim() !== "" && text.length <= Number(document.querySelector(".count")?.dataset.limit ?? Infinity));

  // An address without a sentence has the first one of its language pair, or of its model (see shell/widgets.py). A page without a
  // field only hands the sentence on.
  function sentenceOf({ searchParams }) {
    if (!document.querySelector(".st-key-text")) return undefined;
    const firsts = JSON.parse(document.querySelector(".count")?.dataset.firsts ?? "{}");
    return searchParams.get("text") ?? firsts[searchParams.get("model") ?? searchParams.get("pair") ?? ""];
  }
})();
