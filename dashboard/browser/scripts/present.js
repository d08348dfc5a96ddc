// A presentation is laid out for a screen of 1920 by 1080 (presentation.css), and made smaller as a whole where there is less.
const STAGE = [1920, 1080], ON_STAGE = "[data-testid=stMainBlockContainer]", OWN_KEYS = "input, textarea, [role=combobox], [role=slider], dialog, .plot";
const ONE_LINE = ".st-key-text input"; // up and down do nothing there
const LEAST_SCALE = 0.25, ROOMY = 1.15, TRIES = 6, BELOW_STAGE = 12; // px

function isPresenting() {
  return Boolean(document.querySelector(".st-key-leave"));
}

// What is shown is never higher than the window: with many words it gets smaller still, and larger again with fewer.
function fitStage() {
  const stage = document.querySelector(ON_STAGE);
  if (!stage) return;
  if (!isPresenting() || window.innerWidth < WIDE) { setScale(stage, 1); return; }
  const most = Math.min(1, window.innerWidth / STAGE[0], window.innerHeight / STAGE[1]), now = Math.min(+stage.dataset.scale || 1, most);
  setScale(stage, now);
  const room = window.innerHeight / needed(stage, now);
  if (+stage.dataset.most === most && now <= room && (now === most || room < ROOMY * now)) return;
  stage.dataset.most = most;
  for (let scale = most, tries = 0; tries < TRIES; tries++) {
    setScale(stage, scale);
    const fits = window.innerHeight / needed(stage, scale);
    if (fits >= scale) return;
    scale = Math.max(LEAST_SCALE, fits - 0.002);
  }
}

function needed(stage, scale) {
  const bottoms = [...stage.querySelectorAll("[data-testid=stElementContainer]")].map((part) => part.getBoundingClientRect().bottom);
  return (Math.max(0, ...bottoms) - stage.getBoundingClientRect().top) / scale + BELOW_STAGE;
}

function setScale(stage, scale) {
  const shown = scale < 1 ? `${scale} of ${window.innerWidth} by ${window.innerHeight}` : "";
  if ((stage.dataset.shown ?? "") === shown) return;
  Object.assign(stage.dataset, { scale, shown });
  const whole = { width: `${window.innerWidth / scale}px`, height: `${window.innerHeight / scale}px`, marginBottom: `${window.innerHeight * (1 - 1 / scale)}px` };
  const none = { width: "", height: "", marginBottom: "", transform: "", transformOrigin: "", flex: "", alignSelf: "" };
  Object.assign(stage.style, shown ? { ...whole, transform: `scale(${scale})`, transformOrigin: "0 0", flex: "none", alignSelf: "flex-start" } : none);
}

// The arrow keys move the step wherever nothing else wants them, from the moment that a presentation opens: keys that come before the
// server has said which steps there are, are counted (bridge.js).
function stepByKeys(event) {
  const by = BY_KEY[event.key], free = /Up|Down/.test(event.key) && event.target.matches?.(ONE_LINE);
  if (!by || !isPresenting() || event.defaultPrevented || (!free && event.target.closest?.(OWN_KEYS))) return;
  event.preventDefault();
  if (state.pick) goBy(by, state.steps);
  else state.early += by;
}
document.addEventListener("keydown", stepByKeys);

function goEarly() {
  const { early } = state;
  state.early = 0;
  if (early && isPresenting()) goBy(early, state.steps);
}

// The browser's own printing: the page keeps the layout of the screen, since charts have a width in px, and is drawn smaller.
const PAPER = 690; // px between the margins of A4, which is narrower than Letter

function fitPaper() {
  const page = document.querySelector(".stMainBlockContainer");
  if (page) document.documentElement.style.setProperty("--paper", Math.min(1, PAPER / page.offsetWidth).toFixed(3));
}
addEventListener("beforeprint", fitPaper);
