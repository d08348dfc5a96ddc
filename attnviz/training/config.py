"""How a model is trained: one frozen configuration, checked when it is made. The card keeps it. No torch here."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingConfig:
    """How to train one model. Lengths and batch sizes count pieces. ValueError for a number out of range."""

    mechanism: str
    epochs: int = 11
    batch_tokens: int = 2000
    learning_rate: float = 1e-3
    warmup: int = 400  # updates; at most a tenth of all updates are used
    label_smoothing: float = 0.1
    weight_decay: float = 0.01
    clip: float = 1.0  # largest norm of the gradient
    beta2: float = 0.999  # decay of Adam's mean of squared gradients
    decay: float = 0.0  # last share of the updates, in which the rate falls to 0; before it is constant. 0: a cosine
    muon: float = 0.0  # factor on the learning rate of matrices within the network, under Muon; 0 means AdamW for all
    average: float = 0.999  # decay of the moving average of the weights, for each update
    consistency: float = 0.0  # alpha of R-Drop, Liang et al. 2021, eq. 4; 0 means one pass and no consistency loss
    word_dropout: float = 0.0  # probability that a source piece is replaced by <unk>
    piece_dropout: float = 0.0  # probability that a BPE merge is skipped, in the first four fifths of the epochs
    augment: float = 0.0  # factor on the shares of sentences that are changed (data/augmentation); 0 means none
    start: str = ""  # SHA-256 of the initial weights; "" means random weights
    teachers: str = ""  # SHA-256 of each teacher's weights, separated by spaces; "" means training on labels
    ngrams: int = 0  # n-grams drawn from each sentence for distillation; needs teachers
    vocabulary: int = 8000
    seed: int = 1
    rates: dict = field(default_factory=dict)  # parameter name -> factor on the learning rate, where it is not 1
    passes: dict = field(default_factory=dict)  # part of the texts -> passes in which each of its texts is read once
    options: dict = field(default_factory=dict)  # of the model, see networks.registry.options

    def __post_init__(self):
        for name, fits, wanted in _BOUNDS:
            if not fits(getattr(self, name)):
                raise ValueError(f"{name} must be {wanted}; got {getattr(self, name)}")


def _bound(names: str, fits: Callable[[float], bool], wanted: str) -> list[tuple]:
    return [(name, fits, wanted) for name in names.split()]


# The range of each number. NaN is in none of them.
_BOUNDS = [
    *_bound("epochs batch_tokens learning_rate clip vocabulary", lambda x: 0 < x < math.inf, "positive and finite"),
    *_bound("warmup weight_decay muon", lambda x: 0 <= x < math.inf, "at least 0 and finite"),
    *_bound("consistency ngrams augment", lambda x: 0 <= x < math.inf, "at least 0 and finite"),
    *_bound("label_smoothing average beta2 decay", lambda x: 0 <= x < 1, "at least 0 and below 1"),
    *_bound("word_dropout piece_dropout", lambda x: 0 <= x < 1, "at least 0 and below 1"),
    *_bound("seed", lambda x: 0 <= x < 2**63, "at least 0 and below 2^63"),
]
