"""The page: one sentence through up to three mechanisms, side by side. Select, compute, draw, show."""

from collections.abc import Callable

import plotly.graph_objects as go
import streamlit as st

from attnviz import figures
from attnviz.export import figure_name
from attnviz.figures.theme import lines, palette
from attnviz.models import MECHANISMS
from dashboard import controls, scene, state
from dashboard.bridge import bridge
from dashboard.plot import load_plotly, plot
from dashboard.scene import Scene, SceneError
from dashboard.settings import Settings, title
from dashboard.views import downloads, parts, pictures

def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices; a text that fails leaves the last good picture."""
    load_plotly()
    settings = Settings(controls.sentence(), **fields)
    notice = st.container(key="notice")
    current = _compose(settings, notice)
    if current is None:
        return
    dark = st.context.theme.type == "dark"
    for mechanism, problem in current.problems.items():
        notice.warning(parts.markdown(f"{title(mechanism)} is not shown. {problem}"), icon=":material/error:")
    _maps(current, dark)
    _steps(current, dark)
    _together(current, dark)
    downloads.show(current, dark)


def _compose(settings: Settings, notice) -> Scene | None:
    try:
        current = scene.compose(settings, state.trace)
    except SceneError as error:
        notice.error(parts.markdown(str(error)), icon=":material/info:")
        last = state.last(st.session_state)
        if last is not None:
            notice.caption("Below is the last sentence that could be shown:")
            notice.text(last.settings.text)
        return last
    state.remember(current, st.session_state)
    return current


def _maps(current: Scene, dark: bool) -> None:
    """A column a mechanism: name, formula, translation, heatmap."""
    ink = lines([part.title for part in current.parts], dark)
    for column, part in zip(st.columns(len(current.parts), gap="medium"), current.parts, strict=True):
        with column:
            st.html(parts.header(part, ink[part.title].color))
            st.latex(MECHANISMS[part.mechanism].formula)
            st.html(parts.translation(part) + parts.shown(part))
            figure = figures.heatmap(part.grid, dark=dark)
            chart(figure, f"heatmap {part.title}", f"heatmap-{part.mechanism}", dark, rows=True)
            _as_table(f"Weights of {part.title}", f"heatmap-{part.mechanism}", lambda part=part: parts.weights_table(part))


@st.fragment
def _steps(current: Scene, dark: bool) -> None:
    """The step control and what follows from it. A fragment: moving the step draws the bars again and nothing else."""
    _step_control(current.steps)
    index = state.place(st.session_state).step = st.session_state["step"] - 1
    bridge(index, _go_to)
    for column, part in zip(st.columns(len(current.parts), gap="medium"), current.parts, strict=True):
        with column:
            st.html(parts.step(part, index))
            if index < len(part.grid.queries):
                figure = figures.step_bars(part.grid, index, dark=dark)
                chart(figure, f"step {index + 1} {part.title}", f"step-{part.mechanism}", dark)
                _as_table(f"Step of {part.title}", f"bars-{part.mechanism}", lambda part=part: parts.bars_table(part, index))


def _step_control(steps: int) -> None:
    chosen = st.session_state.get("step", 1)
    st.session_state["step"] = min(max(int(chosen), 1), steps)
    if steps > 1:
        st.slider(
            f"Step (1 to {steps}): which target token is produced", 1, steps, key="step", bind="query-params",
            help="One step produces one target token: a row of each heatmap. Arrow keys move it; a click on a row goes there.",
        )  # fmt: skip


def _go_to(row: int) -> None:
    st.session_state["step"] = row + 1


def _together(current: Scene, dark: bool) -> None:
    """What compares the mechanisms: statistics by step, their means, and the difference of two maps."""
    st.subheader("Side by side", divider="gray")
    chart(figures.by_step(current.frames(), current.keys, dark=dark), "statistics by step", "by-step", dark)
    uniform = f"Dotted: uniform attention over {current.keys} tokens. " if current.keys else ""
    st.caption(
        f"{uniform}Effective positions = exp(entropy): how many positions an even spread of the same entropy would cover."
    )
    _as_table("Statistics by step", "by-step", lambda: "".join(parts.steps_table(part) for part in current.parts))
    left, right = st.columns([3, 2], gap="large") if current.pairs else (st.container(), None)
    left.html(parts.comparison_table(current))
    state.place(st.session_state).difference = None
    if right is not None:
        with right:
            _difference(current, dark)


def _difference(current: Scene, dark: bool) -> None:
    pair = st.selectbox(
        "Difference of two maps", current.pairs, format_func=current.difference_title, key="difference", bind="query-params"
    )
    state.place(st.session_state).difference = pair
    a, b = (current.parts[i] for i in pair)
    chart(pictures.difference(a, b, dark), f"difference {current.difference_title(pair)}", "difference", dark)
    _as_table("Difference", "difference", lambda: parts.difference_table(a, b))


def chart(figure: go.Figure, name: str, key: str, dark: bool, rows: bool = False) -> None:
    """Show a figure; an equal one is not drawn again. rows : its rows are steps, and a click goes there (see bridge.js)."""
    meta = figure.layout.meta
    figure.layout.meta = {"name": figure_name(name), "label": name, "rows": rows, "outline": palette(dark).outline, **meta}
    plot(figure, f"chart-{key}")


def _as_table(what: str, key: str, build: Callable[[], str]) -> None:
    """The numbers behind a chart, made when they are asked for."""
    with st.expander(f"{what} as a table", key=f"table-{key}", on_change="rerun", type="compact") as numbers:
        if numbers.open:
            st.html(build())
