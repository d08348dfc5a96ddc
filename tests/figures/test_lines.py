"""figures/lines.py and figures/depth.py as data: which lines there are, how strong, and what is said of the rest."""

import re

import numpy as np
import pandas as pd
import pytest
import synthetic
from grids import EOS, dog, grid, words

from attnviz import figures, rollout, select
from attnviz.figures.theme import DARK, LIGHT


def drawn_lines(figure):
    """(y of the query, y of the key) of each line, in the order of drawing, and its path."""
    lines = []
    for path in figure.layout.shapes:
        ends = re.fullmatch(r"(?:M0,([^ML]+)L1,([^ML]+))+", path.path)
        assert ends and path.layer == "below"
        lines += [(float(a), float(b), path) for a, b in re.findall(r"M0,([^ML]+)L1,([^ML]+)", path.path)]
    return lines


def test_a_line_for_each_weight_that_is_large_enough():
    """chien .8 .1 .1 / noir .05 .83 .12 / <eos> .2 .2 .6 with a limit of .15: five lines."""
    lines = drawn_lines(figures.token_lines([dog()], least=0.15))
    assert sorted((a, b) for a, b, _ in lines) == [(0, 0), (1, 1), (2, 0), (2, 1), (2, 2)]
    wide = {(a, b): path for a, b, path in lines}
    assert wide[0, 0].line.width > wide[2, 2].line.width > wide[2, 0].line.width
    assert wide[0, 0].opacity > wide[2, 2].opacity > wide[2, 0].opacity and wide[1, 1].line.color == LIGHT.lines[0]


def test_few_paths_however_many_lines():
    long = grid(words(*"abcdefgh" * 16), words(*"klmnopqr" * 16))
    figure = figures.token_lines([long] * 4, step=3, least=0.001)
    assert len(figure.data) == 2 and len(figure.layout.shapes) <= 4 * 6 * 2 and len(drawn_lines(figure)) > 4 * 129 * 10


def test_keys_are_spread_over_the_height_of_the_queries():
    single = grid(words("a", "b", "c"), words("k"), np.eye(2)[[0, 1, 0, 1]])
    assert sorted((a, b) for a, b, _ in drawn_lines(figures.token_lines([single]))) == [
        (0, 0.5),
        (1, 2.5),
        (2, 0.5),
        (3, 2.5),
    ]
    layout = figures.token_lines([single]).layout
    assert layout.yaxis.range == (3.5, -0.5) and layout.yaxis2.range == (1.5, -0.5) and layout.yaxis2.side == "right"


def test_the_chosen_query_stands_out():
    figure = figures.token_lines([dog()], step=1, least=0.04)
    opacity = {query: max(path.opacity for a, _, path in drawn_lines(figure) if a == query) for query in range(3)}
    assert opacity[1] > 0.8 > 0.3 > max(opacity[0], opacity[2])
    assert (
        figure.layout.yaxis.ticktext[1] == "<b>noir</b>"
        and "Step 2, ‘noir’: looks at ‘black’ 0.83" in figure.layout.meta["description"]
    )
    order = [a for a, _, _ in drawn_lines(figure)]
    assert order.index(1) > max(i for i, a in enumerate(order) if a != 1)  # on top


def test_long_tokens_are_on_two_lines_where_there_is_room():
    long = words(
        "supercalifragilistic", "<b>Donaudampfschifffahrtskapitän", "مستشفياتهمالكبيرة", "日本語の長い単語です", "a"
    )
    layout = figures.token_lines([grid(long, long)]).layout
    assert (
        layout.yaxis.ticktext[:5]
        == layout.yaxis2.ticktext[:5]
        == (
            "supercalifra<br>gilistic",
            "&lt;b&gt;Donaudamp<br>fschifffahr…",
            "\u2068مستشفياتهمال\u2069<br>\u2068كبيرة\u2069",
            "日本語の長い<br>単語です",
            "a",
        )
    )
    many = words("supercalifragilistic", *"abcdefgh" * 16)
    assert (
        figures.token_lines([grid(many, many)]).layout.yaxis.ticktext[0] == "supercalifr…"
    )  # rows too low for two lines
    short = words(*"abcd")
    assert figures.token_lines([grid(short, short)]).layout.height < layout.height


def test_where_attention_is_spread_thin_lines_begin_lower():
    tokens = words(*"abcdefghijklmnopqrstuvwxyz")
    even = grid(tokens, tokens, np.full((27, 27), 1 / 27))
    least = lambda *grids: figures.line_threshold(grids)  # noqa: E731
    assert least(dog()) == 0.05 and least(even) == 0.02 and least(dog(), dog()) == 0.05
    description = figures.token_lines([even]).layout.meta["description"]
    assert description.startswith(
        f"{27 * 27} lines from 27 target tokens to 27 source tokens for weights of at least 0.02, which hold 100%"
    )
    many = words(*"abcdefgh" * 10)
    thin = grid(many, many, np.full((81, 81), 1 / 81))
    assert least(thin) == 0.05 and not figures.token_lines([thin]).layout.shapes  # 6,561 lines are a blot
    single = grid((EOS,), (EOS,), [[1.0]])
    assert (
        figures.token_lines([single])
        .layout.meta["description"]
        .startswith("1 line from 1 target token to 1 source token for")
    )


def test_masked_and_blank_draw_nothing():
    weights = np.array([[1, 0, 0], [np.nan] * 3, [0.2, 0.2, 0.6]])
    figure = figures.token_lines(
        [grid(words("a", "b"), words("c", "d"), weights, "decoder", np.tri(3, dtype=bool), [0, 1, 0])]
    )
    assert sorted((a, b) for a, b, _ in drawn_lines(figure)) == [(0, 0), (2, 0), (2, 1), (2, 2)]


def test_tokens_take_the_pointer_and_the_click():
    figure = figures.token_lines([dog()])
    left, right = figure.data
    assert list(left.customdata) == [0, 1, 2] and right.yaxis == "y2" and right.customdata is None
    assert left.hovertext[0].startswith("Layer 1, mean of heads<br>Step 1, ‘chien’: looks at ‘dog’ 0.80")
    assert right.hovertext[1] == "‘black’ (2)<br>Layer 1, mean of heads: ‘noir’ (2) looks at it most, 0.83"


def test_several_heads_have_their_colours():
    trace = synthetic.trace(heads=3, kinds=("encoder",))
    figure = figures.token_lines([select.select(trace, "encoder", head=head) for head in range(3)], dark=True)
    assert {path.line.color for _, _, path in drawn_lines(figure)} == set(DARK.lines[:3])
    legend = figure.layout.annotations[-1].text
    assert [f"layer 1, head {i}" in legend for i in (1, 2, 3)] == [True] * 3 and DARK.lines[2] in legend


def test_several_heads_have_their_dashes_too_for_a_print_in_grey():
    figure = figures.token_lines([dog(), dog(), dog()])
    looks = {(shape.line.color, shape.line.dash) for shape in figure.layout.shapes}
    assert len(looks) == len({dash for _, dash in looks}) == 3
    legend = next(note.text for note in figure.layout.annotations if "span" in note.text)
    assert all(dashes in legend for dashes in ("━━━", "━ ━", "• • •"))


def test_how_much_is_left_out_is_said():
    description = figures.token_lines([dog()], least=0.15).layout.meta["description"]
    assert description.startswith(
        "5 lines from 3 target tokens to 3 source tokens for weights of at least 0.15, which hold 88% of all weight"
    )


@pytest.mark.parametrize(
    "ask, message",
    [
        (dict(grids=[]), "there must be 1 to 4 grids; got 0"),
        (dict(grids=[dog()] * 5), "there must be 1 to 4 grids; got 5"),
        (
            dict(grids=[dog(), grid(words("a", "b"), words("c", "d"))]),
            "all grids must be of one kind and have the same queries and keys",
        ),
        (dict(grids=[dog()], step=3), "step must be a row of the map, 0 to 2; got 3"),
        (dict(grids=[dog()], least=0), "least must be above 0 and at most 1; got 0"),
    ],
)
def test_lines_that_cannot_be_drawn(ask, message):
    with pytest.raises(ValueError) as error:
        figures.token_lines(**ask)
    assert str(error.value) == message


# -- by distance -------------------------------------------------------------------------------------------------------


@pytest.fixture
def frame():
    return pd.DataFrame({"layer": [0, 0, 1, 1], "distance": [-1, 0, -1, 0], "weight": [0.25, 0.75, 0.6, 0.4]})


def test_a_line_a_layer(frame):
    figure = figures.by_distance(frame, title="Far")
    first, second = figure.data
    assert (
        (first.name, second.name) == ("layer 1", "layer 2")
        and list(first.x) == [-1, 0]
        and list(second.y) == [0.6, 0.4]
    )
    assert first.line.color != second.line.color
    assert figure.layout.meta["description"].endswith(
        ": layer 1 most at its own place, 75%; layer 2 most at 1 before, 60%."
    )


def test_twelve_layers_keep_to_the_theme():
    frame = rollout.by_distance(synthetic.trace(layers=12, kinds=("encoder",)))
    figure = figures.by_distance(frame, dark=True)
    assert len(figure.data) == 12 and {line.line.color for line in figure.data} <= set(DARK.sequential)


def test_distances_may_be_cut(frame):
    assert list(figures.by_distance(frame, reach=0).data[0].x) == [0]


def test_a_frame_that_is_none(frame):
    with pytest.raises(ValueError, match="^the frame must have the columns layer, distance, weight; weight missing$"):
        figures.by_distance(frame.drop(columns="weight"))
    with pytest.raises(ValueError, match="^the frame must hold at least one layer; got none$"):
        figures.by_distance(frame[:0])
