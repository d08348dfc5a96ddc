"""Figures as data: what they say, never how many pixels."""

import html
import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

from attnviz import figures
from attnviz.figures import labels, theme
from attnviz.select import Grid
from attnviz.trace import Token

EOS = Token("<eos>", 0, 0, special=True)


def words(*texts):
    return (*(Token(text, 0, len(text), word=i) for i, text in enumerate(texts)), EOS)


def grid(queries, keys, weights=None, kind="cross", visible=None, removed=None, mechanism="bahdanau"):
    shape = (len(queries), len(keys))
    if weights is None:
        weights = np.random.default_rng(0).dirichlet(np.full(shape[1], 0.3), shape[0])
    visible = np.ones(shape, bool) if visible is None else visible
    removed = np.zeros(shape[0]) if removed is None else removed
    return Grid("en-fr/x", mechanism, kind, 0, None, tuple(queries), tuple(keys), np.asarray(weights), removed, visible)


@pytest.fixture
def dog():
    weights = [[0.8, 0.1, 0.1], [0.05, 0.83, 0.12], [0.2, 0.2, 0.6]]
    return grid(words("chien", "noir"), words("dog", "black"), weights)


def frame(tokens, entropy=1.0):
    n = len(tokens)
    values = {"entropy_nats": entropy, "max_weight": 0.5, "effective_entropy": 2.7}
    return pd.DataFrame({"step": range(n), "token": tokens, **values})


def sentence(figure, query, key):
    """What the pointer reads over a cell."""
    return figure.data[0].hovertext[query][key]


# --- labels


@pytest.mark.parametrize("text, shown", [
    (" ", "␣"), ("\t\n", "⇥⏎"), ("\u3000", "␣"), ("", "∅"), ("a\nb", "a b"), ("\x07\u202e\ud800", "���"),
    ("שלום", "\u2068שלום\u2069"), ("👩\u200d🚀", "👩\u200d🚀"),
])  # fmt: skip
def test_no_character_stays_invisible(text, shown):
    assert labels.plain(text) == shown


@pytest.mark.parametrize("text", ["<eos>", "<b>x</b>", "</script>", "&amp;", '"', "'", "<a href='javascript:x'>"])
def test_labels_are_escaped_and_nothing_is_lost(text):
    label = labels.ticks([Token(text, 0, 0)], limit=40)[0]
    assert "<" not in label and html.unescape(label) == text


def test_a_pair_of_dollars_is_no_formula():
    assert "$" not in labels.ticks([Token("$x$", 0, 3)])[0]


def test_marks_of_pieces_unknown_and_special_tokens():
    tokens = [Token("run", 0, 3, word=0), Token("ning", 3, 7, word=0), Token("zzq", 8, 11, word=1, unknown=True), EOS, EOS]
    assert labels.ticks(tokens) == ["run", "·ning", "zzq⁇", "<i>&lt;eos&gt;</i>", "<i>&lt;eos&gt;</i>"]


@pytest.mark.parametrize("text, limit, shown", [
    ("anticonstitutionnellement", 12, "anticonstit…"), ("exactlytwelv", 12, "exactlytwelv"), ("日本語日本語", 6, "日本…"),
    ("שלוםשלום", 4, "\u2068שלו…\u2069"), ("e\u0301e\u0301e\u0301", 2, "e\u0301…"),
])  # fmt: skip
def test_long_labels_are_cut_by_width(text, limit, shown):
    assert labels.ticks([Token(text, 0, 1)], limit) == [shown]


def test_thinning_keeps_the_chosen_position_and_distance():
    assert labels.thin(5, 10) == [0, 1, 2, 3, 4]
    assert labels.thin(10, 4) == [0, 3, 6, 9]
    assert labels.thin(10, 4, keep=4) == [0, 4, 9]
    assert labels.thin(0, 4) == []


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
    assert sentence(figures.heatmap(dog), 1, 1) == "‘noir’ looks at ‘black’: 0.83"


def test_hover_escapes_and_names_tiny_weights():
    tiny = grid(words("<b>"), words("</script>"), [[0.999, 0.001], [1, 0]])
    assert sentence(figures.heatmap(tiny), 0, 0) == "‘&lt;b&gt;’ looks at ‘&lt;/script&gt;’: 1.00"
    assert sentence(figures.heatmap(tiny), 0, 1) == "‘&lt;b&gt;’ looks at &lt;eos&gt;: under 0.01"


def test_masked_cells_and_blank_rows_are_gaps():
    weights = np.array([[1, 0, 0], [np.nan] * 3, [0.2, 0.2, 0.6]])
    visible = np.tri(3, dtype=bool)
    figure = figures.heatmap(grid(words("a", "b"), words("c", "d"), weights, "decoder", visible, [0, 1, 0]))
    cells = figure.data[0]
    assert cells.hoverongaps is True
    assert np.isnan(cells.z[0, 1:]).all() and np.isnan(cells.z[1]).all() and not np.isnan(cells.z[2]).any()
    assert sentence(figure, 0, 1) == "‘a’ cannot see ‘d’"
    assert sentence(figure, 1, 0) == "‘b’: all its weight is on special tokens, which are hidden"


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
    assert len(figure.layout.xaxis.tickvals) <= 22 and len(figure.layout.xaxis.tickvals) == len(figure.layout.xaxis.ticktext)
    assert 50 in figure.layout.yaxis.tickvals


@pytest.mark.parametrize("kind, note", [
    ("cross", "source →<br>target ↓"), ("encoder", "source →<br>source ↓"), ("decoder", "input →<br>target ↓"),
])  # fmt: skip
def test_the_corner_names_both_axes(dog, kind, note):
    assert figures.heatmap(replace(dog, kind=kind)).layout.annotations[0].text == note


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
        assert apart * math.sin(math.radians(-axis.tickangle)) >= 1.25 * axis.tickfont.size  # px across the slanted lines
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


# --- step bars


def test_bars_stand_under_the_columns_of_the_heatmap(dog):
    heatmap, bars = figures.heatmap(dog, step=1), figures.step_bars(dog, 1)
    assert np.allclose(bars.data[0].y, dog.weights[1], atol=5e-5) and bars.layout.yaxis.range == (0, 1)
    assert bars.layout.xaxis.range == heatmap.layout.xaxis.range and bars.layout.xaxis.ticktext == heatmap.layout.xaxis.ticktext
    assert (bars.layout.margin.l, bars.layout.margin.r) == (heatmap.layout.margin.l, heatmap.layout.margin.r)
    assert bars.layout.xaxis.tickangle == heatmap.layout.xaxis.tickangle and bars.data[0].text == ("", "0.83", "")


def test_bars_of_a_blank_step_say_why():
    blank = grid(words("a"), words("c"), [[np.nan, np.nan], [0.5, 0.5]], removed=[1, 0])
    figure = figures.step_bars(blank, 0)
    assert "special tokens" in figure.layout.annotations[0].text and np.isnan(figure.data[0].y).all()


# --- by step


def test_by_step_has_a_line_a_mechanism_in_each_panel():
    frames = {"bahdanau": frame(["le", "chien"], 1.5), "luong-general": frame(["un", "chien"])}
    figure = figures.by_step(frames, keys=4)
    assert [(line.name, line.yaxis) for line in figure.data] == [
        (name, axis) for axis in ("y", "y2", "y3") for name in frames
    ]
    assert figure.data[0].y == (1.5, 1.5) and figure.data[0].x == (0, 1)
    assert [line.showlegend for line in figure.data] == [True, True, False, False, False, False]
    assert figure.data[0].text == ("step 1, ‘le’", "step 2, ‘chien’")


def test_by_step_draws_uniform_attention_as_reference():
    figure = figures.by_step({"bahdanau": frame(["a"])}, keys=4)
    assert [shape.y0 for shape in figure.layout.shapes] == [math.log(4), 0.25, 4.0]
    assert all(shape.line.dash == "dot" for shape in figure.layout.shapes)
    axes = (figure.layout.yaxis, figure.layout.yaxis2, figure.layout.yaxis3)
    assert all(axis.range[1] > shape.y0 for axis, shape in zip(axes, figure.layout.shapes, strict=True))


def test_tokens_stand_under_the_axis_only_when_shared():
    same = figures.by_step({"bahdanau": frame(["<s>", "b"]), "luong": frame(["<s>", "b"])}, keys=2)
    assert same.layout.xaxis.ticktext == ("&lt;s&gt;", "b")
    differ = figures.by_step({"bahdanau": frame(["a", "b"]), "luong": frame(["a", "c"])}, keys=2)
    assert differ.layout.xaxis.ticktext == ("1", "2")


def test_by_step_marks_the_step():
    figure = figures.by_step({"bahdanau": frame(["a", "b"])}, keys=3, step=1, title="x")
    bands = [shape for shape in figure.layout.shapes if shape.type == "rect"]
    assert len(bands) == 3 and all((band.x0 + band.x1) / 2 == 1 for band in bands)


@pytest.mark.parametrize("keys", [2, None])
def test_by_step_shows_lines_whole_that_rise_above_uniform(keys):
    figure = figures.by_step({"a": frame(["x"], np.nan), "b": frame(["x"], 3.1)}, keys)
    assert figure.layout.yaxis.range[1] == pytest.approx(1.12 * 3.1)
    assert figure.layout.yaxis3.range[1] == pytest.approx(1.12 * 2.7) and figure.layout.yaxis2.range[1] == 1.04
    nothing = figures.by_step({"a": frame(["x"], np.nan)}, keys)
    assert nothing.layout.yaxis.range[1] == pytest.approx(1.12 * math.log(2) if keys else 0.1)


def test_by_step_without_common_keys_has_no_reference():
    layout = figures.by_step({"bahdanau": frame(["a"])}, None).layout
    assert layout.shapes == () and [note.text[:3] for note in layout.annotations] == ["<b>"] * 3
    assert layout.meta["description"] == "Entropy, maximum weight and effective positions by step for bahdanau."


def test_by_step_draws_uniform_attention_as_a_curve_where_each_step_sees_one_key_more():
    figure = figures.by_step({"transformer": frame(["a", "b", "c"])}, keys=[1, 2, 3])
    paths = [[tuple(map(float, point[1:].split(","))) for point in shape.path.split()] for shape in figure.layout.shapes]
    expected = [[0, 0.6931, 1.0986], [1, 0.5, 0.3333], [1, 2, 3]]  # ln(t + 1), 1 / (t + 1), t + 1
    assert paths == [list(enumerate(levels)) for levels in expected]
    assert all(shape.type == "path" and shape.line.dash == "dot" and shape.path.count("M") == 1 for shape in figure.layout.shapes)
    assert [note.y for note in figure.layout.annotations if note.text == "uniform"] == pytest.approx([math.log(3), 1 / 3, 3])
    assert figure.layout.yaxis.range[1] == pytest.approx(1.12 * math.log(3)) and figure.layout.yaxis3.range[1] > 3
    assert "curve is uniform attention over the keys that each step sees, up to 3" in figure.layout.meta["description"]


@pytest.mark.parametrize("keys, path", [
    ([0, 1, 2], "M1,1.0000 L2,2.0000"), ([2, 0, 1], "M0,2.0000 M2,1.0000"), ([0, 0, 1], "M2,1.0000"),
])  # fmt: skip
def test_the_curve_has_a_gap_where_a_step_sees_nothing(keys, path):
    figure = figures.by_step({"transformer": frame(["a", "b", "c"])}, keys)
    assert figure.layout.shapes[2].path == path


def test_as_many_keys_in_each_step_are_one_number():
    frames = {"transformer": frame(["a", "b"])}
    assert figures.by_step(frames, [4, 4]).to_dict() == figures.by_step(frames, 4).to_dict()


@pytest.mark.parametrize("frames, keys, message", [
    ({"a": frame(["x", "y"])}, [1], "keys must be one number, or one for each of 2 steps; got 1"),
    ({"a": frame(["x"])}, [0], "keys must be at least 1; got [0]"),
    ({"a": frame(["x", "y"])}, [2, -1], "keys must be at least 1; got [2, -1]"),
    ({}, 3, "frames must hold at least one mechanism; got none"),
    ({"a": frame(["x"])}, 0, "keys must be at least 1; got 0"),
    ({"a": frame(["x"]).drop(columns="max_weight")}, 3,
     "the frame of a must have the columns step, token, entropy_nats, max_weight, effective_entropy; max_weight missing"),
])  # fmt: skip
def test_by_step_says_what_is_wrong(frames, keys, message):
    with pytest.raises(ValueError) as error:
        figures.by_step(frames, keys)
    assert str(error.value) == message


# --- difference, comparison


def test_difference_is_symmetric_around_zero_and_says_who_looks_more(dog):
    values = np.zeros((3, 3))
    values[1, 1], values[0, 0] = 0.214, -0.5
    figure = figures.difference(values, dog, ("Bahdanau", "Luong"))
    cells = figure.data[0]
    assert (cells.zmin, cells.zmax) == (-1, 1) and len(cells.colorscale) % 2 == 1
    assert sentence(figure, 1, 1) == "‘noir’ looks at ‘black’: 0.21 more in Bahdanau than in Luong"
    assert sentence(figure, 0, 0).endswith("0.50 more in Luong than in Bahdanau")
    assert sentence(figure, 2, 2).endswith("the same in Bahdanau and Luong")
    assert "‘chien’ looks at ‘dog’, 0.50 more in Luong" in figure.layout.meta["description"]


def test_difference_refuses_another_shape(dog):
    with pytest.raises(ValueError, match=r"^values must have the grid's shape \(3, 3\); got \(2, 3\)$"):
        figures.difference(np.zeros((2, 3)), dog)


def test_comparison_is_a_table_of_mean_and_deviation():
    tidy = pd.DataFrame(
        [("bahdanau", "entropy_nats", 1.0248, 0.2153), ("bahdanau", "gini", 0.5, 0.1), ("<b>", "entropy_nats", np.nan, np.nan)],
        columns=["mechanism", "statistic", "mean", "std"],
    )
    figure = figures.comparison(tidy)
    table = figure.data[0]
    assert table.header.values == ("", "<b>bahdanau</b>", "<b>&lt;b&gt;</b>")
    assert contrast(table.header.font.color, table.header.fill.color) > 7
    names, bahdanau, other = map(list, table.cells.values)
    assert names == ["Entropy (nats)", "Gini coefficient"] and bahdanau == ["1.02 ± 0.22", "0.50 ± 0.10"] and other == ["–", "–"]
    assert figure.layout.height == 3 * table.cells.height + 24


def test_comparison_names_a_missing_column():
    with pytest.raises(ValueError, match="^the frame must have the columns mechanism, statistic, mean, std; std missing$"):
        figures.comparison(pd.DataFrame(columns=["mechanism", "statistic", "mean"]))


# --- words for pictures


def test_describe(dog):
    assert figures.describe(dog) == "3 target tokens by 3 source tokens; strongest: ‘noir’ looks at ‘black’, 0.83."
    assert figures.describe(dog, 0).endswith("0.83. Step 1, ‘chien’: looks at ‘dog’ 0.80, ‘black’ 0.10, <eos> 0.10.")


def test_describe_says_what_was_hidden():
    hidden = grid(words("a"), words("c"), [[0.7, 0.3], [np.nan, np.nan]], removed=[0.25, 1])
    assert "0.25 of its weight was on special tokens, which are hidden." in figures.describe(hidden, 0)
    assert "all its weight is on special tokens, which are hidden." in figures.describe(hidden, 1)


@pytest.fixture
def made(dog):
    """One figure from every factory."""
    return [
        figures.heatmap(dog, 1, "<i>", dark=True),
        figures.step_bars(dog, 1, "<i>", dark=True),
        figures.difference(np.zeros((3, 3)), dog, title="<i>", dark=True),
        figures.by_step({"a": frame(["x"], np.nan), "b": frame(["x"])}, 3, 0, "<i>", dark=True),
        figures.by_step({"a": frame(["x", "y"])}, [1, 2], title="<i>", dark=True),
        figures.comparison(pd.DataFrame({"mechanism": ["a"], "statistic": ["gini"], "mean": 1.0, "std": 0.0}), "<i>", dark=True),
    ]  # fmt: skip


def test_every_figure_passes_the_whole_check_of_plotly(made):
    for figure in made:
        checked, ours = (json.loads(one.to_json()) for one in (go.Figure(figure.to_dict()), figure))
        for one in (checked, ours):
            del one["layout"]["template"]  # an empty one; the check writes it out
        assert checked == ours


def test_figures_can_be_changed_like_any_other(made):
    for figure in made:
        figure.update_layout(title="new")
        assert figure.layout.title.text == "new"
        for wrong in (lambda: figure.update_layout(xaxis_nonsense=1), lambda: figure.data[0].update(nonsense=1)):  # noqa: B023
            with pytest.raises(ValueError):
                wrong()


def test_every_figure_carries_its_description_and_theme(made):
    for figure in made:
        assert figure.layout.meta["description"] and figure.layout.meta["dark"] is True
        assert figure.layout.font.color == theme.DARK.text and figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
        assert figure.layout.title.text == "&lt;i&gt;"


# --- colours


def luminance(color):
    """Relative luminance (WCAG 2) of #rrggbb."""
    channels = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)])
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return linear @ [0.2126, 0.7152, 0.0722]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK])
def test_scales_read_without_colour(colors):
    steps = np.array([luminance(color) ** (1 / 3) for color in colors.sequential])
    differences = np.diff(steps) * np.sign(steps[-1] - steps[0])
    assert (differences > 0.03).all()
    assert np.sign(steps[-1] - steps[0]) == np.sign(luminance(colors.text) - luminance(colors.page))
    middle = luminance(colors.diverging[4])
    assert all((luminance(color) - middle) * (luminance(colors.text) - middle) > 0 for color in colors.diverging[::8])


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK])
def test_text_and_lines_stand_out_from_the_page(colors):
    assert contrast(colors.text, colors.page) > 7 and contrast(colors.muted, colors.page) > 4.5
    assert all(contrast(color, colors.page) > 3 for color in (*colors.lines[:3], colors.outline))


def test_mechanisms_differ_in_colour_dash_and_marker_and_keep_theirs():
    several = theme.lines(["transformer", "own", "bahdanau", "luong-general", "luong-dot"])
    for part in ("color", "dash", "marker"):
        assert len({getattr(line, part) for line in several.values()}) == 5
    assert theme.lines(["transformer"])["transformer"] == several["transformer"]
    assert "dot" not in {line.dash for line in several.values()}
