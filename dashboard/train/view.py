"""The page that trains: buttons, maps of three sequences, curves, and a slider back over what was seen."""

import io

import streamlit as st

from attnviz.data.readers import Pairs
from attnviz.figures.learning import maps_over_time, over_time
from attnviz.training import seen
from attnviz.training.apart import ENDED, GO, ONE, PAUSE, PAUSED, RUNNING, STARTING, Apart
from dashboard.browser.plot import Cell, named, plots
from dashboard.choices import settings
from dashboard.choices.options import OWN_PAIRS
from dashboard.markup import tables, terms
from dashboard.markup.text import escape, markdown
from dashboard.session import address
from dashboard.shell import frame
from dashboard.shell.problems import SceneError, sentence
from dashboard.train import running

EVERY = 0.5  # s between two pictures while it trains
_WORDS = {
    STARTING: "The training starts: torch is read, which takes a few seconds.",
    RUNNING: "It trains.",
    PAUSED: "Paused.",
    ENDED: "The training has ended.",
}
_HINT = "a b c\tc b a\nd e f\tf e d"


def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices."""
    problem = st.container(key="notice")
    pairs = _own_pairs() if fields["task"] == OWN_PAIRS else None
    with st.container(horizontal=True, key="race"):
        if st.button("Start", type="primary", key="start", disabled=not settings.value(settings.TRAIN)):
            try:
                running.start(st.session_state, _wanted(fields, pairs), fields["mechanisms"], fields["settings"])
            except (SceneError, ValueError) as error:
                problem.error(markdown(sentence(str(error).rstrip("."))), icon=":material/info:")
    training = running.of(st.session_state)
    if not settings.value(settings.TRAIN):
        problem.info("This server trains no models: whoever runs it has switched it off (ATTNVIZ_TRAIN=0).")
    if training is None:
        st.html(
            '<p class="what">Press <b>Start</b>. All mechanisms read the same batches in the same order. You see three '
            "sequences that they are not trained on, with the right letters before, and how the numbers change.</p>"
        )
        return
    lasting = training.state != ENDED
    st.fragment(_live, run_every=EVERY if lasting else None)(training, lasting)
    st.html(terms.caveat())


def _wanted(fields: dict, pairs: Pairs | None):
    """The task. SceneError for a page that has none to start."""
    if not fields["mechanisms"]:
        raise SceneError("Choose at least one mechanism on the left.")
    if pairs is None:
        return fields["task"]
    if not pairs:
        raise SceneError("Paste pairs first: on each line a text, a tab, and what should be written for it.")
    if len(pairs) > seen.MOST_PAIRS:
        raise SceneError(
            f"At most {seen.MOST_PAIRS:,} pairs can be trained on; there are {len(pairs):,}. Leave some out."
        )
    return pairs


def _own_pairs() -> Pairs:
    """What was pasted: the first two columns of each line."""
    text = st.text_area(
        f"Your pairs, at most {seen.MOST_PAIRS:,}", key="pasted_pairs", placeholder=_HINT, max_chars=1_000_000
    )
    rows = (line.split("\t") for line in io.StringIO(text))
    return [(row[0].strip(), row[1].strip()) for row in rows if len(row) > 1 and row[0].strip() and row[1].strip()]


def _live(training: Apart, lasting: bool) -> None:
    """All that moves: drawn twice a second while it trains."""
    moments = training.moments
    if lasting and training.state == ENDED and address.runs_alone():
        st.rerun()  # the page stops asking
    _buttons(training)
    said = sentence(training.problem.rstrip(".")) if training.problem else _WORDS[training.state]
    st.html(f'<p class="what" role="status">{escape(said)}</p>')
    if not moments:
        return
    place = _slider(len(moments), training.state)
    _draw(moments, place, frame.is_dark())
    if training.state in (PAUSED, ENDED) and len(moments) > 1:
        _take_along(moments)


def _buttons(training: Apart) -> None:
    """Pause, one batch, go on, stop."""
    with st.container(horizontal=True):
        for words, key, command, states in (
            ("Pause", "pause", PAUSE, (RUNNING,)),
            ("One batch", "single", ONE, (PAUSED,)),
            ("Go on", "go", GO, (PAUSED,)),
            ("Stop", "stop", "stop", (STARTING, RUNNING, PAUSED)),
        ):
            off = training.state not in states
            st.button(words, key=key, on_click=training.tell, args=(command,), disabled=off)


def _slider(count: int, state: str) -> int:
    """The moment that is shown: the newest, until the person moves the slider back."""
    if count < 2:
        return 0
    newest = st.session_state.get("newest of training", 0)
    if st.session_state.get("moment", newest) >= newest or count <= newest:
        st.session_state["moment"] = count - 1
    st.session_state["newest of training"] = count - 1
    words = "What was seen, from the untrained models to now. Move it back; at its end it follows the training."
    return st.slider("Moment", 0, count - 1, key="moment", help=words)


def _draw(moments: list, place: int, dark: bool) -> None:
    """Maps of three sequences at a moment, and the curves with that moment marked."""
    moment = moments[place]
    st.html(_numbers(moment, moments))
    if any(row.maps for row in moment.of.values()):
        cells = []
        for number in range(len(moment.sequences)):
            lines = seen.heading([moment], number)
            figure = maps_over_time(seen.grids([moment], number), [f"batch {moment.batch}"], dark=dark)
            words = f'<p class="what"><b>{escape(lines[0])}</b></p>'
            cells.append(Cell(words, named(figure, f"sequence {number + 1}", dark, lines=lines)))
        plots(cells, "learning-maps")
    marks = {
        name: {key: at for key, at in rows.items() if at is not None} for name, rows in seen.marks(moments).items()
    }
    figure = over_time(seen.courses(moments), marks=marks, at=moment.batch, dark=dark)
    plots(
        [Cell("", named(figure, "training", dark, lines=["Training", *seen.heading([moment])[1:]]))], "learning-curves"
    )


def _numbers(moment, moments: list) -> str:
    """The numbers of a moment as a table, and what came first."""
    rows = []
    for name, row in moment.of.items():
        aligned, fell = seen.turning_points(moments, name)
        numbers = [
            _number(row.alignment_error),
            _number(row.loss),
            f"{row.exact:.0%}",
            _number(row.entropy),
        ]
        first = ["–" if batch is None else f"{batch}" for batch in (aligned, fell)]
        rows.append((row.title + (f" ({row.problem})" if row.problem else ""), [*numbers, *first]))
    columns = ["alignment error", "loss (nats)", "exact match", "entropy (nats)", "aligned at batch", "loss halved at"]
    return tables.table(f"After {moment.batch} batches, {moment.seconds:.1f} s of computing", columns, rows)


def _number(value: float | None) -> str:
    return "–" if value is None else tables.cell(value, ".2f")


def _take_along(moments: list) -> None:
    """The run as a page that plays offline; made when it is asked for."""

    def film() -> bytes:
        from attnviz.export import learning  # imports matplotlib

        chosen = seen.telling(moments, 60)
        curves = over_time(seen.courses(moments), marks=seen.marks(moments), at=moments[-1].batch)
        names, batches = [f"batch {moment.batch}" for moment in chosen], [moment.batch for moment in chosen]
        return learning.page(seen.grids(chosen), names, batches, seen.heading(moments), curves)

    if any(row.maps for row in moments[-1].of.values()):
        st.download_button("Save as a page that plays offline", film, "training.html", "text/html", on_click="ignore")
