"""Figures of one step opened up: scores and weights, a score taken apart, and why dot products are scaled.

Each takes a value of `attnviz.inside`, or a frame of it.
"""

from attnviz.figures.inside.parts import score_parts
from attnviz.figures.inside.scores import score_bars
from attnviz.figures.inside.spread import product_spread

__all__ = ["product_spread", "score_bars", "score_parts"]
