"""Heads switched off: the model's output without them, the changes of other heads, and how much each head matters
alone."""

import math
import time
from collections.abc import Callable

import pandas as pd
import streamlit as st

from attnviz import ablation, figures, heads, select
from attnviz.ablation import Effect, Importance
from attnviz.data.tasks import Task
from attnviz.figures import labels
from attnviz.figures.wording import signed
from attnviz.heads import Head
from attnviz.models.huggingface.single_stack import Prediction
from attnviz.trace import Trace
from dashboard.browser.plot import Cell, named, plots
from dashboard.choices.options import kind_title
from dashboard.heads.scene import COLUMNS, ORDER, HeadsScene
from dashboard.markup import tables
from dashboard.markup.text import escape, hatched_heads, markdown, number
from dashboard.session import address, caches, memory
from dashboard.shell import downloads, turns
from dashboard.shell.problems import sentence

_TOKENS = 10  # tokens whose probability changes most, of a model that writes no text
_COMPARED = ("entropy_nats", "max_weight", "distance")  # of each head, before and without
_MOST_IMPORTANT = 5  # heads that matter most
_SLICE = 0.4  # s between two looks at what was pressed
_MEASURING = "measuring"  # in the session: what is measured, and how many heads; not there before anything was asked
_WRITTEN, _HEADS = "measured", "each head"  # in the address; the number of heads where it was stopped


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    st.subheader("Switch heads off", divider="gray")
    if say_why_not(current.choices.source.why_no_ablation):
        return
    off = st.multiselect(
        "Heads to switch off",
        current.all_heads,
        format_func=lambda head: f"{head.kind} {head.title}",
        key="off",
        bind="query-params",
        help="The output of a head that is switched off is multiplied by 0 (Michel et al. 2019).",
    )
    if off:
        try:
            forced = current.target if current.trace.forced else None
            effect = caches.effect(current.choices.source.name, current.input, tuple(sorted(off)), forced)
            _effect(current, effect, dark)
        except ValueError as error:  # an output so long that it cannot be forced
            refuse(error)
    else:
        st.html('<p class="small" role="status">Choose heads above, or measure how much each head matters below.</p>')


def say_why_not(problem: str) -> bool:
    """Say why a panel shows nothing, if there is a reason."""
    if problem:
        st.html(f'<p class="small" role="status">{escape(problem)}</p>')
    return bool(problem)


def refuse(error: ValueError) -> None:
    """Say why the model cannot be run without heads on this text."""
    st.error(markdown(f"The output cannot be measured. {sentence(str(error))}"), icon=":material/info:")


def _effect(current: HeadsScene, effect: Effect, dark: bool) -> None:
    languages, kind = current.choices.languages, current.choices.kind
    wrote, forced = current.target is not None, ""
    if wrote:
        st.html(_written(effect, languages, current.trace.forced))
        forced = f" (the {'' if current.trace.forced else 'original '} {escape(languages.output)} is forced)"
    elif languages.writes:
        st.html(_of_text(effect))
    elif not say_why_not(current.choices.source.why_no_importance):
        st.html(_predicted(current, effect))
    after = select.words(effect.after) if current.choices.words else effect.after
    shown = sorted({kind, *(head.kind for head in effect.off)}, key=lambda other: (other != kind, ORDER.index(other)))
    plots([_overview(current, after, effect.off, other, forced, dark) for other in shown], "without")
    if current.choices.tables:
        st.html(_weights(current, effect, heads.table(after, kind, _COMPARED)))


def _overview(current: HeadsScene, after: Trace, off: tuple[Head, ...], kind: str, forced: str, dark: bool) -> Cell:
    """All heads of a kind, computed with some heads switched off; these are crossed out."""
    figure = figures.overview(after, kind, root=current.choices.root, off=off, dark=dark)
    here = any(head.kind == kind for head in off)
    marks = "Crossed out: heads that are switched off" if here else "No head of this kind is switched off"
    words = f'<p class="what">{kind_title(kind)} without these heads{forced}. {marks}.{hatched_heads(after, kind)}</p>'
    return words, named(figure, f"heads without some {kind}", dark)


def _written(effect: Effect, languages: Task, given: bool) -> str:
    """A model's output with and without the heads. given : is the output forced by the visitor?"""
    changed = effect.free.translation != effect.before.translation
    same = "" if given else f"The {languages.output} {'changes' if changed else 'stays the same'}. "
    which = "forced" if given else "original"
    rows = [
        ("With all heads", [effect.before.translation, number(effect.before.log_prob)]),
        ("Without these heads", [effect.free.translation, number(effect.free.log_prob)]),
        (
            f"Without these heads, the {which} {languages.output}" + ("" if given else " forced"),
            [effect.after.translation, number(effect.after.log_prob)],
        ),
    ]
    return (
        f'<p class="what" role="status">{escape(same)}Change in log-probability of the {which} '
        f"{escape(languages.output)}: <b>{signed(effect.change, 2)}</b> nats.</p>"
        + tables.table("What the model writes", [languages.output, "log-probability"], rows, cells=languages.target)
    )


def _of_text(effect: Effect) -> str:
    """The probability of a text for a model that writes, with and without the heads."""
    before, after = effect.log_probs
    return (
        f'<p class="what" role="status">Log-probability of the text, with what was written: {number(before)} with all '
        f"heads, {number(after)} without these heads. Change: <b>{signed(effect.change, 2)}</b> nats.</p>"
    )


def _weights(current: HeadsScene, effect: Effect, after: pd.DataFrame) -> str:
    """The text equivalent of the maps: statistics of every head before and without the heads that are switched off."""
    columns = [f"{COLUMNS[name]}, {when}" for name in _COMPARED for when in ("before", "after")]
    rows = []
    for head, old, new in zip(current.heads, current.table[[*_COMPARED]].to_numpy(), after[[*_COMPARED]].to_numpy()):
        off = " (switched off)" if head in effect.off else ""
        rows.append((head.title + off, [tables.cell(value, ".3f") for pair in zip(old, new) for value in pair]))
    return tables.table("Every head: mean over the rows of its map", columns, rows)


def _predicted(current: HeadsScene, effect: Effect) -> str:
    """The predictions of tokens by a model that only reads, the largest changes first."""
    pairs = sorted(zip(*effect.predictions), key=lambda pair: -abs(pair[1].log_prob - pair[0].log_prob))
    if not pairs:
        return '<p class="small" role="status">The text has one token, so there is nothing to predict it from.</p>'
    shown = pairs if current.choices.tables else pairs[:_TOKENS]
    tokens = labels.shown(effect.before.source)
    rows = [
        (
            f"{before.position + 1} {tokens[before.position]}",
            [*(f"{math.exp(guess.log_prob):.3f}" for guess in (before, after)), *map(_most_probable, (before, after))],
        )
        for before, after in shown
    ]
    some = (
        ", largest changes first"
        if len(shown) == len(pairs)
        else f", the {len(shown)} of {len(pairs)} with the largest changes"
    )
    before, after = effect.log_probs
    reads = "This model does not write text, so each token of your text is predicted:"
    why = "Each token of the text is predicted:" if current.choices.writing else reads
    return (
        f'<p class="what" role="status">{why} '
        f"{_how(current, len(pairs))}. Log-probability of the tokens: {number(before)} with all heads, "
        f"{number(after)} without these heads. Change: <b>{signed(effect.change, 2)}</b> nats.</p>"
        + tables.table(
            f"Probability of each token{some}",
            ["with all heads", "without these heads", "most probable, with all", "most probable, without"],
            rows,
        )
    )


def _how(current: HeadsScene, count: int) -> str:
    if any(m.kind == "decoder" for m in current.trace.maps):
        return "from those before it"
    tokens = sum(not token.special for token in current.trace.source)
    which = "" if count == tokens else f", for {count} of the {tokens} tokens, evenly spread"
    return f"masked in turn, from all others{which} (Salazar et al. 2020)"


def _most_probable(prediction: Prediction) -> str:
    best = prediction.alternatives[0]
    return f"{labels.plain(best.text)} {best.probability:.3f}"


@address.fragment
def show_importance(current: HeadsScene, dark: bool) -> None:
    """How much each head matters: each is switched off alone, and the change in log-probability is measured. A stopped
    measurement keeps its results, and the next run continues it.

    It runs in slices, because a button of a fragment waits until the fragment's run ends. A run of more than this
    fragment measures all requested heads at once: if it reran itself, its controls would lose values that Streamlit
    sends only once.
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
    subject, every = (source.name, current.input, current.choices.output), current.all_heads
    measured = memory.head_changes(st.session_state, *subject)
    linked = _heads_in(st.query_params.get(_WRITTEN, ""), len(every))
    if linked and (_MEASURING not in st.session_state or address.came_back()):
        _measure(subject, linked)  # a link to a page with these numbers
    has_begun = _MEASURING in st.session_state  # a classifier measures its heads by itself
    being_measured, wanted = st.session_state.get(_MEASURING, (None, 0))
    wanted = max(len(measured), wanted if being_measured == subject else 0)
    address.also(_WRITTEN, lambda held: _words(wanted, len(every)) if has_begun else None)
    if len(measured) < wanted and not address.runs_alone():
        _measure_all(current, measured, wanted)
    measuring = len(measured) < wanted and address.runs_alone()
    _measure_controls(subject, len(measured), len(every), measuring)
    if measured:
        _importance_results(current, measured, dark)
    end = time.monotonic() + _SLICE
    if measuring and _add(current, measured, wanted, lambda: time.monotonic() > end):
        st.rerun(scope="fragment")


def _heads_in(words: str, count: int) -> int:
    """The number of measured heads (of `count`) in the address; 0 if missing."""
    if words == _HEADS:
        return count
    return min(int(words), count) if words.isdecimal() and words.isascii() and len(words) < 6 else 0


def _words(wanted: int, count: int) -> str | None:
    """The same in the words of the address."""
    return _HEADS if wanted == count else str(wanted) if wanted else None


def _measure_controls(subject: tuple[str, str, str], done: int, count: int, measuring: bool) -> None:
    with st.container(horizontal=True, vertical_alignment="center"):
        begin = "Continue" if 0 < done < count else "Measure each head"
        st.button(  # one button, whose words change: two would stand beside each other until the last head
            "Stop" if measuring else begin,
            key="measure",
            on_click=_measure,
            args=(subject, 0 if measuring else count),
            disabled=done == count,
            help="The results so far are kept." if measuring else None,
        )
        if measuring:
            st.progress(done / count, f"{done} of {count} heads")


def _measure(subject: tuple[str, str, str], wanted: int) -> None:
    """Set how many heads to measure for a model, text and forced output; 0 to stop."""
    st.session_state[_MEASURING] = subject, wanted


def _measure_all(current: HeadsScene, measured: list[Importance], wanted: int) -> None:
    steps = turns.Steps("Switching heads off", wanted - len(measured), "stop-measuring", _stop)

    def count() -> bool:
        steps()
        return False

    _add(current, measured, wanted, count)
    steps.end()


def _stop() -> None:
    st.session_state[_MEASURING] = None, 0


def _add(current: HeadsScene, measured: list[Importance], wanted: int, ends: Callable[[], bool]) -> bool:
    """Measure heads until `ends` returns true, checked after each head -> did it succeed?"""
    left = current.all_heads[len(measured) : wanted]
    try:
        with turns.long_turn([current.choices.source.name]):
            for head in caches.importance(current.choices.source.name, current.input, current.target, left):
                measured.append(head)
                if ends():
                    break
    except ValueError as error:
        _stop()
        refuse(error)
        return False
    return True


def _importance_results(current: HeadsScene, measured: list[Importance], dark: bool) -> None:
    frame = ablation.table(measured, current.all_heads)
    left, right = st.columns([3, 2], gap="large")
    with left:
        _importance_map(current, frame, dark)
    downloads.csv_button(
        "Table as CSV", lambda: frame, "importance.csv", key="importance_csv", note=downloads.HEADS_FROM_0
    )
    ranked = sorted(measured, key=lambda head: head.change)
    shown = ranked if current.choices.tables else ranked[:_MOST_IMPORTANT]
    rows = [(f"{head.head.kind} {head.head.title}", [signed(head.change)]) for head in shown]
    so_far = "" if len(measured) == len(frame) else f" ({len(measured)} of {len(frame)} heads measured so far)"
    right.html(tables.table(f"Heads that matter most{so_far}", ["change (nats)"], rows))


def _importance_map(current: HeadsScene, frame: pd.DataFrame, dark: bool) -> None:
    """How much each head of the shown kind matters, as a map."""
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
