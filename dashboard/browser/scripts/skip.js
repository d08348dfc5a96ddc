// The first stops of the Tab key: past the sidebar to the sentence, and past that to the step.
const TARGETS = [["the sentence", ".st-key-text :is(input, textarea)"], ["the step", ":is(.st-key-step, .st-key-row) input"]];

function skipLinks() {
  let nav = document.querySelector("nav.skip");
  if (!nav) {
    nav = Object.assign(document.createElement("nav"), { className: "skip" });
    nav.setAttribute("aria-label", "Skip");
    for (const [name, target] of TARGETS) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: `Skip to ${name}` });
      button.onclick = () => document.querySelector(target)?.focus();
      nav.append(button);
    }
    document.body.prepend(nav);
  }
  TARGETS.forEach(([, target], place) => {
    const missing = !document.querySelector(target), button = nav.children[place];
    if (button.hidden !== missing) button.hidden = missing;
  });
}

// Streamlit's field for a file has a name and the role of what has none: a reader of the page is told that it is a group.
function nameUploads() {
  document.querySelectorAll("[data-testid=stFileUploaderDropzone][role=presentation]").forEach((field) => field.setAttribute("role", "group"));
}

// A formula or a table that is wider than a narrow window scrolls and says so: see style.css. The Tab key reaches it.
function markWide() {
  const narrow = innerWidth <= 1000;
  for (const part of document.querySelectorAll(narrow ? ".katex-display, .scroll" : ".wide")) {
    const wide = narrow && part.scrollWidth > part.clientWidth;
    part.classList.toggle("wide", wide);
    if (wide && part.matches(".katex-display:not([tabindex])")) Object.assign(part, { tabIndex: 0, role: "group", ariaLabel: "Formula" });
  }
}

// In a table of numbers the arrow keys go from cell to cell. The Tab key leaves it: it would else stop at every cell.
function leaveTable(event) {
  if (event.key === "Tab" && event.target.closest?.("[data-testid=stDataFrame]")) event.stopPropagation();
}

// The list of the parts of a page: each leads to the heading of the same name, and the keyboard goes on from there.
function openPart({ target }) {
  const button = target.closest?.("nav.parts button");
  const heading = button && [...document.querySelectorAll("[data-testid=stHeading] :is(h2, h3)")].find((part) => part.textContent.trim() === button.textContent);
  if (!heading) return;
  heading.tabIndex = -1;
  heading.scrollIntoView({ block: "start" });
  heading.focus({ preventScroll: true });
}
