// The browser's own printing: the page keeps the layout of the screen, since charts have a width in px, and is drawn smaller.
const PAPER = 690; // px between the margins of A4, which is narrower than Letter

function fitPaper() {
  const page = document.querySelector(".stMainBlockContainer");
  if (page) document.documentElement.style.setProperty("--paper", Math.min(1, PAPER / page.offsetWidth).toFixed(3));
}
addEventListener("beforeprint", fitPaper);
