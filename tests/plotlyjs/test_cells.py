"""Saved pictures in a browser: cells become rectangles that look as the image that Plotly draws."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import synthetic
from PIL import Image

from attnviz import figures, heads, plotlyjs, select
from attnviz.export.printed import marks as printed_marks
from attnviz.figures.theme import palette

TRACE = synthetic.trace("The black dog", "Le chien noir court", heads=3, layers=2, kinds=("decoder",))
TABLE = heads.table(TRACE)
SIZE = {"width": 640, "height": 480}
SVG = "{http://www.w3.org/2000/svg}"
# -> the picture as Plotly saves it, and with rectangles
SAVE = """async ([figure, size]) => {
  const plot = document.getElementById("plot"), { data, layout } = JSON.parse(figure);
  Plotly.purge(plot);
  await Plotly.newPlot(plot, data, { ...layout, ...size });
  const address = await Plotly.toImage({ data, layout }, { format: "svg", ...size });
  const svg = decodeURIComponent(address.slice(address.indexOf(",") + 1));
  return [svg, await vectors(svg, plot)];
}"""


@pytest.fixture(scope="module")
def page(chrome):
    page = chrome.new_page(viewport=SIZE)
    page.set_content("<style>body { margin: 0 } svg { display: block }</style><div id=plot></div>")
    page.add_script_tag(path=plotlyjs.SCRIPT)
    page.add_script_tag(content=plotlyjs.SAVING)
    yield page
    page.close()


def seen(page, svg: str) -> np.ndarray:
    """A picture in a browser, in squares of 8 px: edges and stripes, which an image smooths otherwise, are lost."""
    page.evaluate("svg => { document.getElementById('plot').innerHTML = svg; }", svg)
    small = SIZE["width"] // 8, SIZE["height"] // 8
    return np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB").resize(small, Image.BOX), float)


def boxes(svg: str) -> list[str]:
    """The rectangles within the paths."""
    return re.findall(r"M[\d.]+ [\d.]+h[\d.]+v[\d.]+h-[\d.]+z", svg)


def images(svg: str) -> int:
    return len(list(ElementTree.fromstring(svg).iter(f"{SVG}image")))


@pytest.mark.parametrize(("order", "color", "dark"), [(None, None, False), ("gini", "distance", True)])
def test_an_overview_of_heads_is_rectangles(page, order, color, dark):
    figure = figures.overview(TRACE, "decoder", TABLE, order, color, dark=dark)
    before, after = page.evaluate(SAVE, [figure.to_json(), SIZE])
    assert images(before) == 2 and images(after) == 0
    drawn = printed_marks.boxes(figure.plain_layout["images"][0], palette(dark))
    assert len(boxes(after)) == sum(map(len, drawn.values()))  # as printed
    frames = [
        node for node in ElementTree.fromstring(after).iter(f"{SVG}rect") if node.get("fill", "").startswith("rgb")
    ]
    assert len(frames) == (6 if color else 0)
    difference = np.abs(seen(page, before) - seen(page, after))
    assert difference.mean() < 4 and np.percentile(difference, 99) < 40, (difference.mean(), difference.max())


def test_a_large_map_without_gaps_is_rectangles(page):
    trace = synthetic.trace("a " * 69, "b " * 79)
    before, after = page.evaluate(SAVE, [figures.heatmap(select.select(trace)).to_json(), SIZE])
    assert images(before) == 1 and images(after) == 0 and 0 < len(boxes(after)) <= 70 * 80
    area = [np.prod(list(map(int, re.findall(r"h(\d+)v(\d+)", box)[0]))) for box in boxes(after)]
    assert sum(area) == 70 * 80  # every cell is in one of them
    difference = np.abs(seen(page, before) - seen(page, after))
    assert difference.mean() < 4 and np.percentile(difference, 99) < 40, (difference.mean(), difference.max())


def test_too_many_cells_stay_an_image(page):
    small = plotlyjs.SAVING.replace(f"MOST_RECTANGLES = {plotlyjs.MOST_RECTANGLES}", "MOST_RECTANGLES = 20")
    assert small != plotlyjs.SAVING
    figures_ = [figures.overview(TRACE), figures.heatmap(select.select(TRACE, "decoder"))]
    save = SAVE.replace("await vectors", f"await new Function({json.dumps(f'{small} return vectors;')})()")
    for figure in figures_:
        before, after = page.evaluate(save, [figure.to_json(), SIZE])
        assert images(after) == 1 and np.array_equal(seen(page, before), seen(page, after))
