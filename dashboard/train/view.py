"""The page that trains: buttons, maps of three sequences, curves, and a slider over past moments.

Every visitor's training runs in a separate process; the server limits their number. A training ends when its visitor
stops looking, for instance by closing the tab (`attnviz.training.apart`). While it runs, a script in the browser asks
for the moments (`answer`) and draws them over the charts; the page itself is not drawn again
(browser/scripts/learning.js).
"""

import asyncio
import functools
import re
import threading
import time
import weakref
from collections.abc import Callable

import streamlit as st
from starlette.requests import Request
from starlette.responses import Response
from streamlit.runtime import Runtime
from streamlit.runtime.scriptrunner import get_script_run_ctx

from attnviz import figures, mechanisms
from attnviz.figures.learning import PANELS, over_time
from attnviz.figures.theme import lines as line_styles
from attnviz.figures.theme import palette
from attnviz.mechanisms import MECHANISMS
from attnviz.select import Grid
from attnviz.training import seen
from attnviz.training.apart import DONE, ENDED, GO, ONE, PAUSE, PAUSED, RUNNING, STARTING, STOP, Apart
from dashboard.browser.plot import Cell, bridge, named, plots
from dashboard.choices import pairs, settings
from dashboard.choices.options import model
from dashboard.markup import tables, terms
from dashboard.markup.text import escape, markdown
from dashboard.session import address, memory
from dashboard.shell import downloads, frame
from dashboard.shell.problems import SceneError, Waiting, sentence

_WORDS = {
    STARTING: "The training starts: torch is read, which takes a few seconds.",
    RUNNING: "It trains.",
    PAUSED: "Paused.",
    DONE: "It has learnt as long as it may.",
    ENDED: "The training has ended.",
}
_MEASURED = ["alignment error", "loss (nats)", "exact match", "entropy (nats)"]
_ROWS = 20  # of the table of the curves
_REFUSED = "why no other page opens"
_AT, _TOLD = "batch of the moment", "commands to the training"  # in the session: shown at rest; how many there were
HELD, SOON = 5.0, 0.05  # s that a request waits for a moment; between two looks for one
NEWEST = -1  # batch, for the newest moment
_moments = st.components.v2.component(
    "attnviz_moments",
    html='<div class="moments"></div>',
    isolate_styles=False,
    js="export default (component) => window.__attnvizMoments && window.__attnvizMoments(component);",
)


def show(fields: dict) -> None:
    """Draw the page for the sidebar's choices."""
    problem = st.container(key="notice")
    unreadable = fields["problem"] is not None and not isinstance(fields["problem"], Waiting)
    if unreadable:
        problem.error(markdown(str(fields["problem"])), icon=":material/info:")
    off = not settings.value(settings.TRAIN) or unreadable
    with st.container(horizontal=True, key="race"):
        look = "secondary" if off else "primary"  # a primary one that is disabled shows no words
        if st.button("Start", type=look, key="start", disabled=off):
            try:
                start_training(st.session_state, _wanted(fields), fields["mechanisms"], fields["settings"])
            except (SceneError, ValueError) as error:
                problem.error(markdown(sentence(str(error).rstrip("."))), icon=":material/info:")
    training = training_of(st.session_state)
    if not settings.value(settings.TRAIN):
        problem.info("This server trains no models: whoever runs it has switched it off (ATTNVIZ_TRAIN=0).")
    if training is None:
        st.html(
            '<p class="what">Press <b>Start</b>. All mechanisms read the same batches in the same order. You see three '
            "sequences that they are not trained on, with the right letters before, and how the numbers change.</p>"
        )
        bridge()
        return
    _live(training, fields["tables"])
    st.html(terms.caveat())
    bridge()


def _wanted(fields: dict):
    """The task. SceneError if there is none to start."""
    if not fields["mechanisms"]:
        raise Waiting("Choose at least one mechanism on the left.")
    if isinstance(fields["problem"], Waiting):
        raise fields["problem"]
    return fields["task"]


@address.fragment
def _live(training: Apart, written: bool) -> None:
    """The moving parts. They are drawn anew when the browser asks: when the training is in another state, or when a
    moment stands still; learning.js draws all moments between. written : show the charts as tables too?"""
    moments, state = training.moments, training.state
    address.turn()
    _buttons(training)
    state_words = sentence(training.problem.rstrip(".")) if training.problem else _WORDS[state]
    st.html(f'<p class="what" role="status">{escape(state_words)}</p>')
    moment, dark = _shown(moments), frame.is_dark()
    if moments:
        with st.container(key="moment_numbers"):
            st.html(numbers(moment, moments))
    _moments(key="moments", data=_for_the_browser(training, state, moment, dark, written), on_at_change=_remember)
    if not moments:
        return
    _draw(moments, moment, dark)
    if written:
        _write_out(moments, moment)
    if state in (PAUSED, DONE, ENDED) and len(moments) > 1:
        _take_along(training, moments)


def _tell(training: Apart, command: str) -> None:
    """Tell the training, and have the browser show what comes of it."""
    training.tell(command)
    st.session_state[_AT] = NEWEST
    st.session_state[_TOLD] = st.session_state.get(_TOLD, 0) + 1


def _remember() -> None:
    at = st.session_state["moments"].get("at")
    if isinstance(at, int):
        st.session_state[_AT] = at


def _shown(moments: list):
    """The moment that the browser asked for, else the newest; None without moments."""
    at = st.session_state.get(_AT, NEWEST)
    return next((moment for moment in moments if moment.batch == at), moments[-1] if moments else None)


def _for_the_browser(training: Apart, state: str, moment, dark: bool, written: bool) -> dict:
    """What learning.js needs. batch : of the moment that Plotly draws; None without one."""
    colors, rows = palette(dark), moment.of.values() if moment else ()
    looks = line_styles([row.title for row in rows], dark)
    return {
        "address": f"training/{training.name}",
        "state": state,
        "batch": moment.batch if moment else None,
        "told": st.session_state.get(_TOLD, 0),
        "tables": written,
        "colors": {name: getattr(colors, name) for name in ("page", "muted", "grid", "outline", "sequential")},
        "lines": [{"color": looks[row.title].color, "dash": looks[row.title].dash} for row in rows],
        "titles": [row.title for row in rows],
        "measured": seen.MEASURED,
        "panels": list(PANELS),
    }


async def answer(request: Request) -> Response:
    """The moments of a training after a batch, as soon as there are any or the training is in another state than the
    browser says, at the latest after HELD. The name of the training is known to its visitor alone."""
    training, query = _running.get(request.path_params["name"]), request.query_params
    if training is None:
        return Response(status_code=404)
    after = int(query["after"]) if re.fullmatch("[0-9]{1,9}", query.get("after", "")) else -1
    known_state, end = query.get("state", ""), time.monotonic() + HELD
    training.look()
    while training.state == known_state != ENDED and not _has_more(training, after) and time.monotonic() < end:
        await asyncio.sleep(SOON)
    moments, state = training.received, training.state
    content = seen.packed(moments, after, state=state)
    return Response(content, media_type="application/octet-stream", headers={"Cache-Control": "no-store"})


def _has_more(training: Apart, after: int) -> bool:
    moments = training.received
    return bool(moments) and moments[-1].batch > after


def _buttons(training: Apart) -> None:
    """Pause, one batch, continue, stop. Stop ends the process with the models; to save the models, pause instead."""
    with st.container(horizontal=True):
        for words, key, command, states in (
            ("Pause", "pause", PAUSE, (RUNNING,)),
            ("One batch", "single", ONE, (PAUSED,)),
            ("Go on", "go", GO, (PAUSED,)),
            ("Stop", "stop", STOP, (STARTING, RUNNING, PAUSED, DONE)),
        ):
            off = training.state not in states
            st.button(words, key=key, on_click=_tell, args=(training, command), disabled=off)


def _draw(moments: list, moment, dark: bool) -> None:
    """Maps of three sequences at a moment, and the curves with that moment marked."""
    if shown := maps(moment):
        columns = len({title for title, *_ in shown})
        with st.container(key=f"racing{columns if columns > 1 else len(moment.sequences)}"):
            plots([cell(moment, *of_map, dark) for of_map in shown], "learning-maps")
    marks = {
        name: {key: at for key, at in rows.items() if at is not None} for name, rows in seen.marks(moments).items()
    }
    figure = over_time(seen.courses(moments), marks=marks, at=moment.batch, dark=dark)
    figure.mark({"batch": moment.batch})
    chart = named(figure, "training", dark, lines=["Training", *seen.heading([moment])[1:]])
    plots([Cell("", chart)], "learning-curves")


def maps(moment) -> list[tuple[str, int, Grid]]:
    """Title of the mechanism, number of the sequence and its map, grouped by sequence."""
    if not any(row.maps for row in moment.of.values()):
        return []
    return [
        (title, number, grid)
        for number in range(len(moment.sequences))
        for title, (grid,) in seen.grids([moment], number).items()
    ]


def cell(moment, title: str, number: int, grid: Grid, dark: bool) -> Cell:
    """A map below its mechanism and its sequence."""
    sequence, how = seen.heading([moment], number)
    figure = figures.heatmap(grid, texts=figures.cell_texts(grid), written=False, dark=dark)
    lines = [f"{title} after {moment.batch} batches: {sequence}", how]
    ink = line_styles([row.title for row in moment.of.values()], dark)[title].color  # that of its curves
    name = f'<div class="part" style="--ink:{ink}"><h3>{escape(title)}</h3></div>'
    figure.mark({"batch": moment.batch})
    chart = named(figure, f"sequence {number + 1} {title}", dark, lines=lines)
    return Cell(f'{name}<p class="what">{escape(sequence)}</p>', chart)


def _write_out(moments: list, moment) -> None:
    """The numbers of the charts: of the maps at a moment, and of the curves over the moments."""
    for title, number, grid in maps(moment):
        caption = f"{title} after {moment.batch} batches: {seen.heading([moment], number)[0]}"
        st.html(tables.grid_table(caption, grid, pairs.ANY))
    shown = seen.telling(moments, _ROWS)
    for name, row in moment.of.items():
        rows = [(f"{at.batch}", _measured(at.of[name])) for at in shown]
        st.html(tables.table(f"{row.title}, by batch", _MEASURED, rows))


def numbers(moment, moments: list) -> str:
    """The numbers of a moment, and the batches of the turning points, as a table."""
    rows = []
    for name, row in moment.of.items():
        aligned, fell = seen.turning_points(moments, name)
        first = ["–" if batch is None else f"{batch}" for batch in (aligned, fell)]
        rows.append((row.title + (f" ({row.problem})" if row.problem else ""), [*_measured(row), *first]))
    columns = [*_MEASURED, "aligned at batch", "loss halved at"]
    return tables.table(f"After {moment.batch} batches, {moment.seconds:.1f} s of computing", columns, rows)


def _measured(row: seen.Seen) -> list[str]:
    return [_number(row.alignment_error), _number(row.loss), f"{row.exact:.0%}", _number(row.entropy)]


def _number(value: float | None) -> str:
    return "–" if value is None else tables.cell(value, ".2f")


def _take_along(training: Apart, moments: list) -> None:
    """Downloads: the run as a page that plays offline, and the models while they exist; made on request."""
    with st.container(horizontal=True):
        if any(row.maps for row in moments[-1].of.values()):
            for words, (file, make) in _FILES.items():
                downloads.button(words, functools.partial(make, moments), file, f"save-{file}")
    if training.state != ENDED:
        _models(training, list(moments[-1].of))


def _models(training: Apart, names: list[str]) -> None:
    """The models as they are now: on another page of this visit, or as a file. Stop ends them."""
    alone = any(name not in mechanisms.ALL for name in names)  # changed in when it asks
    problem = "No page opens a mechanism that asks at another time than its own." if alone else ""
    with st.container(horizontal=True, key="trained_models"):
        for page, words in _PAGES.items():
            if fitting := _fitting(page, names):
                key, arguments = f"open-{page}", (training, page, fitting)
                st.button(words, key=key, on_click=_open, args=arguments, disabled=alone, help=problem or _VISIT)
        words = problem or "Unpack it. ATTNVIZ_CHECKPOINTS=FOLDER then opens the models on every page."
        downloads.button(
            "Keep the models as a zip", training.models, "models.zip", key="keep", disabled=alone, help=words
        )
    if refused := st.session_state.get(_REFUSED):
        st.error(markdown(sentence(refused.rstrip("."))), icon=":material/info:")
    if not (training.settings.causal and training.settings.masked):
        st.caption("On the other pages all masks are there, as in every model that is opened.")


_PAGES = {"": "Open on the first page", "heads": "Open their heads", "inside": "Open a step inside"}
_VISIT = (
    "The models as they are now, with a text of this task. They are on the list of models for you alone, until you "
    "close or reload the page. Another training of this task that you open takes their place."
)


def _fitting(page: str, names: list[str]) -> list[str]:
    """Those of the mechanisms that a page can show."""
    if page == "heads":
        return [name for name in names if MECHANISMS[name].multi_head]
    return [name for name in names if not page or MECHANISMS[name].kinds]


def _open(training: Apart, page: str, names: list[str]) -> None:
    """Turn to another page with the models; or note why that cannot be."""
    session = st.session_state
    session[_REFUSED] = ""
    try:
        pair = memory.keep_models(training.models(), session)
    except ValueError as error:
        session[_REFUSED] = str(error)
        return
    shown = {"model": model(pair, names[0])} if page == "heads" else {"pair": pair, "show": names}
    address.go(page, shown | {"text": pairs.task(pair).first})


def _film(moments: list) -> bytes:
    from attnviz.export import learning  # imports matplotlib

    chosen = seen.telling(moments, learning.IN_FILM)
    curves = over_time(seen.courses(moments), marks=seen.marks(moments), at=moments[-1].batch)
    batches = [moment.batch for moment in chosen]
    return learning.page(seen.grids(chosen), _names(chosen), batches, seen.heading(moments), curves)


def _animation(moments: list) -> bytes:
    from attnviz.export import learning

    chosen = seen.telling(moments, learning.IN_ANIMATION)
    return learning.animation(seen.grids(chosen), _names(chosen), seen.heading(moments))


def _strip(form: str, moments: list) -> bytes:
    from attnviz.export import learning

    chosen = seen.telling(moments, learning.IN_STRIP)
    return learning.strip(seen.grids(chosen), _names(chosen), seen.heading(moments)).save(form)


def _names(moments: list) -> list[str]:
    return [f"batch {moment.batch}" for moment in moments]


_FILES = {  # words of the button -> file, and what makes it of the moments
    "Save as a page that plays offline": ("training.html", _film),
    "Maps over time (SVG)": ("training.svg", functools.partial(_strip, "svg")),
    "Maps over time (PDF)": ("training.pdf", functools.partial(_strip, "pdf")),
    "Animation (GIF)": ("training.gif", _animation),
}


_KEY = "training"  # in the session
_running: "weakref.WeakValueDictionary[str, Apart]" = weakref.WeakValueDictionary()  # by name
_lock = threading.Lock()


def training_of(session) -> Apart | None:
    """The training of this visit."""
    return session.get(_KEY)


def start_training(session, task, mechanisms, how) -> None:
    """Start a training, replacing that of this visit. SceneError if the server accepts no more."""
    with _lock:
        stop_training(session)
        most = settings.value(settings.TRAIN)
        if not most:
            raise SceneError("This server trains no models: whoever runs it has switched it off (ATTNVIZ_TRAIN=0).")
        if sum(training.state != ENDED for training in _running.values()) >= most:
            raise SceneError(
                f"{most} {'training runs' if most == 1 else 'trainings run'} on this server already, as many as it "
                "takes. Try again when one has ended."
            )
        training = Apart(task, mechanisms, how, is_open=_is_open())
        _running[training.name] = session[_KEY] = training
        session[_AT] = NEWEST


def stop_training(session) -> None:
    """End the training of this visit; its moments remain until the next one."""
    if training := training_of(session):
        training.tell("stop")


def _is_open() -> Callable[[], bool]:
    """Is the page of this visit open? Also true for a background tab, which a browser lets poll only once a minute."""
    context = get_script_run_ctx()
    if context is None or not Runtime.exists():
        return lambda: False
    runtime, state, session = Runtime.instance(), context.session_state, context.session_id
    return lambda: runtime.is_active_session(session) and state.filtered_state.get(address.AT) == "train"
