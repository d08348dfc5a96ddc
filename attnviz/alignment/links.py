"""Links between words: rules that make them from weights, and their error rate (Och & Ney 2003)."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from attnviz.arguments import checked
from attnviz.gold import LinkedPair


@dataclass(frozen=True)
class Counts:
    """Numbers of links: predicted (A), sure (S), predicted and sure, predicted and possible (P).

    Sums over sentences with +.
    """

    predicted: int
    sure: int
    predicted_sure: int
    predicted_possible: int

    def __add__(self, other: "Counts") -> "Counts":
        return Counts(
            self.predicted + other.predicted,
            self.sure + other.sure,
            self.predicted_sure + other.predicted_sure,
            self.predicted_possible + other.predicted_possible,
        )

    @property
    def error_rate(self) -> float:
        """1 - (|A∩S| + |A∩P|) / (|A| + |S|), 0 to 1; NaN without any link."""
        return 1 - _share(self.predicted_sure + self.predicted_possible, self.predicted + self.sure)

    @property
    def precision(self) -> float:
        """|A∩P| / |A|; NaN when no link was predicted."""
        return _share(self.predicted_possible, self.predicted)

    @property
    def recall(self) -> float:
        """|A∩S| / |S|; NaN when no link is sure."""
        return _share(self.predicted_sure, self.sure)

    def to_dict(self) -> dict:
        """The three rates, rounded to 4 digits (None for NaN), and the number of predicted links."""
        rates = {name: getattr(self, name) for name in ("error_rate", "precision", "recall")}
        return {name: None if np.isnan(value) else round(value, 4) for name, value in rates.items()} | {
            "links": self.predicted
        }


@checked
def count(predicted: np.ndarray, pair: LinkedPair) -> Counts:
    """Compare predicted links, bool (T, S), with the links of a pair. ValueError for another shape."""
    predicted = np.asarray(predicted)
    if (wanted := (len(pair.target_words), len(pair.source_words))) != predicted.shape:
        raise ValueError(f"an alignment of this pair must have shape {wanted}; got {predicted.shape}")
    links = {(int(source), int(target)) for target, source in np.argwhere(predicted)}
    return Counts(len(links), len(pair.sure), len(links & pair.sure), len(links & pair.possible))


@checked
def argmax(weights: np.ndarray) -> np.ndarray:
    """weights (..., T, S) -> links (..., T, S): each target word is linked to its most attended source word.

    A row of NaN has no link.
    """
    weights = np.asarray(weights)
    there = ~np.isnan(weights).any(-1, keepdims=True)
    return (np.arange(weights.shape[-1]) == np.where(there, weights, 0).argmax(-1)[..., None]) & there


@checked
def above(threshold: float) -> Callable[[np.ndarray], np.ndarray]:
    """A rule like `argmax`: every weight of at least `threshold` is a link. ValueError unless 0 < threshold <= 1."""
    if not 0 < threshold <= 1:
        raise ValueError(f"threshold must be above 0 and at most 1; got {threshold}")
    return lambda weights: weights >= threshold


@checked
def diagonal(targets: int, sources: int) -> np.ndarray:
    """Links (T, S) without a model, as a baseline: target word j with source word floor((j + 1/2) S / T)."""
    return np.arange(sources) == ((2 * np.arange(targets) + 1) * sources // (2 * targets))[:, None]


def _share(part: int, whole: int) -> float:
    return part / whole if whole else float("nan")
