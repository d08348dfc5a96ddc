"""Whoever uses no mouse, a phone, or a screen reader: axe-core finds nothing of any impact on any page, as it opens and
with all its panels open, light and dark; the Tab key soon reaches what matters; nothing runs off a phone.

vendor/axe.min.js is that of the npm package axe-core 4.14.1, unchanged; its licence is MPL-2.0.
"""

from pathlib import Path

import pytest

pytestmark = pytest.mark.xdist_group("browser-page")  # one process opens its pages and servers

AXE = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")
FINDINGS = """async () => (await axe.run()).violations.map(
  (rule) => `${rule.impact} ${rule.id}: ${rule.nodes.map((node) => node.html.slice(0, 120)).join(" ")}`)"""
REST = """() => document.querySelectorAll('.js-plotly-plot').length > 0 && !document.querySelector('[data-stale=true]')
  && document.querySelector('[data-testid=stApp]').dataset.testScriptState === 'notRunning'
  && [...document.querySelectorAll('[data-testid=stElementContainer]')]
    .every((one) => getComputedStyle(one).opacity === '1')"""
PAGES = {
    "first": "/?tour=2&tables=true&show=Bahdanau&show=Luong+local&text=A+dog+runs."
    "&target=One+text+for+all%3A+Bahdanau%27s",
    "presentation": "/?present=true&show=Bahdanau&text=A+dog+runs.",
    "heads": "/heads?text=A+dog+runs.&tables=true&off=cross+layer+2%2C+head+1",
    "inside": "/inside?text=A+dog+runs.",
    "many": "/many?show=Bahdanau&show=Luong+general&tables=true",
    "learn": "/learn",
}
SIDEBAR_RIGHT = "document.querySelector('[data-testid=stSidebar]')?.getBoundingClientRect().right ?? 0"
OPEN = "() => document.querySelectorAll('details').forEach((panel) => { panel.open = true; })"


@pytest.fixture(scope="module")
def page(chrome):
    """A page that lets axe-core in; the browser keeps its scripts from one address to the next."""
    context = chrome.new_context(viewport={"width": 1366, "height": 900}, bypass_csp=True)
    yield context.new_page()
    context.close()


def at_rest(page) -> None:
    for _ in range(2):
        page.wait_for_timeout(150)
        page.wait_for_function(REST, timeout=60_000)


def findings(page) -> list[str]:
    page.evaluate(AXE)
    return page.evaluate(FINDINGS)


@pytest.mark.parametrize("name", PAGES)
def test_axe_finds_nothing(page, address, name):
    page.emulate_media(color_scheme="light")
    page.goto(address + PAGES[name], timeout=60_000)
    at_rest(page)
    found = {"as it opens": findings(page)}
    page.evaluate(OPEN)
    at_rest(page)  # an expander asks the server for what is in it
    found["opened"] = findings(page)
    page.emulate_media(color_scheme="dark")
    page.wait_for_timeout(500)
    at_rest(page)
    page.evaluate(OPEN)
    found["opened, dark"] = findings(page)
    assert not any(found.values()), found


def test_axe_finds_nothing_in_what_opens_over_the_page(page, address):
    page.emulate_media(color_scheme="light")
    page.goto(f"{address}/?show=Bahdanau&text=A+dog+runs.", timeout=60_000)
    at_rest(page)
    found = {}
    for name in ("One figure as HTML", "Pictures for slides and papers"):
        button = page.get_by_role("button", name=name)
        button.click()
        page.wait_for_timeout(700)  # what is old fades, and what opens fades in
        at_rest(page)
        found[name] = findings(page)
        button.click()
    page.get_by_role("button", name="Enlarge heatmap Bahdanau").click()
    page.wait_for_selector("dialog .main-svg")
    found["enlarged"] = findings(page)
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Enlarge heatmap Bahdanau"
    assert not any(found.values()), found


def test_the_tab_key_soon_reaches_the_sentence_and_the_step(page, address):
    page.goto(f"{address}/?show=Bahdanau&text=A+dog+runs.", timeout=60_000)
    at_rest(page)
    page.wait_for_selector("nav.skip", state="attached")
    assert page.evaluate("document.body.firstElementChild.matches('nav.skip')")  # so Tab comes to it first
    for stops, target in ((0, ".st-key-text"), (1, ".st-key-step")):
        page.locator("nav.skip button").first.focus()
        for _ in range(stops):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("target => Boolean(document.activeElement.closest(target))", target), target


def test_on_a_phone_the_sidebar_is_closed_and_the_page_links_are_reached(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    for path in ("/?text=A+dog+runs.&show=Bahdanau", "/heads?text=A+dog+runs."):
        page.goto(address + path, timeout=60_000)
        at_rest(page)
        assert page.evaluate(SIDEBAR_RIGHT) <= 1
        assert page.evaluate(
            "() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth <= m.clientWidth; }"
        )
    page.get_by_test_id("stExpandSidebarButton").click()
    page.get_by_role("link", name="One sentence, several models").click()
    page.wait_for_selector(".st-key-maps")
    page.set_viewport_size({"width": 1366, "height": 900})
