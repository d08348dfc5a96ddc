"""What else the scores could have been: the same query through other score functions, and why dot products are scaled.

Each is worked out when it is opened.
"""

import html

import pandas as pd
import streamlit as st

from attnviz import inside
from attnviz.figures.inside import product_spread, score_functions
from attnviz.figures.inside.other_scores import rows as rows_of
from attnviz.figures import labels
from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName
from dashboard.browser.plot import named, plots
from dashboard.choices.options import model
from dashboard.inside import caches, kept
from dashboard.inside.panels.pictures import Opened
from dashboard.markup import tables
from dashboard.session import catalogue


def show(opened: list[Opened], dark: bool) -> None:
    """opened : the models that have the step."""
    recurrent = [shown for shown in opened if not shown.column.several]
    if recurrent:
        functions = st.expander(
            "The same query through other score functions", key="functions", on_change="rerun", bind="query-params"
        )
        if functions.open:
            with functions:
                _functions(recurrent, dark)
        else:
            kept.drop("functions")
    scaled = st.expander(
        "Why dot products are divided by the root of their width", key="scaled", on_change="rerun", bind="query-params"
    )
    if scaled.open:
        with scaled:
            _spread(dark)
    else:
        kept.drop("spread")


def _functions(opened: list[Opened], dark: bool) -> None:
    st.html(
        '<p class="small">The same state and the same annotations. A learnt score has the weights of the model that it '
        "names; they were learnt with other states, so this compares formulas, not models. Scores that do not fit the "
        "widths are left out.</p>"
    )
    frames = [(shown, caches.other_scores(shown.column, shown.step.step, _learnt(shown))) for shown in opened]
    figures = [
        (
            f"<h4>{html.escape(shown.column.title)}</h4>",
            named(score_functions(shown.step, frame, dark=dark), _name(shown), dark),
        )
        for shown, frame in frames
    ]
    plots(figures, "functions")
    kept.keep("functions", figures, [frame.assign(model=shown.column.model) for shown, frame in frames])
    st.html("".join(_functions_table(shown, frame) for shown, frame in frames))


def _name(shown: Opened) -> str:
    return f"other scores {shown.column.title}"


def _learnt(shown: Opened) -> tuple[str, ...]:
    """The other models of the pair that ship learnt scores."""
    name = ModelName.parse(shown.column.model)
    return tuple(
        model(name.pair, other)
        for other in catalogue.offered()[name.pair]
        if MECHANISMS[other].lends_its_score and other != name.mechanism
    )


def _functions_table(shown: Opened, frame) -> str:
    names, weights = rows_of(shown.step, frame)
    columns = [labels.plain(token.text) for token in shown.step.keys]
    rows = [(name, [f"{value:.2f}" for value in row]) for name, row in zip(names, weights.tolist())]
    caption = f"{shown.column.title}: weights of the same query through other scores"
    return tables.table(caption, columns, rows, ("en", shown.column.languages.source))


def _spread(dark: bool) -> None:
    frame = inside.spread(samples=300)
    figure = product_spread(frame, dark=dark)
    st.html(f'<p class="small">{html.escape(figure.description)}</p>')
    cells = [("", named(figure, "spread of dot products", dark))]
    plots(cells, "spread")
    kept.keep("spread", cells, [frame])
    st.html(spread_table(frame))


def spread_table(frame: pd.DataFrame) -> str:
    """The text equivalent of `product_spread`."""
    wide = frame.pivot(index="width", columns="scaled", values=["deviation", "max_weight"])
    rows = [(str(width), [f"{value:.2f}" for value in row]) for width, row in zip(wide.index, wide.to_numpy())]
    columns = [f"{name}, {how}" for name in ("spread", "largest weight") for how in ("q · k", "q · k / √d")]
    return tables.table("Sampled dot products by width", columns, rows)
