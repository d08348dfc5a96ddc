"""figures/small_maps.py: pictures read back by Pillow, pooling against plain blocks."""

import base64
import io
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from attnviz.figures import small_maps
from attnviz.figures.theme import DARK, LIGHT


def read(png):
    """RGBA (height, width, 4)."""
    return np.asarray(Image.open(io.BytesIO(png)).convert("RGBA"))


def rgb(color):
    return [int(color[i : i + 2], 16) for i in (1, 3, 5)]


@given(st.integers(1, 3), st.integers(1, 150), st.integers(1, 150), st.integers(0, 9))
def test_a_pooled_cell_is_the_largest_of_its_block(heads, queries, keys, seed):
    weights = np.random.default_rng(seed).random((heads, queries, keys), dtype=np.float32)
    pooled, (down, across) = small_maps.pool(weights), small_maps.block(queries, keys)
    assert max(pooled.shape[1:]) <= small_maps.MOST
    for q, k in ((0, 0), (pooled.shape[1] - 1, pooled.shape[2] - 1), (pooled.shape[1] // 2, 0)):
        block = weights[:, q * down : (q + 1) * down, k * across : (k + 1) * across]
        np.testing.assert_array_equal(pooled[:, q, k], block.max((1, 2)))
    assert pooled.shape[1] == -(-queries // down) and pooled.shape[2] == -(-keys // across)


def test_up_to_64_tokens_nothing_is_pooled():
    weights = np.random.default_rng(0).random((2, 64, 10))
    assert small_maps.pool(weights) is weights or np.array_equal(small_maps.pool(weights), weights)
    assert small_maps.block(64, 65) == (1, 2)


@pytest.mark.parametrize("theme", [LIGHT, DARK])
def test_colours_are_those_of_the_theme(theme):
    picture = read(small_maps.png([[np.array([[0.0, 1.0]])]], theme))
    assert picture.shape[0] >= 96 and picture.shape[1] >= 96  # small maps are enlarged
    assert picture[0, 0].tolist() == [*rgb(theme.sequential[0]), 255] and picture[-1, -1].tolist() == [
        *rgb(theme.sequential[-1]),
        255,
    ]


def test_maps_lie_in_rows_with_clear_space_between():
    low, high = np.zeros((2, 2)), np.ones((2, 2))
    picture = read(small_maps.png([[low, high], [high, None]], LIGHT, (0.25, 0.125)))
    side = 48 * 2  # two cells of 48 px
    tall, wide = side + side // 4 + side // 8, side + 2 * side // 8
    assert picture.shape == (2 * tall, 2 * wide, 4)
    middle = lambda row, column: picture[row * tall + side // 4 + side // 2, column * wide + wide // 2].tolist()  # noqa: E731
    light, dark = rgb(LIGHT.sequential[0]), rgb(LIGHT.sequential[-1])
    assert [middle(0, 0), middle(0, 1), middle(1, 0)] == [[*light, 255], [*dark, 255], [*dark, 255]]
    assert middle(1, 1)[3] == 0 and picture[0, 0, 3] == 0 and picture[side // 4 - 1, wide // 2, 3] == 0
    assert picture[side // 4, wide // 2, 3] == 255 and picture[side // 4, side // 8 - 1, 3] == 0


def test_hidden_cells_are_hatched_and_no_shade_of_a_weight():
    picture = read(small_maps.png([[np.array([[1.0, np.nan], [0.5, 0.5]])]], LIGHT))[..., :3]
    hidden, seen = picture[:48, 48:].reshape(-1, 3), picture[48:, 48:].reshape(-1, 3)
    assert len(np.unique(seen, axis=0)) == 1 and len(np.unique(hidden, axis=0)) == 2
    assert rgb(LIGHT.page) in hidden.tolist() and rgb(LIGHT.sequential[0]) not in hidden.tolist()


def test_a_pooled_block_is_hidden_when_all_of_it_is():
    visible = small_maps.pool(np.tri(128, dtype=bool)[None])[0]
    np.testing.assert_array_equal(visible, np.tri(64, dtype=bool))


def test_shades_climb_with_weights_and_faster_with_their_root():
    cells = np.linspace(0, 1, 64)[None]
    plain, rooted = (read(small_maps.png([[cells]], LIGHT, root=root))[0, :, 0].astype(int) for root in (False, True))
    assert (
        (np.diff(plain) <= 0).all()
        and len(np.unique(plain)) > 50
        and (rooted <= plain).all()
        and rooted[4] < plain[4] - 40
    )


def test_an_address_holds_the_picture():
    head, _, data = small_maps.data_url(b"\x89PNG").partition(",")
    assert head == "data:image/png;base64" and base64.b64decode(data) == b"\x89PNG"


def test_pooling_takes_less_memory_than_the_maps():
    weights = np.zeros((12, 512, 512), dtype=np.float32)
    tracemalloc.start()
    try:
        small_maps.pool(weights)
        assert tracemalloc.get_traced_memory()[1] < weights.nbytes / 4
    finally:
        tracemalloc.stop()
