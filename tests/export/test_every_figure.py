"""Every figure of the library for slides and papers: its cells as rectangles, its texts as text, its own colours."""

import xml.etree.ElementTree as ElementTree

import every_figure
import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.patches import Rectangle

from attnviz import figures
from attnviz.export import printed
from attnviz.export.printed import letters, marks
from attnviz.figures.chart import Chart
from attnviz.figures.theme import CLEAR, DARK

SVG = "{http://www.w3.org/2000/svg}"
COLUMN = printed.Style("column")
DRAWN = {function.__name__: chart for function, chart in every_figure.all_charts().items()}


def texts_of(tree: ElementTree.Element) -> set[str]:
    return {"".join(node.itertext()).replace("\u00a0", " ").strip() for node in tree.iter(f"{SVG}text")}


def wanted(chart: Chart) -> set[str]:
    """The texts of a layout and of its data, a line each, without markup."""
    layout = chart.to_plotly_json()["layout"]
    axes = [layout[name] for name in layout if name[1:5] == "axis" and layout[name].get("visible", True)]
    marked = [text for axis in axes if axis.get("showticklabels", True) for text in axis.get("ticktext", ())]
    marked += [(axis.get("title") or {}).get("text", "") for axis in axes]
    marked += [note["text"] for note in layout.get("annotations", ()) if "━" not in note["text"]]
    for trace in chart.data:
        kind = trace.type
        marked += trace.text if kind == "bar" and trace.text else []
        marked += trace.colorbar.ticktext or [] if kind == "heatmap" else []
        marked += (
            [text for column in (trace.header.values, *trace.cells.values) for text in column]
            if kind == "table"
            else []
        )
        marked += [trace.name] if layout.get("showlegend") and trace.showlegend is not False else []
    return {line.strip() for text in marked if text for line in letters.plain(text).split("\n")} - {""}


def rectangles(chart: Chart) -> int:
    """Cells of maps and tables, and bars."""
    count = 0
    for trace in chart.data:
        if trace.type == "heatmap" and trace.colorscale[0][1] != CLEAR:
            count += int(np.isfinite(np.array(trace.z, float)).sum())
        elif trace.type == "bar":
            count += sum(value is not None for value in (trace.x if trace.orientation == "h" else trace.y))
        elif trace.type == "table":
            count += sum(map(len, trace.cells["values"])) + len(trace.header["values"])
    return count


def test_every_function_that_makes_a_figure_is_here():
    assert set(every_figure.all_charts()) == every_figure.functions()


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_is_rectangles_and_text_and_no_bitmap(name):
    chart = DRAWN[name]
    sheet = printed.of_figure(chart, ["The title", "The sentence $x$"], COLUMN)
    tree = ElementTree.fromstring(sheet.save("svg"))
    assert not list(tree.iter(f"{SVG}image"))
    assert {"The title", "The sentence $x$"} | wanted(chart) <= texts_of(tree)
    groups = [group for group in tree.iter(f"{SVG}g") if group.get("id", "").startswith("PolyCollection")]
    cells = sum(len(list(group.iter(f"{SVG}{tag}"))) for group in groups for tag in ("path", "use"))
    bars = [patch for axes in sheet.figure.axes for patch in axes.patches if isinstance(patch, Rectangle)]
    assert cells + len(bars) == rectangles(chart)


def test_without_lines_above_it_a_figure_says_what_it_is():
    plain, titled = (figures.reliability([(0.1, 0.2, 5)], title) for title in (None, "A <b>"))
    for chart, line in ((plain, "Share of poor translations by their estimated risk: 20% at a"), (titled, "A <b>")):
        tree = ElementTree.fromstring(printed.of_figure(chart, style=COLUMN).save("svg"))
        assert any(text.startswith(line[:40]) for text in texts_of(tree))


def test_a_dark_figure_is_dark_whatever_the_style():
    figure = printed.of_figure(figures.reliability([(0.1, 0.2, 5)], dark=True), style=printed.Style("slide")).figure
    assert to_hex(figure.get_facecolor()) == DARK.page
    assert figure.get_figwidth() / figure.get_figheight() == pytest.approx(16 / 9, abs=0.01)


def test_too_many_rectangles_are_one_image(monkeypatch):
    for module in ("traces", "marks"):
        monkeypatch.setattr(f"attnviz.export.printed.{module}.MOST_RECTANGLES", 3)
    for name in ("heatmap", "overview"):
        tree = ElementTree.fromstring(printed.of_figure(DRAWN[name], style=COLUMN).save("svg"))
        assert list(tree.iter(f"{SVG}image"))


@pytest.mark.parametrize("size", ["column", "slide"])
def test_nothing_leaves_the_sheet(size):
    for name in ("token_lines", "score_parts"):
        figure = printed.of_figure(DRAWN[name], ["x"], printed.Style(size)).figure
        for axes in figure.axes:
            box = axes.get_tightbbox()
            if box is not None:
                assert box.x0 >= -1 and box.y0 >= -1 and box.x1 <= figure.bbox.x1 + 1 and box.y1 <= figure.bbox.y1 + 1


def test_markup_becomes_runs_of_one_look():
    [first], [second, third] = letters.runs('&lt;b&gt; &#36;<br><i>a</i><span style="color:#0072b2"><b>━</b></span>')
    assert (first.text, second.text, second.italic) == ("<b> $", "a", True)
    assert (third.text, third.bold, third.color) == ("━", True, "#0072b2")
    assert letters.plain("<b>a</b><br>b") == "a\nb"


def test_a_path_is_read_with_each_of_its_commands():
    drawn = marks.path("M0,1L2,3H4V5.5Z M1 2L-3 4e0")
    assert drawn.vertices.tolist() == [[0, 1], [2, 3], [4, 3], [4, 5.5], [0, 1], [1, 2], [-3, 4]]
    assert drawn.codes.tolist() == [1, 2, 2, 2, 79, 1, 2]
