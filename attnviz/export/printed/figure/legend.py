"""The names of lines and marks, above everything else of a figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.transforms import Bbox

from attnviz.export.printed.figure.canvas import Canvas

_SIZE, _GAP = 12, 4  # px of the type; between the legend and what is below it


def add_legend(canvas: Canvas, data: Sequence[dict]) -> None:
    """As many names beside each other as the sheet has room for."""
    if not canvas.layout.get("showlegend") or not canvas.names:
        return
    boxes = [part.get_tightbbox() for part in canvas.figure.axes]
    top = Bbox.union([box for box in boxes if box is not None]).y1
    _, y = canvas.paper.transAxes.inverted().transform((0, top))
    gap = _GAP / canvas.size(canvas.paper)[1]
    for count in range(len(canvas.names), 0, -1):
        ordered = [name for column in range(count) for name in canvas.names[column::count]]  # it fills columns first
        legend = canvas.paper.legend(
            *zip(*ordered),
            loc="lower left",
            bbox_to_anchor=(0, y + gap),
            ncols=count,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=3,
            columnspacing=1.2,
            fontsize=canvas.layout.get("legend", {}).get("font", {}).get("size", _SIZE) * canvas.px,
            labelcolor=canvas.style.colors.text,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        if legend.get_window_extent().x1 <= canvas.figure.bbox.x1:
            break
