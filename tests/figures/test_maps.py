"""One map as a figure, as data: what it says, never how many pixels."""

import math
from dataclasses import replace

import grids
import numpy as np
import pytest
import synthetic
from grids import EOS, grid, words

from attnviz import figures, reading
from attnviz.alignment import Cells
from attnviz.export import heading
from attnviz.figures import wording
from attnviz.trace import Token


@pytest.fixture
def dog():
    return grids.dog()


def sentence(figure, query, key):
    """What the pointer reads over a cell."""
    return figure.data[0].hovertext[query][key]


# --- heatmap


def test_heatmap_holds_the_weights_on_a_fixed_scale(dog):
    cells = figures.heatmap(dog).data[0]
    assert np.allclose(cells.z, dog.weights, atol=5e-5) and cells.z.dtype == np.float32
    assert (cells.zmin, cells.zmax) == (0, 1)


def test_heatmap_puts_the_source_on_top_and_the_target_downwards(dog):
    layout = figures.heatmap(dog).layout
    assert layout.xaxis.side == "top" and layout.xaxis.ticktext == ("dog", "black", "<i>&lt;eos&gt;</i>")
    assert layout.yaxis.range[0] > layout.yaxis.range[1] and layout.yaxis.ticktext[:2] == ("chien", "noir")


def test_repeated_tokens_stay_apart():
    repeated = grid(words("le", "le"), words("the", "the", "the"))
    figure = figures.heatmap(repeated)
    assert figure.layout.xaxis.tickvals == (0, 1, 2, 3) and figure.layout.xaxis.ticktext[:3] == ("the",) * 3
    assert figure.data[0].z.shape == (3, 4) and figure.data[0].x is None


def test_hover_is_a_sentence(dog):
    assert sentence(figures.heatmap(dog), 1, 1) == "‘noir’ (2) looks at ‘black’ (2): 0.83"


def test_a_token_has_the_same_marks_in_the_map_and_in_each_sentence_about_it():
    pieces = (Token("run", 0, 3, word=0), Token("ning", 3, 7, word=0), Token("zzq", 8, 11, word=1, unknown=True))
    drawn = grid(pieces, pieces, [[0.8, 0.1, 0.1], [0.05, 0.9, 0.05], [0.1, 0.1, 0.8]])
    marked, frames = ("run", "·ning", "zzq⁇"), {"a": grids.frame([token.text for token in pieces])}
    charts = [
        figures.heatmap(drawn),
        figures.step_bars(drawn, 1),
        figures.token_lines([drawn]),
        figures.difference(np.eye(3), drawn, ("a", "b")),
        figures.by_step(frames, 3, queries={"a": pieces}),
    ]
    texts = [str(chart.to_dict()) for chart in charts]
    texts += [figures.describe(drawn, 1), heading.step_names(drawn)[1], reading.strongest(drawn).sentence]
    for text in texts:
        assert "‘·ning’" in text and "‘ning’" not in text and "‘zzq’" not in text
    assert charts[0].layout.xaxis.ticktext == charts[4].layout.xaxis.ticktext == marked
    with pytest.raises(ValueError, match="^queries of a must be 3 tokens; got 2$"):
        figures.by_step(frames, 3, queries={"a": pieces[1:]})


def test_hover_escapes_and_names_tiny_weights():
    tiny = grid(words("<b>"), words("</script>"), [[0.999, 0.001], [1, 0]])
    assert sentence(figures.heatmap(tiny), 0, 0) == "‘&lt;b&gt;’ (1) looks at ‘&lt;/script&gt;’ (1): 1.00"
    assert sentence(figures.heatmap(tiny), 0, 1) == "‘&lt;b&gt;’ (1) looks at &lt;eos&gt; (2): under 0.01"


def test_what_the_pointer_reads_in_short_is_the_same(dog):
    visible, weights = np.tri(3, dtype=bool), np.array([[1, 0, 0], [np.nan] * 3, [0.2, 0.201, 0.599]])
    masked = grid(words("<b>", "b"), words("c", "d"), weights, "decoder", visible, [0, 1, 0])
    links = Cells(frozenset({(0, 0)}), frozenset({(0, 0), (1, 1)}))
    for shown in (dog, masked):
        short = figures.heatmap(shown, links=links, written=False)
        cells = short.layout.meta["cells"]
        assert short.data[0].hovertext is None and len(cells["phrases"]) <= short.data[0].z.size
        texts = figures.cell_texts(shown, links)
        assert wording.CellTexts(**cells).sentences == texts.sentences
        for figure in (figures.heatmap(shown, links=links), figures.heatmap(shown, links=links, texts=texts)):
            assert [list(row) for row in figure.data[0].hovertext] == texts.sentences


def test_names_of_columns_are_left_out_only_where_they_would_meet():
    tokens = words(*"abcdefghijklmnopqrstu")
    narrow, wide = (
        len(figures.heatmap(grid(tokens, tokens), **room).layout.xaxis.tickvals) for room in ({}, {"room": 440})
    )
    assert narrow < wide == 22


def test_pieces_of_one_character_are_numbered():
    parts = [Token("م", 0, 1, word=0), Token("م", 0, 1, word=0), Token("ر", 1, 2, word=0), Token("م", 2, 3, word=1)]
    text = "\u2068م\u2069"
    assert figures.heatmap(grid(parts, parts)).layout.xaxis.ticktext == (
        f"{text}₁",
        f"·{text}₂",
        "·\u2068ر\u2069",
        text,
    )


def test_a_very_long_map_says_where_the_pointer_is_in_numbers():
    tokens = words(*"abcde" * 90)  # 451: a sentence a cell would weigh 12 MB
    links = Cells(frozenset({(3, 4)}), frozenset({(3, 4)}))
    figure = figures.heatmap(grid(tokens, tokens), links=links)
    assert figure.data[0].hovertext is None and "query %{y:d}, key %{x:d}" in figure.data[0].hovertemplate
    assert len(figure.to_json()) < 1_500_000 and len(figure.layout.shapes) == 2
    assert (
        figures.heatmap(grid(tokens[:440], tokens[:440])).data[0].hovertext is not None
    )  # longer than any translation here


def test_masked_cells_and_blank_rows_are_gaps():
    weights = np.array([[1, 0, 0], [np.nan] * 3, [0.2, 0.2, 0.6]])
    visible = np.tri(3, dtype=bool)
    figure = figures.heatmap(grid(words("a", "b"), words("c", "d"), weights, "decoder", visible, [0, 1, 0]))
    cells = figure.data[0]
    assert cells.hoverongaps is True
    assert np.isnan(cells.z[0, 1:]).all() and np.isnan(cells.z[1]).all() and not np.isnan(cells.z[2]).any()
    assert sentence(figure, 0, 1) == "‘a’ (1) cannot see ‘d’ (2)"
    assert sentence(figure, 1, 0) == "‘b’ (2): all its weight is on special tokens, which are hidden"


def test_the_chosen_step_is_outlined_by_one_shape_and_bold(dog):
    layout = figures.heatmap(dog, step=1).layout
    (outline,) = layout.shapes
    assert (outline.y0, outline.y1, outline.x0, outline.x1) == (0.5, 1.5, -0.5, 2.5)
    assert layout.yaxis.ticktext[1] == "<b>noir</b>" and not figures.heatmap(dog).layout.shapes


@pytest.mark.parametrize("step", [-1, 3])
def test_a_step_outside_is_refused(dog, step):
    message = f"step must be a row of the map, 0 to 2; got {step}"
    for draw in (figures.heatmap, figures.step_bars):
        with pytest.raises(ValueError) as error:
            draw(dog, step)
        assert str(error.value) == message


def test_long_axes_lose_labels_but_never_cells():
    long = grid(words(*"abcdefghij" * 9), words(*"klmnopqrst" * 9))
    figure = figures.heatmap(long, step=50)
    assert figure.data[0].z.shape == (91, 91)
    assert len(figure.layout.xaxis.tickvals) <= 22 and len(figure.layout.xaxis.tickvals) == len(
        figure.layout.xaxis.ticktext
    )
    assert 50 in figure.layout.yaxis.tickvals


@pytest.mark.parametrize(
    "kind, sides, note",
    [
        ("cross", None, "source →<br>target ↓"),
        ("encoder", None, "source →<br>source ↓"),
        ("decoder", None, "input →<br>target ↓"),
        ("decoder", ("input", "input"), "input →<br>input ↓"),
    ],
)
def test_the_corner_names_both_axes(dog, kind, sides, note):
    figure = figures.heatmap(replace(dog, kind=kind, sides=sides))
    below, beside = note.split(" →<br>")
    assert figure.layout.annotations[0].text == note
    assert figure.layout.meta["description"].startswith(f"3 {beside.removesuffix(' ↓')} tokens by 3 {below} tokens")


@pytest.mark.parametrize("rows", [1, 5, 20, 21, 40, 400])
@pytest.mark.parametrize("title", [None, "Title"])
@pytest.mark.parametrize("scale", [True, False])
def test_height_leaves_each_row_its_room(rows, title, scale):
    layout = figures.heatmap(grid(words(*"q" * rows)[:rows], words("k")), title=title, scale=scale).layout
    cells = layout.height - layout.margin.t - layout.margin.b
    assert cells >= min(24 * rows, 480) and layout.height < 1100
    assert cells / len(layout.yaxis.tickvals) > 1.25 * layout.yaxis.tickfont.size  # no two labels meet


@pytest.mark.parametrize("draw", [figures.heatmap, lambda grid: figures.step_bars(grid, 0)])
@pytest.mark.parametrize("word", ["a", "chien", "anticonstitutionnel", "日本語日本語"])
def test_labels_of_keys_never_meet_in_a_column_of_310_px(draw, word):
    for count in range(2, 80):
        layout = draw(grid([Token(word, 0, 1)], words(*[word] * (count - 1)))).layout
        axis, cells = layout.xaxis, 310 - layout.margin.l - layout.margin.r
        apart = min(np.diff(axis.tickvals)) * cells / count  # px along the axis
        assert (
            apart * math.sin(math.radians(-axis.tickangle)) >= 1.25 * axis.tickfont.size
        )  # px across the slanted lines
        assert len(axis.tickvals) == count if count <= 9 else len(axis.tickvals) >= 7


def test_one_token_and_no_token():
    assert figures.heatmap(grid([EOS], [EOS], [[1]])).data[0].z.shape == (1, 1)
    nothing = grid([], [], np.zeros((0, 0)))
    assert figures.heatmap(nothing).layout.meta["description"] == "0 target tokens by 0 source tokens."


def test_the_heatmap_is_light(dog):
    layout = figures.heatmap(dog, step=0).layout.to_plotly_json()
    assert "template" not in layout or "layout" not in layout["template"]
    twenty = grid(words(*"q" * 19), words(*"k" * 19))
    assert len(figures.heatmap(twenty, step=3).to_json()) < 40_000


@pytest.fixture
def links():
    return Cells(frozenset({(0, 0), (1, 1)}), frozenset({(0, 0), (1, 1), (1, 0)}))


# --- all labels, for a map that is shown large


def test_every_label_in_full_is_there_where_axes_cut_or_leave_out_some():
    tokens = words(*[f"word{i}" for i in range(45)])
    wide = grid(tokens[:3], tokens, np.full((3, 46), 1 / 46))
    meta = figures.heatmap(wide).layout.meta
    assert len(figures.heatmap(wide).layout.xaxis.tickvals) < 46 == len(meta["ticks"]["x"])
    assert meta["ticks"]["y"] == ["word0", "word1", "word2"]
    assert figures.step_bars(wide, 0).layout.meta["ticks"] == {"x": meta["ticks"]["x"]}
    cut = grid(words("a")[:1], words("Donaudampfschiff")[:1], np.ones((1, 1)))
    assert figures.heatmap(cut).layout.meta["ticks"]["x"] == ["Donaudampfschiff"]


def test_where_all_labels_are_there_none_is_sent_twice(dog):
    assert figures.heatmap(dog).layout.meta["labels"] and "ticks" not in figures.heatmap(dog).layout.meta


def test_a_trace_is_told_how_it_becomes_a_map():
    with pytest.raises(ValueError, match=r"^grid must be a Grid, as select\.select\(trace\) makes it; got Trace"):
        figures.heatmap(synthetic.trace())
