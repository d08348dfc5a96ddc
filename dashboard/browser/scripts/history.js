// On the way to another page Streamlit empties the address of the page that is left, and makes each change of it a stop of
// the Back button. Here the page that is left keeps its whole address, in one stop, so that Back reopens it as it was.
const LEAVING_MS = 20_000; // a page that takes longer to open leaves more stops

function keepAddresses() {
  if (history.keepsAddresses) return;
  history.keepsAddresses = true;
  const push = history.pushState;
  let left = null; // the address of the page that is being left, and until when that is believed
  document.addEventListener("click", ({ target }) => {
    const link = target.closest?.('[data-testid="stTopNavLink"], [data-testid="stSidebarNavLink"]');
    if (link && link.pathname !== location.pathname) left = { address: location.href, until: performance.now() + LEAVING_MS };
  }, true);
  history.pushState = function (state, title, url) {
    const to = new URL(url ?? location.href, location.href), here = to.pathname === location.pathname;
    if (left && performance.now() > left.until) left = null;
    if (left && here) return history.replaceState(state, title, url);
    if (left) history.replaceState(history.state, title, left.address);
    left = null;
    return push.call(this, state, title, url);
  };
}
