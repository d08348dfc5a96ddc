"""Attention changed, by a rule or by hand: each model's output then, freely and with the original output forced."""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import replace

import streamlit as st

from attnviz import function_words, intervene
from attnviz.figures import labels
from attnviz.intervene import Change, Given, Scope
from dashboard.browser import script
from dashboard.choices.options import mechanism_of
from dashboard.inside import caches, downloads, effects
from dashboard.inside.scene import Column, InsideScene
from dashboard.markup.text import escape, markdown
from dashboard.session import address
from dashboard.shell import frame
from dashboard.shell.problems import sentence
from dashboard.shell.turns import Steps

TITLE = "Change attention"

NONE, HIDDEN, PERMUTED, TEMPERATURE, BY_HAND = "", "hide", "permuted", "temperature", "given"
_TO_SET = {TEMPERATURE: "another temperature", HIDDEN: "hide a source token", BY_HAND: "by hand: drag the bars"}
CHANGES = {
    NONE if kind is intervene.Identity else name: _TO_SET.get(name, kind.title)
    for name, kind in intervene.KINDS.items()
}
WHERE = {
    "all": "at all steps",
    "step": "at the step chosen above",
    "function": "at steps of function words",
    "content": "at steps of content words",
}
_KINDS_OF_WORDS = ("function", "content")
PARTS = {"all": "all layers and heads", "layer": "this layer", "head": "this head"}  # of a Transformer
_OF_MEAN = ("all", "layer")  # where no head is chosen
_TEMPERATURES = (0.1, 0.25, 0.5, 2.0, 4.0, 10.0)
CAUTION = (
    "The model never saw such a context in training, so a word may disappear for that reason alone. If a word stays, "
    "the model can produce it without this attention."
)
_WANTED = (
    "Type {} numbers separated by commas, one for each source token. No number may be below 0, and at least one must "
    "be above 0."
)
GREEDY = " Both translations are decoded greedily. The charts show the text that the beam of 5 found."
_bars = st.components.v2.component(
    "attnviz_drag",
    html='<div class="drag-bars"></div><p class="small drag-sum" role="status"></p>',
    isolate_styles=False,
    js=script("drag.js"),
)


@address.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader(TITLE, divider="gray")
    name, scopes = _controls(current)
    if name == NONE:
        downloads.drop("change")
        st.html(
            '<p class="small" role="status">Choose a change above. The models then write with the changed '
            "attention.</p>"
        )
        return
    changes = _by_hand(current) if name == BY_HAND else _by_rule(name, current)
    stop = functools.partial(st.session_state.update, change=NONE)
    steps = Steps("Decoding with changed attention", effects.steps(current.columns), "stop-change", stop)
    affected = [
        (column, outcome)
        for column in current.columns
        if (outcome := _outcome(column, changes.get(column.model), scopes[column.several], steps)) is not None
    ]
    steps.end()
    if affected:
        caution = CAUTION + GREEDY * (current.choices.beam > 1)
        effects.draw(current, affected, effects.CHANGED, _title(name, affected), caution, dark)


def _by_rule(name: str, current: InsideScene) -> dict[str, Change]:
    """Model -> the change. A hidden token is that at the same place of the text: models may divide it otherwise."""
    value = _value(name, current)
    if not isinstance(value, intervene.Hide):
        return {column.model: value for column in current.columns}
    hidden = current.columns[0].keys()[value.tokens[0]]
    span, changes = (hidden.start, hidden.end), {}
    for column in current.columns:
        keys = column.keys()
        if keys[value.tokens[0] : value.tokens[0] + 1] == (hidden,):
            changes[column.model] = value
        elif places := tuple(  # the last: <eos> and other tokens without letters
            at
            for at, key in enumerate(keys)
            if (key.start < hidden.end and key.end > hidden.start) or (key.start, key.end) == span
        ):
            changes[column.model] = intervene.Hide(places)
        else:
            st.caption(f"{markdown(column.title)}: it has no token at this place of the text, so nothing is hidden.")
    return changes


def _change_title(name: str, writes: bool) -> str:
    """The name of a change; in a model that writes the last state that a row sees is that of the token itself."""
    return "only the token itself" if writes and name == intervene.LastOnly.name else CHANGES[name]


def _controls(current: InsideScene) -> tuple[str, dict[bool, Scope]]:
    """The controls -> the name of the change, and its scope: in a recurrent model (False) and in a Transformer
    (True)."""
    several = next((column for column in current.columns if column.several), None)
    left, middle, right = st.columns([2, 2, 2] if several else [2, 2, 0.01])
    offered = places(current.columns[0].languages.target)
    if st.session_state.get("where", "all") not in offered:  # of another pair
        st.session_state["where"] = "all"
    words = functools.partial(_change_title, writes=current.columns[0].writes)
    name = left.selectbox("Change", list(CHANGES), format_func=words, key="change", bind="query-params")
    where = _where(middle, name, offered)
    part = several and _part(right, name, several)
    steps = (st.session_state["step"] - 1,) if where == "step" else None
    everywhere = Scope(steps, where if where in _KINDS_OF_WORDS else None)
    place = {"layer": several.layer} if part in ("layer", "head") else {}
    place |= {"head": several.head} if part == "head" else {}
    return name, {False: everywhere, True: replace(everywhere, **place)}


def _part(place, name: str, several: Column) -> str:
    """The heads of a model with several. For weights set by hand: the shown head, or all heads of the layer whose mean
    is shown."""
    label = f"In the {'model' if several.writes else 'Transformer'}"
    offered = _OF_MEAN if several.head is None else tuple(PARTS)
    chosen = st.session_state.get("part", "all")
    if name == BY_HAND:
        st.session_state["part"] = chosen
        only = offered[-1]
        return place.selectbox(label, [only], format_func=PARTS.get, key=f"part_by_hand_{only}", disabled=True)
    if chosen not in offered:
        st.session_state["part"] = offered[-1]
    return place.selectbox(label, offered, format_func=PARTS.get, key="part", bind="query-params")


def _where(place, name: str, offered: list[str]) -> str:
    """The control of the steps. Weights set by hand are of one step, so it is disabled then and keeps its value."""
    if name == BY_HAND:
        st.session_state["where"] = st.session_state.get("where", "all")  # a control that is not drawn loses its value
        return place.selectbox("Where", ["step"], format_func=WHERE.get, key="where_by_hand", disabled=True)
    return place.selectbox("Where", offered, format_func=WHERE.get, key="where", bind="query-params")


def places(language: str) -> list[str]:
    """The options for where attention is changed. Function words are known in some languages only."""
    listed = language in function_words.languages()
    return [where for where in WHERE if listed or where not in _KINDS_OF_WORDS]


def _value(name: str, current: InsideScene) -> Change:
    """The change with its value, where it has one."""
    if name == PERMUTED:
        seed = st.number_input("Seed of the permutation", 0, 9999, key="seed", bind="query-params")
        return intervene.Permuted(int(seed))
    if name == TEMPERATURE:
        value = st.select_slider(
            "Temperature", _TEMPERATURES, 2.0, format_func="{:g}".format, key="hot", bind="query-params"
        )
        return intervene.Temperature(value)
    if name == HIDDEN:
        column = current.columns[0]
        words = f"{'Token' if column.writes else 'Source token'} that is hidden"
        return intervene.Hide((frame.numbered(words, key="hidden", names=labels.shown(column.keys())),))
    return intervene.parse(name)


def _outcome(column: Column, change: Change | None, scope: Scope, steps: Steps):
    """The outcome; None, with a message, if the change is impossible; None without a change."""
    if scope.steps and scope.steps[0] >= len(column.trace.target):
        st.caption(f"{markdown(column.title)}: this text ends before step {scope.steps[0] + 1}.")
        return None
    if change is None:
        return None
    try:
        return caches.outcome(column, change, scope, steps)
    except ValueError as error:  # no list of function words for a language, an empty translation
        st.error(markdown(f"{column.title}: {sentence(str(error))}"), icon=":material/info:")
        return None


def _title(name: str, affected: list) -> str:
    """The change and its place, above pictures that are saved."""
    session, titles = st.session_state, dict.fromkeys(outcome.change.title for _, outcome in affected)
    step = name == BY_HAND or session.get("where") == "step"
    where = f"at step {session['step']}" if step else WHERE[session.get("where", "all")]
    several = next((column for column, _ in affected if column.several), None)
    by_hand_part = "layer" if several and several.head is None else "head"
    chosen = by_hand_part if name == BY_HAND else session.get("part")
    part = f"; in the {'model' if several.writes else 'Transformer'}: {PARTS[chosen]}" if several else ""
    return f"Attention changed: {' or '.join(titles)}, {where}{part}"


def _by_hand(current: InsideScene) -> dict[str, Change]:
    """Model -> the weights set for it, divided by their sum; no change for a model whose bars were not moved.

    A model is left out if the step or usable numbers are missing.
    """
    step = st.session_state["step"] - 1
    shown = [column for column in current.columns if step < len(column.trace.target)]
    chosen = {column.model: _change_by_hand(column, current, step) for column in shown}
    if chosen and all(isinstance(change, intervene.Identity) for change in chosen.values()):
        st.html(
            '<p class="small" role="status">No bar has been moved: each model has its own weights, and nothing changes.'
            "</p>"
        )
    return {model: change for model, change in chosen.items() if change is not None}


def _change_by_hand(column: Column, current: InsideScene, step: int) -> Change | None:
    """The change of one model; None if the typed numbers cannot be used."""
    first = column is current.columns[0]
    suffix = "" if first else f"-{mechanism_of(column.model)}"
    key, tokens = f"given{suffix}", column.keys(step)
    own = column.grid(column.trace).weights[step, : len(tokens)].tolist()
    typed = st.session_state.get(key, st.query_params.get(key, ""))
    weights = _read(typed, len(tokens))
    if len(current.columns) > 1:
        st.caption(markdown(f"{column.title}{column.place}"))
    take = functools.partial(_take, key)
    drag(labels.shown(tokens), weights or own, take, f"weights{suffix}", column.title)
    left, right = st.columns([4, 1], vertical_alignment="bottom")
    typed = left.text_input(
        f"The same as numbers, one for each {'token' if column.writes else 'source token'}",
        key=key,
        bind="query-params",
        placeholder=", ".join(f"{weight:.2f}" for weight in own),
        help="They are divided by their sum.",
    )
    right.button("The model’s weights", key=f"own_weights{suffix}", on_click=take, args=(None,))
    if not typed:
        return intervene.Identity()
    if (weights := _read(typed, len(tokens))) is None:
        wanted = escape(f"{column.title}: {_WANTED.format(len(tokens))}")
        st.html(f'<p class="over" role="status">{wanted}</p>')
        return None
    return Given(tuple(weights))


def _take(key: str, weights: list[float] | None) -> None:
    """The dragged weights; None for the model's own."""
    st.session_state[key] = "" if weights is None else ", ".join(f"{round(weight, 4):g}" for weight in weights)


def _read(text: str, count: int) -> list[float] | None:
    """The numbers in a text, divided by their sum; None unless there is one per token, all at least 0 and not all 0."""
    try:
        weights = [float(part) for part in text.split(",")]
    except ValueError:
        return None
    fits = len(weights) == count and all(math.isfinite(weight) and weight >= 0 for weight in weights)
    total = sum(weights)
    return [round(weight / total, 6) for weight in weights] if fits and 0 < total < math.inf else None


def drag(
    tokens: Sequence[str], weights: Sequence[float], on_weights: Callable[[list[float]], None], key: str, model: str
) -> None:
    """One bar per token, from 0 to 1, which sum to 1: moving a bar scales the others in proportion.

    weights : at least 0, with a sum of 1. on_weights : receives all weights when a bar is released.
    model : its name, read by screen readers with every bar and the sum.
    """
    name = f"drag-{key}"

    def moved() -> None:
        weights = st.session_state[name].get("weights")
        if weights is not None:
            on_weights([float(weight) for weight in weights])

    data = {"tokens": list(tokens), "weights": [round(float(weight), 6) for weight in weights], "model": model}
    _bars(key=name, data=data, on_weights_change=moved)
