"""The names of lines and marks, above everything else of a figure."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.transforms import Bbox

from attnviz.export.printed import letters
from attnviz.export.printed.figure.canvas import Canvas
from attnviz.export.printed.sheet import POINT

_SIZE, _GAP = 12, 4  # px of the type; between the legend and what is below it
_HANDLE = 3  # length of a line beside its name, in sizes of the type


def add_legend(canvas: Canvas, data: Sequence[dict]) -> None:
    """As many names beside each other as the sheet has room for."""
    if not canvas.layout.get("showlegend") or not canvas.names:
        return
    boxes = [part.get_tightbbox() for part in canvas.parts]
    top = Bbox.union([box for box in boxes if box is not None]).y1
    size = canvas.layout.get("legend", {}).get("font", {}).get("size", _SIZE) * canvas.px
    dot = canvas.figure.dpi / POINT
    end = (canvas.box[0] + canvas.box[2]) * dot
    room = (end - canvas.paper.bbox.x0) / dot - (_HANDLE + 1.5) * size
    names = [(handle, letters.cut(name, room, size)) for handle, name in canvas.names]
    _, y = canvas.paper.transAxes.inverted().transform((0, top))
    gap = _GAP / canvas.size(canvas.paper)[1]
    for count in range(len(names), 0, -1):
        ordered = [name for column in range(count) for name in names[column::count]]  # it fills columns first
        legend = canvas.paper.legend(
            *zip(*ordered),
            loc="lower left",
            bbox_to_anchor=(0, y + gap),
            ncols=count,
            frameon=False,
            borderpad=0,
            borderaxespad=0,
            handlelength=_HANDLE,
            columnspacing=1.2,
            fontsize=size,
            labelcolor=canvas.style.colors.text,
        )
        for text in legend.get_texts():
            text.set_parse_math(False)
        if legend.get_window_extent().x1 <= end:
            break
