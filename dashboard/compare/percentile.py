"""One sentence among the test set of its model: how sharp its attention is, and what the two baselines have."""

import numpy as np

from attnviz import across
from attnviz.across.reference import SHOWN, Reference
from attnviz.concentration import measure
from attnviz.reading.rules import blurred
from attnviz.select import Grid
from attnviz.trace import Trace
from dashboard.session.caches import reference

_LESS = ("untrained", "shuffled")
_SHARPEST = 0.005  # normalised entropy that is written as 0.00: all weights are 1, and many sentences tie


def words(trace: Trace, grid: Grid) -> str:
    """`Sharper than 83% of …`, as HTML; "" for a text that the model was made to write, and without a reference.

    grid : the map that is drawn. Where its entropy is another one, both are named, with the reason.
    """
    measured = None if trace.forced else reference(trace.model)
    entropy = across.sharpness(trace) if measured else None
    share = None if entropy is None else measured.sharper(entropy)
    if share is None:
        return ""
    if entropy < _SHARPEST:
        return '<p class="small placed">As sharp as attention can be: each row has all its weight on one token.</p>'
    return (
        f'<p class="small placed">Sharper than <b>{100 * share:.0f}%</b> of the {measured.sentences:,} test sentences '
        f"of this model: normalised entropy {entropy:.2f}{_how(trace, grid, entropy)}, in the median of the test set "
        f"{_median(measured):.2f}.{_although_blurred(grid, share)}</p>"
    )


def _although_blurred(grid: Grid, share: float) -> str:
    """Why a map that the line above calls blurred is sharper than most; "" for any other."""
    if share <= 0.5 or blurred(grid) is None:
        return ""
    return " “Blurred” compares the map with uniform attention; this percentage, with other sentences of this model."


def _how(trace: Trace, grid: Grid, entropy: float) -> str:
    """What was measured, where that is not the map that is drawn."""
    heads = sum(attention.weights.shape[0] for attention in trace.maps if attention.kind == "cross")
    each = f" (each of its {heads} cross-attention heads alone, then the mean)" if heads > 1 else ""
    if not np.isfinite(drawn := _drawn(grid)) or f"{drawn:.2f}" == f"{entropy:.2f}":
        return each
    why = each or " (of pieces, with special tokens)"
    return f"{why}; the map as drawn has {drawn:.2f}"


def _drawn(grid: Grid) -> float:
    """The mean normalised entropy of the rows of a map, as in the table beside it; NaN where no row has one."""
    rows = measure(grid.weights, grid.visible, 0.1)["normalised_entropy"]
    return float(np.nanmean(rows)) if np.isfinite(rows).any() else np.nan


def _median(measured: Reference) -> float:
    return float(np.median(measured.quantiles["cross"]["normalised_entropy"]))


def baselines(trace: Trace, statistics: tuple[str, ...]) -> dict[str, dict[str, float]]:
    """untrained, shuffled -> statistic -> its mean over test sentences of the same length, of the cross-attention of
    the last layer, mean of its heads; {} without a reference."""
    measured = reference(trace.model)
    if measured is None:
        return {}
    tokens = len(trace.source)
    less = {name: {each: measured.level(name, each, tokens, SHOWN) for each in statistics} for name in _LESS}
    if any(value is None for each in less.values() for value in each.values()):
        return {}
    return {name: {each: float(value) for each, value in numbers.items()} for name, numbers in less.items()}
