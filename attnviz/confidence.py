"""How usual a translation is for its model: *usual*, *unusual*, or *outside* what it has learnt; and why, in sentences.

Signs are read off a trace: the log-probabilities of its pieces, words that no training sentence has, and repetition. A scale, fitted
to what the model says of validation (calibration.py), makes of them the risk of a poor translation.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np

from attnviz import familiar, loops
from attnviz.familiar import Familiar, Word
from attnviz.loops import Loop
from attnviz.trace import Trace

LEVELS = ("usual", "unusual", "outside")
MANY_NEW = 1 / 3  # share of the words of a text, two at least, that are new where it is outside
SHOWN = 3  # new words that reasons name


@dataclass(frozen=True)
class Signs:
    """log_probs : of the target's pieces, nats. new : words of the source that training has not. words : all words of the source."""

    log_probs: tuple[float, ...]
    least: str  # the least probable piece
    new: tuple[Word, ...]
    words: int
    read: int  # pieces of the source
    unknown: tuple[str, ...]  # characters of the source that the vocabulary has not
    loop: Loop | None
    looping: str  # what the loop repeats
    complete: bool


@dataclass(frozen=True)
class Scale:
    """risk = 1 / (1 + exp(-(intercept + sum of weight * feature))): how probable it is that a translation is poor.

    unusual, outside : the risks from which it is called so. usual : the mean log-probability of a piece on validation, its median.
    """

    intercept: float
    weights: dict[str, float] = field(default_factory=dict)
    unusual: float = 0.5
    outside: float = 0.9
    usual: float = 0.0

    def __post_init__(self):
        if strange := self.weights.keys() - FEATURES.keys():
            raise ValueError(f"weights must be of the features {', '.join(FEATURES)}; got {', '.join(sorted(strange))}")
        if not 0 <= self.unusual <= self.outside <= 1:
            raise ValueError(f"thresholds must be 0 <= unusual <= outside <= 1; got {self.unusual} and {self.outside}")

    def risk(self, signs: Signs) -> float:
        """0 to 1."""
        score = self.intercept + sum(weight * FEATURES[name](signs) for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))


@dataclass(frozen=True)
class Verdict:
    """level : one of LEVELS. reasons : sentences, the weightiest first; none where all is usual."""

    level: str
    risk: float
    reasons: tuple[str, ...]


def signs(trace: Trace, known: Familiar) -> Signs:
    """What a trace of pieces with log-probabilities shows. ValueError for another."""
    if trace.level != "pieces" or not trace.log_probs:
        raise ValueError(f"the trace must be of pieces and have their log-probabilities; got {trace.model} at the level of {trace.level}")
    said = [token.text for token in trace.target if not token.special]
    loop = loops.at_end(said)
    least = trace.target[int(np.argmin(trace.log_probs))].text
    unknown = tuple(dict.fromkeys(token.text for token in trace.source if token.unknown))
    unit = "".join(said[loop.start : loop.start + loop.length]) if loop else ""
    return Signs(trace.log_probs, least, tuple(known.new(trace)), len(familiar.words(trace)), len(trace.source), unknown, loop, unit, trace.complete)


# What of the signs a scale may weigh.
FEATURES: dict[str, Callable[[Signs], float]] = {
    "mean": lambda found: -float(np.mean(found.log_probs)),
    "spread": lambda found: float(np.sqrt(np.mean(np.square(found.log_probs)))),
    "least": lambda found: -min(found.log_probs),
    "first": lambda found: -found.log_probs[0],
    "doubtful": lambda found: float(np.mean(np.array(found.log_probs) < -1)),  # share of pieces with a probability below 37 %
    "length": lambda found: math.log(len(found.log_probs)),
    "read": lambda found: math.log(found.read),
    "new": lambda found: len(found.new) / max(1, found.words),
}


def verdict(found: Signs, scale: Scale) -> Verdict:
    """The level of a translation and the reasons for it."""
    risk = scale.risk(found)
    strange = found.loop or not found.complete or found.unknown
    if strange or (len(found.new) > 1 and len(found.new) >= MANY_NEW * found.words) or risk >= scale.outside:
        level = "outside"
    else:
        level = "unusual" if risk >= scale.unusual else "usual"
    return Verdict(level, risk, () if level == "usual" else tuple(_reasons(found, scale)))


def _reasons(found: Signs, scale: Scale) -> list[str]:
    reasons = []
    if found.loop:
        reasons.append(f"The translation went in circles: “{found.looping}” {found.loop.times} times in a row. It was ended there.")
    elif not found.complete:
        reasons.append("The translation did not come to an end and was cut off.")
    reasons += [f"“{text}” is not in the vocabulary." for text in found.unknown[:SHOWN]]
    reasons += [f"“{word.text}” is in no training sentence and was cut into {_pieces(word.pieces)}." for word in found.new[:SHOWN]]
    if len(found.new) > SHOWN:
        reasons.append(f"So are {len(found.new) - SHOWN} more words of the sentence.")
    mean = math.exp(np.mean(found.log_probs))
    if mean < math.exp(scale.usual):
        reasons.append(f"The model gave its pieces a probability of {_percent(mean)} on average; {_percent(math.exp(scale.usual))} is usual.")
    least = math.exp(min(found.log_probs))
    reasons.append(f"It was least sure of “{found.least}”: {_percent(least)}.")
    return reasons


def _pieces(count: int) -> str:
    return "1 piece" if count == 1 else f"{count} pieces"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %" if share >= 0.01 else "under 1 %"
