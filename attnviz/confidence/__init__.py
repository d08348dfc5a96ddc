"""How sure a model is of a translation, in one of three words, and why.

    >>> judge = confidence.Judge.load("en-fr/bahdanau")       # None for a model without thresholds on its card
    >>> judgement = judge(model.trace("Have you ever been to Narita?"))
    >>> judgement.level, judgement.reasons                        # usual, unusual, or outside what it has learnt

The thresholds are fitted on validation (`python -m attnviz calibrate`).
"""

from attnviz.confidence.calibration import Calibration, calibrate, fit
from attnviz.confidence.judge import LEVELS, Judge, Judgement, Scale, judgement, read_scale
from attnviz.confidence.lexicon import Lexicon
from attnviz.confidence.signs import FEATURES, Signs, signs
from attnviz.confidence.training_words import TrainingWords, Word

__all__ = [
    "FEATURES",
    "LEVELS",
    "Calibration",
    "Judge",
    "Judgement",
    "Lexicon",
    "Scale",
    "Signs",
    "TrainingWords",
    "Word",
    "calibrate",
    "fit",
    "judgement",
    "read_scale",
    "signs",
]
