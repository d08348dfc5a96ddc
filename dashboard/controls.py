"""The widgets of the sidebar and the sentence. Every one is bound to the URL, so a link reopens the view."""

import streamlit as st

from dashboard.settings import (
    BEAMS, FROM, KINDS, LIMIT, OWN, PIECES, TYPED, head_title, number, target_title, title,
)  # fmt: skip

EXAMPLES = (
    "The black dog is running across the green grass.",
    "A young woman in a red dress sits on a bench.",
    "Two boys play with a yellow ball.",
    "I don't know where he lives.",
)
_MEAN = -1  # among the options of the head: a button group takes no None


def sentence() -> str:
    """The sentence and the examples that are one click away."""
    text = st.text_input(
        "Your English sentence", EXAMPLES[0], key="text", bind="query-params",
        placeholder="Type an English sentence and press Enter",
    )  # fmt: skip
    over = ' over" role="status' if len(text) > LIMIT else ""
    st.html(f'<div class="count{over}" data-limit="{LIMIT}" data-pieces="{PIECES}">{counted(text)}</div>')
    with st.container(horizontal=True, gap="xxsmall", key="examples"):
        for position, example in enumerate(EXAMPLES):
            st.button(example, key=f"example{position}", type="tertiary", on_click=_use, args=(example,))
    return text


def counted(text: str) -> str:
    words = len(text.split())
    return f"{words} word{'' if words == 1 else 's'} · {len(text)} of at most {LIMIT} characters (and {PIECES} word pieces)"


def sidebar(mechanisms: list[str], layers: int, heads: int) -> dict:
    """Everything but the sentence -> fields of Settings. layers, heads : of the Transformer."""
    st.html("<h1 class='brand'>attnviz</h1><p class='tag'>See how attention works: one sentence, three trained models.</p>")
    chosen = st.pills(
        "Mechanisms", mechanisms, selection_mode="multi", default=mechanisms[:3], format_func=title,
        key="show", bind="query-params",
    )  # fmt: skip
    options = [OWN, TYPED, *(FROM + name for name in mechanisms)]
    target = st.selectbox(
        "French text", options, format_func=target_title, key="target", bind="query-params",
        help="Each model's own translation, or one text that all models are made to produce (forced decoding). "
        "Only with one text for all can two maps be subtracted.",
    )  # fmt: skip
    forced = st.text_input(
        "Text for all models", key="force", bind="query-params", disabled=target != TYPED,
        placeholder="Le chien noir court dans l'herbe verte.",
    )  # fmt: skip
    fields = {"mechanisms": tuple(chosen), "target": target, "forced": forced}
    fields |= _reading() | _transformer("transformer" in chosen, layers, heads)
    tables = st.toggle(
        "Charts as tables too", key="tables", bind="query-params", help="Puts the numbers of each chart below it, as a table."
    )
    return fields | {"tables": tables}


def _reading() -> dict:
    beam = st.segmented_control(
        "Decoding", list(BEAMS), default=1, required=True, format_func=BEAMS.get, key="beam", bind="query-params",
        help="Greedy takes the most probable piece at each step; a beam keeps the five best texts so far.",
    )  # fmt: skip
    units = st.segmented_control(
        "Tokens", ["pieces", "words"], default="pieces", required=True, key="units", bind="query-params",
        help="The models read subword pieces. For whole words, weights are summed over the pieces of a source word and "
        "averaged over the pieces of a target word.",
    )  # fmt: skip
    special = st.toggle(
        "Show special tokens", True, key="special", bind="query-params",
        help="`<eos>` ends each text. Hidden, the other weights are scaled up to sum to 1, and the page says how much was removed.",
    )  # fmt: skip
    return {"beam": beam, "words": units == "words", "special": special}


def _transformer(shown: bool, layers: int, heads: int) -> dict:
    common = {"required": True, "bind": "query-params", "disabled": not shown}
    kind = st.selectbox(
        "Transformer: which attention", list(KINDS), format_func=KINDS.get, key="kind", bind="query-params", disabled=not shown
    )
    layer = st.segmented_control("Layer", range(layers), default=layers - 1, format_func=number, key="layer", **common)
    head = st.segmented_control(
        "Head", [_MEAN, *range(heads)], default=_MEAN, key="head",
        format_func=lambda head: head_title(None if head == _MEAN else head), **common,
    )  # fmt: skip
    return {"kind": kind, "layer": layer, "head": None if head == _MEAN else head}


def _use(example: str) -> None:
    st.session_state["text"] = example
