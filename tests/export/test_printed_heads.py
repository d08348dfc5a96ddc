"""All heads for slides and papers: what is named, a rectangle for equal neighbours, the colours of the page."""

import io
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from PIL import Image

from attnviz import heads
from attnviz.export import printed
from attnviz.export.printed import marks
from attnviz.figures import small_maps
from attnviz.figures.small_maps import arranged, margins, pooled_maps
from attnviz.figures.theme import LIGHT

TRACE = synthetic.trace("The $5 dog", "Le chien & noir", heads=3, layers=2, kinds=("cross", "decoder"))
TABLE = heads.table(TRACE)
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: bytes) -> list[str]:
    return ["".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


@given(arrays.arrays(int, st.tuples(st.integers(1, 9), st.integers(1, 9)), elements=st.integers(-1, 2)))
def test_rectangles_cover_every_cell_once(cells):
    again, count = np.full(cells.shape, -9), np.zeros(cells.shape, int)
    for value, (x, y, width, height) in marks.merged(cells):
        again[y : y + height, x : x + width] = value
        count[y : y + height, x : x + width] += 1
    assert np.array_equal(again, cells) and (count == 1).all()


def test_equal_neighbours_are_one_rectangle():
    cells = np.array([[1, 1, 2], [1, 1, 2], [3, 3, 3]])
    assert sorted(marks.merged(cells)) == [(1, (0, 0, 2, 2)), (2, (2, 0, 1, 2)), (3, (0, 2, 3, 1))]


def test_the_picture_names_what_it_shows():
    words = texts(printed.of_overview(TRACE).save("svg"))
    assert {"synthetic (synthetic): cross-attention, all heads", "The $5 dog", "→ Le chien & noir"} <= set(words)
    assert {"head →", "layer ↓"} <= set(words)
    described = "6 cross heads, each a map of 5 target tokens by 5 source tokens; 2 layers downwards, heads across"
    assert described in " ".join(words)


def test_sorted_and_framed_by_statistics():
    sheet = printed.of_overview(TRACE, "decoder", table=TABLE, order="gini", color="distance", root=True)
    words = texts(sheet.save("svg"))
    assert "Distance (tokens)" in words
    here = TABLE[TABLE.kind == "decoder"].sort_values("gini", ascending=False)
    names = [f"{layer + 1}·{head + 1}" for layer, head in zip(here.layer, here["head"])]
    assert [text for text in words if "·" in text] == names
    frames = sheet.figure.axes[1].collections[0]
    assert frames.get_array().tolist() == pytest.approx(here.distance.tolist(), abs=1e-5)


def test_cells_are_shapes_in_the_colours_of_the_page():
    sheet = printed.of_overview(TRACE, "decoder", printed.Style("column"))
    for fmt, image in (("svg", b"<image"), ("pdf", b"/Subtype /Image")):
        assert image not in sheet.save(fmt)
    drawn = np.asarray(Image.open(io.BytesIO(sheet.save("png"))).convert("RGB"), int)
    axes, colors = sheet.figure.axes[1], small_maps.picture_colors(LIGHT).astype(int)
    maps = pooled_maps(TRACE, "decoder", arranged(TRACE, "decoder"))
    around = margins(False, False)[1] / (1 + 2 * margins(False, False)[1])
    for row, column, query in ((0, 0, 4), (1, 2, 3), (1, 0, 4)):
        weights = maps[row][column]
        side = (1 - 2 * around) / len(weights)
        for key in range(query + 1):
            x, y = (place - 0.5 + around + (at + 0.5) * side for place, at in ((column, key), (row, query)))
            across, up = axes.transData.transform((x, y)) * 300 / sheet.figure.dpi
            shade = colors[int(small_maps.shades(weights, False)[query, key])]
            assert np.abs(drawn[round(drawn.shape[0] - up), round(across)] - shade).max() <= 2


def test_too_many_rectangles_are_an_image(monkeypatch):
    vectors = printed.of_overview(TRACE).save("svg")
    monkeypatch.setattr(marks, "MOST_RECTANGLES", 5)
    sheet = printed.of_overview(TRACE)
    assert sheet.save("svg").count(b"<image") == 1 and sheet.save("pdf").count(b"/Subtype /Image") >= 1
    assert texts(sheet.save("svg")) == texts(vectors)
    as_image, as_shapes = (
        np.asarray(Image.open(io.BytesIO(drawing.save("png"))).convert("RGB"), float)
        for drawing in (sheet, _overview_with_most_rectangles(monkeypatch, 300_000))
    )
    assert np.abs(as_image - as_shapes).mean() < 2


def _overview_with_most_rectangles(monkeypatch, most: int) -> printed.Sheet:
    monkeypatch.setattr(marks, "MOST_RECTANGLES", most)
    return printed.of_overview(TRACE)


def test_a_statistic_needs_a_table():
    with pytest.raises(ValueError, match="^the table must have the columns kind, layer, head, gini; got no table$"):
        printed.of_overview(TRACE, order="gini")
