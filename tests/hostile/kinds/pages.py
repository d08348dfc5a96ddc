"""The one-file HTML of a trace with any tokens, in a real browser: no errors, and no wider than the window."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

import serving
from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace

WARM = (["a", "b"], ["c"], 0)
WIDTHS = (360, 1366)
LONG = (
    "a" * 500,
    "漢" * 300,
    "ا" * 400,
    "w" * 5000,
    "-" * 500,
    "a b " * 200,
    "🏳️‍🌈" * 99,
    "<b>" * 200,
    "\u00ad" * 500,
    "\n" * 90,
)


@contextlib.contextmanager
def around(place: Workplace) -> Iterator:
    """A page of a browser, which keeps the errors of scripts."""
    with serving.browser() as chrome:
        page = chrome.new_page()
        page.errors = []
        page.on("pageerror", lambda error: page.errors.append(str(error)))
        page.on("console", lambda line: page.errors.append(line.text) if line.type in ("error", "warning") else None)
        yield page


def strategy():
    token = st.one_of(st.sampled_from(LONG), strategies.texts, st.sampled_from(["a", "."]))
    tokens = st.lists(token, min_size=1, max_size=6)
    return st.tuples(tokens, st.one_of(st.none(), tokens), st.sampled_from(range(len(WIDTHS))))


def check(place: Workplace, case) -> None:
    import numpy as np

    import attnviz
    from attnviz.export import html_page

    keys, queries, width = case
    trace = None
    with contextlib.suppress(ValueError):  # the texts themselves are the matter of other kinds
        shape = (1, len(queries or keys), len(keys))
        trace = attnviz.from_arrays([np.full(shape, 1 / len(keys))], keys, queries, name=keys[0][:300])
    if trace is not None:
        path = place.folder / "page.html"
        path.write_bytes(html_page.page(trace))
        _open(place.around, path, WIDTHS[width])


def _open(page, path: Path, width: int) -> None:
    page.errors.clear()
    page.set_viewport_size({"width": width, "height": 800})
    page.goto(path.as_uri())
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length > 0 || window.failed")
    page.wait_for_function("[...document.querySelectorAll('figure > div')].every((figure) => figure.data)")
    if page.errors:
        raise Failure(f"errors in the browser: {page.errors[0]!r:.300}")
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    if wide > 0:
        raise Failure(f"the page is {wide} px wider than a window of {width} px")
