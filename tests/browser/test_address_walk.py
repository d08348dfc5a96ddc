"""Whatever a visitor does, the address holds what the page shows.

ATTNVIZ_WALK=200 runs a walk of 200 actions, ATTNVIZ_WALK_SEED another one.
"""

import os

import pytest
import script_runs
import serving
from playwright.sync_api import Error
from script_runs import ScriptRuns
from shown import difference, keeps_last_picture, shown
from walk import Walk

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers
SEED, ACTIONS = int(os.environ.get("ATTNVIZ_WALK_SEED", 48)), int(os.environ.get("ATTNVIZ_WALK", 200))
SHORT_SEED = 5
STILL = """() => document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'
  && !document.querySelector("[data-stale=true]")
  && document.querySelector('.plot, .st-key-notice, .st-key-turn, .st-key-race, .st-key-lesson_files, '
    + '.st-key-guess_buttons')"""
ANSWERED = {"name": "attnviz_tour", "value": "answered"}


class Visitor:
    """A page in a browser of its own."""

    def __init__(self, chrome, address: str, cookies: list | None = None):
        self.context = chrome.new_context(viewport=serving.SCREEN, reduced_motion="reduce")
        self.context.set_default_timeout(60_000)
        self.context.grant_permissions(["clipboard-read", "clipboard-write"], origin=address)
        if cookies:
            self.context.add_cookies([cookie | {"url": address} for cookie in cookies])
        self.page = self.context.new_page()
        self.runs = ScriptRuns(self.page)

    def rest(self) -> None:
        """Wait until the server has answered and all is drawn."""
        for _ in range(2):
            self.page.wait_for_timeout(120)
            self.runs.answered()
            self.page.wait_for_function(STILL, timeout=60_000, polling=100)

    def open(self, address: str) -> None:
        self.page.goto(address)
        self.rest()


class Stops(Walk):
    """A walk that knows which pages and sentences Back leads to."""

    def __init__(self, visitor: Visitor, seed: int, short: bool = False):
        super().__init__(visitor.page, seed, visitor.rest, short)
        self.stops, self.here, self._address = [], -1, ""

    def may(self, way: str) -> bool:
        return self.here > 0 if way == "go_back" else self.here + 1 < len(self.stops)

    def note(self, done: str, view: dict) -> str:
        """Take the last thing down -> what is wrong with where it led, empty where nothing is."""
        now, before, self._address = (view["page"], view["sentence"]), self._address, self._page.url
        if done in ("go_back", "go_forward"):
            self.here += 1 if done == "go_forward" else -1
            return "" if now == self.stops[self.here] else f"{done} led to {now}, not to {self.stops[self.here]}"
        opened = done.startswith(("a head", "visit")) and self._address != before
        if self.here < 0 or now != self.stops[self.here] or opened:
            del self.stops[self.here + 1 :]
            self.stops.append(now)
            self.here += 1
        return ""


class Fresh:
    """Somebody who opens the addresses of a walker anew. An address that both have seen alike is opened once."""

    def __init__(self, visitor: Visitor):
        self._visitor, self._views = visitor, {}

    def difference(self, walker: Visitor) -> tuple[str, dict]:
        """What the walker's page shows and a fresh one at its address does not, and the other way round; and what the
        fresh one shows. Where the walker's page keeps its last picture, the address is that of the picture."""
        address = walker.page.url
        anew = self._views.get(address)
        if anew and not _difference(shown(walker.page), anew):
            return "", anew
        self._visitor.open(address)
        for _ in range(150):  # a picture may be drawn a moment later, on a busy machine after seconds
            here, anew = shown(walker.page), shown(self._visitor.page)
            if not (differs := _difference(here, anew)):
                self._views[address] = anew
                return "", anew
            walker.page.wait_for_timeout(100)
        return differs, anew


def _difference(here: dict, anew: dict) -> str:
    if keeps_last_picture(here):
        here, anew = ({name: view[name] for name in ("page", "translations", "charts")} for view in (here, anew))
    return difference(here, anew)


def test_a_fresh_visit_to_the_address_shows_the_same_whatever_was_done(chrome, address):
    problem, done = walked(chrome, address, SHORT_SEED)
    assert not problem, problem
    assert len(done) > 6, done  # of 9, of which the last page may not offer all


def test_a_walk_without_an_answer_ends(chrome, address, monkeypatch):
    """It waited for ever: for a server that had gone, and for a page that had crashed."""
    monkeypatch.setattr(script_runs, "MOST", 0.2)
    visitor = Visitor(chrome, address)
    visitor.runs.waiting = True
    with pytest.raises(TimeoutError, match="^the server has not answered about:blank for 0.2 s$"):
        visitor.rest()
    with pytest.raises(Error):
        visitor.page.goto("chrome://crash")
    with pytest.raises(Error, match="Page crashed"):
        visitor.rest()
    visitor.context.close()


@pytest.mark.skipif("ATTNVIZ_WALK" not in os.environ, reason="a walk takes many minutes: ATTNVIZ_WALK=200 runs it")
def test_a_long_walk(chrome, address):
    problem, _ = walked(chrome, address, SEED, ACTIONS)
    assert not problem, problem


def walked(chrome, address: str, seed: int, actions: int | None = None) -> tuple[str, list[str]]:
    """What went wrong first, and after what, or ""; and all that was done. actions : of a long walk. A short one begins
    with one model, which is quicker."""
    walker, visitor, done = Visitor(chrome, address), Visitor(chrome, address, [ANSWERED]), ["open"]
    try:
        walker.open(address + ("/" if actions else "/?show=Bahdanau"))
        walk, fresh = Stops(walker, seed, short=actions is None), Fresh(visitor)
        walk.note("open", shown(walker.page))
        while (actions is None or len(done) <= actions) and (action := walk.step()):
            done.append(action)
            problem, anew = fresh.difference(walker)
            if problem := problem or walk.note(action, anew):
                return f"seed {seed}, action {len(done) - 1}, {walker.page.url}\n{problem}\nafter: {done[-8:]}", done
        return "", done
    except Exception as error:
        error.add_note(f"seed {seed}, after action {len(done) - 1}, {walker.page.url}: {done[-8:]}")
        raise
    finally:
        walker.context.close()
        visitor.context.close()
