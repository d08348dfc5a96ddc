"""The chapters of the page Learn, in order. New ones are added at the end, because links contain the numbers."""

from dashboard.learn.chapters import bottleneck, heads, scores, self_attention, training, weights, who_asks, writing

CHAPTERS = (
    bottleneck.CHAPTER,
    weights.WEIGHTS,
    scores.SCORES,
    who_asks.ORDER,
    scores.SCALING,
    heads.HEADS,
    heads.TYPICAL,
    writing.CHAPTER,
    weights.LIMITS,
    self_attention.MASKS,
    training.FORCING,
    who_asks.ROLES,
    self_attention.ROWS,
    self_attention.ITSELF,
    training.APPEARS,
)
