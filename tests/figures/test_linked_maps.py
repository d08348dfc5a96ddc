"""Links set by hand over a map: where they are drawn, and what is said of them."""

import re

import grids
import pytest
from grids import contrast

from attnviz import figures
from attnviz.alignment import Cells


@pytest.fixture
def dog():
    return grids.dog()


def sentence(figure, query, key):
    """What the pointer reads over a cell."""
    return figure.data[0].hovertext[query][key]


# --- links laid over a heatmap


def corners(path):
    """The boxes of a path of squares, (x0, y0, x1, y1) of each."""
    number = r"(-?[\d.]+)"
    return [tuple(map(float, edges)) for edges in re.findall(f"M{number},{number}H{number}V{number}H{number}Z", path)]


@pytest.fixture
def links():
    return Cells(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 0)}))


def test_links_are_squares_within_their_cells_solid_where_they_are_sure(dog, links):
    layout = figures.heatmap(dog, links=links).layout
    assert [(shape.name, shape.line.dash) for shape in layout.shapes] == [
        ("sure links", "solid"),
        ("sure links", "solid"),
        ("possible links", "4px,3px"),
        ("possible links", "4px,3px"),
    ]
    for shape in layout.shapes:
        wanted = [(1, 0)] if shape.name == "possible links" else [(0, 0), (1, 1)]
        boxes = [(x0, y0, x1, y1) for x0, y0, x1, y1, _ in corners(shape.path)]
        assert boxes == [pytest.approx((key - 0.42, row - 0.42, key + 0.42, row + 0.42)) for row, key in wanted]


@pytest.mark.parametrize("dark", [False, True])
def test_one_line_of_a_link_stands_out_from_any_cell(dog, links, dark):
    colors = [shape.line.color for shape in figures.heatmap(dog, dark=dark, links=links).layout.shapes[:2]]
    scale = [color for _, color in figures.heatmap(dog, dark=dark).data[0].colorscale]
    assert all(max(contrast(cell, line) for line in colors) > 3 for cell in scale)  # WCAG 2, 1.4.11


def test_links_are_told_in_words_too(dog, links):
    figure = figures.heatmap(dog, links=links)
    assert figure.layout.meta["description"] == figures.describe(dog) + (
        " Sure links, in solid outline: ‘chien’ with ‘dog’, ‘noir’ with ‘black’."
        " Possible links, in dashed outline: ‘noir’ with ‘dog’."
    )
    assert sentence(figure, 0, 0) == "‘chien’ (1) looks at ‘dog’ (1): 0.80, a sure link"
    assert sentence(figure, 1, 0) == "‘noir’ (2) looks at ‘dog’ (1): 0.05, a possible link"
    assert sentence(figure, 0, 1) == "‘chien’ (1) looks at ‘black’ (2): 0.10"


def test_the_step_stays_the_last_outline_over_the_links(dog, links):
    shapes = figures.heatmap(dog, step=1, links=links).layout.shapes
    assert [shape.type for shape in shapes] == ["path"] * 4 + ["rect"]


def test_no_links_are_said_and_draw_nothing(dog):
    figure = figures.heatmap(dog, links=Cells(frozenset(), frozenset()))
    assert not figure.layout.shapes and figure.layout.meta["description"].endswith(" No links.")


@pytest.mark.parametrize("cell", [(3, 0), (0, 3), (-1, 0)])
def test_a_link_outside_the_map_is_refused(dog, cell):
    with pytest.raises(ValueError) as error:
        figures.heatmap(dog, links=Cells(frozenset(), frozenset({cell})))
    assert str(error.value) == f"links must be cells of the map, 3 by 3; got {cell}"
