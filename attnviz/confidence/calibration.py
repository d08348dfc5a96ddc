"""The scale of a model's confidence, fitted on validation, and how well it separates poor translations from good
ones."""

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import NamedTuple

import numpy as np

from attnviz.confidence.judge import Scale, outside_by_rule, unusual_by_rule
from attnviz.confidence.signs import FEATURES, PLAIN, SAMPLED, Signs

FEWEST = 100  # sentences
POOR = 0.2  # the share of validation that counts as poor: the lowest scores
WORST = 0.1  # the share of validation that `worst_tenth` looks at
BEST = 0.05  # the share of the better half that may be called unusual
SURE = 0.01  # the share of the better half that may be called outside
UNREAD = 0.004  # the share of the better half that may be called unusual for a word that no row reads
FLAGGED = 0.6  # the share of the worst tenth that should be called unusual or outside
# The share of the better half that may be called unusual for words left out or made up: the largest with which FLAGGED
# is reached, because what they use of BEST the risk cannot; where none reaches it, the first.
UNSAID = (0.01, 0.0075, 0.005, 0.0025)
FOLDS, BINS = 10, 10
PENALTY = 1.0  # on squared weights of standardised features


@dataclass(frozen=True)
class Calibration:
    """A scale, and its results on sentences that it was not fitted to (cross-validation over FOLDS).

    sentences : their number. worst_tenth, best_half : the share of the worst tenth and the best half (by score) that
    are called unusual or outside. bins : mean predicted risk, share of poor translations, and number of sentences;
    about equally many sentences per bin. poor_below : a translation counts as poor at this score or below. samplers :
    name and SHA-256 of the weights of the models whose samples gave the agreement of the signs.
    """

    scale: Scale
    sentences: int
    worst_tenth: float
    best_half: float
    bins: tuple[tuple[float, float, int], ...]
    poor_below: float
    samplers: dict[str, str] = field(default_factory=dict)

    def to_dict(self) -> dict:
        """For a card."""
        return asdict(self)


def calibrate(signs: Sequence[Signs], scores: Sequence[float], seed: int = 0) -> Calibration:
    """signs, scores : of each validation sentence; a higher score is better. ValueError for fewer than FEWEST.

    Where all signs have an agreement, the scale weighs SAMPLED, else PLAIN.
    """
    if len(signs) != len(scores) or len(signs) < FEWEST:
        raise ValueError(
            f"there must be at least {FEWEST} sentences with a score each; got {len(signs)} and {len(scores)} scores"
        )
    sampled = all(sentence.agreement is not None for sentence in signs)
    names = SAMPLED if sampled else PLAIN
    features = np.array([[FEATURES[name](sentence) for name in names] for sentence in signs])  # (N, F)
    quality = np.asarray(scores, dtype=float)
    poor = quality <= np.quantile(quality, POOR)
    best, worst = quality >= np.median(quality), quality <= np.quantile(quality, WORST)
    unread = _least_read(signs, best)
    surprises = _surprises(signs, unread)
    fits = []
    for clear in (poor | best, np.ones(len(poor), dtype=bool)):
        risks = _cross_validated(features, poor, clear, np.random.default_rng(seed))
        tried = [_flag(surprises, risks, best, share) for share in UNSAID]
        flags = next((option for option in tried if option.flagged[worst].mean() >= FLAGGED), tried[0])
        fits.append((flags, risks, clear))
    # Clear cases teach more; all sentences only where more of the worst are then found and FLAGGED is not reached.
    (unsaid, unusual, flagged), risks, clear = max(
        fits, key=lambda choice: min(FLAGGED, choice[0].flagged[worst].mean())
    )
    outside = _threshold(risks, np.array([outside_by_rule(sentence) for sentence in signs]), best, SURE)
    weights, intercept = fit(features, poor, clear)
    usual = float(np.median(-features[:, names.index("mean")]))
    return Calibration(
        Scale(intercept, dict(zip(names, weights.tolist())), unusual, max(unusual, outside), usual, unread, unsaid),
        sentences=len(quality),
        worst_tenth=float(flagged[worst].mean()),
        best_half=float(flagged[best].mean()),
        bins=_bins(risks, poor),
        poor_below=float(np.quantile(quality, POOR)),
    )


def _least_read(signs: Sequence[Signs], best: np.ndarray) -> float:
    """The weight below which the least attended content word lies, for the share UNREAD of the better half; 0 without
    coverage."""
    least = [
        min((word.weight for word in sentence.covered if word.text not in sentence.translated), default=1.0)
        for sentence in signs
    ]
    unread = float(np.quantile(np.array(least)[best], UNREAD, method="lower"))
    return unread if unread < 1 else 0.0


class _Flags(NamedTuple):
    """unsaid, unusual : as of a Scale. flagged : (N,) bool, is a sentence called unusual or outside?"""

    unsaid: float
    unusual: float
    flagged: np.ndarray


def _surprises(signs: Sequence[Signs], unread: float) -> np.ndarray:
    """(N,): the surprise (nats) of each sentence; infinite where another rule flags the sentence."""
    return np.array(
        [
            math.inf if outside_by_rule(sentence) or unusual_by_rule(sentence, unread, 0.0) else sentence.surprise
            for sentence in signs
        ]
    )


def _flag(surprises: np.ndarray, risks: np.ndarray, best: np.ndarray, share: float) -> _Flags:
    """The flags when this share of the better half may be called unusual because of its surprise."""
    unsaid = float(np.quantile(np.where(np.isinf(surprises), 0.0, surprises)[best], 1 - share, method="higher"))
    ruled = np.isinf(surprises) | ((unsaid > 0) & (surprises > unsaid))
    unusual = _threshold(risks, ruled, best, BEST)
    return _Flags(unsaid, unusual, ruled | (risks > unusual))


def _threshold(risks: np.ndarray, ruled: np.ndarray, best: np.ndarray, share: float) -> float:
    """The risk above which this share of the better half lies, including sentences that a rule flags at any risk."""
    return float(np.quantile(np.where(ruled, 1.0, risks)[best], 1 - share, method="higher"))


def fit(features: np.ndarray, poor: np.ndarray, clear: np.ndarray | None = None) -> tuple[np.ndarray, float]:
    """Logistic regression by Newton's method: features (N, F), poor (N,) bool -> weights (F,) and intercept.

    clear : (N,) bool, the rows to learn the weights from. One factor and the intercept are then fitted to all rows
    (Platt 1999), so that the risk holds for all sentences. They apply to the features as given; the penalty is on those
    of standardised features.
    """
    if clear is None:
        return _newton(features, poor)
    weights, _ = _newton(features[clear], poor[clear])
    factor, intercept = _newton((features @ weights)[:, None], poor)
    return factor[0] * weights, intercept


def _newton(features: np.ndarray, poor: np.ndarray) -> tuple[np.ndarray, float]:
    mean, spread = features.mean(axis=0), features.std(axis=0) + 1e-9
    inputs = np.column_stack([(features - mean) / spread, np.ones(len(features))])
    penalty = np.diag([PENALTY] * features.shape[1] + [1e-6])
    weights = np.zeros(inputs.shape[1])
    for _ in range(50):
        risk = 1 / (1 + np.exp(-np.clip(inputs @ weights, -50, 50)))
        gradient = inputs.T @ (risk - poor) + penalty @ weights
        hessian = (inputs * (risk * (1 - risk))[:, None]).T @ inputs + penalty
        weights -= np.linalg.solve(hessian, gradient)
    plain = weights[:-1] / spread
    return plain, float(weights[-1] - plain @ mean)


def _cross_validated(
    features: np.ndarray, poor: np.ndarray, clear: np.ndarray, generator: np.random.Generator
) -> np.ndarray:
    """The risk (N,) of each sentence, from a scale fitted to the other folds."""
    fold, risks = generator.permutation(len(poor)) % FOLDS, np.zeros(len(poor))
    for number in range(FOLDS):
        others = fold != number
        weights, intercept = fit(features[others], poor[others], clear[others])
        risks[fold == number] = 1 / (1 + np.exp(-(features[fold == number] @ weights + intercept)))
    return risks


def _bins(risks: np.ndarray, poor: np.ndarray) -> tuple[tuple[float, float, int], ...]:
    parts = np.array_split(np.argsort(risks), BINS)
    return tuple((round(float(risks[part].mean()), 4), round(float(poor[part].mean()), 4), len(part)) for part in parts)
