"""Scores taken apart, as the model's own attention gives them.

Letters: S source tokens, N terms of a score.
"""

from torch import Tensor

from attnviz.inside.replay import AttentionInputs


def terms(inputs: AttentionInputs) -> tuple[Tensor, str]:
    """The terms of each key's score (S, N), and what one term belongs to."""
    return inputs.attention.terms(inputs.query[None, None], inputs.prepared[None])[0, 0], inputs.attention.unit


def scores(inputs: AttentionInputs) -> Tensor:
    """Scores (S,) before any window or mask."""
    return inputs.attention.score(inputs.query[None, None], inputs.prepared[None])[0, 0]


def window(inputs: AttentionInputs) -> tuple[float, Tensor, Tensor] | None:
    """Centre, logarithm of the Gaussian (S,) and window (S,) bool of local attention; None of any other."""
    if (place := inputs.attention.window(inputs.query[None, None], len(inputs.values))) is None:
        return None
    centre, gaussian, seen = place
    return float(centre), gaussian[0, 0], seen[0, 0]
