"""The widgets of the sidebar and the sentence. Every one is bound to the URL, so a link reopens the view."""

import html

import streamlit as st

from dashboard.choices import pairs
from dashboard.choices.settings import (
    BEAMS,
    FROM,
    KINDS,
    LIMIT,
    MOST,
    OWN,
    PIECES,
    TYPED,
    head_title,
    model,
    number,
    target_title,
    title,
)
from dashboard.session import state

_MEAN = -1  # among the options of the head: a button group takes no None
_OVER = "over_most"  # one mechanism too many was asked for
_LEFT = "left_gold"  # the sentence is no longer the one with links that was chosen


def sentence(pair: str) -> str:
    """The sentence and the examples that are one click away."""
    facts = pairs.of(pair)
    text = st.text_input(
        facts.ask, facts.first, key="text", bind="query-params", placeholder=facts.hint, on_change=_leave_gold
    )
    over = ' over" role="status' if len(text) > LIMIT else ""
    st.html(f'<div class="count{over}" data-limit="{LIMIT}" data-pieces="{PIECES}">{counted(text)}</div>')
    with st.container(horizontal=True, gap="xxsmall", key="examples"):
        for position, example in enumerate(facts.examples):
            st.button(example, key=f"example{position}", type="tertiary", on_click=_use, args=(example,))
    if st.session_state.pop(_LEFT, False):
        st.rerun()  # this is a fragment, and the sidebar has changed
    return text


def own_text(limit: int | None) -> str:
    """The text for a model of one's own, which counts it in tokens; limit : how many it takes, None when there is no model yet."""
    facts = pairs.ANY
    text = st.text_input(facts.ask, facts.first, key="text", bind="query-params", placeholder=facts.hint)
    if limit:
        st.html(f'<div class="tokens">at most {limit} tokens, as this model counts</div>')
    return text


def counted(text: str) -> str:
    words = len(text.split())
    return f"{words} word{'' if words == 1 else 's'} · {len(text)} of at most {LIMIT} characters (and {PIECES} word pieces)"


def language_pair() -> str:
    """The control of all others: which models there are, and what they read and write, follows from it."""
    brand("See how attention works: one sentence, trained models side by side.")
    pair = st.selectbox(
        "Language pair",
        list(state.offered()),
        format_func=lambda name: pairs.of(name).title,
        key="pair",
        bind="query-params",
        on_change=_enter,
    )
    if note := pairs.of(pair).note:
        st.html(f'<p class="tag">{html.escape(note)}</p>')
    return pair


def brand(tag: str) -> None:
    """The name above the controls, and what the page is for."""
    st.html(f"<h1 class='brand'>attnviz</h1><p class='tag'>{html.escape(tag)}</p>")


def sidebar(pair: str) -> dict:
    """Everything but the sentence -> fields of Settings."""
    mechanisms = state.offered()[pair]
    chosen = _mechanisms(mechanisms)
    marked = _gold(pair)
    options = [OWN, TYPED, *(FROM + name for name in mechanisms)]
    output = pairs.of(pair).output
    target = st.selectbox(
        output[0].upper() + output[1:],
        options,
        format_func=target_title,
        key="target",
        bind="query-params",
        on_change=_other_target,
        help="Each model's own translation, or one text that all models are made to produce (forced decoding). "
        "Only with one text for all can two maps be subtracted.",
    )
    forced = st.text_input(
        "Text for all models",
        key="force",
        bind="query-params",
        disabled=target != TYPED,
        placeholder=pairs.of(pair).forced,
        on_change=_other_target,
    )
    fields = {"pair": pair, "mechanisms": tuple(chosen), "target": target, "forced": forced} | marked
    fields |= _reading() | _transformer("transformer" in chosen, *state.layers_and_heads(model(pair, "transformer")))
    tables = st.toggle(
        "Charts as tables too",
        key="tables",
        bind="query-params",
        help="Puts the numbers of each chart below it, as a table.",
    )
    return fields | {"tables": tables}


def _mechanisms(offered: list[str]) -> list[str]:
    chosen = st.pills(
        f"Mechanisms, up to {MOST}" if len(offered) > MOST else "Mechanisms",
        offered,
        selection_mode="multi",
        default=pairs.first(offered),
        format_func=title,
        key="show",
        bind="query-params",
        on_change=_hold,
    )
    if st.session_state.pop(_OVER, False) or len(chosen) > MOST:  # more than that come with a link
        st.html(f'<p class="over" role="status">{MOST} mechanisms fit side by side. Take one away to see another.</p>')
    return chosen[:MOST]


def _hold() -> None:
    """The first MOST stay; the last choice comes last."""
    chosen = st.session_state["show"]
    st.session_state[_OVER] = len(chosen) > MOST
    st.session_state["show"] = chosen[:MOST]


def _gold(pair: str) -> dict:
    """The way to sentences whose words were linked by hand, where the pair has some."""
    sentences = [linked.source for linked in pairs.linked(pair)]
    if not sentences:
        return {}
    chosen = st.selectbox(
        "Gold alignments",
        ["", *sentences],
        format_func=lambda text: text or "none",
        key="gold",
        bind="query-params",
        on_change=_take,
        help=f"{len(sentences)} sentences whose words were linked by hand. One that is chosen becomes the sentence, its translation "
        "the text for all models, and its links are laid over the maps, with the alignment error rate.",
    )
    return {
        "gold": chosen,
        "links": not chosen or st.toggle("Gold links over the maps", True, key="links", bind="query-params"),
    }


def _take() -> None:
    """The chosen sentence and its translation; with none chosen, each model's own again."""
    chosen = st.session_state["gold"]
    found = next((linked for linked in pairs.linked(st.session_state["pair"]) if linked.source == chosen), None)
    if found is None:
        _each_its_own()
    else:
        st.session_state.update(text=found.source, target=TYPED, force=found.target)


def _other_target() -> None:
    st.session_state["gold"] = ""


def _leave_gold() -> None:
    """A sentence of one's own is not to be forced into the translation of the one that was chosen."""
    if st.session_state.get("gold") not in ("", None, st.session_state["text"]):
        st.session_state["gold"], st.session_state[_LEFT] = "", True
        _each_its_own()


def _each_its_own() -> None:
    st.session_state.update(target=OWN, force="")


def _enter() -> None:
    """Into another pair goes what means something there: the mechanisms that it has, and a sentence of the same language
    unless that was an example."""
    pair = st.session_state["pair"]
    facts, offered = pairs.of(pair), state.offered()[pair]
    st.session_state["show"] = [name for name in st.session_state["show"] if name in offered] or pairs.first(offered)
    last = state.last(st.session_state)
    before = pairs.of(last.settings.pair) if last else facts
    if before.source != facts.source or st.session_state["text"] in before.examples:
        st.session_state["text"] = facts.first
    if st.session_state["target"] == TYPED:
        _each_its_own()
    st.session_state["gold"] = ""


def _reading() -> dict:
    beam = st.segmented_control(
        "Decoding",
        list(BEAMS),
        default=1,
        required=True,
        format_func=BEAMS.get,
        key="beam",
        bind="query-params",
        help="Greedy takes the most probable piece at each step; a beam keeps the five best texts so far.",
    )
    units = st.segmented_control(
        "Tokens",
        ["pieces", "words"],
        default="pieces",
        required=True,
        key="units",
        bind="query-params",
        help="The models read subword pieces. For whole words, weights are summed over the pieces of a source word and "
        "averaged over the pieces of a target word.",
    )
    special = st.toggle(
        "Show special tokens",
        True,
        key="special",
        bind="query-params",
        help="`<eos>` ends each text. Hidden, the other weights are scaled up to sum to 1, and the page says how much was removed.",
    )
    return {"beam": beam, "words": units == "words", "special": special}


def _transformer(shown: bool, layers: int, heads: int) -> dict:
    common = {"required": True, "bind": "query-params", "disabled": not shown}
    kind = st.selectbox(
        "Transformer: which attention",
        list(KINDS),
        format_func=KINDS.get,
        key="kind",
        bind="query-params",
        disabled=not shown,
    )
    layer = st.segmented_control("Layer", range(layers), default=layers - 1, format_func=number, key="layer", **common)
    head = st.segmented_control(
        "Head",
        [_MEAN, *range(heads)],
        default=_MEAN,
        key="head",
        format_func=lambda head: head_title(None if head == _MEAN else head),
        **common,
    )
    return {"kind": kind, "layer": layer, "head": None if head == _MEAN else head}


def _use(example: str) -> None:
    st.session_state["text"] = example
    _leave_gold()
