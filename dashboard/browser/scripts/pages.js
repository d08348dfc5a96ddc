const WIDE = 768; // px of a window from which on Streamlit puts the sidebar beside the page, and not over it

// The links above a page on a phone: a click goes on to Streamlit's own link of the same page, which may be out of sight.
function turnPage(event) {
  if (event.target.closest?.("[data-testid=stSidebarNavLink]")) uncoverPage();
  const link = event.target.closest?.("nav.pages a, a.turn-to");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const own = [...document.querySelectorAll("[data-testid=stSidebarNavLink], [data-testid=stTopNavLink]")];
  const same = own.find(({ pathname }) => pathname === link.pathname);
  if (!same) return; // the browser follows the link
  event.preventDefault();
  same.click();
}

// The page itself turns to another one (address.py).
function turnAsAsked() {
  const link = document.querySelector("a.turn-to:not(.taken)");
  link?.classList.add("taken");
  link?.click();
}

// Whoever turns to another page in a sidebar that covers it wants to see that page.
function uncoverPage() {
  const open = document.querySelector("[data-testid=stSidebar]")?.getBoundingClientRect().right > 0;
  if (open && window.innerWidth < WIDE) document.querySelector("[data-testid=stSidebarCollapseButton] button")?.click();
}

// What stands beside the page on a wide screen is in the menu of a narrow one. A token on the left is in a picture.
const BESIDE = "on the left", MENU = "in the menu ›", WORDS = "[data-testid=stAlert], [data-testid=stCaptionContainer], .small, .what, .notice, .tour-answer";

function nameMenu() {
  const narrow = [/(token )?on the left/g, (words, token) => (token ? words : MENU)], [here, there] = window.innerWidth < WIDE ? narrow : [MENU, BESIDE];
  for (const part of document.querySelectorAll(WORDS)) {
    const texts = document.createTreeWalker(part, NodeFilter.SHOW_TEXT);
    while (texts.nextNode()) {
      const text = texts.currentNode, named = text.data.replace(here, there);
      if (named !== text.data) text.data = named;
    }
  }
}
