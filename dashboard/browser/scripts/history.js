// What Back leads to: the page and the sentence that were there. Streamlit makes a stop of each change that the server writes into
// the address, and none of a sentence that is typed. Here a stop is a page, or a sentence on it, or a head opened in a picture;
// whatever else is written into the address changes the stop that is there.
// free : the next stop may be made. wanted : whatever the address says next is a stop. before : the address when a person acted.
const stops = (history.attnvizStops ??= { free: false, wanted: false, leaving: false, before: null });

const isIdle = () => document.querySelector(".stApp")?.dataset.testScriptState === "notRunning";
const none = () => Object.assign(stops, { free: false, wanted: false, leaving: false, before: null });

// A person has done something, of which one stop may come. Until then it is the server that goes on writing.
function noticePerson({ target, type, ctrlKey, metaKey, shiftKey }) {
  const link = type === "click" && !(ctrlKey || metaKey || shiftKey) && target.closest?.('[data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]');
  stops.leaving ||= Boolean(link) && link.pathname !== location.pathname; // on the way Streamlit empties the address
  if (isIdle() || link || !stops.before) stops.before = location.href;
  stops.free = true;
}

// What is opened by a click in a picture is a stop too.
function makeStop() {
  stops.free = stops.wanted = true;
}

function keepAddresses() {
  if (history.keepsAddresses) return;
  history.keepsAddresses = true;
  const { pushState, replaceState } = history;
  for (const type of ["pointerdown", "click", "keydown"]) document.addEventListener(type, noticePerson, true);
  addEventListener("popstate", none, true);
  // A control writes by replaceState, the server by pushState.
  const write = (byServer) => function (state, title, url) {
    const to = new URL(url ?? location.href, location.href), turned = to.pathname !== location.pathname;
    if (!turned && (stops.leaving || !stops.free || !isStop(to))) return replaceState.call(history, state, title, url);
    if (byServer && stops.before) replaceState.call(history, history.state, title, stops.before);
    none();
    return pushState.call(history, state, title, url);
  };
  Object.assign(history, { pushState: write(true), replaceState: write(false) });
}

function isStop(to) {
  const here = new URL(location.href);
  const last = isDrawn(sentenceOf(here)) ? here : new URL(stops.before ?? here);
  return (isDrawn(sentenceOf(to)) && sentenceOf(to) !== sentenceOf(last)) || (stops.wanted && to.href !== here.href);
}

// The page keeps its picture for a sentence that it refuses, and the server then writes the address of that picture again.
const isDrawn = (text) => text === undefined || (text.trim() !== "" && text.length <= Number(document.querySelector(".count")?.dataset.limit ?? Infinity));

// An address without a sentence has the first one of its language pair, or of its model (see shell/widgets.py).
function sentenceOf({ searchParams }) {
  const firsts = JSON.parse(document.querySelector(".count")?.dataset.firsts ?? "{}");
  return searchParams.get("text") ?? firsts[searchParams.get("model") ?? searchParams.get("pair") ?? ""];
}
