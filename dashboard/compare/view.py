"""The page that compares up to four mechanisms on one sentence, side by side. Select, compute, draw, show."""

import contextlib
import functools
import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import streamlit as st

from attnviz import figures
from attnviz.export import heading
from attnviz.figures.bars import window_shapes
from attnviz.figures.labels import columns as width
from attnviz.figures.learning import over_time
from attnviz.figures.maps import DASHED
from attnviz.figures.theme import lines
from attnviz.models.names import is_hugging_face
from attnviz.service import ServiceError
from dashboard.browser.plot import Cell, bridge, named, plots, rows_of, stepped
from dashboard.choices.options import LIMIT, OWN, TYPED, model, title
from dashboard.compare import caches as confidence
from dashboard.compare import captions, downloads, guessing, pictures, scene, sidebar, tour
from dashboard.compare.captions import sign
from dashboard.compare.scene import Column, CompareChoices, CompareScene
from dashboard.markup import terms
from dashboard.markup.text import escape, reading, step_link
from dashboard.session import address, caches, memory
from dashboard.shell import frame, side_by_side, widgets
from dashboard.shell.problems import Wanted

# How much larger type is in a presentation, and px that a plot may be high: all fits on a screen of 1920 by 1080.
PRESENTED_MAP, PRESENTED_BARS = (1.35, 270), (1.25, 95)
# The room for translations there: letters in a line over the whole screen, large and smaller, and px of a smaller line.
LARGE, SMALLER, LINE, LEAST_MAP, NOTICE = 165, 225, 22, 90, 60
# The variables that style.css reads; each change is for at least so many columns, where there is at most so much room.
TWO_AND_TWO = "--columns: 2; --row3: 1; --row4: 1; --whose: block;"
ONE_BELOW_ANOTHER = "--columns: 1; --row2: 1; --row3: 2; --row4: 3; --whose: block;"
NARROWER = ((4, "80rem", TWO_AND_TWO), (3, "55rem", TWO_AND_TWO), (2, "36rem", ONE_BELOW_ANOTHER))


def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices."""
    if fields["present"]:
        with st.container(key="presenting"):
            st.html(Path(__file__).with_name("presentation.css"))  # hides the sidebar and enlarges the type
            leave = {"present": False}
            st.button("Leave the presentation (Esc)", key="leave", on_click=st.session_state.update, kwargs=leave)
    tour.show()
    _sentence(fields)


@address.fragment
def _sentence(fields: dict) -> None:
    """Everything about one sentence; a text that fails leaves the last good picture.

    It is a fragment, so a new sentence reruns it without the sidebar.
    """
    fields = guessing.prepared(fields)
    answer = st.container()
    text = widgets.sentence(fields["pair"], sidebar.leave_gold)
    sidebar.rerun_if_gold_was_left()
    trained = [model(fields["pair"], name) for name in fields["mechanisms"] if not is_hugging_face(name)]
    sentences = caches.one_by_one(trained, text) if fields["target"] != TYPED else ()
    choices = CompareChoices(widgets.one_sentence(text, sentences), sentences=sentences, **fields)
    models = [choices.model(mechanism) for mechanism in choices.mechanisms]
    traces = side_by_side.wanted_traces(choices, models, caches.ask, caches.trace)
    ours = [name for name in models if not is_hugging_face(name)]
    others = _whole_wanted(choices, ours), _hypotheses_wanted(choices, ours)
    wanted = itertools.chain(traces, confidence.wanted(choices, models), *others)
    compose = functools.partial(scene.compose, choices, caches.trace, caches.windows)
    with frame.composed("compare", compose, wanted, models) as current:
        if current is not None:
            with answer:
                tour.answer(current)
            _draw(current, frame.is_dark())


def _draw(current: CompareScene, dark: bool) -> None:
    if not current.choices.guess:
        guessing.forget_link()
    elif not guessing.show(current, dark):
        bridge()
        return
    texts = [pictures.cell_texts(column) for column in current.columns]
    maps = _maps(current, texts, dark)
    if current.choices.moment >= 0:
        _training(current, dark)
    _steps(current, maps, dark)
    if current.choices.present or frame.is_embedded():
        return
    _together(current, dark)
    downloads.show(current, dark)


def _maps(current: CompareScene, texts: list, dark: bool) -> str:
    """A column for each mechanism: name, card, formula, translation, heatmap. texts : hover texts of each map. Returns
    the name of the maps, for `stepped`."""
    ink, present = _inks(current, dark), current.choices.present
    if lines := captions.notices(current):
        st.html(lines)
    st.html(_columns_style(len(current.columns)))
    with st.container(key="maps"):  # style.css lays its columns out: all in a row, or two and two
        for place, column in zip(_places(current), current.columns, strict=True):
            with place:
                st.html(captions.header(column, ink[column.title], confidence.card_html(column.model)))
                if column.mechanism.formula and not present:
                    st.markdown(f"${column.mechanism.formula}$")
        height = _presented_height(current) if present else None
        cells = [
            _heatmap(column, text, dark, height, _whole(column, current.choices) + _hypotheses(column, current.choices))
            for column, text in zip(current.columns, texts, strict=True)
        ]
        sent = plots(cells, "heatmaps")
        _tables(current, pictures.weights_table)
    play = '<button type="button" class="play">▶ Play the steps</button>' if current.steps > 1 else ""
    piece = current.columns[0].languages.piece
    st.html(terms.line("<eos>", "piece", "head", "log-probability", before=play, piece=piece))
    return sent


def _columns_style(columns: int) -> str:
    """A style element that sets the number of mechanism columns per row by the available width. columns : their
    number."""
    rules = [f".stMainBlockContainer > * {{ --columns: {columns}; }}"] + [
        f"@container (max-width: {width}) {{ .stMainBlockContainer > * {{ {values} }} }}"
        for least, width, values in NARROWER
        if columns >= least
    ]
    return f"<style>{' '.join(rules)}</style>"


def _whole_wanted(choices: CompareChoices, models: Sequence[str]) -> Iterator[Wanted]:
    """Request translations of all sentences of a long text. Does nothing if the queue is full; then only one sentence
    is shown."""
    if choices.sentences and choices.target == OWN:
        with contextlib.suppress(ServiceError):
            yield caches.ask_all(models, choices.sentences, choices.beam)


def _hypotheses_wanted(choices: CompareChoices, models: Sequence[str]) -> Iterator[Wanted]:
    """Request the beams' hypotheses for a text that can be drawn. Does nothing if the queue is full."""
    if choices.listed and choices.target == OWN and choices.text.strip() and len(choices.text) <= LIMIT:
        with contextlib.suppress(ServiceError):
            yield caches.ask_hypotheses(models, choices.text, choices.beam)


def _whole(column: Column, choices: CompareChoices) -> str:
    """The model's translations of all sentences of a long text."""
    if column.trace.forced or not choices.sentences:
        return ""
    return captions.whole(column, caches.translations(column.model, choices.sentences, choices.beam), choices)


def _hypotheses(column: Column, choices: CompareChoices) -> str:
    """The final hypotheses of this model's beam."""
    if column.trace.forced or not choices.listed:
        return ""
    return captions.of_beam(column, caches.hypotheses(column.model, choices.text, choices.beam), choices.query())


def _presented_height(current: CompareScene) -> int:
    """px of a map in a presentation. Translations longer than two lines are set smaller, and maps leave room for
    them."""
    longest = max(width(column.trace.translation) for column in current.columns) * len(current.columns)
    room = PRESENTED_MAP[1] - NOTICE * bool(captions.notices(current))
    if longest <= 2 * LARGE:
        return room
    st.html("<style>.stApp.stApp.stApp .said { font-size: 1.1rem; }</style>")
    return max(LEAST_MAP, room - LINE * (math.ceil(longest / SMALLER) - 2))


def _heatmap(column: Column, texts, dark: bool, height: int | None, below_it: str) -> Cell:
    """The words, figure and observations of a map. height : px in a presentation, None on the page. below_it : HTML
    below the translation."""
    judge = confidence.judge(column.model)
    judged = confidence.judgement(column.trace, judge)
    words = captions.translation(column) + sign(judged) + below_it * (height is None)
    if column.grid is None:
        return Cell(words + captions.no_attention(column, caches.context_width(column.model)))
    figure = pictures.map_figure(column, dark, texts=texts, scale=height is None, written=False)
    if height is not None:
        figure = figures.large(figure, PRESENTED_MAP[0], height)
    lines = heading.of_map(column.shown, column.grid, column.links and column.links.cells, column.windows)
    below = reading(column.grid, column.languages.unit)
    if height is None:
        below += captions.untranslated(column, judge, judged) + captions.percentile(column.trace, column.grid)
    named(figure, f"heatmap {column.title}", dark, rows=True, lines=lines)
    return Cell(words + captions.shown_map(column), figure, below)


def _training(current: CompareScene, dark: bool) -> None:
    """The models at the moments of their training: the measurements, and a button that plays them."""
    choices = current.choices
    courses = {title(name): confidence.course(model(choices.pair, name)) for name in choices.courses}
    st.subheader("Trained for", divider="gray")
    st.html(captions.trained_for(current, courses))
    frame.play_moments("playing", "trained", min(map(len, courses.values())) - 1)
    figure = over_time(
        {name: pictures.course(rows) for name, rows in courses.items()},
        panels=pictures.COURSE,
        unit="moment",
        at=choices.moment + 1,
        dark=dark,
    )
    lines = ["Training: loss on validation, BLEU on a sample of it, alignment error rate on gold sentences"]
    plots([("", named(figure, "training", dark, lines=lines))], "training")


@address.fragment
def _steps(current: CompareScene, maps: str, dark: bool) -> None:
    """The step control and the parts that depend on it. It is a fragment, so moving the step redraws only the bars."""
    _step_control(current)
    index = memory.cursor(st.session_state).step = st.session_state["step"] - 1
    bridge(index, current.steps, _go_to)
    ink = _inks(current, dark)
    bars = [_bars(column, ink[column.title], dark, current.choices.present) for column in current.columns]
    stepped(bars, index, maps, "step")
    st.html(step_link(current.choices.query(), current.choices.mechanisms, index))
    _tables(current, lambda column: pictures.bars_table(column, index))


def _bars(column: Column, ink: str, dark: bool, present: bool) -> dict:
    """The bars of every step, for `stepped`; without attention, only words."""
    grid, name = column.grid, captions.repeated_name(column, ink)
    steps = [{"words": name + words} for words in captions.steps(column)]
    cell = {"figure": None, "ended": name + captions.ended(column), "steps": steps}
    if grid is None:
        return cell
    for step, window in zip(steps, column.windows):
        step["shapes"] = window_shapes(grid, window, dark)
    drawn = np.nan_to_num(grid.masked).round(4).any(axis=1)
    blank = int(np.argmin(drawn))  # a step without weights, if there is one; plot.js drops its note at other steps
    figure = figures.step_bars(grid, blank, dark=dark)
    figure = figures.large(figure, *PRESENTED_BARS) if present else figure
    figure = named(figure, column.title, dark, lines=heading.of_step(column.shown, grid, blank, column.windows))
    return cell | {"figure": figure, "rows": rows_of(grid), "drawn": blank}


def _inks(current: CompareScene, dark: bool) -> dict[str, str]:
    """The colour of each mechanism, in all its charts."""
    return {name: line.color for name, line in lines([column.title for column in current.columns], dark).items()}


def _places(current: CompareScene) -> list:
    return st.columns(len(current.columns), gap="medium")


def _tables(current: CompareScene, table: Callable[[Column], str]) -> None:
    """The text equivalents of a row of figures, on request; not in a presentation, which has no room for them."""
    if current.choices.tables and not current.choices.present:
        for place, column in zip(_places(current), current.columns, strict=True):
            place.html(table(column) or "<p></p>")


def _step_control(current: CompareScene) -> None:
    frame.slider_value("step", 1, current.steps)
    if current.steps > 1:
        st.slider(
            f"{captions.step_name(current)} (1 to {current.steps}): {captions.step_meaning(current)}",
            1,
            current.steps,
            key="step",
            bind="query-params",
            help="A step is one row of each heatmap. Move the slider with the arrow keys. Or click a row of a heatmap "
            "and use the arrow keys there.",
        )


def _go_to(row: int) -> None:
    st.session_state["step"] = row + 1


def _together(current: CompareScene, dark: bool) -> None:
    """The comparison of the mechanisms: statistics by step, their means, and the difference of two maps."""
    st.subheader("Side by side", divider="gray")
    memory.cursor(st.session_state).difference = None
    left_out = captions.left_out(current)
    if not current.mapped:
        st.html(left_out)
        return
    marks = pictures.references(current)
    statistics = {column.title: column.statistics for column in current.mapped}
    figure = figures.by_step(
        statistics, current.keys, queries=current.queries, tokens=False, references=marks, dark=dark
    )
    lines = heading.of_statistics({column.title: column.shown for column in current.mapped}, references=marks)
    plots([("", named(figure, "statistics by step", dark, lines=lines))], "by-step")
    if current.choices.tables:
        st.html("".join(pictures.steps_table(column) for column in current.mapped))
    left, right = st.columns([3, 2], gap="large") if current.differences else (st.container(), None)
    explained = ("entropy", "effective positions", "Gini coefficient", "expected position", "Jensen–Shannon distance")
    left.html(
        f'{left_out}<p class="small">{captions.steps_note(current, bool(marks))}</p>'
        f'{terms.line(*explained)}<div class="means">{pictures.comparison_table(current)}</div>'
        f"{pictures.disagreement_table(current)}{captions.no_difference(current)}{terms.caveat()}"
    )
    if right is not None:
        with right:
            _difference(current, dark)


def _difference(current: CompareScene, dark: bool) -> None:
    if current.choices.target == OWN and not st.toggle("Difference of two maps", key="subtract", bind="query-params"):
        models = (
            "These models" if len(current.differences) == math.perm(len(current.mapped), 2) else "Some of these models"
        )
        st.caption(f"{models} write the same text, so their maps can be subtracted.")
        return
    chosen = st.selectbox(
        "Which two" if current.choices.target == OWN else "Difference of two maps",
        current.differences,
        format_func=current.difference_title,
        key="difference",
        bind="query-params",
    )
    memory.cursor(st.session_state).difference = chosen
    a, b = (current.columns[i] for i in chosen)
    lines = heading.of_difference(a.shown, b.shown, a.grid)
    figure = pictures.difference_figure(a, b, dark)
    figure = named(figure, f"difference {current.difference_title(chosen)}", dark, lines=lines)
    words = f'<p class="what">Cells with a dash: {escape(b.title)} has more weight there, by over {-DASHED}.</p>'
    plots([(words, figure)], "difference")
    if current.choices.tables:
        st.html(pictures.difference_table(a, b))
