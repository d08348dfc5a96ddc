"""Attributions as a map on the same axes as attention: how much each source token speaks for or against each target
token."""

from __future__ import annotations

import numpy as np

from attnviz.figures import hover, labels
from attnviz.figures.axes import key_axis, query_axis, rows_height
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, colorscale, layout, palette, scale_bar

_TOP, _TITLE, _SCALE = 86, 30, 34  # px above the cells, for a title, below for the colour scale


def saliency(grid, values, method: str, title: str | None = None, *, dark: bool = False) -> Chart:
    """values [queries, keys] of one method, beside `figures.heatmap(grid)`; the scale is symmetric about 0, up to the
    largest.

    grid : the attention of the same tokens. Blue speaks for the target token, orange against it. ValueError if shapes
    differ.
    """
    values = np.asarray(values, dtype=np.float64)
    if values.shape != grid.weights.shape:
        raise ValueError(f"values must have the grid's shape {grid.weights.shape}; got {values.shape}")
    most = float(np.abs(values).max()) or 1.0
    left, right, xaxis = key_axis(grid, "top")
    above, rows = _TITLE if title else 0, rows_height(len(grid.queries))
    margin = (left, right, _TOP + above, _SCALE)
    description = _words(grid, values, method)
    frame = layout(dark, rows + margin[2] + margin[3], margin, title and labels.escape(title), description)
    frame |= dict(xaxis=xaxis, yaxis=query_axis(grid, None))
    frame["meta"]["axes"] = {"colour": f"attribution by {method}"}
    cells = dict(
        type="heatmap",
        z=np.round(values, 5).astype(np.float32),
        zmin=-most,
        zmax=most,
        xgap=1,
        ygap=1,
        colorscale=colorscale(palette(dark).diverging),
        hoverinfo="text",
        hovertext=_hover(grid, values),
        **scale_bar([-most, 0, most], [f"−{most:.2g}", "0", f"{most:.2g}"]),
    )
    return build([cells], frame)


def _hover(grid, values: np.ndarray) -> list[list[str]]:
    keys = hover.placed(grid.keys)
    return [
        [f"{key} {'for' if value >= 0 else 'against'} {query}: {value:+.3f}" for key, value in zip(keys, row)]
        for query, row in zip(hover.placed(grid.queries), values.tolist(), strict=True)
    ]


def _words(grid, values: np.ndarray, method: str) -> str:
    row, column = np.unravel_index(np.abs(values).argmax(), values.shape)
    query, key = labels.quoted(grid.queries[row]), labels.quoted(grid.keys[column])
    side = "for" if values[row, column] >= 0 else "against"
    return (
        f"Attributions by {method}, {values.shape[0]} target by {values.shape[1]} source tokens. Largest: {key} speaks "
        f"{side} {query}, {values[row, column]:+.3f}."
    )
