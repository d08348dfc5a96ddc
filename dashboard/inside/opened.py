"""The computation of one step for every model: the query, scores, weights, weighted values, and the next tokens; below
them alternative scores."""

import pandas as pd
import streamlit as st

from attnviz import inside
from attnviz.figures import labels
from attnviz.figures.what_if import product_spread, score_functions, weights_by_score
from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName, without_prefix
from attnviz.trace import Token
from dashboard.browser.plot import Cell, bridge, named, plots
from dashboard.choices.options import model
from dashboard.inside import caches, downloads, pictures
from dashboard.inside.pictures import Opened
from dashboard.inside.scene import Column, InsideScene
from dashboard.markup import tables
from dashboard.markup.text import escape, markdown
from dashboard.session import address, catalogue
from dashboard.shell import frame
from dashboard.shell.problems import sentence

TITLE = "Inside one step"

LARGEST = -1  # among the options of the source token
_DRAWN = "step drawn"  # in the session: the step that the page has drawn
TEMPERATURES = (0.25, 0.5, 1.0, 2.0, 4.0)


@address.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader(TITLE, divider="gray")
    step = step_control(current)
    if st.session_state.get(_DRAWN, step) != step and _is_used_below():
        st.session_state[_DRAWN] = step
        st.rerun()  # the panels below are fragments of their own
    st.session_state[_DRAWN] = step
    bridge(step, current.steps, _go_to)
    left, middle, right = st.columns([2, 2, 2])
    with left:
        key = _key(current.columns[0], step)
    with middle:
        reference = _reference()
    with right:
        temperature = _temperature()
    named = None if key == LARGEST else current.columns[0].keys(step)[key]
    opened = [_open(column, step, key, named, (temperature, reference)) for column in current.columns]
    cells = pictures.cells(opened, dark)
    with st.container(key=f"linked{len(opened)}"):  # style.css: a column for each model
        plots(cells, "opened")
    frames = [frame for shown in opened if (frame := pictures.frame(shown)) is not None]
    downloads.offer("step", cells, frames)
    if frames:
        downloads.csv_button("step")
    open_steps = [shown for shown in opened if shown.step]
    for shown in open_steps:
        _formula(shown, len(opened) > 1)
    if current.choices.tables:
        st.html("".join(map(pictures.tables_of, opened)))
    _alternatives(open_steps, dark)


def _go_to(row: int) -> None:
    """A row of a map was clicked."""
    st.session_state["step"] = row + 1


def step_control(current: InsideScene) -> int:
    """The step, from 0."""
    frame.slider_value("step", 1, current.steps)
    if current.steps > 1:
        st.slider(
            f"Step (1 to {current.steps}): one target token",
            1,
            current.steps,
            key="step",
            bind="query-params",
            help="Move it with the arrow keys.",
        )
    if current.differs:
        option = current.columns[0].languages.output
        label = f"{option[0].upper()}{option[1:]}"
        how = f" To compare the same word, choose one text for all under “{label}” on the left."
        writes = any(column.writes for column in current.columns)
        st.caption(f"The models write different texts, so a step is not the same word in each.{'' if writes else how}")
    return st.session_state["step"] - 1


def _is_used_below() -> bool:
    """Does a panel below depend on the chosen step?"""
    session = st.session_state
    return bool(session.get("change") and (session.get("where") == "step" or session["change"] == "given"))


def _key(column: Column, step: int) -> int:
    """The token whose score is split into terms; all models of a pair read the same tokens."""
    words = f"{'Token' if column.writes else 'Source token'} whose score is taken apart"
    return frame.numbered(
        words, key="cell", names=labels.shown(column.keys(step)), none="the one with the largest weight"
    )


def _reference() -> str:
    """What the terms of a score are compared with."""
    return st.selectbox(
        "Compared with",
        list(inside.REFERENCES),
        format_func=inside.REFERENCES.get,
        key="versus",
        bind="query-params",
        help="The softmax sees only differences between scores. What every token has in common does not count.",
    )


def _temperature() -> float:
    return st.select_slider(
        "Temperature of the softmax",
        TEMPERATURES,
        1.0,
        format_func="{:g}".format,
        key="heat",
        bind="query-params",
        help="The same scores are divided by it before the softmax. 1 is the model. Weights, context and formula "
        "follow. To decode with it, see “Change attention”.",
    )


def _open(column: Column, step: int, key: int, named: Token | None, chosen: tuple[float, str]) -> Opened:
    """The step of a model, or the reason why there is none. key, named : the token whose score is split; a model with
    another token there shows the one with the largest weight. chosen : temperature and reference."""
    count = len(column.trace.target)
    if step >= count:
        return Opened(column, None, 0, *chosen, f"This text ends after {count} steps.")
    if column.head is None:
        return Opened(column, None, 0, *chosen, pictures.OF_MEAN, step)
    try:
        open_steps = caches.step(column, step)
    except ValueError as error:
        return Opened(column, None, 0, *chosen, sentence(without_prefix(str(error))), step)
    theirs = open_steps.keys[key : key + 1] if named else ()
    is_there = [token.text for token in theirs] == [named and named.text]
    return Opened(column, open_steps, key if is_there else int(open_steps.weights.argmax()), *chosen)


def _formula(shown: Opened, named: bool) -> None:
    if named:
        st.caption(markdown(shown.column.title))
    formula = inside.formula(shown.step, shown.key, shown.reference, shown.temperature)
    st.latex(formula.replace(r"\qquad", r"\\[0.6em]"))  # the score, and its weight below it
    st.html(f'<p class="small">{escape(inside.symbols(shown.step))}</p>')


def _alternatives(opened: list[Opened], dark: bool) -> None:
    """The same query with other score functions, and why dot products are scaled. Both are computed when opened. opened
    : the models that have the step."""
    recurrent = [shown for shown in opened if not shown.column.several]
    if recurrent:
        functions = st.expander(
            "The same query through other score functions", key="functions", on_change="rerun", bind="query-params"
        )
        if functions.open:
            with functions:
                _functions(recurrent, dark)
        else:
            downloads.drop("functions")
    scaled = st.expander(
        "Why dot products are divided by the root of their width", key="scaled", on_change="rerun", bind="query-params"
    )
    if scaled.open:
        with scaled:
            _spread(dark)
    else:
        downloads.drop("spread")


def _functions(opened: list[Opened], dark: bool) -> None:
    st.html(
        '<p class="small">The same state and the same annotations. A learnt score has the weights of the model that it '
        "names; they were learnt with other states, so this compares formulas, not models. Scores that do not fit the "
        "widths are left out.</p>"
    )
    frames = [(shown, caches.other_scores(shown.column, shown.step.step, _learnt(shown))) for shown in opened]
    cells = []
    for shown, scores in frames:
        figure, title = score_functions(shown.step, scores, dark=dark), shown.column.title
        cells.append(Cell(f"<h4>{escape(title)}</h4>", named(figure, f"other scores {title}", dark)))
    plots(cells, "functions")
    downloads.offer("functions", cells, [scores.assign(model=shown.column.model) for shown, scores in frames])
    st.html("".join(_functions_table(shown, scores) for shown, scores in frames))


def _learnt(shown: Opened) -> tuple[str, ...]:
    """The other models of the pair that ship learnt scores."""
    name = ModelName.parse(shown.column.model)
    return tuple(
        model(name.pair, other)
        for other in catalogue.offered()[name.pair]
        if MECHANISMS[other].lends_its_score and other != name.mechanism
    )


def _functions_table(shown: Opened, frame) -> str:
    names, weights = weights_by_score(shown.step, frame)
    columns = labels.shown(shown.step.keys)
    caption = f"{shown.column.title}: weights of the same query through other scores"
    rows = tables.of_numbers(names, weights.tolist(), ".2f")
    return tables.table(caption, columns, rows, ("en", shown.column.languages.source))


def _spread(dark: bool) -> None:
    frame = inside.spread(samples=300)
    figure = product_spread(frame, dark=dark)
    st.html(f'<p class="small">{escape(figure.description)}</p>')
    cells = [Cell("", named(figure, "spread of dot products", dark))]
    plots(cells, "spread")
    downloads.offer("spread", cells, [frame])
    st.html(spread_table(frame))


def spread_table(frame: pd.DataFrame) -> str:
    """The text equivalent of `product_spread`."""
    wide = frame.pivot(index="width", columns="scaled", values=["deviation", "max_weight"])
    rows = tables.of_numbers(map(str, wide.index), wide.to_numpy(), ".2f")
    columns = [f"{name}, {how}" for name in ("spread", "largest weight") for how in ("q · k", "q · k / √d")]
    return tables.table("Sampled dot products by width", columns, rows)
