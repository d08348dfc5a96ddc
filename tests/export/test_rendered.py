"""Every printed picture drawn by three programs, and maps by a fourth: the same to the eye.

Chromium draws the SVG, PDFium the PDF, matplotlib the PNG; Plotly draws the map of the page.
"""

import io
import json

import numpy as np
import pypdfium2
import pytest
import synthetic
from PIL import Image

from attnviz import figures, plotlyjs, select, stats
from attnviz.export import printed
from attnviz.figures.faithfulness import saliency

FIRST = synthetic.trace("The $5 dog <eos>", "Le chien & noir", heads=2, layers=2)
SECOND = synthetic.trace("The $5 dog <eos>", "Le chien & noir", seed=7, model="second", heads=2, layers=2)
GRID = select.select(FIRST)
OTHER = select.select(FIRST, "cross", 1, 0)
VALUES = select.difference(GRID, select.select(SECOND))
TRACES = {"First": FIRST, "Second": SECOND}
FRAMES = {name: stats.of_grid(select.select(trace)) for name, trace in TRACES.items()}
PAPER = printed.Style("column")
SHEETS = {
    "map": lambda: printed.of_map(FIRST, GRID, PAPER),
    "bars": lambda: printed.of_step(FIRST, GRID, 1, PAPER, window=(1.25, 2)),
    "difference": lambda: printed.of_difference(FIRST, SECOND, VALUES, GRID, ("A", "B"), PAPER),
    "statistics": lambda: printed.of_statistics(TRACES, FRAMES, 5, PAPER),
    "heads": lambda: printed.of_overview(FIRST, style=PAPER),
    "lines": lambda: printed.of_figure(figures.token_lines([GRID, OTHER], 1), ["Lines"], PAPER),
    "saliency": lambda: printed.of_figure(saliency(GRID, VALUES, "gradients"), ["Saliency"], PAPER),
}
WIDTH = 600  # px
CENTRES = """() => { const { xaxis: x, yaxis: y } = document.querySelector('.js-plotly-plot')._fullLayout;
  return y.tickvals.map((row) => x.tickvals.map((column) => [x._offset + x.l2p(column), y._offset + y.l2p(row)])); }"""


def coarse(picture: Image.Image) -> np.ndarray:
    """Squares of 8 px in grey: edges of letters, which programs smooth in their own ways, are lost."""
    size = WIDTH // 8, round(WIDTH / 8 * picture.height / picture.width)
    return np.asarray(picture.convert("L").resize(size, Image.BOX), float)


@pytest.mark.parametrize("name", [name for name in SHEETS if name != "saliency"])
def test_svg_pdf_and_png_are_the_same_picture(chrome, name):
    drawn = SHEETS[name]()
    whole = Image.open(io.BytesIO(drawn.save("png")))
    png = coarse(whole)
    pdf = pypdfium2.PdfDocument(drawn.save("pdf"))
    assert len(pdf) == 1
    page = chrome.new_page(viewport={"width": WIDTH, "height": round(WIDTH * whole.height / whole.width)})
    style = "body{margin:0}svg{width:100%;height:auto;display:block}"
    page.set_content(f"<style>{style}</style>{drawn.save('svg').decode()}")
    others = {"svg": Image.open(io.BytesIO(page.screenshot())), "pdf": pdf[0].render(scale=2).to_pil()}
    page.close()
    pdf.close()
    for fmt, picture in others.items():
        difference = np.abs(np.asarray(Image.fromarray(coarse(picture)).resize(png.shape[::-1])) - png)
        far = np.percentile(difference, 99)  # a letter of another font may fill a square otherwise
        assert far < 50 and difference.mean() < 3, (fmt, far, difference.mean())  # of 255
    assert png.std() > 10  # and it is not blank


ON_PAGE = {
    "map": lambda: figures.heatmap(GRID),
    "difference": lambda: figures.difference(VALUES, GRID, ("A", "B")),
    "saliency": lambda: saliency(GRID, VALUES, "gradients"),
}


@pytest.mark.parametrize("name", ON_PAGE)
def test_cells_have_the_colours_of_the_page(chrome, name):
    on_page = ON_PAGE[name]()
    page = chrome.new_page(viewport={"width": 500, "height": on_page.layout.height + 20})
    page.set_content("<style>body{margin:0}</style>" + on_page.to_html(include_plotlyjs=False, full_html=False))
    page.add_script_tag(path=plotlyjs.SCRIPT)
    page.evaluate("figure => Plotly.newPlot(document.querySelector('.plotly-graph-div'), figure)", _plain(on_page))
    places = page.evaluate(CENTRES)
    drawn = np.asarray(Image.open(io.BytesIO(page.screenshot())).convert("RGB"), float)
    page.close()
    sheet = SHEETS[name]()
    print_ = np.asarray(Image.open(io.BytesIO(sheet.save("png"))).convert("RGB"), float)
    axes = sheet.figure.axes[1]  # the plot of the map
    for row, columns in enumerate(places):
        for column, (x, y) in enumerate(columns):
            across, up = axes.transData.transform((column, row)) * 300 / sheet.figure.dpi
            printed_cell = _cell(print_, across, print_.shape[0] - up)
            assert np.abs(printed_cell - _cell(drawn, x, y)).max() < 4, (row, column)


def _plain(figure) -> dict:
    return json.loads(figure.to_json())


def _cell(picture: np.ndarray, x: float, y: float) -> np.ndarray:
    """A colour beside the middle of a cell, where no dash is."""
    return picture[round(y) + 6, round(x)]
