"""Downloads: every figure as HTML, and one zip of everything with a manifest that reopens the view."""

from __future__ import annotations

import functools

import streamlit as st

from attnviz import lazy_pandas as pd
from attnviz import stats
from attnviz.confidence import Judgement
from attnviz.export import bundle as export
from attnviz.export import html_page
from dashboard.choices.options import place_title
from dashboard.compare import printing
from dashboard.compare.caches import judgement
from dashboard.compare.pictures import makers
from dashboard.compare.scene import CompareScene
from dashboard.session import caches, memory
from dashboard.session.memory import Cursor
from dashboard.shell import downloads


def show(current: CompareScene, dark: bool) -> None:
    """The downloads. Nothing is built before it is asked for."""
    st.subheader("Download", divider="gray")
    cursor = memory.cursor(st.session_state)
    st.caption("Each chart has a PNG and an SVG button. The files below open offline.")
    with st.container(horizontal=True, vertical_alignment="bottom"):
        build = functools.partial(bundle, current, dark, cursor)
        words = "Figures as HTML, PNG and SVG, traces, cards, tables and a manifest; index.html shows what is there."
        downloads.zip_and_link(build, "attnviz.zip", "zip", words)
        st.download_button(
            "This page as one HTML",
            lambda: whole_page(current, cursor),
            "attnviz.html",
            "text/html",
            on_click="ignore",
            key="whole",
            help="Every model with its maps, the bars of each step and its statistics. It opens offline.",
        )
        if current.mapped:
            _figures(current, dark, cursor)
            printing.show(current, cursor)


def _figures(current: CompareScene, dark: bool, cursor: Cursor) -> None:
    """A button that opens a list: each figure as an HTML file."""
    with st.popover("One figure as HTML", key="figures", on_change="rerun") as popover:
        for name in makers(current, dark, cursor) if popover.open else ():
            st.download_button(
                name,
                functools.partial(page, current, dark, cursor, name),
                f"{export.figure_name(name)}.html",
                "text/html",
                on_click="ignore",
                key=f"html-{export.figure_name(name)}",
                type="tertiary",
            )


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
    from attnviz.export import printed  # matplotlib takes half a second: only for those who ask

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
    sheets_drawn = {name: make(printed.Style()) for name, make in printing.sheet_makers(current, cursor).items()}
    return export.bundle(
        figures,
        [column.shown for column in current.columns],
        tables,
        manifest(current, cursor),
        sheets=sheets_drawn,
        cards={column.model: caches.card(column.model) for column in current.columns},
        lines=["Figures and data of attnviz", *current.heading],
    )


def _judgements(current: CompareScene) -> dict[str, Judgement]:
    """model -> how usual its translation is for it; only of models that have thresholds."""
    judged = {column.trace.model: judgement(column.trace) for column in current.columns}
    return {model: each for model, each in judged.items() if each is not None}


def _confidence(model: str, judged: Judgement) -> pd.DataFrame:
    """A row of confidence.csv."""
    row = {"model": model, "level": judged.level, "risk": judged.risk, "reasons": " ".join(judged.reasons)}
    return pd.DataFrame(row, index=[0])


def manifest(current: CompareScene, cursor: Cursor) -> dict:
    """What is needed to see the same again."""
    chosen = current.choices.query() | {"step": place_title(cursor.step)}
    if cursor.difference in current.differences:
        chosen["subtract"] = "true"
        chosen["difference"] = current.difference_title(cursor.difference)
    return {
        "sentence": current.choices.text,
        "settings": current.choices.to_dict() | {"step": cursor.step, "difference": cursor.difference},
    } | downloads.reopening("", chosen, [column.model for column in current.columns])
