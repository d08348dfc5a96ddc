"""From data to plotly figures; each function takes values and returns a Chart, computes no statistics, shows nothing.

Backgrounds are transparent: `dark=True` picks colours for a dark page. A Chart is a plotly Figure; its `description`
says in words what it shows.
"""

from attnviz.figures.bars import guess_bars, next_tokens, step_bars
from attnviz.figures.by_head import by_distance, head_map
from attnviz.figures.chart import Chart, large
from attnviz.figures.lines import line_threshold, token_lines
from attnviz.figures.many import reliability
from attnviz.figures.maps import difference, heatmap
from attnviz.figures.small_maps import overview, overview_of_pooled
from attnviz.figures.steps import by_step, comparison
from attnviz.figures.wording import cell_texts, describe

__all__ = [
    "Chart",
    "by_distance",
    "by_step",
    "cell_texts",
    "comparison",
    "describe",
    "difference",
    "guess_bars",
    "head_map",
    "heatmap",
    "large",
    "line_threshold",
    "next_tokens",
    "overview",
    "overview_of_pooled",
    "reliability",
    "step_bars",
    "token_lines",
]
