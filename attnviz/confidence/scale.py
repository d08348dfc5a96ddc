"""From the signs of a translation to the probability that it is poor: a scale, fitted by calibration.py."""

import math
from dataclasses import dataclass, field

from attnviz.arguments import Checked
from attnviz.confidence.agreement import SAMPLES
from attnviz.confidence.signs import FEATURES, Signs


@dataclass(frozen=True)
class Scale(Checked):
    """risk = 1 / (1 + exp(-(intercept + sum of weight * feature))): the probability that a translation is poor.

    unusual, outside : the risks above which a translation is called so. usual : the mean log-probability of a piece
    (nats) on validation, its median. unread : a content word of the source that no row of the map gives so much weight
    counts as untranslated.
    """

    intercept: float
    weights: dict[str, float] = field(default_factory=dict)
    unusual: float = 0.5
    outside: float = 0.9
    usual: float = 0.0
    unread: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if unknown := self.weights.keys() - FEATURES.keys():
            raise ValueError(f"weights must be of the features {', '.join(FEATURES)}; got {', '.join(sorted(unknown))}")
        if not all(map(math.isfinite, (self.intercept, self.usual, *self.weights.values()))) or self.usual > 0:
            raise ValueError(f"numbers must be finite, and usual at most 0; got {self}")
        if not 0 <= self.unread <= 1:
            raise ValueError(f"unread must be a weight, from 0 to 1; got {self.unread}")
        if not 0 <= self.unusual <= self.outside <= 1:
            raise ValueError(f"thresholds must be 0 <= unusual <= outside <= 1; got {self.unusual} and {self.outside}")

    @property
    def sample_count(self) -> int:
        """How many translations each sampler must draw for the signs that it weighs."""
        return SAMPLES if "agreement" in self.weights else 0

    def risk(self, signs: Signs) -> float:
        """0 to 1. ValueError for signs without the agreement that the scale weighs."""
        if self.sample_count and signs.agreement is None:
            raise ValueError(
                "signs must be of a translation and samples of it, whose agreement is weighed; got no samples"
            )
        score = self.intercept + sum(weight * FEATURES[name](signs) for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))
