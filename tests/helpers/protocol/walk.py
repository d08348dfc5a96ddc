"""A visitor who does this and that on the dashboard, at random, from a seed."""

import random
from collections.abc import Callable, Iterator
from urllib.parse import urlencode, urljoin

from playwright.sync_api import Locator, Page

SENTENCES = (
    "A dog runs.",
    "Two boys play with a ball.",
    "Is Tom here?",
    "Rock & roll costs 100 % = a lot + more; isn't it #1?",
    "“Ça va?” she said — twice.",
    "A man sleeps.",
    "",
    "a b c d",
    "so " * 70,  # more than the models learnt
    "far " * 200,  # longer than the field may be
    "ox " * 160,  # more pieces than a model reads
)
# Links from elsewhere: to what a walk would seldom find by itself.
_LINKS = (
    ("heads", {"model": "Shakespeare by letters · written on · Self-attention"}),
    ("heads", {"model": "Sentiment of a sentence · Self-attention", "text": "A film like no other."}),
    ("", {"pair": "Reverse the sequence"}),
    ("", {"pair": "English → Japanese", "present": "true"}),
    ("", {"text": "A dog runs.", "present": "true"}),
    ("many", {"from": "Pasted", "lines": "A dog runs.\nA man sleeps."}),
    ("inside", {"show": "Luong general", "change": "by hand: drag the bars", "step": "2"}),
    ("learn", {"chapter": "6. Many heads at once"}),
)
_ANSWERS = ("Un chien court.", "Ein Hund rennt.", "")
_OF_VISIT = ("guess_words", "class_", "answer")  # what a person guesses and answers is in no address
_TOUR = "[class*=st-key-tour_] button, .st-key-tour_begin button"
_LEARN = ".st-key-turn button"
_OPEN = "[data-testid=stMain] a[target=_self]:not(nav a)"
_BUTTONS = ", ".join(
    f"[class*=st-key-{key}] button"
    for key in ("write_step", "write_back", "candidate", "own_weights", "leave", "measure")
)
_HEADS = ".st-key-chart-overview .plot"
_EXAMPLES = ".st-key-examples button"
_ROWS = ".st-key-chart-heatmaps .plot"
_KINDS = {
    "select": ":is([data-testid=stSelectbox], [data-testid=stMultiSelect]) input",
    "button": "[data-testid=stButtonGroup] button, [data-testid=stRadio] label, [data-testid=stPagination] button, "
    "[data-testid=stExpander] summary",
    "toggle": "[data-testid=stCheckbox] label",
    "slider": "[data-testid=stSlider] input[type=range]",
    "text": "[data-testid=stTextInput] input, [data-testid=stNumberInput] input, [data-testid=stTextArea] textarea",
}
_KEYS = r"""parts => parts.map((part) => {
  const place = part.closest("[class*=st-key-]");
  const offered = place?.checkVisibility() && !part.disabled && !part.querySelector?.(":disabled");
  return offered ? place.className.match(/st-key-(\S+)/)[1] : null;
})"""


class Walk:
    """rest : waits until the page is at rest. short : a walk in which most things are done once, and then no more;
    tests/browser/test_address.py goes forward, reloads, and takes an example.
    `step()` does one thing -> what it was."""

    def __init__(self, page: Page, seed: int, rest: Callable[[], None], short: bool = False):
        self._page, self._random, self.rest = page, random.Random(seed), rest
        doings = {  # with their weights in a long walk, and how often each is done in a short one
            self._turn: (10, 1),
            self._type: (14, 1),
            self._example: (7, 0),
            self._control: (34, 1),
            self._click("a tour button", _TOUR): (9, 1),
            self._click("a chapter button", _LEARN): (4, 1),
            self._click("a link", _OPEN): (4, 0),
            self._click("a button", _BUTTONS): (6, 0),
            self._in_picture("a row of a map", _ROWS): (3, 0),
            self._in_picture("a head of the overview", _HEADS): (3, 1),
            self._play: (2, 0),
            self._visit: (4, 1),
            self._history("go_back"): (12, 1),
            self._history("go_forward"): (5, 0),
            self._reload: (3, 0),
            self._copy: (3, 1),
        }
        self._weights = {doing: weight for doing, (weight, _) in doings.items()}
        self._left = [doing for doing, (_, count) in doings.items() for _ in range(count)] if short else None
        self._random.shuffle(self._left or [])

    def step(self) -> str:
        """Something that the page offers now; "" when a short walk has done all that it is offered."""
        for doing in self._next():
            if done := doing():
                if self._left:
                    self._left.remove(doing)
                self.rest()
                return done
        return ""

    def _next(self) -> Iterator[Callable[[], str | None]]:
        """What may be done now, in the order in which it is tried."""
        if self._left is not None:
            yield from list(self._left)
            return
        while True:
            yield from self._random.choices(list(self._weights), list(self._weights.values()))

    def _turn(self) -> str | None:
        return self._press("page", self._page.locator('[data-testid="stTopNavLink"]'))

    def _type(self) -> str | None:
        field = self._page.locator(".st-key-text :is(input, textarea)")
        if not field.count() or not field.is_visible():
            return None
        sentence = self._random.choice(SENTENCES)
        self._write(field, sentence)
        return f"type {sentence!r}"

    def _write(self, field: Locator, text: str) -> None:
        field.fill(text)
        field.press("Control+Enter" if field.evaluate("part => part.tagName") == "TEXTAREA" else "Enter")

    def _example(self) -> str | None:
        return self._press("example", self._page.locator(_EXAMPLES))

    def _click(self, name: str, selector: str) -> Callable[[], str | None]:
        return lambda: self._press(name, self._page.locator(selector))

    def _press(self, name: str, buttons: Locator) -> str | None:
        pressable = [button for button in buttons.all() if button.is_visible() and button.is_enabled()]
        if not pressable:
            return None
        button = self._random.choice(pressable)
        words = button.inner_text()
        button.click()
        return f"{name} {words!r}"

    def _in_picture(self, name: str, selector: str) -> Callable[[], str | None]:
        """A click somewhere in a picture."""

        def click() -> str | None:
            charts = [chart for chart in self._page.locator(selector).all() if chart.is_visible()]
            if not charts:
                return None
            area = self._random.choice(charts).locator(".nsewdrag").first
            area.scroll_into_view_if_needed()
            place = area.bounding_box()
            if not place:
                return None
            at = self._random.random(), self._random.random()
            self._page.mouse.click(place["x"] + at[0] * place["width"], place["y"] + at[1] * place["height"])
            self._page.mouse.move(0, 0)
            return name

        return click

    def _play(self) -> str | None:
        """A model writes on by itself, until it is told to pause or has ended."""
        button = self._page.locator(".st-key-play_writing button")
        if not button.count() or not button.is_enabled():
            return None
        button.click()
        self._page.wait_for_timeout(1500)
        if button.inner_text() == "Pause":
            button.click()
        return "play"

    def _visit(self) -> str:
        """A link from elsewhere."""
        path, query = self._random.choice(_LINKS)
        self._page.goto(urljoin(self._page.url, f"/{path}?{urlencode(query)}"))
        return f"visit /{path} {query}"

    def _history(self, way: str) -> Callable[[], str | None]:
        def go() -> str | None:
            if not self.may(way):
                return None
            self._page.evaluate("way => history.go(way)", {"go_back": -1, "go_forward": 1}[way])
            return way

        return go

    def may(self, way: str) -> bool:
        """Is there a stop before, or after? Whoever walks says so."""
        raise NotImplementedError

    def _reload(self) -> str:
        self._page.reload()
        return "reload"

    def _copy(self) -> str | None:
        button = self._page.locator(".copy-link").first
        if not button.count() or not button.is_visible():
            return None
        button.click()
        self._page.wait_for_function("document.querySelector('.copy-link')?.textContent === 'Link copied'")
        copied = self._page.evaluate("navigator.clipboard.readText()")
        if copied != self._page.url:
            raise AssertionError(f"copied {copied}, but the address is {self._page.url}")
        return "copy link"

    def _control(self) -> str | None:
        """Any control: what it offers is read from the page."""
        controls = list(self._controls())
        if not controls:
            return None
        key, kind, control = self._random.choice(controls)
        control.scroll_into_view_if_needed()
        done = {
            "button": self._push,
            "toggle": self._push,
            "select": self._select,
            "slider": self._slide,
            "text": self._fill,
        }[kind](control)
        return f"{key}: {done}"

    def _controls(self) -> Iterator[tuple[str, str, Locator]]:
        """The key of each control but the sentence, its kind, and where it is."""
        for kind, selector in _KINDS.items():
            parts = self._page.locator(selector)
            for place, key in enumerate(parts.evaluate_all(_KEYS)):
                if key and key != "text" and not key.startswith(_OF_VISIT):
                    yield key, kind, parts.nth(place)

    def _push(self, control: Locator) -> str:
        words = control.inner_text()
        control.click()
        return words

    def _select(self, control: Locator) -> str:
        control.click()
        options = self._page.get_by_role("option")
        options.first.wait_for()
        option = self._random.choice(options.all())
        words = option.inner_text()
        option.click()
        return words

    def _slide(self, control: Locator) -> str:
        key = self._random.choice(("ArrowRight", "ArrowRight", "ArrowLeft", "End", "Home"))
        control.press(key)
        return key

    def _fill(self, control: Locator) -> str:
        words = self._random.choice(_ANSWERS)
        if control.get_attribute("type") == "number":
            words = str(self._random.randrange(50))
        self._write(control, words)
        return words
