// How one goes from row to row of a map: by keys once a row was clicked, and by the button that plays all steps.
const BEAT = 900, PATIENCE = 3000, PAUSE = 150; // ms a step is shown while playing; to wait for the server; between two requests

// The server is asked at once, and while keys are held only for the last row.
function ask(row, setTriggerValue) {
  const now = performance.now();
  const asked = { row, at: now, sent: state.asked?.sent ?? [] };
  clearTimeout(state.asking);
  state.asking = setTimeout(() => { asked.sent.push(row); setTriggerValue("row", row); }, now - (state.asked?.at ?? -Infinity) < PAUSE ? PAUSE : 0);
  state.asked = asked;
}

// Does the slider still show an older step than the one that was asked for? Then it is not followed. Answers come in the order in
// which they were asked for, so the same step may be an older answer.
function behind(row) {
  const { asked } = state;
  if (!asked || performance.now() - asked.at > PATIENCE) return false;
  asked.sent.splice(0, asked.sent.indexOf(row) + 1);
  if (asked.row === row && !asked.sent.length) state.asked = null;
  return Boolean(state.asked);
}

const BY_KEY = { ArrowDown: 1, ArrowRight: 1, ArrowUp: -1, ArrowLeft: -1 };

// A map takes the focus with a click on a row, and the arrow keys then go to the rows above and below.
function wireKeys(chart) {
  chart.addEventListener("keydown", (event) => {
    const by = BY_KEY[event.key];
    if (!by || !meta(chart).rows || event.target !== chart) return;
    event.preventDefault(); // the page would scroll
    goBy(by, meta(chart).tokens?.[0] ?? rows(chart));
  });
}

function goBy(by, count) {
  const row = Math.min(Math.max(state.row + by, 0), count - 1);
  if (row !== state.row) state.pick?.(row);
}

function playOrPause({ target }) {
  if (!target.closest?.(".play")) return;
  if (state.playing) return pause();
  if (state.row >= state.steps - 1) state.pick?.(0);
  state.playing = setTimeout(next, BEAT);
  showPlaying();
}

function next() {
  const { asked, row, steps } = state, waits = asked && performance.now() - asked.at < PATIENCE;
  if (!document.querySelector(".play") || row >= steps - 1) return pause();
  if (!waits) state.pick?.(row + 1);
  state.playing = setTimeout(next, waits ? 100 : BEAT);
}

function pause() {
  clearTimeout(state.playing);
  state.playing = null;
  showPlaying();
}

// Whoever goes to a step, or presses Escape, takes over. Escape also leaves a presentation, where nothing else is open.
function interrupt({ key, target }) {
  const goes = target.closest?.(".plot, .st-key-step");
  if (goes) state.asked = null;
  if (state.playing && (key === "Escape" || goes)) pause();
  else if (key === "Escape" && !document.querySelector("dialog[open]")) document.querySelector(".st-key-leave button")?.click();
}

function showPlaying() {
  for (const button of document.querySelectorAll(".play")) button.textContent = state.playing ? "❚❚ Pause" : "▶ Play the steps";
}
