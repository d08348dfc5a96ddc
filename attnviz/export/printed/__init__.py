"""Pictures for slides and papers, as SVG, PDF or PNG: drawn by matplotlib, so no browser is needed.

    >>> printed.of_map(trace, select.select(trace), printed.Style("column")).save("pdf")

`of_figure` prints any figure of `attnviz.figures`, `of_figures` several beside each other; the others make the figure
of a trace and the lines above it.

Each has its title, the sentence and the translation above it. In SVG and PDF shapes are shapes and text is text.
Colours of maps climb evenly in lightness, lines differ in dash and marker, and negative differences carry a dash, so a
print in grey says the same. matplotlib and not a writer of our own: it embeds fonts in PDF, takes each character from
the first font that has it, and saves PNG by the same lines.
"""

from attnviz.export.printed.figure import of_figure, of_figures
from attnviz.export.printed.of_traces import of_difference, of_map, of_maps, of_overview, of_statistics, of_step
from attnviz.export.printed.sheet import FORMATS, SIZES, Sheet, Style

__all__ = [
    "FORMATS",
    "SIZES",
    "Sheet",
    "Style",
    "of_difference",
    "of_figure",
    "of_figures",
    "of_map",
    "of_maps",
    "of_overview",
    "of_statistics",
    "of_step",
]
