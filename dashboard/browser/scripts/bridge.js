// The page's own work in the browser: outline the chosen row without redrawing, report clicks on rows and heads, count characters
// while typing, report a change of theme. The other scripts beside it do one thing each.
const state = (window.__attnviz ??= {
  wired: new WeakSet(), page: null, row: null, slider: null, pick: null, early: 0, head: null, pickHead: null, opening: -Infinity, // when asked for
  onTheme: null, theme: null, stop: null,
});

const meta = (chart) => chart.meta ?? {};
const rows = (chart) => chart.data?.[0]?.z?.length ?? chart._fullData?.[0]?.z?.length ?? 0;

function add(group, text, label, act) {
  const button = Object.assign(document.createElement("button"), { type: "button", textContent: text });
  button.setAttribute("aria-label", label);
  button.onclick = (event) => { event.stopPropagation(); act(button); };
  group.appendChild(button);
}

function addButtons(chart) {
  const host = chart.querySelector(".svg-container"), { name, label = "chart", ticks } = meta(chart), old = host?.querySelector(":scope > .save");
  if (!host || !name || (old?.label === label && old.ticks === Boolean(ticks))) return;
  old?.remove();
  const group = Object.assign(document.createElement("div"), { className: "save", label, ticks: Boolean(ticks) });
  if (chart._fullLayout.xaxis?.ticktext && meta(chart).labels) { // a map or its bars
    const text = ticks ? "Enlarge: all labels" : "Enlarge";
    add(group, text, `${text} ${ticks ? "of " : ""}${label}`, (button) => enlarge(chart, button));
  }
  for (const format of ["png", "svg"]) {
    add(group, format.toUpperCase(), `Save ${label} as ${format.toUpperCase()}`, () => save(chart, format));
  }
  if (state.framed) add(group, "Embed", `Copy the HTML of a frame with ${label}`, (button) => copy(button, frame(panel(chart)), "Embed"));
  host.appendChild(group);
}

// What is chosen, as a span of the chart's axes: a row of a map, or a cell of an overview of heads.
function chosen(chart) {
  if (meta(chart).rows) return 0 <= state.row && state.row < rows(chart) && [...chart._fullLayout.xaxis.range, state.row - 0.5, state.row + 0.5];
  const heads = (chart._fullData?.[0] ?? {}).customdata ?? [], wanted = String(state.head);
  const y = heads.findIndex((row) => row.some((head) => String(head) === wanted));
  const x = y < 0 ? -1 : heads[y].findIndex((head) => String(head) === wanted);
  return y >= 0 && [x - 0.5, x + 0.5, y - 0.5, y + 0.5];
}

function outline(chart) {
  const host = chart.querySelector(".svg-container");
  if (!host || !(meta(chart).rows || meta(chart).heads)) return;
  let box = host.querySelector(":scope > .row-outline");
  if (!box) {
    box = document.createElement("div");
    box.className = "row-outline";
    host.appendChild(box);
  }
  const { xaxis: x, yaxis: y } = chart._fullLayout, span = chosen(chart);
  box.style.display = span ? "block" : "none";
  if (!span) return;
  const [left, right] = [span[0], span[1]].map((value) => x._offset + x.l2p(value)), [a, b] = [span[2], span[3]].map((value) => y._offset + y.l2p(value));
  Object.assign(box.style, {
    border: `2px solid ${meta(chart).outline}`, left: `${left - 1}px`, width: `${right - left + 2}px`,
    top: `${Math.min(a, b) - 1}px`, height: `${Math.abs(b - a) + 2}px`,
  });
}

function wire(chart) {
  if (!chart.on || !chart._fullLayout || !window.Plotly) return;
  addButtons(chart);
  outline(chart);
  if (state.wired.has(chart)) return;
  state.wired.add(chart);
  wireTokens(chart);
  wireKeys(chart);
  chart.on("plotly_afterplot", () => { addButtons(chart); outline(chart); if (chart.lit) light(chart, null); });
  chart.on("plotly_click", (event) => {
    const point = event.points?.[0];
    if (!point) return;
    if (meta(chart).rows) { chart.focus({ preventScroll: true }); state.pick?.(point.y); }
    if (meta(chart).heads && point.customdata) state.pickHead?.(point.customdata);
  });
}

function count() {
  const input = document.querySelector(".st-key-text :is(input, textarea)"), note = document.querySelector(".count");
  if (!input || !note) return;
  const { unit, most } = note.dataset, length = [...input.value].length, limit = +note.dataset.limit;
  const units = (input.value.match(unit === "letter" ? /\S/gu : /\S+/g) ?? []).length;
  const text = `${units} ${unit}${units === 1 ? "" : "s"} · ${length} of at most ${most}`;
  if (note.textContent !== text) note.textContent = text;
  note.classList.toggle("over", length > limit);
}

// Where a line stood that said how long one waits, Streamlit leaves an empty row.
function closeNotice() {
  const notice = document.querySelector(".st-key-notice");
  if (notice) notice.parentElement.style.display = notice.textContent ? "" : "none";
}

function watchTheme() {
  const app = document.querySelector(".stApp");
  if (!app || !state.onTheme) return;
  const [r, g, b] = getComputedStyle(app).backgroundColor.match(/[\d.]+/g).map(Number);
  const theme = r * 0.299 + g * 0.587 + b * 0.114 < 128 ? "dark" : "light";
  if (state.theme && state.theme !== theme) state.onTheme(theme);
  state.theme = theme;
}

// The slider is where the step is kept; what it says is shown before the server has heard of it.
function readStep() {
  const value = document.querySelector(".st-key-step input[type=range]")?.getAttribute("aria-valuetext");
  if (value && value !== state.slider && !behind(+value - 1)) moveTo(+value - 1);
  state.slider = value;
}

function moveTo(row) {
  state.row = row;
  document.querySelectorAll(".cells").forEach((cells) => cells.stepTo?.(row));
}

// A card and a term close like any pop-up: by a click elsewhere, or Escape, which gives the focus back.
function closeCards(event) {
  for (const card of document.querySelectorAll("details:is(.card, .term)[open]")) {
    if (event.type === "keydown" ? event.key !== "Escape" : card.contains(event.target)) continue;
    if (card.contains(document.activeElement)) card.firstChild.focus();
    card.open = false;
  }
}

// The address holds the whole view.
function copyLink({ target }) {
  const button = target.closest?.(".copy-link");
  if (button) copy(button, button.dataset.embeds ? frame() : location.href, button.dataset.embeds ? "Embed" : "Copy link");
}

const isOwnComputer = ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);

// Where a browser lets no page write to the clipboard, what is copied is shown. words : of the button.
async function copy(button, text, words) {
  const link = words === "Copy link";
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = link ? "Link copied" : isOwnComputer ? "Copied, for this computer only" : "Code copied";
  } catch {
    window.prompt(link ? "The link to this view" : "The code of a frame with this view", text);
  }
  setTimeout(() => { button.textContent = words; }, 2000);
}

// The name of the panel that has the chart: its maps with their texts, or one row of charts (plot.py).
function panel(chart) {
  const keys = [...chart.closest('.st-key-maps, [class*="st-key-chart-"]').classList];
  return keys.find((key) => key.startsWith("st-key-")).replace(/^st-key-(chart-)?/, "");
}

// HTML of a frame with this view or one panel of it, as high as the view says (tellHeight).
function frame(part) {
  const address = new URL(location.href), name = `attnviz-${Math.random().toString(36).slice(2, 8)}`;
  address.searchParams.set("embed", "1");
  if (part) address.searchParams.set("panel", part);
  const source = address.href.replaceAll("&", "&amp;").replaceAll('"', "%22");
  return `<iframe id="${name}" src="${source}" title="Attention maps" style="width: 100%; height: 600px; border: 0"></iframe>
<script>addEventListener("message", ({ data, source }) => {
  const frame = document.getElementById("${name}");
  if (source === frame.contentWindow && data?.attnvizHeight > 0) frame.style.height = Number(data.attnvizHeight) + "px";
});</script>`;
}

// A page in a frame tells the page around it how high it is. Only the pages of ATTNVIZ_FRAMES can be around it. By a timer: a
// frame out of sight gets no animation frames.
function tellHeight() {
  if (parent === window || state.telling) return;
  state.telling = setTimeout(() => {
    state.telling = null;
    const height = Math.ceil(document.querySelector(".stMainBlockContainer")?.getBoundingClientRect().height ?? 0);
    if (!height || state.height === height || new URLSearchParams(location.search).get("embed") !== "true") return;
    state.height = height;
    parent.postMessage({ attnvizHeight: height }, "*");
  }, 100);
}

// A head is opened below the picture of all heads: once drawn there it comes into sight, for scrolling costs drawing time.
function open(chart) {
  const closeup = document.querySelector(".st-key-chart-closeup"), late = performance.now() - state.opening > 5000;
  if (late || !closeup?.contains(chart)) return;
  state.opening = -Infinity;
  requestAnimationFrame(() => closeup.scrollIntoView({ block: "start" }));
}

function scan() {
  skipLinks();
  nameUploads();
  closeNotice();
  markWide();
  nameMenu();
  fitStage();
  readStep();
  document.querySelectorAll(".plot.js-plotly-plot").forEach(wire);
  count();
  tell(false);
  turnAsAsked();
  watchTheme();
}

function act({ data, setTriggerValue }) {
  state.stop?.(); // called anew whenever the data changes
  if (state.page !== location.pathname) Object.assign(state, { page: location.pathname, row: null, slider: null, asked: null, opening: -Infinity });
  if (state.row === null || data.steps === 1) moveTo(data.row);
  state.steps = data.steps;
  state.framed = data.framed;
  state.head = data.head;
  state.pickHead = (head) => {
    window.attnvizMakeStop?.();
    setTriggerValue("head", [...head]);
    state.opening = performance.now();
    if (String(head) === String(state.head)) open(document.querySelector(".st-key-chart-closeup .plot"));
    state.head = head;
    scan();
  };
  const pick = state.pick = (row) => { moveTo(row); ask(row, setTriggerValue); scan(); };
  state.onTheme = (theme) => setTriggerValue("theme", theme);
  exchangeGuesses(setTriggerValue);
  scan();
  goEarly();
  let waiting = false;
  const soon = () => {
    tellHeight();
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; scan(); });
  };
  const observer = new MutationObserver(soon);
  observer.observe(document.documentElement, { childList: true, subtree: true, attributes: true, attributeFilter: ["class", "aria-valuetext", "value"] });
  const drawn = ({ target }) => { relight(target); open(target); tellHeight(); }, close = (event) => { closeCards(event); interrupt(event); };
  const ears = new AbortController(), { signal } = ears, first = { capture: true, signal };
  document.addEventListener("input", soon, first);
  document.addEventListener("drawn", drawn, { signal });
  document.addEventListener("keydown", leaveTable, first);
  addEventListener("resize", soon, { signal });
  for (const kind of ["pointerdown", "keydown"]) document.addEventListener(kind, close, { signal });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => setTimeout(soon, 300), { signal });
  state.stop = () => {
    observer.disconnect();
    ears.abort();
    if (state.pick === pick) state.pick = null;
  };
  return state.stop;
}

// Buttons and links of the page's own HTML work from the moment they are seen: the page may speak to `act` later.
document.addEventListener("click", (event) => {
  for (const answer of [copyLink, playOrPause, answerOffer, turnPage, openPart]) answer(event);
});

// arguments.js has what the page said last, and tells `act` when the page says something else.
const said = (window.__attnvizSaid ??= {});
said.act = act;
if (said.component) said.stop = act(said.component);
