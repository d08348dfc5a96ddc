"""Figures of one step opened up: scores and weights, a score taken apart, and why dot products are scaled.

Each takes a value of `attnviz.inside`, or a frame of it; `effect_bars` what a change of attention does.
"""

from attnviz.figures.inside.effect import effect_bars
from attnviz.figures.inside.other_scores import score_functions
from attnviz.figures.inside.parts import score_parts
from attnviz.figures.inside.scores import score_bars
from attnviz.figures.inside.spread import product_spread
from attnviz.figures.inside.values import weighted_values

__all__ = ["effect_bars", "product_spread", "score_bars", "score_functions", "score_parts", "weighted_values"]
