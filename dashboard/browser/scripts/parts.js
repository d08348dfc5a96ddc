// The list of the parts of a page: each leads to the heading of the same name, and the keyboard goes on from there.
function openPart({ target }) {
  const button = target.closest?.("nav.parts button");
  const heading = button && [...document.querySelectorAll("[data-testid=stHeading] :is(h2, h3)")].find((part) => part.textContent.trim() === button.textContent);
  if (!heading) return;
  heading.tabIndex = -1;
  heading.scrollIntoView({ block: "start" });
  heading.focus({ preventScroll: true });
}
