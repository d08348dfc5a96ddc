"""One number for each head as a map: layers downwards, heads across."""

from __future__ import annotations

import math

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.figures.by_head import grid
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build
from attnviz.figures.titles import statistic_title
from attnviz.figures.wording import number
from attnviz.heads import Head

_CELL = (104, 56)  # px of a cell at most: it holds one number
_FEW = 50  # cells up to which a number is written into each
_NEAR = 0.05  # numbers that lie closer together have a third digit


@checked
def head_map(
    frame: pd.DataFrame,
    column: str,
    title: str | None = None,
    *,
    dark: bool = False,
    span: tuple[float, float] | None = None,
) -> Chart:
    """One number for each head, layers downwards and heads across; in two colours around 0 if some are negative.

    span : the numbers at the ends of the colour scale; by default the lowest and the highest.
    frame : with columns kind, of which there must be one, layer, head and `column`; a head with NaN is a gap.
    """
    kinds = list(dict.fromkeys(frame["kind"])) if "kind" in frame else []
    if len(kinds) != 1:
        raise ValueError(f"the frame must hold the heads of one kind; got {', '.join(kinds) or 'none'}")
    kind, values = kinds[0], grid.values_by_head(frame, kinds[0], column)
    layers, across = sorted({head.layer for head in values}), max(head.head for head in values) + 1
    places = [[Head(kind, layer, i) for i in range(across)] for layer in layers]
    rows = [[head if head in values else None for head in row] for row in places]
    cells = grid.cells(rows, {column: values}, dark, column, span)
    numbers = {head: value for head, value in values.items() if not math.isnan(value)}
    finite = list(numbers.values())
    if finite and len(layers) * across <= _FEW:
        digits = 2 if max(finite) - min(finite) >= _NEAR or len(finite) == 1 else 3
        text = [[number(numbers[head], f".{digits}f") if head in numbers else "" for head in row] for row in rows]
        cells |= dict(text=text, texttemplate="%{text}", textfont=dict(size=11))
    said = f"{statistic_title(column)} of {len(values)} {kind} heads{grid.extremes(column, values)}."
    frame = grid.frame(rows, False, True, title, dark, said, _CELL[1])
    frame["meta"]["widest"] = grid.sides(frame) + _CELL[0] * across  # px: a page makes it no wider
    return build([cells], frame)
