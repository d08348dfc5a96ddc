"""From data to plotly figures; each function takes values and returns a Figure, computes no statistics, shows nothing.

    >>> figures.heatmap(select(trace)).show()

Backgrounds are transparent: `dark=True` picks colours for a dark page. `figure.layout.meta["description"]` says in words
what the figure shows.
"""

from attnviz.figures.charts import by_step, comparison
from attnviz.figures.maps import difference, heatmap, step_bars
from attnviz.figures.wording import describe

__all__ = ["by_step", "comparison", "describe", "difference", "heatmap", "step_bars"]
