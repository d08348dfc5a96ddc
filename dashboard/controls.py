"""Widgets to one frozen Settings value. Every widget is bound to the URL, so a link reopens the view."""

from dataclasses import asdict, dataclass

import streamlit as st

from attnviz.models import MECHANISMS

EXAMPLES = (
    "The black dog is running across the green grass.",
    "A young woman in a red dress sits on a bench.",
    "Two boys play with a yellow ball.",
    "I don't know where he lives.",
)
LIMIT = 500  # characters of a sentence
OWN, TYPED, FROM = "own", "typed", "from-"
KINDS = {"cross": "Cross-attention (target to source)", "encoder": "Self-attention of the encoder",
         "decoder": "Self-attention of the decoder"}  # fmt: skip
MEAN = -1  # among the options of the head: a button group takes no None
BEAMS = {1: "greedy", 5: "beam of 5"}


@dataclass(frozen=True)
class Settings:
    """All that the person chose but the step, which has its own control below the heatmaps."""

    text: str
    mechanisms: tuple[str, ...]
    target: str = OWN  # OWN, TYPED or FROM + mechanism
    forced: str = ""  # the typed target
    beam: int = 1
    words: bool = False
    special: bool = True
    kind: str = "cross"  # kind, layer and head apply to models that have several
    layer: int = 2
    head: int | None = None  # None: the mean of heads

    def to_dict(self) -> dict:
        return asdict(self)

    def query(self, step: int) -> dict[str, str | list[str]]:
        """The URL parameters that reopen this view: Streamlit writes options there as the page shows them."""
        return {
            "text": self.text, "show": [title(name) for name in self.mechanisms], "target": _target_title(self.target),
            "force": self.forced, "beam": BEAMS[self.beam], "units": "words" if self.words else "pieces",
            "special": str(self.special).lower(), "kind": KINDS[self.kind], "layer": _number(self.layer),
            "head": _head_title(self.head), "step": _number(step),
        }  # fmt: skip


def sentence() -> str:
    """The sentence and the examples that are one click away."""
    text = st.text_input(
        "Your English sentence", EXAMPLES[0], key="text", bind="query-params",
        placeholder="Type an English sentence and press Enter",
    )  # fmt: skip
    over = " over" if len(text) > LIMIT else ""
    st.html(f'<div class="count{over}" data-limit="{LIMIT}" aria-live="polite">{counted(text)}</div>')
    with st.container(horizontal=True, gap="xxsmall", key="examples"):
        for number, example in enumerate(EXAMPLES):
            st.button(example, key=f"example{number}", type="tertiary", on_click=_use, args=(example,))
    return text


def counted(text: str) -> str:
    words = len(text.split())
    return f"{words} word{'' if words == 1 else 's'} · {len(text)} of at most {LIMIT} characters"


def sidebar(mechanisms: list[str]) -> dict:
    """Everything but the sentence -> fields of Settings."""
    st.html("<h2 class='brand'>attnviz</h2><p class='tag'>See how attention works: one sentence, three trained models.</p>")
    chosen = st.pills(
        "Mechanisms", mechanisms, selection_mode="multi", default=mechanisms[:3], format_func=title,
        key="show", bind="query-params",
    )  # fmt: skip
    options = [OWN, TYPED, *(FROM + name for name in mechanisms)]
    target = st.selectbox(
        "French text", options, format_func=_target_title, key="target", bind="query-params",
        help="Each model's own translation, or one text that all models are made to produce (forced decoding). "
        "Only with one text for all can two maps be subtracted.",
    )  # fmt: skip
    forced = st.text_input(
        "Text for all models", key="force", bind="query-params", disabled=target != TYPED,
        placeholder="Le chien noir court dans l'herbe verte.",
    )  # fmt: skip
    fields = {"mechanisms": tuple(chosen), "target": target, "forced": forced}
    return fields | _decoding() | _transformer("transformer" in chosen)


def title(mechanism: str) -> str:
    return MECHANISMS[mechanism].title.split(" · ")[0]


def _decoding() -> dict:
    beam = st.segmented_control(
        "Decoding", list(BEAMS), default=1, required=True, format_func=BEAMS.get, key="beam",
        bind="query-params", help="Greedy takes the most probable piece at each step; a beam keeps the five best texts so far.",
    )  # fmt: skip
    units = st.segmented_control(
        "Tokens", ["pieces", "words"], default="pieces", required=True, key="units", bind="query-params",
        help="The models read subword pieces. For whole words, weights are summed over the pieces of a source word and "
        "averaged over the pieces of a target word.",
    )  # fmt: skip
    special = st.toggle(
        "Show special tokens", True, key="special", bind="query-params",
        help="<eos> ends each text. Hidden, the other weights are scaled up to sum to 1, and the page says how much was removed.",
    )  # fmt: skip
    return {"beam": beam, "words": units == "words", "special": special}


def _transformer(shown: bool) -> dict:
    kind = st.selectbox(
        "Transformer: which attention", list(KINDS), format_func=KINDS.get, key="kind", bind="query-params", disabled=not shown
    )
    layer = st.segmented_control(
        "Layer", [0, 1, 2], default=2, required=True, format_func=_number, key="layer", bind="query-params",
        disabled=not shown,
    )  # fmt: skip
    head = st.segmented_control(
        "Head", [MEAN, 0, 1, 2, 3], default=MEAN, required=True, key="head", bind="query-params", disabled=not shown,
        format_func=lambda head: _head_title(None if head == MEAN else head),
    )  # fmt: skip
    return {"kind": kind, "layer": layer, "head": None if head == MEAN else head}


def _number(index: int) -> str:
    """Layers, heads and steps are counted from 1 on the page."""
    return str(index + 1)


def _head_title(head: int | None) -> str:
    return "mean of heads" if head is None else _number(head)


def _target_title(option: str) -> str:
    if option == OWN:
        return "Each model's own translation"
    return "One text for all: typed" if option == TYPED else f"One text for all: {title(option.removeprefix(FROM))}'s"


def _use(example: str) -> None:
    st.session_state["text"] = example
