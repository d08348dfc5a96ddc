"""From data to plotly figures; each function takes values and returns a Figure, computes no statistics, shows nothing.

    >>> figures.heatmap(select(trace)).show()

Backgrounds are transparent: `dark=True` picks colours for a dark page. `figure.layout.meta["description"]` says in words
what the figure shows.
"""

from attnviz.figures.charts import by_step, comparison
from attnviz.figures.depth import by_distance
from attnviz.figures.lines import token_lines
from attnviz.figures.maps import difference, heatmap, step_bars
from attnviz.figures.overview import head_map, overview
from attnviz.figures.wording import describe

__all__ = [
    "by_distance",
    "by_step",
    "comparison",
    "describe",
    "difference",
    "head_map",
    "heatmap",
    "overview",
    "step_bars",
    "token_lines",
]
