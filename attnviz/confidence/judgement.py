"""How usual a translation is for its model: usual, unusual, or outside what it has learnt; and why, in sentences."""

import math
from dataclasses import dataclass

import numpy as np

from attnviz.confidence.scale import Scale
from attnviz.confidence.signs import Signs

LEVELS = {
    "usual": "usual for this model",
    "unusual": "unusual for this model",
    "outside": "outside what this model has learnt",
}
MANY_NEW = 1 / 3  # of the words; a text with two new words or more, and so large a share of them, is outside
DIFFERENT = 50.0  # chrF; below this agreement the reasons name another translation
SHOWN = 3  # words of a kind that the reasons name


@dataclass(frozen=True)
class Judgement:
    """level : one of LEVELS. risk : probability of a poor translation. reasons : sentences; () when it is usual."""

    level: str
    risk: float
    reasons: tuple[str, ...]

    @property
    def title(self) -> str:
        """The level in words."""
        return LEVELS[self.level]

    @property
    def why(self) -> tuple[str, ...]:
        """The reasons, then the risk, as sentences."""
        return (*self.reasons, f"Estimated risk that the translation is poor: {_percent(self.risk)}.")

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it as sentences, for a text without the page's sign."""
        return (f"This translation is {self.title}.", *self.why)


def judgement(signs: Signs, scale: Scale) -> Judgement:
    """The level of a translation and the reasons for it, the most important first."""
    risk = scale.risk(signs)
    if outside_by_rule(signs) or risk > scale.outside:
        level = "outside"
    else:
        level = "unusual" if unusual_by_rule(signs) or risk > scale.unusual else "usual"
    return Judgement(level, risk, () if level == "usual" else tuple(_reasons(signs, scale)))


def outside_by_rule(signs: Signs) -> bool:
    """Is it outside whatever the risk? A loop, a text that was cut off, unknown characters, or many new words."""
    many_new = len(signs.new) > 1 and len(signs.new) >= MANY_NEW * signs.words
    return bool(signs.loop or not signs.complete or signs.unknown or many_new)


def unusual_by_rule(signs: Signs) -> bool:
    """Is it unusual at least, whatever the risk? A number that is half a word ("trois4")."""
    return bool(signs.broken)


def _reasons(signs: Signs, scale: Scale) -> list[str]:
    reasons = []
    if signs.loop:
        reasons.append(
            f"The translation repeats itself: “{signs.looping}” {signs.loop.times} times in a row. "
            "Decoding was stopped there."
        )
    elif not signs.complete:
        reasons.append("The translation did not come to an end and was cut off.")
    reasons += [f"“{text}” is half a word and half a number." for text in signs.broken[:SHOWN]]
    reasons += [f"“{text}” is not in the vocabulary." for text in signs.unknown[:SHOWN]]
    reasons += [
        f"“{word.text}” is in no training sentence and was cut into {_pieces(word.pieces)}."
        for word in signs.new[:SHOWN]
    ]
    if (more := len(signs.new) - SHOWN) > 0:
        reasons.append(f"{more} more {'word is' if more == 1 else 'words are'} in no training sentence either.")
    reasons += [
        f"“{word.text}” in the translation was put together from {word.pieces} pieces." for word in signs.made[:SHOWN]
    ]
    if signs.other and signs.agreement < DIFFERENT:
        reasons.append(
            "Translations that models of this pair drew at random differ much from this one, for example "
            f"“{signs.other}”."
        )
    return reasons + _probabilities(signs, scale)


def _probabilities(signs: Signs, scale: Scale) -> list[str]:
    """What the model's own probabilities say: of all pieces, when they are low, and of the least probable one."""
    mean, usual = math.exp(np.mean(signs.log_probs)), math.exp(scale.usual)
    low = f"The model gave its pieces a probability of {_percent(mean)} on average; {_percent(usual)} is usual."
    least = f"It was least sure of “{signs.least}”: {_percent(math.exp(min(signs.log_probs)))}."
    return [low, least] if mean < usual else [least]


def _pieces(count: int) -> str:
    return "1 piece" if count == 1 else f"{count} pieces"


def _percent(share: float) -> str:
    if share < 0.01:
        return "under 1%"
    return "over 99%" if share > 0.99 else f"{100 * share:.0f}%"
