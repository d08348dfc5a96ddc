"""Any figure of `attnviz.figures`, printed: the same data in the same layout as Plotly draws, in shapes and text.

A px of the layout is a twelfth of the style's type. So a figure of 12 px type keeps its proportions in every size.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from matplotlib.figure import Figure
from matplotlib.transforms import Bbox

from attnviz.export.printed.figure import axes, images, marks, tables, traces
from attnviz.export.printed.figure.canvas import PAD, Canvas, Margins
from attnviz.export.printed.figure.legend import add_legend
from attnviz.export.printed.figure.texts import plain
from attnviz.export.printed.sheet import Sheet, Style, sheet
from attnviz.figures.chart import Chart

_HEIGHT = 450  # px of a figure that does not say it


def of_figure(figure: Chart, lines: Sequence[str] = (), style: Style = Style()) -> Sheet:
    """A figure of `attnviz.figures`, light or dark as it was made; `style.dark` is not asked.

    lines : above it, the first is the title; `export.heading` makes them of a trace. Without any, the figure's own
        title, or its description. A map of more than `plotlyjs.MOST_RECTANGLES` cells (300,000) is one image.
    """
    style = replace(style, dark=figure.dark)
    data, layout = [trace.to_plotly_json() for trace in figure.data], figure.plain_layout
    lines = lines or [plain(layout.get("title", {}).get("text") or "") or figure.description]
    own = layout.get("margin", {})
    margins = Margins(*(own.get(side, 0) for side in "lrtb"))
    height = layout.get("height", _HEIGHT) - margins.top - margins.bottom

    def printed(margins: Margins) -> Sheet:
        body = (height + margins.top + margins.bottom) * style.points / 12
        return sheet(lines, style, body, lambda drawn: _draw(Canvas(drawn, layout, style, margins), data))

    return printed(_needed(printed(margins).figure, style))


def _draw(canvas: Canvas, data: Sequence[dict]) -> None:
    if any(trace["type"] == "table" for trace in data):
        tables.add_table(canvas, data[0])
        return
    axes.add_panels(canvas, data)
    for trace in data:
        traces.add_trace(canvas, trace)
    images.add_images(canvas)
    axes.finish(canvas)
    marks.add_shapes(canvas)
    marks.add_notes(canvas)
    add_legend(canvas, data)


def _needed(drawn: Figure, style: Style) -> Margins:
    """How much room a drawn figure takes on each side of its plots."""
    boxes = [part.get_tightbbox() for part in drawn.axes]
    around, plots = Bbox.union([box for box in boxes if box is not None]), drawn.axes[0].bbox
    px = drawn.dpi / 72 * style.points / 12
    sides = plots.x0 - around.x0, around.x1 - plots.x1, around.y1 - plots.y1, plots.y0 - around.y0
    return Margins(*(max(side / px, 0) + PAD for side in sides))
