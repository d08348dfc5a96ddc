"""The options of the page's controls, and what the page and the URL call them. No Streamlit here."""

from attnviz import mechanisms
from attnviz.data import MOST_PIECES
from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName

LIMIT = 500  # characters of a sentence
PIECES = MOST_PIECES  # of a sentence
MOST = 4  # mechanisms side by side
OWN, TYPED, FROM = "own", "typed", "from-"  # FROM + mechanism
HF, SAVED = "own model", "saved trace"  # among the models of the page Heads and layers; the others by their names
_MODEL_TITLES = {HF: "A Hugging Face model", SAVED: "A saved trace"}
BEAMS = {1: "greedy", 5: "beam of 5"}
KINDS = {
    "cross": "Cross-attention (to source)",
    "encoder": "Self-attention of the encoder",
    "decoder": "Self-attention of the decoder",
}
CHAPTER_TITLES = {  # of the page Learn, in order
    "bottleneck": "The bottleneck",
    "weights": "Weights and context",
    "scores": "Score functions",
    "who-asks": "Who asks, and when",
    "scaling": "Sharp or flat",
    "heads": "Many heads at once",
    "patterns": "Typical patterns",
    "limits": "What attention does not tell",
}


def model(pair: str, mechanism: str) -> str:
    """The name of a checkpoint."""
    return str(ModelName(pair, mechanism))


def title(mechanism: str) -> str:
    """A mechanism's short name, unique on the page: `Bahdanau`, but `Luong general`, because there are several of
    Luong's."""
    family, _, variant = MECHANISMS[mechanism].title.partition(" · ")
    alone = sum(other.title.partition(" · ")[0] == family for other in MECHANISMS.values()) == 1
    return family if alone else f"{family} {variant}"


def model_title(model: str) -> str:
    """The name of one of the models of the page Heads and layers."""
    if model in _MODEL_TITLES:
        return _MODEL_TITLES[model]
    name = ModelName.parse(model)
    return f"{name.task.title} · {mechanisms.find(name.mechanism).title.partition(' · ')[0]}"


def kind_title(kind: str) -> str:
    """The name of a kind of attention without brackets: `Cross-attention`."""
    return KINDS[kind].split(" (")[0]


def target_title(option: str) -> str:
    if option == OWN:
        return "Each model's own text"
    return "One text for all: typed" if option == TYPED else f"One text for all: {title(option.removeprefix(FROM))}'s"


def head_title(head: int | None) -> str:
    return "mean of heads" if head is None else number(head)


def number(index: int) -> str:
    """Layers, heads and steps are counted from 1 on the page."""
    return str(index + 1)


def chapter_title(key: str) -> str:
    """`1. The bottleneck`, as in the list and in the address. KeyError for a key that is no chapter's."""
    return f"{list(CHAPTER_TITLES).index(key) + 1}. {CHAPTER_TITLES[key]}"
