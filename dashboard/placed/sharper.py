"""One sentence among the test set of its model: how sharp its attention is, and what the two baselines have."""

from attnviz import across
from attnviz.across.reference import SHOWN
from attnviz.trace import Trace
from dashboard.placed.caches import reference

_LESS = ("untrained", "shuffled")


def words(trace: Trace) -> str:
    """`Sharper than 83% of …`, as HTML; "" for a text that the model was made to write, and without a reference."""
    measured = None if trace.forced else reference(trace.model)
    entropy = across.sharpness(trace) if measured else None
    share = None if entropy is None else measured.sharper(entropy)
    if share is None:
        return ""
    heads = sum(attention.weights.shape[0] for attention in trace.maps if attention.kind == "cross")
    mean = f", the mean of all {heads} cross-attention heads" if heads > 1 else ""
    return (
        f'<p class="small placed">Sharper than <b>{100 * share:.0f}%</b> of the {measured.sentences:,} test sentences '
        f"of this model (normalised entropy {entropy:.2f}{mean}).</p>"
    )


def levels(trace: Trace, statistics: tuple[str, ...]) -> dict[str, dict[str, float]]:
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
