"""What names the lines and colours of a figure: the legend above it, and the scale of colours under the plots."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.cm import ScalarMappable
from matplotlib.transforms import Bbox

from attnviz.export.printed import letters
from attnviz.export.printed.figure.axes import LEAST
from attnviz.export.printed.figure.canvas import Canvas
from attnviz.export.printed.figure.texts import plain
from attnviz.export.printed.sheet import POINT

_SIZE, _GAP = 12, 4  # px of the type; between the legend and what is below it
_APART = 0.6  # between two names of the scale, in sizes of the type
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


def add_scale(canvas: Canvas, cells: ScalarMappable, bar: dict) -> None:
    """cells : the colours and the values at their ends. bar : Plotly's, with places and names of its ticks."""
    whole, px = canvas.paper.get_position(), canvas.px / 72 / canvas.figure.get_figheight()
    thick = bar["thickness"] * px
    place = canvas.figure.add_axes((whole.x0, whole.y0 - bar["ypad"] * px - thick, whole.width, thick))
    place.set_label("<colorbar>")  # as matplotlib names its own
    canvas.scales.append(place)
    scale = canvas.figure.colorbar(cells, cax=place, orientation="horizontal")
    if scale.solids is not None:
        scale.solids.set(rasterized=False, edgecolor="face", linewidth=0.6 * canvas.px)
    room = canvas.size(canvas.paper)[0] * canvas.px
    low, high = cells.norm.vmin, cells.norm.vmax
    centres = [(value - low) / (high - low) * room for value in bar["tickvals"]]
    texts, size = _apart([plain(text) for text in bar["ticktext"]], centres, bar["tickfont"]["size"] * canvas.px)
    scale.set_ticks(bar["tickvals"], labels=texts, parse_math=False)
    place.tick_params(length=2 * canvas.px, colors=canvas.style.colors.text, labelsize=size)
    if named := canvas.layout.get("meta", {}).get("axes", {}).get("colour"):
        look = dict(size=min(size, room / letters.width(named, 1)), color=canvas.style.colors.muted, parse_math=False)
        scale.set_label(named, **look)
        place.xaxis.labelpad = 2 * canvas.px
    scale.outline.set_visible(False)


def _apart(texts: Sequence[str], centres: Sequence[float], size: float) -> tuple[list[str], float]:
    """Names that do not meet, and their size in points: smaller, then the longest are cut."""
    gaps = [after - before for before, after in zip(centres, centres[1:])]

    def meet(texts: Sequence[str], size: float) -> bool:
        wide = [letters.width(text, size) / 2 for text in texts]
        return any(a + b + _APART * size > gap for a, b, gap in zip(wide, wide[1:], gaps))

    texts = list(texts)
    while meet(texts, size) and size > LEAST:
        size = max(LEAST, 0.9 * size)
    while meet(texts, size) and max(map(len, texts)) > 2:
        longest = max(range(len(texts)), key=lambda place: letters.width(texts[place], 1))
        texts[longest] = letters.cut(texts[longest], 0.85 * letters.width(texts[longest], size), size)
    return texts, size
