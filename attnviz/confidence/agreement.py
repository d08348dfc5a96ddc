"""How much a translation agrees with others that models of its pair draw at random. Where models are sure, these agree.

Fomicheva et al. 2020, "Unsupervised quality estimation for neural machine translation", sec. 3.2 (lexical similarity),
with chrF and with samples in place of dropout.
"""

import math
from functools import cache, lru_cache

SAMPLES = 20  # translations that each of these models draws for a sentence


@lru_cache(maxsize=256)  # a page that is drawn again asks again
def agreement(translation: str, samples: tuple[str, ...]) -> tuple[float, str]:
    """chrF (0 to 100; it leaves spaces out) of the translation against each sample, the mean over the half that agrees
    least; and the sample in the middle of that half.

    Samples in the other half are often the translation itself, even where models are unsure.
    """
    metric = _metric()
    scores = sorted((metric.corpus_score([translation], [[sample]]).score, sample) for sample in samples)
    half = scores[: math.ceil(len(scores) / 2)]
    return sum(score for score, _ in half) / len(half), half[len(half) // 2][1]


@cache
def _metric():
    from sacrebleu.metrics import CHRF  # not needed for most models

    return CHRF()
