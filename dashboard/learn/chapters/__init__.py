"""The chapters of the page Learn, in order; a module each."""

from dashboard.learn.chapters import bottleneck, heads, limits, scaling, scores, typical, weights, who_asks, writing

_MODULES = bottleneck, weights, scores, who_asks, scaling, heads, typical, writing, limits
CHAPTERS = tuple(module.CHAPTER for module in _MODULES)
