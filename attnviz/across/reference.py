"""A model's statistics on its test set, for comparison with one sentence; and those of two baselines.

*untrained*: the same network with random weights. *shuffled*: the trained model on the words of the sentence in random
order. Both are forced to write the trained model's translation, so that the steps are the same.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from attnviz import arguments, storage
from attnviz.across import share_above
from attnviz.arguments import shown

FILE = "sentences.json"  # beside the weights
LARGEST = 2**20  # bytes of a file
COMPARED = ("normalised_entropy", "entropy_nats", "max_weight", "effective_entropy", "gini", "special_mass")
QUANTILES = 51  # at equal steps from 0 to 1
MODELS = ("trained", "untrained", "shuffled")
SHOWN = "shown"  # beside the kinds: cross-attention of the last layer, mean of its heads, as `select` gives it
KINDS = ("cross", "encoder", "decoder", SHOWN)

Levels = Mapping[str, Mapping[str, np.ndarray]]  # kind -> statistic -> numbers


@dataclass(frozen=True, eq=False)
class Reference:
    """The statistics of the sentences of a test set. A sentence's value is its mean over the steps, and over the heads
    of a kind.

    test : the name of the test set. sentences : how many were measured. weights_sha256 : of the model's weights.
    quantiles : of the sentences' values, (QUANTILES,) each. lengths : (L,) numbers of source tokens, ascending.
    levels : one of MODELS -> kind -> statistic -> (L,) mean of the sentences of each length.
    """

    test: str
    sentences: int
    weights_sha256: str
    quantiles: Levels
    lengths: np.ndarray
    levels: Mapping[str, Levels]

    def __repr__(self) -> str:
        """One line: which test set, and how many sentences."""
        return f"Reference({self.test}: {self.sentences:,} sentences)"

    def share_less_sharp(self, normalised_entropy: float, kind: str = "cross") -> float | None:
        """The share of test sentences (0 to 1) with a larger normalised entropy; None if entropy was not measured."""
        quantiles = self.quantiles.get(kind, {}).get("normalised_entropy")
        return None if quantiles is None else share_above(normalised_entropy, quantiles)

    def level(self, model: str, statistic: str, tokens: np.ndarray, kind: str = "cross") -> np.ndarray | None:
        """The mean of a statistic over test sentences with this number of source tokens, linearly interpolated between
        measured lengths. None if not measured."""
        values = self.levels.get(model, {}).get(kind, {}).get(statistic)
        return None if values is None else np.interp(tokens, self.lengths, values)


def read(path: Path) -> Reference:
    """The reference in a file. Raises ValueError, OSError."""
    return from_dict(storage.parse_json(storage.read(arguments.path("path", path), LARGEST)))


def from_dict(content) -> Reference:
    """The result of `to_dict` -> the reference. Raises ValueError for anything else."""
    if not isinstance(content, dict):
        raise ValueError(f"a reference must be a JSON object; got {type(content).__name__}")
    words: dict[str, Any] = {name: content.get(name) for name in ("test", "weights_sha256")}
    if not all(isinstance(word, str) for word in words.values()):
        raise ValueError("test and weights_sha256 of a reference must be strings")
    sentences = content.get("sentences")
    if type(sentences) is not int or sentences < 1:
        raise ValueError(f"sentences of a reference must be an integer of at least 1; got {shown(sentences)}")
    lengths = _numbers(content.get("lengths"), None)
    return Reference(
        **words,
        sentences=sentences,
        lengths=lengths,
        quantiles=_levels(content.get("quantiles"), QUANTILES),
        levels={name: _levels(_object(content.get("levels")).get(name), len(lengths)) for name in MODELS},
    )


def to_dict(reference: Reference, digits: int = 3) -> dict:
    """As JSON."""
    return {
        "test": reference.test,
        "sentences": reference.sentences,
        "weights_sha256": reference.weights_sha256,
        "lengths": [int(length) for length in reference.lengths],
        "quantiles": _rounded(reference.quantiles, digits),
        "levels": {name: _rounded(levels, digits) for name, levels in reference.levels.items()},
    }


def _rounded(levels: Levels, digits: int) -> dict:
    return {
        kind: {name: [round(float(value), digits) for value in values] for name, values in statistics.items()}
        for kind, statistics in levels.items()
    }


def _levels(content, count: int) -> Levels:
    kinds = {kind: _object(statistics) for kind, statistics in _object(content).items() if kind in KINDS}
    return {
        kind: {name: _numbers(values, count) for name, values in statistics.items() if name in COMPARED}
        for kind, statistics in kinds.items()
    }


def _object(content) -> dict:
    if not isinstance(content, dict):
        raise ValueError(f"the parts of a reference must be JSON objects; got {type(content).__name__}")
    return content


def _numbers(values, count: int | None) -> np.ndarray:
    """A list of finite numbers; `count` of them unless `count` is None."""
    right = isinstance(values, list) and values and all(type(value) in (int, float) for value in values)
    if not right or (count is not None and len(values) != count):
        raise ValueError(f"a reference must hold lists of {count or 'at least one'} numbers; got {shown(values)}")
    try:
        numbers = np.array(values, dtype=float)
    except OverflowError:
        raise ValueError("a reference must hold finite numbers; got a number that is too large") from None
    if not np.isfinite(numbers).all():
        raise ValueError("a reference must hold finite numbers; got one that is not finite")
    return numbers
