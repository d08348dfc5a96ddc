"""How sure a model is of a translation, in one of three words, and why.

    >>> judge = confidence.Judge.load("en-fr/bahdanau")       # None for a model without thresholds on its card
    >>> judgement = judge(model.trace("Have you ever been to Narita?"))
    >>> judgement.level, judgement.reasons                        # usual, unusual, or outside what it has learnt

The thresholds are fitted on validation (`python -m attnviz calibrate`).
"""

from attnviz.confidence.judge import LEVELS, Judge, Judgement, Scale, judgement
from attnviz.confidence.lexicon import Lexicon
from attnviz.confidence.signs import FEATURES, Signs, signs
from attnviz.confidence.training_words import TrainingWords

__all__ = [
    "FEATURES",
    "LEVELS",
    "Judge",
    "Judgement",
    "Lexicon",
    "Scale",
    "Signs",
    "TrainingWords",
    "judgement",
    "signs",
]
