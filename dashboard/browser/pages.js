// The links above a page on a phone: a click goes on to Streamlit's own link of the same page, which may be out of sight.
function turnPage(event) {
  const link = event.target.closest?.("nav.pages a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const own = [...document.querySelectorAll("[data-testid=stSidebarNavLink], [data-testid=stTopNavLink]")];
  const same = own.find(({ pathname }) => pathname === link.pathname);
  if (!same) return; // the browser follows the link
  event.preventDefault();
  same.click();
}
