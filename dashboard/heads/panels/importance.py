"""How much each head matters: each head is switched off alone, and the change in log-probability is measured."""

import time

import pandas as pd
import streamlit as st
from streamlit.errors import StreamlitAPIException

from attnviz import ablation, figures
from attnviz.ablation import Importance
from attnviz.export import bundle
from attnviz.figures.wording import signed
from dashboard.browser.plot import named, plots
from dashboard.choices.options import kind_title
from dashboard.heads.panels.ablation import refuse, say_why_not
from dashboard.heads.scene import HeadsScene, head_name
from dashboard.markup import tables
from dashboard.session import address, caches, memory
from dashboard.shell import turns

_SHOWN = 5  # heads that matter most
_SLICE = 0.4  # s between two looks at what was pressed
_MEASURING = "measuring"


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    """Each head switched off in turn. What was measured stays when it is stopped, and the next run goes on from there.

    A slice at a time: a run of a fragment is not interrupted by a press on one of its own buttons, which waits for its
    end.
    """
    st.subheader("How much each head matters", divider="gray")
    source = current.choices.source
    if say_why_not(source.why_no_ablation or source.why_no_importance):
        return
    output = (
        "the text"
        if current.target is None
        else f"{'the forced' if current.trace.forced else 'its own'} {current.choices.languages.output}"
    )
    st.caption(
        f"Each head is switched off alone. The number is the change in the log-probability of {output}, in nats. "
        f"Negative: the model is less sure of {output} without this head."
    )
    asked, every = (source.name, current.input, current.choices.output), current.all_heads
    measured = memory.head_changes(st.session_state, *asked)
    measuring = st.session_state.get(_MEASURING) == asked and len(measured) < len(every)
    _controls(asked, len(measured), len(every), measuring)
    if measured:
        _results(current, measured, dark)
    if measuring:
        _go_on(current, measured)


def _controls(asked: tuple[str, str, str], done: int, count: int, measuring: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        begin = "Continue" if 0 < done < count else "Measure each head"
        st.button(  # one button, whose words change: two would stand beside each other until the last head
            "Stop" if measuring else begin,
            key="measure",
            on_click=_measure,
            args=(None if measuring else asked,),
            disabled=done == count,
            help="The results so far are kept." if measuring else None,
        )
        if measuring:
            st.progress(done / count, f"{done} of {count} heads")


def _measure(asked: tuple[str, str, str] | None) -> None:
    """The model, text and forced output whose heads are being measured from now on; None to stop."""
    st.session_state[_MEASURING] = asked


def _go_on(current: HeadsScene, measured: list[Importance]) -> None:
    """Measure some more heads, then show them."""
    left = current.all_heads[len(measured) :]
    try:
        with turns.long_turn():
            end = time.monotonic() + _SLICE
            for head in caches.importance(current.choices.source.name, current.input, current.target, left):
                measured.append(head)
                if time.monotonic() > end:
                    break
    except ValueError as error:
        _measure(None)
        refuse(error)
        return
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:  # the whole page was run
        st.rerun()


def _results(current: HeadsScene, measured: list[Importance], dark: bool) -> None:
    frame = ablation.table(measured, current.all_heads)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _map(current, frame, dark)
    st.download_button(
        "Table as CSV",
        lambda: bundle.frame_csv(frame),
        "importance.csv",
        "text/csv",
        on_click="ignore",
        key="importance_csv",
        help="The file counts layers and heads from 0, as Python does.",
    )
    ranked = sorted(measured, key=lambda head: head.change)
    shown = ranked if current.choices.tables else ranked[:_SHOWN]
    rows = [(head_name(head.head, kind=True), [signed(head.change)]) for head in shown]
    so_far = "" if len(measured) == len(frame) else f" ({len(measured)} of {len(frame)} heads measured so far)"
    right.html(tables.table(f"Heads that matter most{so_far}", ["change (nats)"], rows))


def _map(current: HeadsScene, frame: pd.DataFrame, dark: bool) -> None:
    """The heads of the kind on show."""
    kind = current.choices.kind
    shown = frame[frame["kind"] == kind]
    if shown["change"].isna().all():
        return
    several = frame["kind"].nunique() > 1
    words = (
        f'<p class="what">{kind_title(kind)}. The table beside it ranks the heads of every kind.</p>' if several else ""
    )
    figure = figures.head_map(shown, "change", dark=dark)
    plots([(words, named(figure, f"importance {kind}", dark, heads=True))], "importance")
