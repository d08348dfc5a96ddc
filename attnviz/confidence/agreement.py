"""How much a translation agrees with others that models of its pair draw at random. Where models are sure, these agree.

Fomicheva et al. 2020, "Unsupervised quality estimation for neural machine translation", sec. 3.2 (lexical similarity),
with chrF and with samples in place of dropout.
"""

import math
from collections.abc import Sequence
from functools import cache

SAMPLES = 20  # translations that each of these models draws for a sentence


def agreement(translation: str, samples: Sequence[str]) -> tuple[float, str]:
    """chrF (0 to 100, spaces apart) of the translation against each sample, the mean over the half that agrees least;
    and the sample in the middle of that half.

    Samples in the other half are often the translation itself, even where models are unsure.
    """
    text = _without_spaces(translation)
    scores = sorted((_chrf(text, _without_spaces(sample)), sample) for sample in samples)
    half = scores[: math.ceil(len(scores) / 2)]
    return sum(score for score, _ in half) / len(half), half[len(half) // 2][1]


def _chrf(hypothesis: str, reference: str) -> float:
    return _metric().corpus_score([hypothesis], [[reference]]).score


@cache
def _metric():
    from sacrebleu.metrics import CHRF  # not needed for most models

    return CHRF()


def _without_spaces(text: str) -> str:
    return "".join(text.split())
