"""Figures on the page. `st.plotly_chart` mounts a new chart for every change and draws it twice, and each element costs
Streamlit a round of its own; together more than half of the time from Enter to drawn (tests/bench/page.py). This
component takes a row of figures with their words at once, keeps the charts, and updates each to its new figure in one
step. The index page loads Plotly and plot.js. `bridge` passes a page's settings to the other scripts: see
scripts/bridge.js. No frame, no network."""

import json
import zlib
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import streamlit as st

from attnviz.export import heading
from attnviz.export.bundle import figure_name
from attnviz.figures.chart import GAP, PER, Chart, counts, typed
from attnviz.figures.labels import named as named_tokens
from attnviz.figures.theme import palette
from attnviz.figures.wording import ROW_WORDS, row_looks, row_name
from attnviz.select import Grid
from dashboard.browser import script
from dashboard.choices import settings
from dashboard.session import memory

HALF = 440  # px of a column where two stand side by side


class Cell(NamedTuple):
    """words, below : above and below the figure, as HTML, escaped where it was made."""

    words: str
    figure: Chart | None = None
    below: str = ""


_component = st.components.v2.component(
    "attnviz_plot",
    html='<div class="cells"></div>',
    isolate_styles=False,
    js="export default (component) => window.__attnvizCharts && window.__attnvizCharts(component);",
)


def plots(cells: Sequence[Cell | tuple], key: str) -> str:
    """Show figures side by side, each between its words; a screen reader reads the description of a figure. Returns
    the name of what was sent, for `stepped`.

    A cell may be a plain tuple of the first fields of Cell.
    """
    content = packed([Cell(*cell)._asdict() for cell in cells])
    _component(key=f"chart-{key}", data=content)
    return f"{len(content)}-{content[-4:].hex()}"  # zlib ends with a checksum


def stepped(cells: Sequence[dict], row: int, maps: str, key: str) -> None:
    """Bars side by side that follow the step in the browser, without a request to the server. Weights and hover texts
    are read from the maps above them, which the browser has.

    A cell holds `figure` (the bars of any step; None for words alone), `ended` (words for a step that this text does
    not have) and `steps`: for each step its `words`; with a figure also `drawn`, the step in it, and `rows`, of
    `rows_of`. row : the step, from 0, to begin with. maps : what `plots` returned for the maps, one for each cell.
    """
    _component(key=f"chart-{key}", data=packed(cells, row=row, maps=maps, forms=FORMS))


FORMS = ROW_WORDS | {"step": heading.STEP}  # of sentences that the browser fills in


def rows_of(grid: Grid) -> dict[str, Any]:
    """Of which the browser makes the sentence on each row of a map (`row_sentences`), and the name of its step."""
    return {
        "row": row_name(grid).capitalize(),
        "looks": row_looks(grid, range(len(grid.queries))),
        "queries": named_tokens(grid.queries),
        "keys": named_tokens(grid.keys),
    }


def packed(cells: Sequence[dict], **others) -> bytes:
    """JSON in UTF-8, deflated, for plot.js: a fifth of the JSON, because the figures of a row have much in common.

    Streamlit sends bytes unchanged. It would serialise and sort JSON again to detect changes.
    """
    text = f'{json.dumps(others)[:-1]}{", " * bool(others)}"cells":[{",".join(map(_json, cells))}]}}'
    content = text.encode(errors="backslashreplace")  # half a surrogate pair as JSON writes it: \ud800
    return zlib.compress(content, 1)  # the slowest level makes it a tenth smaller, in three times as long


def _json(cell: dict) -> str:
    """A cell with its figure."""
    others = {name: value for name, value in cell.items() if name != "figure"}
    words = json.dumps(others, ensure_ascii=False, separators=(",", ":"))
    return f'{words[:-1]},"figure":{cell["figure"].text(_short) if cell["figure"] else "null"}}}'


def _short(value: Any) -> Any:
    """As `typed`, but numbers with four digits after the point as `counts`, in two bytes, where this changes none."""
    short = isinstance(value, np.ndarray) and value.dtype == np.float32 and _are_counts(value)
    return typed(counts(value)) | {"per": PER} if short else typed(value)


def _are_counts(values: np.ndarray) -> bool:
    numbers = values[~np.isnan(values)]
    if numbers.min(initial=0) < 0 or numbers.max(initial=0) * PER >= GAP - 0.5:
        return False
    return np.array_equal((np.rint(numbers * PER) / PER).astype(np.float32), numbers)


def named(
    figure: Chart, name: str, dark: bool, rows: bool = False, heads: bool = False, lines: Sequence[str] | None = None
) -> Chart:
    """The figure with the settings for bridge.js: its name in saved files. rows : does a click on a row go to that
    step? heads : are its cells heads that a click opens? lines : above it when it is saved (`attnviz.export.heading`);
    by default its name and the heading of the page."""
    lines = lines or [name[:1].upper() + name[1:], *memory.heading(st.session_state)]
    figure.name = name
    meta = {"name": figure_name(name), "label": name, "rows": rows, "heads": heads, "outline": palette(dark).outline}
    figure.mark(meta | {"saved": heading.changes(figure, lines)})
    return figure


_bridge = st.components.v2.component("attnviz_bridge", js=script("arguments.js"), isolate_styles=False)


def bridge(
    row: int = -1,
    steps: int = 1,
    on_row: Callable[[int], None] | None = None,
    head: tuple[int, int] | None = None,
    on_head: Callable[[int, int], None] | None = None,
    on_guesses: Callable[[str], None] = lambda rows: None,
) -> None:
    """Every page calls it once, after its charts: it adds their buttons, and a change of theme reruns the page. On the
    heatmaps it outlines the step, and calls `on_row` when a row is clicked.

    row : the step, from 0, until the slider of key `step` says otherwise; with one step there is no slider. -1: none.
    head : layer and head, outlined in the pictures of heads, where a click calls `on_head` with the two.
    on_guesses : is called with what another tab says was guessed there (guesses.js).
    """

    def row_clicked() -> None:
        picked = st.session_state["bridge"].get("row")
        if picked is not None and on_row is not None:
            on_row(int(picked))

    def head_clicked() -> None:
        picked = st.session_state["bridge"].get("head")
        if picked is not None and on_head is not None:
            on_head(*map(int, picked))

    result = _bridge(
        key="bridge",
        data={"row": row, "steps": steps, "head": head, "framed": _offers_frames()},
        on_row_change=row_clicked,
        on_head_change=head_clicked,
        on_theme_change=lambda: None,
        on_guesses_change=lambda: on_guesses(str(st.session_state["bridge"].get("guesses") or "")),
    )
    if result.get("theme"):
        st.rerun()


def _offers_frames() -> bool:
    """Do the charts have a button that copies the HTML of a frame?"""
    return bool(settings.frames()) and not st.context.is_embedded
