"""Attention changed: what the model writes then, freely and with the same words forced."""

import html

import streamlit as st

from attnviz import figures, intervene
from attnviz.figures import labels
from attnviz.intervene import Outcome, Scope
from dashboard.browser.plot import named, plots
from dashboard.inside import caches
from dashboard.inside.scene import InsideScene
from dashboard.markup import tables
from dashboard.markup.text import markdown
from dashboard.shell.problems import sentence

NONE, HIDDEN = "", "hide"
CHANGES = {
    NONE: "no change",
    "uniform": "uniform",
    "zero-largest": "largest weight to 0",
    "only-largest": "only the largest weight",
    "keep-largest": "largest kept, the rest even",
    "permuted:0": "permuted",
    "last-only": "only the last source state",
    "temperature:0.5": "temperature 0.5",
    "temperature:2": "temperature 2",
    HIDDEN: "hide the source token chosen above",
}
WHERE = {
    "all": "at all steps",
    "step": "at the step chosen above",
    "function": "at steps of function words",
    "content": "at steps of content words",
}


@st.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader("Change attention", divider="gray")
    left, middle, right = st.columns([2, 2, 1])
    change = left.selectbox("Change", list(CHANGES), format_func=CHANGES.get, key="change", bind="query-params")
    where = middle.selectbox("Where", list(WHERE), format_func=WHERE.get, key="where", bind="query-params")
    alone = current.several and right.toggle("This head only", key="alone", bind="query-params")
    if change == NONE:
        st.html('<p class="small" role="status">Choose a change above. The model then decodes on from it.</p>')
        return
    try:
        chosen = intervene.Hide((st.session_state["cell"],)) if change == HIDDEN else intervene.parse(change)
        outcome = caches.outcome(current.choices.model, current.text, chosen, _scope(current, where, alone))
    except ValueError as error:  # no list of function words for a language, an empty translation
        st.error(markdown(sentence(str(error))), icon=":material/info:")
        return
    st.html(_written(current, outcome))
    plots(_maps(current, outcome, dark), "changed")
    st.html(_by_token(current, outcome))


def _scope(current: InsideScene, where: str, alone: bool) -> Scope:
    steps = (st.session_state["step"] - 1,) if where == "step" else None
    words = where if where in ("function", "content") else None
    place = {"layer": current.choices.layer, "head": current.choices.head} if alone else {}
    return Scope(steps, words, **place)


def _written(current: InsideScene, outcome: Outcome) -> str:
    changed = outcome.free.translation != outcome.before.translation
    rows = [
        ("As it is", [outcome.before.translation, f"{outcome.before.log_prob:.2f}"]),
        ("Under the change", [outcome.free.translation, f"{outcome.free.log_prob:.2f}"]),
        (
            "Under the change, the original words forced",
            [outcome.forced.translation, f"{outcome.forced.log_prob:.2f}"],
        ),
    ]
    words = f"The translation {'changes' if changed else 'stays the same'}."
    caution = (
        "The model never saw such a context in training, so a word may disappear for that reason alone. If a word "
        "stays, the model can produce it without this attention."
    )
    table = tables.table("What the model writes", ["text", "log-probability"], rows, cells=current.languages.target)
    return f'<p class="what" role="status">{words}</p>{table}<p class="small">{html.escape(caution)}</p>'


def _maps(current: InsideScene, outcome: Outcome, dark: bool) -> list:
    cells = []
    for words, trace in (("As it is", outcome.before), ("Under the change, same words", outcome.forced)):
        figure = figures.heatmap(current.grid(trace), dark=dark)
        cells.append((f"<h4>{words}</h4>", named(figure, f"attention {words.lower()}", dark)))
    return cells


def _by_token(current: InsideScene, outcome: Outcome) -> str:
    rows = [
        (
            f"{step + 1} {labels.plain(token.text)}",
            ["yes" if changed else "no", f"{change:+.3f}", f"{variation:.3f}"],
        )
        for step, (token, changed, change, variation) in enumerate(
            zip(outcome.before.target, outcome.steps, outcome.log_prob_changes, outcome.total_variation)
        )
    ]
    return tables.table(
        "Each target token, the original words forced",
        ["changed here", "change of log-probability (nats)", "total variation (0 to 1)"],
        rows,
        (current.languages.target, "en"),
    )
