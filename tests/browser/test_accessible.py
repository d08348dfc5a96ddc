"""Whoever uses no mouse, a phone, or a screen reader: axe-core finds nothing of any impact on any page with all its
panels open, nor too little contrast in the dark; the Tab key soon reaches what matters; nothing runs off a phone.

vendor/axe.min.js is that of the npm package axe-core 4.14.1, unchanged; its licence is MPL-2.0.
"""

import re

import pytest
import serving
from playwright.sync_api import expect

from dashboard.pages import PAGES as PAGES_OF_THE_DASHBOARD

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers

REST = """() => document.querySelectorAll('.js-plotly-plot').length > 0 && !document.querySelector('[data-stale=true]')
  && document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
  && [...document.querySelectorAll('[data-testid=stElementContainer]')]
    .every((one) => getComputedStyle(one).opacity === '1')"""
PAGES = {
    "first": "/?tour=3&tables=true&show=Bahdanau&show=Luong+local&text=A+dog+runs."
    "&target=One+text+for+all%3A+Bahdanau%27s",
    "presentation": "/?present=true&show=Bahdanau&text=A+dog+runs.",
    "heads": "/heads?text=A+dog+runs.&tables=true&off=cross+layer+2%2C+head+1"
    "&beside=English+%E2%86%92+French+%C2%B7+Transformer&beside_text=A+cat+sleeps.",
    "many": "/many?show=Bahdanau&show=Luong+general&tables=true"
    "&from=Pasted&lines=A+dog+runs.%0ATwo+dogs+run.%0AA+man+sits+on+a+bench."
    "&other_from=Pasted&other_lines=A+dog+runs.%0AA+cat+sleeps.",
    "inside": "/inside?text=A+dog+runs.&show=Bahdanau&change=uniform&tests=true&tables=true",
    "learn": "/learn",
}
SIDEBAR_RIGHT = "document.querySelector('[data-testid=stSidebar]')?.getBoundingClientRect().right ?? 0"
# Which tables and formulas are wider than their place, and which of them say so.
WIDER = """() => [...document.querySelectorAll('.scroll, .katex-display')].filter((part) => part.offsetParent)
  .map((part) => [
    part.scrollWidth > part.clientWidth, getComputedStyle(part, '::before').content.includes('scroll to the right'),
  ])"""
OPEN = "() => document.querySelectorAll('details').forEach((panel) => { panel.open = true; })"


STOP = """() => {
  const outlined = (one) => {
    const { outlineStyle, outlineWidth } = getComputedStyle(one), { width, height } = one.getBoundingClientRect();
    return outlineStyle === 'solid' && parseFloat(outlineWidth) >= 2 && width > 8 && height > 8;
  };
  const at = document.activeElement, before = window.__marked;
  let left = before?.filter(outlined);
  if (before && left.length === before.length) { // two stops may share an outline: look at it without any focus
    at.blur();
    left = before.filter(outlined);
    at.focus({ preventScroll: true });
  }
  const seen = !before || before.length > left.length;
  if (at === document.body) return [null, seen];
  const name = at.getAttribute('aria-label') ?? at.textContent.slice(0, 40), around = [at];
  at.__stop ??= window.__stops = (window.__stops ?? 0) + 1;
  let above = at.parentElement;
  for (let up = 0; above && up < 12; up++, above = above.parentElement) { // a cell of a table is deep in its canvas
    around.push(above, ...(up < 4 ? above.children : []));
  }
  window.__marked = around.filter(outlined);
  return [`${at.__stop} ${name}`, seen];
}"""  # what has the focus, null at the end of the page; and did the stop before show its focus, and no longer?
MOST_STOPS = 300  # a page whose stops never come round has a trap


@pytest.fixture(scope="module")
def page(chrome):
    """A page that lets axe-core in; the browser keeps its scripts from one address to the next."""
    context = chrome.new_context(viewport=serving.SCREEN, bypass_csp=True, reduced_motion="reduce")
    yield context.new_page()
    context.close()


@pytest.fixture(scope="module", params=PAGES)
def opened(page, address, request):
    """A page at rest -> its name and the page; the tests of this fixture follow each other on it."""
    page.emulate_media(color_scheme="light")
    page.goto(address + PAGES[request.param], timeout=60_000)
    at_rest(page)
    return request.param, page


def at_rest(page) -> None:
    for _ in range(2):
        page.wait_for_timeout(150)
        page.wait_for_function(REST, timeout=60_000)


def test_whatever_the_tab_key_reaches_shows_it(opened):
    """Every stop has an outline that goes when the focus goes, and no stop comes twice before all were there."""
    _, page = opened
    stops, unseen = [], []
    page.evaluate("window.__marked = null")
    while len(stops) < MOST_STOPS:
        page.keyboard.press("Tab")
        stop, seen = page.evaluate(STOP)
        if not seen:
            unseen.append(stops[-1])
        if stop is None or stop in stops:
            break
        stops.append(stop)
    assert unseen == [] and 5 < len(stops) < MOST_STOPS, (unseen, stops)


@pytest.mark.parametrize("opened", ["first"], indirect=True)
def test_the_tab_key_soon_reaches_the_sentence_and_axe_finds_nothing_in_what_opens_over_the_page(opened, axe):
    _, page = opened
    sentence_and_step_are_near(page)
    findings = {}
    for name in ("One figure as HTML", "Pictures for slides and papers"):
        button = page.get_by_role("button", name=name)
        button.click()
        page.wait_for_timeout(700)  # what is old fades, and what opens fades in
        at_rest(page)
        findings[name] = axe(page, within="[data-testid=stPopoverBody]")
        button.click()
    page.get_by_role("button", name="Enlarge heatmap Bahdanau").click()
    page.wait_for_selector("dialog .main-svg")
    findings["enlarged"] = axe(page, within="dialog")
    assert page.evaluate("""() => [...document.querySelectorAll('.plot, dialog .js-plotly-plot')]
      .every((chart, _, [{ _fullLayout: first }]) => chart._fullLayout.font.family === first.font.family)""")
    page.keyboard.press("Escape")
    page.wait_for_selector("dialog", state="detached")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "Enlarge heatmap Bahdanau"
    assert not any(findings.values()), findings


def sentence_and_step_are_near(page) -> None:
    """The Tab key soon reaches them."""
    page.wait_for_selector("nav.skip", state="attached")
    assert page.evaluate("document.body.firstElementChild.matches('nav.skip')")  # so Tab comes to it first
    for stops, target in ((0, ".st-key-text"), (1, ".st-key-step")):
        page.locator("nav.skip button").first.focus()
        for _ in range(stops):
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        assert page.evaluate("target => Boolean(document.activeElement.closest(target))", target), target


def test_axe_finds_nothing(opened, axe):
    """Nor on the page of a classifier: heads/test_heads_panels.py."""
    _, page = opened
    page.evaluate(OPEN)
    at_rest(page)  # an expander asks the server for what is in it
    findings = {"light": axe(page)}
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("window.__attnviz?.theme === 'dark'")
    page.wait_for_timeout(500)
    at_rest(page)
    page.evaluate(OPEN)
    findings["dark"] = axe(page, rules=["color-contrast"])  # all that a theme changes
    assert not any(findings.values()), findings


def fits_a_phone(page) -> None:
    at_rest(page)
    assert page.evaluate(SIDEBAR_RIGHT) <= 1
    assert page.evaluate(
        "() => { const m = document.querySelector('[data-testid=stMain]'); return m.scrollWidth <= m.clientWidth; }"
    )


def test_on_a_phone_the_pages_are_reached_with_the_sidebar_closed(page, address):
    page.set_viewport_size({"width": 390, "height": 844})
    page.goto(f"{address}/?text=A+dog+runs.&show=Bahdanau&tables=true", timeout=60_000)
    fits_a_phone(page)
    links = page.locator("nav.pages a")
    expect(links).to_have_text([shown.title for shown in PAGES_OF_THE_DASHBOARD], use_inner_text=True)
    page.evaluate("window.same = true")
    links.filter(has_text="Heads and layers").click()
    page.wait_for_selector(".st-key-chart-closeup")
    fits_a_phone(page)
    page.wait_for_function(f"({WIDER})().some(([wide]) => wide) && ({WIDER})().every(([wide, told]) => wide === told)")
    layer, head = (page.locator(f".st-key-{key}").bounding_box() for key in ("layer", "head"))
    assert 0 < head["y"] - layer["y"] - layer["height"] < 24  # below each other, without a hole between them
    links.filter(has_text="Inside a step").click()
    page.wait_for_selector(".st-key-chart-opened")
    assert page.evaluate("window.same")  # no new document: the session goes on
    expect(page.locator(".st-key-text input")).to_have_value("A dog runs.")
    assert page.evaluate(SIDEBAR_RIGHT) <= 1
    page.wait_for_function(
        """() => [...document.querySelectorAll('.katex-display')].some((formula) => formula.scrollWidth > innerWidth)
          && [...document.querySelectorAll('.katex-display')].every((formula) =>
            formula.scrollWidth <= formula.clientWidth || formula.tabIndex === 0)"""
    )  # what scrolls is reached by keys
    page.locator("[data-testid=stExpandSidebarButton]").click()
    page.wait_for_function(f"{SIDEBAR_RIGHT} >= 300")
    page.get_by_test_id("stSidebarNavLink").filter(has_text=re.compile("^Learn")).click()
    page.wait_for_function(f"{SIDEBAR_RIGHT} <= 1")  # a page that was chosen there is not left covered
    page.wait_for_url("**/learn*")
    page.set_viewport_size(serving.SCREEN)
    links.first.wait_for(state="hidden")  # where there is room, Streamlit has its own
