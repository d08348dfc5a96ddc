"""From data to plotly figures; each function takes values and returns a Figure, computes no statistics, shows nothing.

    >>> figures.heatmap(select(trace)).show()

Backgrounds are transparent: `dark=True` picks colours for a dark page. `figure.layout.meta["description"]` says in words
what the figure shows.
"""

from attnviz.figures.charts import by_step, by_step_height, comparison, comparison_height
from attnviz.figures.wording import describe, row_sentence
from attnviz.figures.maps import bars_height, difference, heatmap, heatmap_height, step_bars

__all__ = [
    "bars_height", "by_step", "by_step_height", "comparison", "comparison_height", "describe", "difference", "heatmap",
    "heatmap_height", "row_sentence", "step_bars",
]  # fmt: skip
