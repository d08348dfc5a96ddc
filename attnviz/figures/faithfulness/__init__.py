"""Figures of tests of attention: permutations, attributions beside it and their agreement, erased tokens."""

from attnviz.figures.faithfulness.agreement import agreement_bars
from attnviz.figures.faithfulness.erasure import erasure_curves
from attnviz.figures.faithfulness.saliency import saliency
from attnviz.figures.faithfulness.variation import variation_by_weight

__all__ = ["agreement_bars", "erasure_curves", "saliency", "variation_by_weight"]
