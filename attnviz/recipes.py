"""How each mechanism is trained: settings, the recipe of each, and the learning rate. No torch here."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Settings:
    """How to train; goes on the card. Lengths and batches count pieces."""

    mechanism: str
    epochs: int = 11
    batch_tokens: int = 2000
    learning_rate: float = 1e-3
    warmup: int = 400  # updates, at most a tenth of all
    label_smoothing: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0
    beta2: float = 0.999  # decay of Adam's mean of squared gradients
    average: float = 0.999  # decay of the moving average, an update
    consistency: float = 0.0  # how much two passes under dropout must agree: alpha of R-Drop; 0: one pass
    word_dropout: float = 0.0  # share of a sentence's pieces that are read as unknown, in training
    piece_dropout: float = 0.0  # share of the merges of pieces that are left out, anew at each reading, in the first four fifths
    augment: float = 0.0  # how often sentences are changed to what people type: factor on the shares of augment.py; 0: never
    start: str = ""  # SHA-256 of the weights that it begins with; "": random ones
    teachers: str = ""  # SHA-256 of the weights of the classifiers that it learns from, a space between; "": from labels
    ngrams: int = 0  # with teachers: how many n-grams of each sentence it learns from as well
    vocabulary: int = 8000
    seed: int = 1
    rates: dict = field(default_factory=dict)  # parameter name -> factor on the learning rate, where it is not 1
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        for name, fits, wanted in _BOUNDS:
            if not fits(getattr(self, name)):
                raise ValueError(f"{name} must be {wanted}; got {getattr(self, name)}")


def _each(names: str, fits: Callable[[float], bool], wanted: str) -> list[tuple]:
    return [(name, fits, wanted) for name in names.split()]


# What each number may be; NaN is none of these.
_BOUNDS = [
    *_each("epochs batch_tokens learning_rate clip vocabulary", lambda value: 0 < value < math.inf, "positive and finite"),
    *_each("warmup weight_decay consistency ngrams augment", lambda value: 0 <= value < math.inf, "at least 0 and finite"),
    *_each("label_smoothing average beta2 word_dropout piece_dropout", lambda value: 0 <= value < 1, "at least 0 and below 1"),
    *_each("seed", lambda value: 0 <= value < 2**63, "at least 0 and below 2^63"),
]


# What each mechanism is trained with where it differs from the settings above. Same data and vocabulary for all.
_RECURRENT = {"epochs": 20, "options": {"dropout": 0.3}}
# At the full rate the bilinear score saturates within an epoch: all weights 0 or 1, and little is learnt.
_BILINEAR = _RECURRENT | {"rates": {"attention.key.weight": 0.1}}
# So does the product alone, once the GRUs' units do: what they read has 256 parts of size 1, and each weight on it counts.
_INPUTS = ["encoder.rnn.weight_ih_l0", "encoder.rnn.weight_ih_l0_reverse", "cell.weight_ih"]
_DOT = _RECURRENT | {"rates": dict.fromkeys(_INPUTS, 0.2)}
_PROJECTIONS = [f"{name}.{kind}" for name in ("query", "memory", "output") for kind in ("weight", "bias")]  # of a MultiHead
RECIPES = {
    "fixed-context": _RECURRENT,
    "bahdanau": _RECURRENT,
    "luong-dot": _DOT,
    "luong-general": _BILINEAR,
    "luong-concat": _RECURRENT,
    "luong-local": _BILINEAR,
    "scaled-dot": _RECURRENT,
    "transformer": {
        "epochs": 55,
        "learning_rate": 2e-3,
        "options": {"width": 192, "hidden": 768, "layers": 3, "heads": 4, "dropout": 0.3},
    },
    # At the full rate self-attention learns the few training sentences by heart: the loss on dev rises from the second epoch on.
    "self-attention": {
        "epochs": 8,
        "learning_rate": 2e-3,
        "warmup": 100,
        "average": 0.98,
        "weight_decay": 0.2,
        "consistency": 6.0,
        "word_dropout": 0.4,
        "vocabulary": 8000,
        "rates": {f"encoder.0.{part}": 0.05 for part in _PROJECTIONS},
        "options": {"attention_dropout": 0.3},
    },
}
# With teachers there is less to learn by heart: what they say of a text is seldom sure, and there are more texts. The `rates` of the
# recipe stay: at the full rate self-attention was no better here, either.
TAUGHT = {"epochs": 8, "learning_rate": 3e-3, "label_smoothing": 0.0, "weight_decay": 0.01, "consistency": 0.0, "word_dropout": 0.0,
          "ngrams": 6, "options": {"dropout": 0.1, "attention_dropout": 0.1}}  # fmt: skip


def settings(mechanism: str, **changes) -> Settings:
    """The mechanism's recipe, with changes. ValueError when there is no such recipe."""
    if mechanism not in RECIPES:
        raise ValueError(f"unknown mechanism {mechanism!r}; choose one of {', '.join(RECIPES)}")
    return Settings(mechanism, **{**RECIPES[mechanism], **changes})


def rate(update: int, total: int, plan: Settings) -> float:
    """Learning rate: linear warm-up, at most a tenth of the run, then a cosine down to 2 % of the peak."""
    warmup = min(plan.warmup, total // 10)
    if update < warmup:
        return plan.learning_rate * (update + 1) / warmup
    progress = (update - warmup) / max(1, total - warmup)
    return plan.learning_rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))
