"""A saved map as vectors: no image, and a rectangle for each cell in the colour of its weight."""

import re
import xml.etree.ElementTree as ElementTree
from pathlib import Path

import numpy as np
import pytest
from plotly.colors import sample_colorscale

from attnviz.figures.theme import colorscale, palette

_SVG = "{http://www.w3.org/2000/svg}"


def check(path: Path, weights: np.ndarray) -> None:
    """path : an SVG on light ground. weights (Q, K) : of its map, all visible, rounded to 4 digits on the page."""
    root = ElementTree.parse(path).getroot()
    assert not list(root.iter(f"{_SVG}image"))
    [layer] = (node for node in root.iter() if "heatmaplayer" in node.get("class", "").split())
    cells = list(layer.iter(f"{_SVG}rect"))
    assert len(cells) == weights.size
    wanted = sample_colorscale(colorscale(palette(False).sequential), np.round(weights, 4).ravel().tolist())
    assert [_rgb(cell.get("fill")) for cell in cells] == [pytest.approx(_rgb(color), abs=1) for color in wanted]
    lefts, tops = (sorted({float(cell.get(side)) for cell in cells}) for side in ("x", "y"))
    assert (len(tops), len(lefts)) == weights.shape
    assert np.ptp(np.diff(lefts)) < 0.05 and np.ptp(np.diff(tops)) < 0.05


def _rgb(color: str) -> list[float]:
    return [float(part) for part in re.findall(r"[\d.]+", color)]
