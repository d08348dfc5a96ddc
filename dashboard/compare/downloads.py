"""Downloads: every figure as HTML, one zip of everything with a manifest that reopens the view, and pictures for slides
and papers: true vectors in the size of the paper, light or dark independent of the page.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable

import streamlit as st

from attnviz import lazy_pandas as pd
from attnviz import select, stats
from attnviz.confidence import Judgement
from attnviz.export import bundle as export
from attnviz.export import html_page
from attnviz.export.bundle import figure_name
from dashboard.choices.options import place_title
from dashboard.compare.caches import judge, judgement
from dashboard.compare.pictures import makers
from dashboard.compare.scene import Column, CompareScene
from dashboard.markup.text import escape
from dashboard.session import address, caches, memory
from dashboard.session.memory import Cursor
from dashboard.shell import downloads

SIZES = {"slide": "slide 16:9", "column": "column, 8.5 cm", "page": "page, 17 cm"}  # of attnviz.export.printed
FORMATS = ("pdf", "svg", "png", "tex")  # the usual first
FITTING = (
    "A picture keeps to its sheet. What does not fit is set in smaller type, then long lines are cut (the file's "
    "description has them whole) and every second, third … token is named. In a PDF the rows of a map go on over "
    "several sheets where its columns have room for their names, and so do several maps that are too small on one."
)
_OFFERED = "pictures on offer"  # in the session


def show(current: CompareScene, dark: bool) -> None:
    """Show the downloads. Files are built only on request."""
    st.subheader("Download", divider="gray")
    cursor = memory.cursor(st.session_state)
    st.caption("Each chart has a PNG and an SVG button. The files below open offline.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        build = functools.partial(bundle, current, dark, cursor)
        words = "Figures as HTML, PNG and SVG, traces, cards, tables and a manifest; index.html shows what is there."
        downloads.zip_and_link(build, "attnviz.zip", "zip", words)
        words = "Every model with its maps, the bars of each step and its statistics. It opens offline."
        build = functools.partial(whole_page, current, cursor)
        downloads.button("This page as one HTML", build, "attnviz.html", key="whole", help=words)
        if current.mapped:
            _figures(current, dark, cursor)
            _pictures(current, cursor)


def _figures(current: CompareScene, dark: bool, cursor: Cursor) -> None:
    """A button that opens a list: each figure as an HTML file."""
    with st.popover("One figure as HTML", key="figures", on_change="rerun") as popover:
        for name in makers(current, dark, cursor) if popover.open else ():
            build, file = functools.partial(page, current, dark, cursor, name), figure_name(name)
            downloads.button(name, build, f"{file}.html", f"html-{file}", type="tertiary")


def whole_page(current: CompareScene, cursor: Cursor) -> bytes:
    """All models beside each other in one HTML file of about 1 MB, at the step of the page."""
    shown = [column.shown for column in current.columns]
    notes = {model: judged.lines for model, judged in _judgements(current).items()}
    windows = (
        {} if current.choices.words else {column.model: caches.windows(column.trace) for column in current.columns}
    )
    unit = current.columns[0].languages.unit
    return html_page.page(*shown, notes=notes, windows=windows, unit=unit, step=cursor.step)


def page(current: CompareScene, dark: bool, cursor: Cursor, name: str) -> bytes:
    """One figure as an HTML file."""
    return export.figure_html(makers(current, dark, cursor)[name](), name)


def bundle(current: CompareScene, dark: bool, cursor: Cursor) -> bytes:
    """The zip of the view."""
    mapped = [column.shown for column in current.mapped]
    frames = {
        "statistics": [stats.steps(trace) for trace in mapped],
        "statistics-on-screen": list(current.frames().values()),
        "summary": [stats.summary(trace) for trace in mapped],
        "weights": [stats.weights(trace) for trace in mapped],
    }
    frames["confidence"] = [_confidence(model, judged) for model, judged in _judgements(current).items()]
    tables = {name: pd.concat(listed, ignore_index=True) for name, listed in frames.items() if listed}
    figures = {name: make() for name, make in makers(current, dark, cursor).items()}
    sheets_drawn = {name: make(_printed().Style()) for name, make in sheet_makers(current, cursor).items()}
    return export.bundle(
        figures,
        [column.shown for column in current.columns],
        tables,
        manifest(current, cursor),
        sheets=sheets_drawn,
        cards={column.model: card for column in current.columns if (card := caches.card(column.model))},
        lines=["Figures and data of attnviz", *current.heading],
    )


def _judgements(current: CompareScene) -> dict[str, Judgement]:
    """model -> its judgement of its translation; only for models with thresholds."""
    judged = ((column.trace.model, judgement(column.trace, judge(column.model))) for column in current.columns)
    return {model: its_judgement for model, its_judgement in judged if its_judgement is not None}


def _confidence(model: str, judged: Judgement) -> pd.DataFrame:
    """A row of confidence.csv."""
    row = {"model": model, "level": judged.level, "risk": judged.risk, "reasons": " ".join(judged.reasons)}
    return pd.DataFrame(row, index=[0])


def manifest(current: CompareScene, cursor: Cursor) -> dict:
    """The data needed to reproduce the view."""
    chosen = current.choices.query() | {"step": place_title(cursor.step)}
    if cursor.difference in current.differences:
        chosen["subtract"] = "true"
        chosen["difference"] = current.difference_title(cursor.difference)
    return {
        "sentence": current.choices.text,
        "settings": downloads.without_folders(current.choices.to_dict())
        | {"step": cursor.step, "difference": cursor.difference},
    } | downloads.reopening("", chosen, [column.model for column in current.columns])


class Picture:
    """A picture that is drawn once, when its file or its notes are first requested; the file is requested on another
    thread than the page's."""

    def __init__(self, make: Callable, fmt: str, size: str, font: float | None, dark: bool):
        self._make, self._fmt, self._style = make, fmt, (size, font, dark)
        self._lock, self._sheet = threading.Lock(), None

    def sheet(self):
        """The `printed.Sheet` that `make` draws."""
        with self._lock:
            if self._sheet is None:
                self._sheet = self._make(_printed().Style(*self._style))
            return self._sheet

    def save(self) -> bytes:
        return self.sheet().save(self._fmt)


def _pictures(current: CompareScene, cursor: Cursor) -> None:
    """A button that opens the choices, and a download for each picture."""
    with st.popover("Pictures for slides and papers", key="printed", on_change="rerun") as popover:
        if popover.open:
            _offer(current, cursor)
        else:
            st.session_state.pop(_OFFERED, None)


@address.fragment
def _offer(current: CompareScene, cursor: Cursor) -> None:
    """Offer a picture. It is drawn when downloaded; then a note below its button lists what did not fit."""
    st.caption("With title, sentence, translation, mechanism and model. PDF, SVG and TeX keep text as text.")
    st.caption(FITTING)
    size = st.segmented_control(
        "Size", list(SIZES), default="page", format_func=SIZES.get, required=True, key="print_size"
    )
    fmt = st.segmented_control(
        "Format", FORMATS, default="pdf", format_func=str.upper, required=True, key="print_format"
    )
    font = st.number_input(
        "Font size in points", 4.0, 40.0, None, 1.0, key="print_font", placeholder="the default for this width"
    )
    dark = st.toggle("Dark background", key="print_dark")
    framed = st.toggle("Frame the row of the step", key="print_step")
    before, offered = st.session_state.get(_OFFERED, {}), {}
    for name, make in sheet_makers(current, cursor, framed).items():
        offered[name] = Picture(make, fmt, size, font, dark)
        pressed = st.download_button(
            f"{name}.{fmt}",
            offered[name].save,
            f"{figure_name(f'{name} {size}')}.{fmt}",
            downloads.TYPES[fmt],
            key=f"print-{figure_name(name)}",
            type="tertiary",
        )
        if pressed and name in before:  # the browser has the button of the run before this one
            st.html(_notes(name, before[name].sheet().notes))
    st.session_state[_OFFERED] = offered


def _notes(name: str, notes: tuple[str, ...]) -> str:
    words = " ".join(notes) or "All of it fits, in the type that was chosen."
    return f'<p class="small" role="status">{escape(f"{name}: {words}")}</p>'


def sheet_makers(current: CompareScene, cursor: Cursor, framed: bool = False) -> dict[str, Callable]:
    """name -> a function that draws it in a style (`printed.Style` -> `printed.Sheet`). The names are those of
    `pictures.makers`, and one for all maps together.

    framed : outline the row of the step in each map. The step is the current one at the time of drawing; a shorter text
    shows the bars of its last step.
    """
    result: dict[str, Callable] = {}
    for column in current.mapped:
        result[f"Heatmap {column.title}"] = functools.partial(_map, column, cursor if framed else None)
        result[f"Step bars {column.title}"] = functools.partial(_step_bars, column, cursor)
    if len(current.mapped) > 1:
        result["Maps beside each other"] = functools.partial(_maps, current)
    if current.mapped:
        result["Statistics by step"] = functools.partial(_statistics, current)
    if cursor.difference in current.differences:
        a, b = (current.columns[i] for i in cursor.difference)
        result[f"Difference {a.title} minus {b.title}"] = functools.partial(_difference, a, b)
    return result


def _printed():
    """`attnviz.export.printed`: matplotlib takes half a second to import, so only for those who print."""
    from attnviz.export import printed

    return printed


def _map(column: Column, framed: Cursor | None, style):
    step = framed.step if framed and framed.step < len(column.grid.queries) else None
    links = column.links and column.links.cells
    return _printed().of_map(column.shown, column.grid, style, step=step, links=links, windows=column.windows)


def _maps(current: CompareScene, style):
    return _printed().of_maps({column.title: (column.shown, column.grid) for column in current.mapped}, style)


def _step_bars(column: Column, cursor: Cursor, style):
    step = min(cursor.step, len(column.grid.queries) - 1)
    window = column.windows[step] if column.windows else None
    return _printed().of_step(column.shown, column.grid, step, style, window=window)


def _statistics(current: CompareScene, style):
    traces = {column.title: column.shown for column in current.mapped}
    return _printed().of_statistics(traces, current.frames(), current.keys, style)


def _difference(a: Column, b: Column, style):
    values = select.difference(a.grid, b.grid)
    return _printed().of_difference(a.shown, b.shown, values, a.grid, (a.title, b.title), style)
