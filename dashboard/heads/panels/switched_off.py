"""Heads switched off: what the model then says, and how much it minds each one."""

import html
import math
import time

import pandas as pd
import streamlit as st
from streamlit.errors import StreamlitAPIException

from attnviz import ablation, figures, heads, select
from attnviz.ablation import Effect, Importance
from attnviz.figures import labels
from attnviz.models.huggingface.models import Prediction
from dashboard.browser.plot import named, plots
from attnviz.data.tasks import Task
from dashboard.choices.settings import KINDS
from dashboard.compare.scene import sentence
from dashboard.heads.scene import COLUMNS, Gallery, head_name
from dashboard.markup import parts, tables
from dashboard.session import state

_SHOWN = 5  # heads that are missed most
_TOKENS = 10  # tokens of which a model that only reads thinks most differently
_TOLD = ("entropy_nats", "max_weight", "distance")  # of each head, before and without
_SLICE = 0.4  # s between two looks at what was pressed
_MEASURING = "measuring"


@st.fragment
def show(current: Gallery, dark: bool) -> None:
    st.subheader("Switch off", divider="gray")
    if _said(current.choice.source.fixed):
        return
    off = st.multiselect(
        "Heads that are switched off",
        current.every,
        format_func=lambda head: head_name(head, kind=True),
        key="off",
        bind="query-params",
        help="What such a head finds is multiplied by 0 before it goes on (Michel et al. 2019).",
    )
    if off:
        try:
            _effect(current, state.effect(current.choice.source.name, current.trace.text, tuple(sorted(off))), dark)
        except ValueError as error:  # an output so long that it cannot be forced
            _refused(error)
    else:
        st.html('<p class="small" role="status">Choose heads above, or measure what each of them matters below.</p>')


def _said(problem: str) -> bool:
    """Say why a panel has nothing, if there is a reason."""
    if problem:
        st.html(f'<p class="small" role="status">{html.escape(problem)}</p>')
    return bool(problem)


def _refused(error: ValueError) -> None:
    st.error(parts.markdown(f"The output cannot be measured. {sentence(str(error))}"), icon=":material/info:")


def _effect(current: Gallery, effect: Effect, dark: bool) -> None:
    languages, kind = current.choice.languages, current.choice.kind
    wrote, forced = current.target is not None, ""
    if wrote:
        st.html(_written(effect, languages))
        forced = f", the original {html.escape(languages.output)} forced"
    elif not _said(current.choice.source.silent):
        st.html(_predicted(current, effect))
    after = select.words(effect.after) if current.choice.words else effect.after
    figure = figures.overview(after, kind, root=current.choice.root, off=effect.off, dark=dark)
    words = (
        f'<p class="what">{html.escape(KINDS[kind].split(" (")[0])} without them{forced}; '
        "those that are switched off are crossed out: nothing of what they find goes on.</p>"
    )
    plots([(words, named(figure, f"heads without some {kind}", dark))], "without")
    if current.choice.tables:
        st.html(_weights(current, effect, heads.table(after, kind, _TOLD)))


def _written(effect: Effect, languages: Task) -> str:
    """What a model writes or says with and without the heads."""
    same = "It says the same." if effect.free.translation == effect.before.translation else "It says something else."
    rows = [
        ("With all heads", [effect.before.translation, f"{effect.before.log_prob:.2f}"]),
        ("Without them", [effect.free.translation, f"{effect.free.log_prob:.2f}"]),
        (
            f"Without them, the original {languages.output} forced",
            [effect.after.translation, f"{effect.after.log_prob:.2f}"],
        ),
    ]
    return (
        f'<p class="what" role="status">{same} Log-probability of the original {html.escape(languages.output)}: <b>{effect.change:+.2f}</b> nats.</p>'
        + tables.table("What the model says", [languages.output, "log-probability"], rows, cells=languages.target)
    )


def _weights(current: Gallery, effect: Effect, after: pd.DataFrame) -> str:
    """The text equivalent of the maps: what changed in the weights of the heads that remain."""
    columns = [f"{COLUMNS[name]}, {when}" for name in _TOLD for when in ("before", "without them")]
    rows = []
    for head, old, new in zip(current.heads, current.table[[*_TOLD]].to_numpy(), after[[*_TOLD]].to_numpy()):
        off = " (switched off)" if head in effect.off else ""
        rows.append((head_name(head) + off, [tables.cell(value, ".3f") for pair in zip(old, new) for value in pair]))
    return tables.table("Every head: mean over the rows of its map", columns, rows)


def _predicted(current: Gallery, effect: Effect) -> str:
    """What a model that only reads predicts of the tokens, those first of which it thinks most differently."""
    pairs = sorted(zip(*effect.predictions), key=lambda pair: -abs(pair[1].log_prob - pair[0].log_prob))
    if not pairs:
        return '<p class="small" role="status">Nothing is predicted of one token: none stands before it.</p>'
    shown = pairs if current.choice.tables else pairs[:_TOKENS]
    tokens = current.trace.source
    rows = [
        (
            f"{before.place + 1} {labels.plain(tokens[before.place].text)}",
            [*(f"{math.exp(one.log_prob):.3f}" for one in (before, after)), *map(_likeliest, (before, after))],
        )
        for before, after in shown
    ]
    some = (
        ", those that change most first"
        if len(shown) == len(pairs)
        else f", the {len(shown)} of {len(pairs)} that change most"
    )
    before, after = effect.log_probs
    return (
        f'<p class="what" role="status">It writes no text of its own, so this is what it predicts of yours, {_how(current, len(pairs))}: log-probability '
        f"of its tokens {before:.2f} with all heads, {after:.2f} without them: <b>{effect.change:+.2f}</b> nats.</p>"
        + tables.table(
            f"Probability of each token{some}",
            ["with all heads", "without them", "most probable with all", "most probable without"],
            rows,
        )
    )


def _how(current: Gallery, count: int) -> str:
    if any(m.kind == "decoder" for m in current.trace.maps):
        return "each token from those before it"
    there = sum(not token.special for token in current.trace.source)
    which = "each token" if count == there else f"{count} of its {there} tokens, evenly spread, each"
    return f"{which} masked in turn and read from all others (Salazar et al. 2020)"


def _likeliest(one: Prediction) -> str:
    best = one.alternatives[0]
    return f"{labels.plain(best.text)} {best.probability:.3f}"


@st.fragment
def importance(current: Gallery, dark: bool) -> None:
    """Each head switched off in turn. What was found stays when it is stopped, and the next run goes on from there.

    A slice at a time: a run of a fragment is not interrupted by a press on one of its own buttons, which waits for its end.
    """
    st.subheader("What each head matters", divider="gray")
    if _said(current.choice.source.fixed or current.choice.source.silent):
        return
    output = "the tokens of the text" if current.target is None else "the model's own output"
    st.caption(
        f"Each head is switched off alone: the change in the log-probability of {output}, in nats. Below 0, it is missed."
    )
    asked, every = (current.choice.source.name, current.trace.text), current.every
    found = state.found(st.session_state, *asked)
    measuring = st.session_state.get(_MEASURING) == asked and len(found) < len(every)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.button(  # one button, whose words change: two would stand beside each other until the last head
            "Stop" if measuring else "Measure each head",
            key="measure",
            on_click=_measure,
            args=(None if measuring else asked,),
            disabled=len(found) == len(every),
            help="What was found so far stays." if measuring else None,
        )
        if measuring:
            st.progress(len(found) / len(every), f"{len(found)} of {len(every)} heads")
    if found:
        _found(current, found, dark)
    if measuring:
        _go_on(current, found)


def _measure(asked: tuple[str, str] | None) -> None:
    """The model and text whose heads are being measured from now on; None: none any more."""
    st.session_state[_MEASURING] = asked


def _go_on(current: Gallery, found: list[Importance]) -> None:
    """Some more heads, then show them."""
    end = time.monotonic() + _SLICE
    try:
        for one in state.importance(
            current.choice.source.name, current.trace.text, current.target, current.every[len(found) :]
        ):
            found.append(one)
            if time.monotonic() > end:
                break
    except ValueError as error:
        _measure(None)
        _refused(error)
        return
    try:
        st.rerun(scope="fragment")
    except StreamlitAPIException:  # the whole page was run
        st.rerun()


def _found(current: Gallery, found: list[Importance], dark: bool) -> None:
    frame = ablation.table(found, current.every)
    left, right = st.columns([3, 2], gap="large")
    shown = frame[frame["kind"] == current.choice.kind]
    with left:
        if shown["change"].notna().any():
            words = f'<p class="what">{html.escape(KINDS[current.choice.kind].split(" (")[0])}; beside it the heads of every kind.</p>'
            several = frame["kind"].nunique() > 1
            plots(
                [
                    (
                        words if several else "",
                        named(
                            figures.head_map(shown, "change", dark=dark),
                            f"importance {current.choice.kind}",
                            dark,
                            heads=True,
                        ),
                    )
                ],
                "importance",
            )
    st.download_button(
        "All of it as CSV",
        lambda: frame.to_csv(index=False).encode(),
        "importance.csv",
        "text/csv",
        on_click="ignore",
        key="importance_csv",
        help="Layers and heads are counted from 0 there, as in Python.",
    )
    missed = sorted(found, key=lambda one: one.change)
    rows = [
        (head_name(one.head, kind=True), [f"{one.change:+.3f}"])
        for one in (missed if current.choice.tables else missed[:_SHOWN])
    ]
    some = "" if len(found) == len(frame) else f", of {len(found)} of {len(frame)} heads so far"
    right.html(tables.table(f"Missed most{some}", ["change, nats"], rows))
