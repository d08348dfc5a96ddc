"""rollout.py against explicit loops: the order of layers, the residual, and what may not be rolled out."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from attnviz import rollout, select, stats
from attnviz.trace import AttentionMap


def trace(kind="encoder", layers=3, heads=2, seed=0, **options):
    return synthetic.trace("The black dog", "Le chien noir court", heads, layers, (kind,), seed, **options)


def by_loops(maps):
    """R_l[i][j] = sum_k A~_l[i][k] R_(l-1)[k][j], number by number; R_0 = I."""
    n = maps[0].shape[1]
    rolled = [[float(i == j) for j in range(n)] for i in range(n)]
    for heads in maps:
        mixed = [[(sum(head[i][k] for head in heads) / len(heads) + (i == k)) / 2 for k in range(n)] for i in range(n)]
        rolled = [[sum(mixed[i][k] * rolled[k][j] for k in range(n)) for j in range(n)] for i in range(n)]
    return rolled


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_rollout_is_the_product_by_loops(kind):
    source = trace(kind)
    rolled = rollout.rollout(source, kind)
    for layer in range(3):
        wanted = by_loops([source.map(kind, below).weights for below in range(layer + 1)])
        np.testing.assert_allclose(rolled.map(kind, layer).weights[0], wanted, atol=1e-6)


def test_the_last_layer_is_on_the_left():
    """Layer 0 looks at token 0 alone, layer 1 at token 1 alone. Row 2 of A~_1 A~_0, by hand: half stays at 2 and half
    comes from 1; of what was at 1 after layer 0 half is 0's, of what was at 2 half too: (1/4 + 1/4, 1/4, 1/4)."""
    first, second = np.eye(3)[[0, 0, 0]], np.eye(3)[[1, 1, 1]]
    rolled = rollout.matrices([first[None], second[None]])
    np.testing.assert_allclose(rolled[1][2], [1 / 2, 1 / 4, 1 / 4])
    assert not np.allclose(rolled[1], rollout.matrices([second[None], first[None]])[1])


def test_heads_that_look_at_themselves_change_nothing():
    np.testing.assert_array_equal(rollout.matrices([np.eye(4)[None]] * 3), np.array([np.eye(4)] * 3))


@given(st.integers(0, 50), st.sampled_from(["encoder", "decoder"]), st.integers(1, 4))
def test_what_is_rolled_out_is_a_trace_like_any(seed, kind, layers):
    rolled = rollout.rollout(
        trace(kind, layers, seed=seed), kind
    )  # a Trace checks itself: rows, and nothing from the future
    assert [(m.kind, m.layer, len(m.weights)) for m in rolled.maps] == [(kind, layer, 1) for layer in range(layers)]
    assert (rolled.maps[-1].weights[0].diagonal() >= 0.5**layers - 1e-6).all()  # the residual path


def test_it_is_selected_and_measured_as_maps_are():
    rolled = rollout.rollout(trace(pieces=True))
    grid = select.select(rolled, "encoder", words=True, special=False)
    assert [token.text for token in grid.queries] == ["The", "black", "dog"]
    assert len(stats.steps(rolled)) == 3 * len(rolled.source)


def test_layers_are_sorted():
    source = trace()
    shuffled = replace(source, maps=source.maps[::-1])
    assert rollout.rollout(shuffled).maps == rollout.rollout(source).maps


@pytest.mark.parametrize(
    "make, kind, message",
    [
        (lambda: trace("cross"), "cross", "kind must be encoder or decoder, where queries are keys too; got 'cross'"),
        (lambda: trace("cross"), "encoder", "the trace must have the encoder maps of every layer from 0 on; got none"),
        (
            lambda: replace(trace(), maps=trace().maps[1:]),
            "encoder",
            "the trace must have the encoder maps of every layer from 0 on; got 1, 2",
        ),
        (
            lambda: select.words(trace()),
            "encoder",
            "the trace must be of pieces; roll out first, then join the pieces to words",
        ),
    ],
)
def test_what_cannot_be_rolled_out(make, kind, message):
    with pytest.raises(ValueError) as error:
        rollout.rollout(make(), kind)
    assert str(error.value) == message


def test_maps_that_are_not_square():
    with pytest.raises(
        ValueError, match=r"^maps must be square, \(H, Q, Q\) with one Q in all layers; got \[\(1, 2, 3\)\]$"
    ):
        rollout.matrices([np.ones((1, 2, 3))])


# -- by distance -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["encoder", "decoder", "cross"])
def test_by_distance_is_the_sum_over_cells(kind):
    source = trace(kind)
    frame = rollout.by_distance(source, kind).set_index(["layer", "distance"])["weight"]
    for attention in source.maps:
        heads, queries, keys = attention.weights.shape
        wanted = {}
        for q in range(queries):
            for k in range(keys if kind != "decoder" else q + 1):
                away = k - int((q + 0.5) * keys / queries)
                wanted[away] = wanted.get(away, 0) + attention.weights[:, q, k].sum() / (heads * queries)
        assert frame[attention.layer].to_dict() == pytest.approx(wanted, abs=1e-6)
    np.testing.assert_allclose(frame.groupby("layer").sum(), 1, atol=1e-5)


def test_a_causal_layer_looks_back_only():
    assert rollout.by_distance(trace("decoder"), "decoder").distance.max() == 0


def test_by_distance_names_a_kind_that_is_not_there():
    with pytest.raises(ValueError, match="^kind must be one that the trace of synthetic has at the level of pieces"):
        rollout.by_distance(trace("encoder"), "decoder")


def test_one_layer_out_of_its_row():
    frame = rollout.by_distance(replace(trace(), maps=(AttentionMap("encoder", 5, np.eye(4)[None]),)))
    assert set(frame.layer) == {5} and frame.set_index("distance").weight[0] == 1
