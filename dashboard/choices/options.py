"""The options of the page's controls, and their names on the page and in the URL. No Streamlit here."""

import functools
from dataclasses import dataclass, replace

from attnviz import mechanisms
from attnviz.data import MOST_PIECES, tasks
from attnviz.data.tasks import Task
from attnviz.mechanisms import MECHANISMS, Mechanism
from attnviz.models.names import ModelName, is_hugging_face, without_prefix
from attnviz.training.seen import PRESETS
from dashboard.choices import settings

LIMIT = 500  # characters of a sentence
_TO_WRITE_ON = 2500  # of a text that a model writes on: about the 512 tokens of its context
PIECES = MOST_PIECES  # of a sentence
MOST = 4  # mechanisms side by side
MOST_WRITTEN = 200  # tokens that a model writes after a text
OWN, TYPED, FROM = "own", "typed", "from-"  # FROM + mechanism
HF, SAVED = "own model", "saved trace"  # among the models of the page Heads and layers; the others by their names
_MODEL_TITLES = {HF: "A Hugging Face model", SAVED: "A saved trace"}
BEAMS = {1: "greedy", 5: "beam of 5"}
SHIFTS = {0: "as each word was produced", 1: "one step later", -1: "one step earlier"}  # rows beside gold links
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
    "writing": "A model that writes",
    "limits": "What attention does not tell",
    "masks": "What is masked, and why",
    "teacher-forcing": "Training and using a model",
    "roles": "Query, key and value in three models",
    "rows-columns": "Rows, columns and symmetry",
    "looks-at-itself": "A sentence looks at itself",
    "appears": "How alignment appears",
}
# Of the page Many sentences: where the sentences come from, their numbers, and their order.
LINKED, PASTED, UPLOADED, NAMED, NO_OTHER = "linked", "pasted", "uploaded", "named", "none"
SENTENCE_SOURCES = {
    LINKED: "Sentences of this project",
    PASTED: "Pasted",
    UPLOADED: "An uploaded file",
    NAMED: "A file on this machine",
    NO_OTHER: "No other sentences",
}
_NUMBERS = {
    "source_tokens": "Length of the sentence (tokens)",
    "target_tokens": "Length of the text written (tokens)",
    "log_prob": "Log-probability (nats)",
    "order_swaps": "Order swaps (steps)",
    "coverage": "Coverage (share of tokens)",
    "alignment_error": "Alignment error",
}
SENTENCE_ORDERS = {"number": "as given", "largest": "largest first", "smallest": "smallest first"}
IN_ADDRESS = 2000  # characters of pasted sentences that an address can hold


@dataclass(frozen=True)
class Writing:
    """How a model continues a text; fields as in `Writer.write`. choices : pairs of a step from 0 and the token taken
    there."""

    steps: int = 0
    temperature: float = 1.0
    top_k: int = 0
    top_p: float = 1.0
    seed: int = 1
    choices: tuple[tuple[int, int], ...] = ()


# What is told of an encoder–decoder of the transformers library that stands among the mechanisms, by its own name.
_BESIDE = replace(
    next(shipped for shipped in MECHANISMS.values() if {"cross", "decoder"} <= set(shipped.kinds)),
    formula="",
    paper="",
    words="An encoder–decoder of the transformers library. It was trained on other data than the models beside it.",
)
_WRITING = replace(
    _BESIDE,
    kinds=("decoder",),
    writes=True,
    words="A causal model of the transformers library. It was trained on other data than the model beside it.",
)
# The field of such a model: what may be typed, and what it is for.
A_TRANSLATOR = (
    "./opus-mt-en-fr or Helsinki-NLP/opus-mt-en-fr",
    "An encoder–decoder of the transformers library, such as Marian, T5, BART or mBART: its folder, or its name on the "
    "Hugging Face hub. For NLLB and others of many languages put #eng_Latn:fra_Latn behind it.",
)
A_WRITER = (
    "./my-gpt2 or openai-community/gpt2",
    "A causal model of the transformers library, such as GPT-2, Llama, Mistral or Qwen: its folder, or its name on the "
    "Hugging Face hub.",
)
_NAME_LETTERS = 40  # letters of its name on the page


def limit(task: Task) -> int:
    """Characters of the longest text for the models of a task."""
    return _TO_WRITE_ON if task.writes else LIMIT


def facts(mechanism: str, writes: bool = False) -> Mechanism:
    """The facts on a mechanism, or on a model listed among the mechanisms, which translates or, with `writes`, writes
    on."""
    if is_hugging_face(mechanism):
        return replace(_WRITING if writes else _BESIDE, title=title(mechanism))
    return mechanisms.find(mechanism)


def model(pair: str, mechanism: str, moment: int = -1) -> str:
    """The name of a checkpoint, or of a moment of its training; for a model listed among mechanisms, its own name."""
    return mechanism if is_hugging_face(mechanism) else str(ModelName(pair, mechanism, moment))


def mechanism_of(model: str) -> str:
    """The mechanism in the name of a model; for a Hugging Face model, the name itself."""
    return model if is_hugging_face(model) else ModelName.parse(model).mechanism


def trained_title(moment: int) -> str:
    """The title of a moment of training: -1 is the shipped model, 0 the untrained one."""
    return "as it ships" if moment < 0 else "untrained" if moment == 0 else f"moment {moment + 1}"


def title(mechanism: str) -> str:
    """A mechanism's short name, unique on the page: `Bahdanau`, but `Luong general`, because there are several of
    Luong's."""
    if is_hugging_face(mechanism):
        place = without_prefix(mechanism)
        return place if len(place) <= _NAME_LETTERS else f"…{place[1 - _NAME_LETTERS :]}"
    family, _, variant = mechanisms.find(mechanism).title.partition(" · ")
    alone = sum(other.title.partition(" · ")[0] == family for other in MECHANISMS.values()) == 1
    return family if alone else f"{family} {variant}"


def model_title(model: str) -> str:
    """The name of one of the models of the page Heads and layers."""
    if model in _MODEL_TITLES:
        return _MODEL_TITLES[model]
    name = ModelName.parse(model)
    return f"{name.task.title} · {mechanisms.find(name.mechanism).title.partition(' · ')[0]}"


OWN_PAIRS = tasks.OWN_PAIRS.name  # among the tasks of the page that trains


def task_title(task: str) -> str:
    """The name of a task of the page that trains."""
    return tasks.find(task).title


def preset_title(preset: str) -> str:
    return PRESETS[preset].title if preset else "nothing"


def asks_title(asks: str) -> str:
    return f"{asks} the decoder's step" if asks else "as the mechanism has it"


def kind_title(kind: str) -> str:
    """The name of a kind of attention without brackets: `Cross-attention`."""
    return KINDS[kind].split(" (")[0]


def target_title(option: str) -> str:
    if option == OWN:
        return "Each model's own text"
    return "One text for all: typed" if option == TYPED else f"One text for all: {title(option.removeprefix(FROM))}'s"


def head_title(head: int | None) -> str:
    return "mean of heads" if head is None else place_title(head)


def place_title(index: int) -> str:
    """Layers, heads and steps are counted from 1 on the page."""
    return str(index + 1)


def chapter_title(key: str) -> str:
    """`1. The bottleneck`, as in the list and in the address. KeyError for an unknown key."""
    return f"{list(CHAPTER_TITLES).index(key) + 1}. {CHAPTER_TITLES[key]}"


def sentence_sources() -> list[str]:
    """The allowed sources of many sentences on this server."""
    here = settings.allowed()
    brought = [PASTED] + [UPLOADED] * (settings.UPLOADS in here) + [NAMED] * (settings.FOLDERS in here)
    return [LINKED, *brought]


def most_sentences() -> int:
    """The largest number of sentences of a run of the page Many sentences."""
    return settings.value(settings.SENTENCES)


def most_megabytes() -> int:
    """The largest size (MB) of an uploaded file."""
    return settings.value(settings.UPLOAD)


@functools.cache
def sentence_numbers() -> dict[str, str]:
    """The numbers of a sentence: name -> title."""
    from attnviz.across import VALUES  # imports pandas, which other pages need later or not at all
    from attnviz.figures.wording import statistic_title

    return {name: statistic_title(name) for name in VALUES} | _NUMBERS


def corpus_words(value: str) -> str:
    """The name of a choice on the page Many sentences and in its address. KeyError for an unknown choice."""
    return (SENTENCE_SOURCES | sentence_numbers() | SENTENCE_ORDERS)[value]
