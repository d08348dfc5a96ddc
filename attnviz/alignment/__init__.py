"""Attention as an alignment of words, and its error rate against links set by hand (Och & Ney 2003).

Axes: T target words (rows), S source words (columns); Q, K their pieces; H heads. A matrix of links is bool: True is a
link.
"""

from attnviz.alignment.coverage import Covered, coverage
from attnviz.alignment.links import Counts, above, argmax, count, diagonal
from attnviz.alignment.report import SHIFTS, best_head, measure, report
from attnviz.alignment.words import Cells, between_words, cells, on_words

__all__ = [
    "SHIFTS",
    "Cells",
    "Covered",
    "Counts",
    "above",
    "argmax",
    "best_head",
    "between_words",
    "cells",
    "count",
    "coverage",
    "diagonal",
    "measure",
    "on_words",
    "report",
]
