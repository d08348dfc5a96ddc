"""Figures of tests of attention: permutations, attributions beside it, erased tokens."""

from attnviz.figures.faithfulness.erasure import erasure_curves
from attnviz.figures.faithfulness.saliency import saliency
from attnviz.figures.faithfulness.variation import variation_by_weight

__all__ = ["erasure_curves", "saliency", "variation_by_weight"]
