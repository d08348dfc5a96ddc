// A presentation is laid out for a screen of 1920 by 1080 (presentation.css), and made smaller as a whole where there is less.
const STAGE = [1920, 1080], ON_STAGE = "[data-testid=stMainBlockContainer]", OWN_KEYS = "input, textarea, [role=combobox], [role=slider], dialog, .plot";

function isPresenting() {
  return Boolean(document.querySelector(".st-key-leave"));
}

function fitStage() {
  const stage = document.querySelector(ON_STAGE);
  if (!stage) return;
  const scale = isPresenting() && window.innerWidth >= WIDE ? Math.min(1, window.innerWidth / STAGE[0], window.innerHeight / STAGE[1]) : 1, shown = scale < 1 ? String(scale) : "";
  if ((stage.dataset.scale ?? "") === shown) return;
  stage.dataset.scale = shown;
  const whole = { width: `${window.innerWidth / scale}px`, height: `${window.innerHeight / scale}px`, marginBottom: `${window.innerHeight * (1 - 1 / scale)}px` };
  const none = { width: "", height: "", marginBottom: "", transform: "", transformOrigin: "", flex: "", alignSelf: "" };
  Object.assign(stage.style, shown ? { ...whole, transform: `scale(${scale})`, transformOrigin: "0 0", flex: "none", alignSelf: "flex-start" } : none);
}

// The arrow keys move the step wherever nothing else wants them.
function stepByKeys(event) {
  const by = BY_KEY[event.key];
  if (!by || !isPresenting() || event.defaultPrevented || event.target.closest?.(OWN_KEYS)) return;
  event.preventDefault();
  goBy(by, state.steps);
}
