"""One server and one Chromium for all browser tests; a page of its own for each."""

from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import serving
from playwright.sync_api import Locator, Page
from script_runs import ScriptRuns

READY = """n => {
  const charts = [...document.querySelectorAll('.plot')]
    .filter((chart) => !chart.hidden && chart._fullLayout && chart.meta?.name);
  return charts.length === n && !document.querySelector('[data-stale=true]') && window.__attnviz
    && document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning';
}"""

_AXE = """async ([within, rules]) => (await axe.run(within ?? document, {
  resultTypes: ["violations"], ...(rules && { runOnly: rules }),
})).violations.map(
  (rule) => `${rule.impact} ${rule.id}: ${rule.nodes.map((node) => node.html.slice(0, 120)).join(" ")}`)"""


@dataclass
class Dashboard:
    """The page as a person meets it."""

    page: Page
    address: str
    runs: ScriptRuns
    opened: str = ""  # the whole address when `view` had opened it
    errors: list[str] = field(default_factory=list)  # of the console, of scripts, and requests that left this machine

    def open(self, query: str = "", charts: int = 7) -> "Dashboard":
        self.page.goto(self.address + query, timeout=60_000)
        return self.drawn(charts)

    def drawn(self, charts: int = 7) -> "Dashboard":
        """Wait until the page shows this many charts and is at rest, and still is a moment later: a run may begin
        late."""
        for _ in range(2):
            self.rest()
            self.page.wait_for_function(READY, arg=charts, timeout=60_000)
        return self

    def rest(self) -> None:
        """Wait until the server has answered all that the page asked, or is about to ask."""
        self.page.wait_for_timeout(110)
        self.runs.answered()

    def type(self, text: str) -> None:
        self.sentence.fill(text)
        self.sentence.press("Enter")

    @property
    def sentence(self) -> Locator:
        return self.page.locator(".st-key-text input")

    @property
    def translations(self) -> list[str]:
        return [text.split("\n")[0] for text in self.page.locator(".said").all_inner_texts()]

    @property
    def step(self) -> int:
        return int(self.slider.input_value())

    @property
    def slider(self) -> Locator:
        return self.page.locator(".st-key-step input[type=range]")

    @property
    def notice(self) -> str:
        return self.page.locator(".st-key-notice").inner_text() if self.page.locator(".st-key-notice").count() else ""

    def choose(self, key: str, option: str) -> None:
        """Take an option of a select box."""
        box = self.page.locator(f".st-key-{key} [role=combobox], .st-key-{key} input").first
        wanted = self.page.get_by_role("option", name=option, exact=True)
        box.scroll_into_view_if_needed()
        box.click()
        if not wanted.is_visible():
            box.press("ArrowDown")  # a list that scrolling has closed opens again
        wanted.click()

    def press(self, key: str, button: str) -> None:
        """Press one of a group of buttons."""
        self.page.locator(f".st-key-{key}").get_by_role("radio", name=button, exact=True).or_(
            self.page.locator(f".st-key-{key}").get_by_role("button", name=button, exact=True)
        ).first.click()

    def heatmaps(self) -> list[dict]:
        """Tokens and weights of each heatmap, as Plotly holds them."""
        return self.page.evaluate("""() => [...document.querySelectorAll('.plot')]
          .filter((chart) => !chart.hidden && chart._fullLayout && chart.meta.rows)
          .map((chart) => ({
            queries: chart._fullLayout.yaxis.ticktext, keys: chart._fullLayout.xaxis.ticktext,
            weights: [...chart._fullData[0].z].map((row) => [...row]),
          }))""")


@pytest.fixture(scope="session")
def address():
    with serving.server() as address:
        yield address


def _listen(page: Page, address: str) -> tuple[Dashboard, Callable[[], None]]:
    """A dashboard that writes errors down -> it, and what makes it stop."""
    dashboard = Dashboard(page, address, ScriptRuns(page))
    errors = dashboard.errors
    ears = {
        "console": lambda message: errors.append(message.text) if message.type == "error" else None,
        "pageerror": lambda error: errors.append(str(error)),
        "request": lambda request: errors.append(request.url) if _leaves(request.url) else None,
    }
    for event, hear in ears.items():
        page.on(event, hear)

    def stop() -> None:
        page.evaluate("0")  # what the page has said so far arrives before the answer
        for event, hear in ears.items():
            page.remove_listener(event, hear)
        dashboard.runs.forget()

    return dashboard, stop


@pytest.fixture(scope="session")
def axe():
    """axe(page, within=None, rules=None): what axe-core finds on a page of whatever impact, each in a line.

    within : a CSS selector, of the part to look at. rules : the names of those to check; a page has 10 s to keep them.
    See vendor/."""
    script = (Path(__file__).parent / "vendor" / "axe.min.js").read_text(encoding="utf-8")

    def findings(page: Page, within: str | None = None, rules: list[str] | None = None) -> list[str]:
        if not page.evaluate("() => 'axe' in window"):
            page.evaluate(script)
        faults = page.evaluate(_AXE, [within, rules])
        for _ in range(20 if rules else 0):
            if faults:  # on a busy machine the colours of another theme come one after the other
                page.wait_for_timeout(500)
                faults = page.evaluate(_AXE, [within, rules])
        return faults

    return findings


def _leaves(url: str) -> bool:
    return url.startswith(("http", "ws")) and "//localhost:" not in url


@pytest.fixture(scope="session")
def look(tab):
    """with look(address) as dashboard: a fresh page; whatever is done there, the console must be free of errors and
    nothing may leave the machine."""

    @contextmanager
    def opened(address: str):
        with tab(address) as page:
            dashboard, stop = _listen(page, address)
            yield dashboard
            stop()
            assert dashboard.errors == []

    return opened


@pytest.fixture(scope="session")
def opened_pages():
    """Query of the address -> the page that `view` has opened there."""
    return {}


@pytest.fixture
def view(opened_pages, visitor, address, request):
    """view(query, charts): a page with this query in its address, for tests that change only what stands there too. It
    is kept for the next test that wants it, and opened again if the address has changed: to open a page takes seconds.
    as_left : whatever the tests before have changed may stay."""
    used, failed = set(), request.session.testsfailed

    def opened(query: str = "", charts: int = 7, as_left: bool = False) -> Dashboard:
        if query not in opened_pages:
            opened_pages[query] = _listen(visitor(address).new_page(), address)[0]
        dashboard = opened_pages[query]
        used.add(query)
        dashboard.page.bring_to_front()
        if not dashboard.opened or (not as_left and dashboard.page.url != dashboard.opened):
            dashboard.opened = dashboard.open(query, charts).page.url
        return dashboard

    yield opened
    if request.session.testsfailed > failed:
        for query in used:
            opened_pages.pop(query).page.close()
        return
    for query in used:
        opened_pages[query].page.evaluate("0")  # what it has said so far arrives before the answer
        assert opened_pages[query].errors == []


@pytest.fixture
def dashboard(look, address):
    """A fresh page."""
    with look(address) as dashboard:
        yield dashboard
