"""The page: one sentence through up to four mechanisms, side by side. Select, compute, draw, show."""

from collections.abc import Callable

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from attnviz import figures
from attnviz.figures.theme import lines
from attnviz.figures.wording import row_sentence
from attnviz.mechanisms import MECHANISMS
from dashboard import controls
from dashboard.browser.bridge import bridge
from dashboard.browser.plot import named, plots, stepped
from dashboard.choices.settings import Settings, title
from dashboard.compare import downloads, pictures, scene
from dashboard.compare.scene import Part, Scene, SceneError, Waiting
from dashboard.markup import card, parts, tables
from dashboard.session import state


@st.fragment
def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture.

    A fragment: a new sentence runs this again and leaves the sidebar alone.
    """
    settings = Settings(controls.sentence(fields["pair"]), **fields)
    notice = st.container(key="notice")
    current = _compose(settings, notice)
    if current is None:
        return
    dark = st.context.theme.type == "dark"
    for mechanism, problem in current.problems.items():
        notice.warning(parts.markdown(f"{title(mechanism)} is not shown. {problem}"), icon=":material/error:")
    hover = _maps(current, dark)
    _steps(current, hover, dark)
    _together(current, dark)
    downloads.show(current, dark)


def _compose(settings: Settings, notice) -> Scene | None:
    try:
        current = scene.compose(settings, state.trace)
    except SceneError as error:
        say = notice.info if isinstance(error, Waiting) else notice.error
        say(parts.markdown(str(error)), icon=":material/info:")
        last = state.last(st.session_state)
        if last is not None:
            notice.caption("Below is the last sentence that could be shown:")
            notice.text(last.settings.text)
        return last
    state.remember(current, st.session_state)
    return current


def _maps(current: Scene, dark: bool) -> list:
    """A column a mechanism: name, card, formula, translation, heatmap -> what the pointer is told over each cell of each map."""
    ink = _inks(current, dark)
    with st.container(key="maps"):  # style.css lays its columns out: all in a row, or two and two
        for column, part in zip(_columns(current), current.parts, strict=True):
            with column:
                st.html(parts.header(part, ink[part.title], card.show(state.card(part.trace.model))))
                st.markdown(f"${MECHANISMS[part.mechanism].formula}$")
        drawn = [_heatmap(part, dark) for part in current.parts]
        words = [parts.translation(part) + _shown(part) for part in current.parts]
        plots(list(zip(words, drawn, strict=True)), "heatmaps")
        _tables(current, tables.weights_table)
    return [figure and figure.data[0].hovertext for figure in drawn]


def _heatmap(part: Part, dark: bool) -> go.Figure | None:
    if part.grid is None:
        return None
    return named(pictures.heatmap(part, dark), f"heatmap {part.title}", dark, rows=True)


def _shown(part: Part) -> str:
    return parts.shown(part) if part.grid else parts.unattended(part, state.context_width(part.trace.model))


@st.fragment
def _steps(current: Scene, hover: list, dark: bool) -> None:
    """The step control and what follows from it. A fragment: moving the step draws the bars again and nothing else."""
    _step_control(current)
    index = state.place(st.session_state).step = st.session_state["step"] - 1
    bridge(index, current.steps, _go_to)
    ink = _inks(current, dark)
    stepped(
        [_bars(part, told, ink[part.title], dark) for part, told in zip(current.parts, hover, strict=True)],
        index,
        "step",
    )
    _tables(current, lambda part: tables.bars_table(part, index))


def _bars(part: Part, hover: list | None, ink: str, dark: bool) -> dict:
    """The bars of every step, for `stepped`; where there is no attention, its words alone."""
    grid, name = part.grid, parts.whose(part, ink)
    steps = [{"words": name + parts.step(part, i)} for i in range(len(part.queries))]
    cell = {"figure": None, "ended": name + parts.step(part, len(steps)), "steps": steps}
    if grid is None:
        return cell
    weights = np.where(grid.visible & np.isfinite(grid.weights), grid.weights.round(4).astype(object), None).tolist()
    for i, found in enumerate(steps):
        found |= {"weights": weights[i], "hover": hover[i], "spoken": row_sentence(grid, i)}
    blank = next((i for i, row in enumerate(weights) if not any(row)), 0)  # its note goes where it is not wanted
    return cell | {"figure": named(figures.step_bars(grid, blank, dark=dark), part.title, dark)}


def _inks(current: Scene, dark: bool) -> dict[str, str]:
    """The colour of each part, in all its charts."""
    return {name: line.color for name, line in lines([part.title for part in current.parts], dark).items()}


def _columns(current: Scene) -> list:
    return st.columns(len(current.parts), gap="medium")


def _tables(current: Scene, table: Callable[[Part], str]) -> None:
    """The text equivalents of a row of figures, when they are asked for."""
    if current.settings.tables:
        for column, part in zip(_columns(current), current.parts, strict=True):
            column.html(table(part) or "<p></p>")


def _step_control(current: Scene) -> None:
    steps = current.steps
    chosen = st.session_state["step"] if "step" in st.session_state else _linked_step()
    st.session_state["step"] = min(max(int(chosen), 1), steps)
    if steps > 1:
        st.slider(
            f"Step (1 to {steps}): {parts.step_meaning(current)}",
            1,
            steps,
            key="step",
            bind="query-params",
            help="One step is one row of each heatmap. Arrow keys move it; a click on a row goes there.",
        )


def _linked_step() -> int:
    """The step of the link that opened the page. The slider reads it too, but takes one beyond its end for none."""
    try:
        return int(st.query_params.get("step", 1))
    except ValueError:
        return 1


def _go_to(row: int) -> None:
    st.session_state["step"] = row + 1


def _together(current: Scene, dark: bool) -> None:
    """What compares the mechanisms: statistics by step, their means, and the difference of two maps."""
    st.subheader("Side by side", divider="gray")
    state.place(st.session_state).difference = None
    left_out = parts.left_out(current)
    if not current.mapped:
        st.html(left_out)
        return
    figure = figures.by_step(current.frames(), current.keys, tokens=False, dark=dark)
    plots([("", named(figure, "statistics by step", dark))], "by-step")
    if current.settings.tables:
        st.html("".join(tables.steps_table(part) for part in current.mapped))
    left, right = st.columns([3, 2], gap="large") if current.pairs else (st.container(), None)
    left.html(f'{left_out}<p class="small">{parts.steps_note(current)}</p>{tables.comparison_table(current)}')
    if right is not None:
        with right:
            _difference(current, dark)


def _difference(current: Scene, dark: bool) -> None:
    pair = st.selectbox(
        "Difference of two maps",
        current.pairs,
        format_func=current.difference_title,
        key="difference",
        bind="query-params",
    )
    state.place(st.session_state).difference = pair
    a, b = (current.parts[i] for i in pair)
    plots(
        [("", named(pictures.difference(a, b, dark), f"difference {current.difference_title(pair)}", dark))],
        "difference",
    )
    if current.settings.tables:
        st.html(tables.difference_table(a, b))
