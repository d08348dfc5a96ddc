"""Statistics across sentences: one row per sentence, outliers, and differences with intervals.

Letters: N sentences. A sentence's value is the mean of a statistic over the steps and heads of one kind of attention.
"""

from attnviz.across.sentences import LOOKS, VALUES, alignment_error, looks, outliers, sentence, share_above, sharpness
from attnviz.across.tables import Difference, bootstrap, paired_bootstrap

__all__ = [
    "LOOKS",
    "VALUES",
    "Difference",
    "alignment_error",
    "bootstrap",
    "looks",
    "outliers",
    "paired_bootstrap",
    "sentence",
    "share_above",
    "sharpness",
]
