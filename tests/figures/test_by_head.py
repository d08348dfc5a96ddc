"""Heads as cells of a heatmap and as small maps."""

import base64
import io
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import synthetic
from PIL import Image

from attnviz import figures, heads, plotlyjs
from attnviz.figures.small_maps import arranged
from attnviz.figures.theme import CLEAR, DARK, LIGHT
from attnviz.heads import Head
from attnviz.trace import AttentionMap

DRAW = """async (text) => {
    const { data, layout } = JSON.parse(text), plot = document.getElementById("plot");
    window.Plotly ??= window.moduleName;
    window.found = [];
    Plotly.purge(plot);
    await Plotly.newPlot(plot, data, layout);
    for (const event of ["plotly_hover", "plotly_click"])
      plot.on(event, ({ points }) => found.push(points[0].customdata));
}"""
KINDS = ("cross", "encoder", "decoder")


def test_the_grid_is_the_size_of_its_content():
    rows = [("encoder", layer, head, 0.1 * head) for layer in range(3) for head in range(4)]
    layout = figures.head_map(pd.DataFrame(rows, columns=["kind", "layer", "head", "gini"]), "gini").layout
    inner = layout.height - layout.margin.t - layout.margin.b
    assert inner == 3 * 56
    assert layout.meta["widest"] == layout.margin.l + layout.margin.r + 4 * 104


@pytest.fixture(scope="module")
def trace():
    return synthetic.trace("The black dog", "Le chien noir court", heads=3, layers=2, kinds=KINDS)


@pytest.fixture(scope="module")
def table(trace):
    return heads.table(trace)


def picture(figure):
    [image] = figure.layout.images
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(image.source.split(",")[1]))).convert("RGBA"))


def tile(figure, row, column):
    """The part of the picture that lies over a cell."""
    pixels, (rows, columns) = picture(figure), figure.data[0].z.shape
    tall, wide = pixels.shape[0] // rows, pixels.shape[1] // columns
    return pixels[row * tall : (row + 1) * tall, column * wide : (column + 1) * wide]


def described(figure):
    return figure.layout.meta["description"]


def test_layers_downwards_and_heads_across(trace):
    figure = figures.overview(trace, "encoder")
    cells = figure.data[0]
    assert [list(row) for row in cells.customdata] == [[[0, 0], [0, 1], [0, 2]], [[1, 0], [1, 1], [1, 2]]]
    assert (
        cells.hovertext[1][2] == "Layer 2, head 3"
        and {color for _, color in cells.colorscale} == {CLEAR}
        and not cells.showscale
    )
    assert figure.layout.xaxis.ticktext == ("1", "2", "3") and figure.layout.yaxis.ticktext == ("1", "2")
    assert figure.layout.yaxis.range[0] > figure.layout.yaxis.range[1]
    assert (
        described(figure)
        == "6 encoder heads, each a map of 4 source tokens by 4 source tokens; 2 layers downwards, heads across."
    )


def test_the_picture_covers_the_cells_and_each_map_is_in_its_place():
    one_hot = [np.eye(4)[[0, 0, 0, 0]], np.eye(4)[[3, 3, 3, 3]]]
    trace = replace(
        synthetic.trace("a b c", kinds=("encoder",)),
        maps=(AttentionMap("encoder", 0, one_hot), AttentionMap("encoder", 1, one_hot[::-1])),
    )
    figure = figures.overview(trace)
    [image] = figure.layout.images
    assert (image.x, image.y, image.sizex, image.sizey, image.xref, image.yref) == (-0.5, -0.5, 2, 2, "x", "y")
    dark = [int(LIGHT.sequential[-1][i : i + 2], 16) for i in (1, 3, 5)]
    for row, column, first in ((0, 0, True), (0, 1, False), (1, 0, False), (1, 1, True)):
        line = (tile(figure, row, column)[50, :, :3] == dark).all(-1)
        assert line.sum() == 24 and (line.argmax() < len(line) / 2) == first  # one column of four, 24 px wide


def test_sorted_by_a_column(trace, table):
    figure = figures.overview(trace, "cross", table, order="entropy_nats", color="gini")
    here = table[table.kind == "cross"].sort_values("entropy_nats", ascending=False)
    flat = [cell for row in figure.data[0].customdata for cell in row]
    assert flat == list(map(list, zip(here.layer, here["head"])))
    assert list(figure.data[1].text) == [f"{layer + 1}·{head + 1}" for layer, head in flat]
    np.testing.assert_allclose(figure.data[0].z.ravel(), here.gini, rtol=1e-6)
    top = here.iloc[0]
    assert figure.data[0].hovertext[0][0] == (
        f"Layer {top.layer + 1}, head {top['head'] + 1}<br>Entropy (nats): {top.entropy_nats:.3g}"
        f"<br>Gini coefficient: {top.gini:.3g}"
    )
    assert (
        f"sorted from high to low; Entropy (nats): highest in layer {top.layer + 1}, head {top['head'] + 1}, "
        in described(figure)
    )
    assert described(figure).endswith("; frames: Gini coefficient.")


def test_heads_without_a_value_come_last(trace, table):
    gone = table.copy()
    gone.loc[gone.query("kind == 'encoder' and layer == 0 and head == 1").index, "gini"] = np.nan
    rows = arranged(trace, "encoder", gone, "gini")
    assert rows[-1][-1] == Head("encoder", 0, 1) and len(rows) == 2


def test_layers_of_unequal_heads_leave_cells_empty():
    trace = synthetic.trace("a b", kinds=("encoder",), heads=3)
    trace = replace(trace, maps=(trace.maps[0], AttentionMap("encoder", 1, trace.maps[0].weights[:1])))
    figure = figures.overview(trace)
    assert list(figure.data[0].customdata[1]) == [[1, 0], None, None] and figure.data[0].hovertext[1][1] == ""
    assert (tile(figure, 1, 2)[..., 3] == 0).all() and (tile(figure, 1, 0)[..., 3] == 255).any()
    assert described(figure).startswith("4 encoder heads")


def test_masked_is_not_zero(trace):
    figure = figures.overview(trace, "decoder")
    corner = tile(figure, 0, 0)[4:12, -12:-4, :3].reshape(-1, 3)
    assert len(np.unique(corner, axis=0)) == 2 and "what a query cannot see is hatched" in described(figure)


def test_long_maps_are_pooled_and_small_as_data():
    trace = synthetic.trace("a " * 199, kinds=("encoder",), heads=4, layers=3)
    figure = figures.overview(trace, dark=True)
    assert picture(figure).shape[1] <= 4 * (64 + 4) + 1 and len(figure.to_json()) < 80_000
    assert "a cell the largest weight of 4 by 4 tokens" in described(figure)


@pytest.mark.parametrize("dark, theme", [(False, LIGHT), (True, DARK)])
def test_both_themes(trace, table, dark, theme):
    figure = figures.overview(trace, "decoder", table, color="distance", dark=dark)
    assert figure.layout.font.color == theme.text and figure.layout.meta["dark"] == dark
    assert figure.data[0].colorscale[0][1] == theme.diverging[4]
    assert figure.data[0].colorbar.ticktext[1] == "Distance (tokens)"


def test_the_kind_of_the_first_map_unless_given(trace):
    assert described(figures.overview(trace)).startswith(
        "6 cross heads, each a map of 5 target tokens by 4 source tokens"
    )


def test_a_title_is_escaped(trace):
    assert figures.overview(trace, title="<b>").layout.title.text == "&lt;b&gt;"


@pytest.mark.parametrize(
    "ask, message",
    [
        (dict(order="gini"), "the table must have the columns kind, layer, head, gini; got no table"),
        (dict(kind="encoder", color="x"), "the table must have the columns kind, layer, head, x; got no table"),
    ],
)
def test_a_statistic_needs_a_table(trace, ask, message):
    with pytest.raises(ValueError) as error:
        figures.overview(trace, **ask)
    assert str(error.value) == message


def test_a_kind_or_attention_that_is_not_there():
    with pytest.raises(ValueError, match="^kind must be one that the trace of synthetic has"):
        figures.overview(synthetic.trace(), "encoder")
    with pytest.raises(ValueError, match="^synthetic has no attention"):
        figures.overview(replace(synthetic.trace(), maps=()))


def test_the_pointer_and_a_click_find_the_head_under_the_picture(chrome, trace, table):
    page = chrome.new_page(viewport={"width": 700, "height": 600})
    try:
        page.set_content("<div id=plot></div>")
        page.add_script_tag(path=plotlyjs.SCRIPT)
        for ask in ({}, {"order": "gini"}, {"color": "next"}):  # nothing is next in a decoder: no frame has a colour
            figure = figures.overview(trace, "decoder", table, **ask)
            page.evaluate(DRAW, figure.to_json())
            box = page.locator(".imagelayer image").bounding_box()
            page.mouse.move(box["x"] + box["width"] * 0.5, box["y"] + box["height"] * 0.75)  # row 1, column 1
            page.wait_for_function("found.length")
            page.mouse.down()
            page.mouse.up()
            page.wait_for_function("found.length > 1")
            assert page.evaluate("found") == [list(figure.data[0].customdata[1][1])] * 2
            page.mouse.move(0, 0)
    finally:
        page.close()


# -- head_map ----------------------------------------------------------------------------------------------------------


def test_a_map_of_one_number_a_head(table):
    here = table[table.kind == "encoder"]
    figure = figures.head_map(here, "max_weight")
    cells = figure.data[0]
    np.testing.assert_allclose(cells.z.ravel(), here.max_weight, rtol=1e-6)
    assert (cells.zmin, cells.zmax) == pytest.approx((here.max_weight.min(), here.max_weight.max()))
    assert cells.texttemplate == "%{text}" and list(cells.customdata[1][2]) == [1, 2]
    assert described(figure).startswith("Maximum weight of 6 encoder heads; Maximum weight: highest in layer ")


def test_changes_lie_on_both_sides_of_zero(table):
    frame = table[table.kind == "cross"][["kind", "layer", "head"]].assign(change=[-2.0, 0.5, np.nan, 0, 0, 0])
    cells = figures.head_map(frame, "change").data[0]
    assert (cells.zmin, cells.zmax) == (-2, 2) and np.isnan(cells.z[0, 2])
    assert [list(row) for row in cells.text[:1]] == [["−2.00", "0.50", ""]]  # a minus sign, not a hyphen
    assert cells.hovertext[0][0] == "Layer 1, head 1<br>Change in log-probability (nats): −2"


def test_nothing_found_yet(table):
    frame = table[table.kind == "cross"][["kind", "layer", "head"]].assign(change=np.nan)
    cells = figures.head_map(frame, "change").data[0]
    assert {color for _, color in cells.colorscale} == {CLEAR} and cells.texttemplate is None


def test_equal_numbers_have_a_span(table):
    cells = figures.head_map(table[table.kind == "cross"].assign(gini=0.25), "gini").data[0]
    assert cells.zmin < 0.25 < cells.zmax


def test_a_map_is_of_one_kind(table):
    with pytest.raises(ValueError, match="^the frame must hold the heads of one kind; got cross, encoder, decoder$"):
        figures.head_map(table, "gini")


def test_a_row_is_marked_in_every_map(trace):
    figure = figures.overview(trace, "decoder", row=0)
    [shape] = figure.layout.shapes
    heads = sum(len(m.weights) for m in trace.maps if m.kind == "decoder")
    assert shape.name == "row" and shape.path.count("M") == 2 * heads
    first, second = (float(part.split("L")[0].split(",")[1]) for part in shape.path.split("M")[1:3])
    rows = len(trace.target)
    assert -0.5 < first < -0.4 and second - first == pytest.approx(1 / (rows * 1.07), abs=2e-3)
    assert "Marked in every map: row 1, " in described(figure)


@pytest.mark.parametrize("row", [-1, 99])
def test_a_row_that_no_map_has(trace, row):
    with pytest.raises(ValueError, match="^row must be from 0 to"):
        figures.overview(trace, "decoder", row=row)
