"""Bars, differences and statistics for slides and papers: what they name, and what they draw."""

import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import synthetic
from matplotlib.backends.backend_agg import FigureCanvasAgg

from attnviz import select, stats
from attnviz.export import printed

TRACE = synthetic.trace("The $5 dog <eos>", "Le chien & noir", kinds=("cross", "decoder"), heads=2, layers=2)
GRID = select.select(TRACE)
SVG = "{http://www.w3.org/2000/svg}"


def texts(svg: bytes) -> list[str]:
    return ["".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


SECOND = synthetic.trace("The $5 dog <eos>", "Le chien & noir", seed=7, model="second", heads=2, layers=2)
DIFFERENCE = GRID.weights - select.select(SECOND).weights
PAPER = printed.Style()


def statistics(**traces):
    frames = {name: stats.of_grid(select.select(trace)) for name, trace in traces.items()}
    return printed.of_statistics(traces, frames, 5, PAPER)


def test_bars_say_which_step_of_which_sentence():
    words = texts(printed.of_step(TRACE, GRID, 1, PAPER).save("svg"))
    lines = [
        "synthetic (synthetic): cross-attention, layer 2 of 2, mean of 2 heads",
        "Step 2 of 5: ‘chien’",
        "The $5 dog <eos>",
        "→ Le chien & noir",
    ]
    assert [text for text in words if text in lines] == lines
    assert {"source (attended to)", "attention weight", "$", "dog"} <= set(words)
    written = [f"{weight:.2f}" for weight in GRID.weights[1] if weight >= 0.1]
    assert written and all(weight in words for weight in written)


def test_the_bars_are_as_high_as_the_weights():
    axes = printed.of_step(TRACE, GRID, 1, PAPER).figure.axes[1]
    assert [bar.get_height() for bar in axes.patches] == pytest.approx(GRID.weights[1].tolist(), abs=1e-4)
    assert axes.get_ylim()[0] == 0


@pytest.mark.parametrize("size", printed.SIZES)
@pytest.mark.parametrize("names", [("bahdanau", "luong-local"), ("mmmmmmm WWWWWWW", "MMMMM GGGGG mmmmm")])
def test_no_line_above_a_picture_leaves_the_sheet(size, names):
    pair = [synthetic.trace(seed=1, model=f"en-fr/{name}", mechanism=name) for name in names]
    grid = select.select(pair[0])
    figure = printed.of_difference(*pair, np.zeros(grid.weights.shape), grid, names, printed.Style(size)).figure
    drawn = FigureCanvasAgg(figure).get_renderer()
    assert len(figure.texts) > 3
    for line in figure.texts:
        assert line.get_window_extent(drawn).x1 <= figure.bbox.x1, line.get_text()


@pytest.mark.parametrize("size", printed.SIZES)
def test_the_names_of_the_lines_are_on_the_sheet(size):
    names = ["Luong general", "Luong concat", "Scaled dot", "Transformer"]
    frame = stats.of_grid(GRID)
    drawn = printed.of_statistics(
        dict.fromkeys(names, TRACE), dict.fromkeys(names, frame), 5, printed.Style(size)
    ).figure
    legend = drawn.axes[0].get_legend().get_window_extent(FigureCanvasAgg(drawn).get_renderer())
    assert legend.x0 >= 0 and legend.x1 <= drawn.bbox.x1 and legend.y0 >= 0


@pytest.mark.parametrize("size", printed.SIZES)
def test_a_marker_at_the_end_of_an_axis_is_drawn_whole(size):
    figure = printed.of_statistics({"a": TRACE}, {"a": stats.of_grid(GRID)}, 5, printed.Style(size)).figure
    marked = [[line for line in axes.lines if line.get_marker() != "None"] for axes in figure.axes[1:]]
    assert [len(lines) for lines in marked] == [1, 1, 1] and not any(line.get_clip_on() for [line] in marked)


def test_a_difference_names_both_models_and_its_scale():
    sheet = printed.of_difference(TRACE, SECOND, DIFFERENCE, GRID, ("A", "B"), PAPER)
    words = texts(sheet.save("svg"))
    title = "synthetic (synthetic) minus synthetic (second): cross-attention, layer 2 of 2, mean of 2 heads"
    assert title in " ".join(words)  # in two lines
    assert {"The $5 dog <eos>", "→ Le chien & noir"} <= set(words)
    assert {"◂ B (–)", "A ▸", "attention weight of A minus that of B", "target ↓"} <= set(words)
    drawn = sheet.figure.axes[1].collections[0].get_array().tolist()
    assert drawn == pytest.approx(DIFFERENCE.ravel().tolist(), abs=1e-4)


def test_statistics_draw_the_frames():
    figure = statistics(First=TRACE, Second=SECOND).figure
    frame = stats.of_grid(GRID)
    for axes, name in zip(figure.axes[1:], ("entropy_nats", "max_weight", "effective_entropy"), strict=True):
        first, second = axes.lines[:2]
        assert first.get_ydata().tolist() == pytest.approx(frame[name].tolist(), abs=1e-3)
        assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "2", "3", "4", "5"]
        assert first.get_linestyle() != second.get_linestyle() and first.get_marker() != second.get_marker()
    assert [text.get_text() for text in figure.axes[0].get_legend().get_texts()] == ["First", "Second"]


def test_statistics_name_the_sentence_once_and_each_translation_where_they_differ():
    other = synthetic.trace("The $5 dog <eos>", "Un chien", model="second")
    same, apart = (texts(statistics(A=TRACE, B=trace).save("svg")) for trace in (SECOND, other))
    title, sentence = "Attention by step (synthetic, second)", "The $5 dog <eos>"
    start = same.index(title)
    assert same[start : start + 3] == [title, sentence, "→ Le chien & noir"]
    start = apart.index(title)
    assert apart[start : start + 4] == [title, sentence, "A: → Le chien & noir", "B: → Un chien"]


def test_no_picture_is_a_bitmap_and_each_is_the_same_bytes_again():
    for make in (
        lambda: printed.of_step(TRACE, GRID, 0, PAPER),
        lambda: printed.of_difference(TRACE, SECOND, DIFFERENCE, GRID, ("A", "B"), PAPER),
        lambda: statistics(A=TRACE, B=SECOND),
    ):
        drawn = make()
        svg = drawn.save("svg")
        assert not list(ElementTree.fromstring(svg).iter(f"{SVG}image")) and svg == make().save("svg") == drawn.save(
            "svg"
        )
        assert b"/Subtype /Image" not in drawn.save("pdf")
