"""What stands above a saved picture: what it shows, the sentence, the translation; nothing is cut, tokens are text."""

import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from attnviz import alignment, figures, select, stats
from attnviz.export import heading
from attnviz.figures.labels import columns

TRACE = synthetic.trace("The <b>black</b> dog", "Le chien $noir$", mechanism="bahdanau", model="en-fr/bahdanau")
GRID = select.select(TRACE)


def test_a_map_is_named_with_mechanism_model_sentence_and_translation():
    assert heading.of_map(TRACE, GRID) == [
        "Bahdanau · additive (en-fr/bahdanau): cross-attention",
        "The <b>black</b> dog",
        "→ Le chien $noir$",
    ]


def test_of_several_layers_and_heads_it_says_which():
    trace = synthetic.trace(kinds=("cross", "encoder"), layers=3, heads=4)
    lines = heading.of_map(trace, select.select(trace, "encoder", 1, 2))
    assert lines[0] == "synthetic (synthetic): self-attention of the encoder, layer 2 of 3, head 3 of 4"


def test_marks_that_a_picture_has_are_explained_and_no_others():
    """Who sees the saved picture alone does not see the page that explains them."""
    windows = [(1.0, 2.0)] * len(GRID.queries)
    linked = alignment.Cells(frozenset({(0, 0)}), frozenset({(0, 0)}))
    plain = heading.of_map(TRACE, GRID)
    assert heading.of_map(TRACE, GRID, linked, windows) == [*plain, heading.MARKS["links"], heading.MARKS["windows"]]
    assert heading.of_step(TRACE, GRID, 0, windows[0])[-1] == heading.MARKS["window"]
    assert not set(heading.of_step(TRACE, GRID, 0)) & set(heading.MARKS.values())
    masked = synthetic.trace(kinds=("decoder",))
    grid = select.select(masked, "decoder")
    for lines in (heading.of_map(masked, grid), heading.of_heads(masked, "decoder")):
        assert lines[-1] == heading.MARKS["hidden"]
    assert heading.MARKS["hidden"] not in [*heading.of_step(masked, grid, 0), *heading.of_heads(TRACE, "cross")]
    levels = {"bahdanau": {"untrained": {"entropy_nats": 1.0}}}
    assert heading.of_statistics({"bahdanau": TRACE}, references=levels)[-1].startswith(
        "At the right, in the order of the legend: triangle"
    )
    assert heading.of_statistics({"bahdanau": TRACE}) == heading.of_statistics({"bahdanau": TRACE}, references={})


def test_of_a_text_that_was_only_read_there_is_no_translation():
    trace = synthetic.trace("Nice", target="", kinds=("encoder",))
    assert heading.texts(trace)[0] == "Nice" and len(heading.texts(trace)) == (2 if trace.target else 1)


@given(st.text(alphabet="ab 犬は。", max_size=60), st.integers(2, 20))
def test_lines_fit_and_hold_all_letters(text, width):
    lines = heading.wrapped(text, width)
    assert all(columns(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())


def test_lines_end_between_words_and_between_japanese_letters():
    assert heading.wrapped("one two three", 8) == ["one two", "three"]
    assert heading.wrapped("犬は走る", 4) == ["犬は", "走る"]
    assert heading.wrapped("", 5) == [""]


def test_a_bold_title_is_wrapped_before_other_lines():
    line = "twelve chars twelve chars"
    assert heading.folded([line, line], 25) == [["twelve chars twelve", "chars"], [line]]


def test_capitals_are_wrapped_before_small_letters():
    assert heading.folded(["", "a line", "A LINE"], 6) == [[""], ["a line"], ["A", "LINE"]]


@pytest.mark.parametrize(
    ("chart", "names"),
    [
        (figures.heatmap(GRID, scale=False), {}),
        (figures.step_bars(GRID, 1), {"xaxis": "source (attended to)", "yaxis": "attention weight"}),
        (
            figures.by_step({"bahdanau": stats.of_grid(GRID)}, 6),
            {"xaxis": "step", "xaxis2": "step", "xaxis3": "step"},
        ),
    ],
    ids=["map", "bars", "statistics"],
)
def test_a_figure_grows_by_its_heading_and_its_axes_get_names(chart, names):
    height, top, legend = chart.layout.height, chart.layout.margin.t, chart.layout.legend.y
    lines = ["A & B", "<i>x</i>"]
    heading.above(chart, lines)
    assert chart.layout.title.text == "<b>A &amp; B</b><br>&lt;i&gt;x&lt;/i&gt;"
    rise = chart.layout.margin.t - top
    assert rise == 10 + 2 * 18 and chart.layout.height == height + rise + (22 if "xaxis" in names else 0)
    assert {axis: chart.layout[axis].title.text for axis in names} == names
    if legend is not None:  # it stands below the heading
        assert (1 - chart.layout.legend.y) * chart.layout.height == pytest.approx(rise)
    figures.Chart(chart.to_plotly_json())  # plotly accepts every property


def test_the_last_line_says_what_colours_stand_for_where_there_is_a_scale():
    bare, scaled = figures.heatmap(GRID, scale=False), figures.heatmap(GRID)
    subtracted = figures.difference(GRID.weights - 0.1, GRID, names=("<b>A</b>", "B"))
    last_lines = {
        name: heading.changes(chart, ["A map"])["title"]["text"].split("<br>")[1:]
        for name, chart in (
            ("bare", bare),
            ("scaled", scaled),
            ("subtracted", subtracted),
        )
    }
    assert last_lines == {
        "bare": [],
        "scaled": ["Colour: attention weight."],
        "subtracted": ["Colour: attention weight of &lt;b&gt;A&lt;/b&gt; minus that of B."],
    }
