"""What a Trace holds."""

import json
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import synthetic

from attnviz.trace import BOS, AttentionMap, Token, Trace

HALF = [[[0.5, 0.5], [0.25, 0.75]]]


def message(error):
    return str(error.value)


def test_the_axes_of_each_kind():
    trace = synthetic.trace("A dog", "Un chien noir", kinds=("cross", "encoder", "decoder"))
    texts = {m.kind: ([t.text for t in trace.queries(m)], [t.text for t in trace.keys(m)]) for m in trace.maps}
    source, target = ["A", "dog", "<eos>"], ["Un", "chien", "noir", "<eos>"]
    assert texts == {
        "cross": (target, source),
        "encoder": (source, source),
        "decoder": (target, ["<bos>", "Un", "chien", "noir"]),
    }
    assert trace.keys(trace.map("decoder"))[0] is BOS
    for m in trace.maps:
        assert m.weights.shape[1:] == (len(texts[m.kind][0]), len(texts[m.kind][1]))


def test_visible_is_causal_in_the_decoder_and_everything_elsewhere():
    trace = synthetic.trace("A", "Un chien", kinds=("cross", "encoder", "decoder"))
    assert trace.visible(trace.map("decoder")).tolist() == [
        [True, False, False],
        [True, True, False],
        [True, True, True],
    ]
    assert trace.visible(trace.map("cross")).shape == (3, 2) and trace.visible(trace.map("cross")).all()
    assert trace.visible(trace.map("encoder")).all()


def test_what_the_decoder_starts_with():
    trace = replace(synthetic.trace("A", "Un", kinds=("decoder",)), start=Token("<pad>", 0, 0, special=True))
    assert [t.text for t in trace.keys(trace.map("decoder"))] == ["<pad>", "Un"]
    assert Trace.from_json(trace.to_json()) == trace != synthetic.trace("A", "Un", kinds=("decoder",))


def test_probabilities_need_not_be_known():
    trace = replace(synthetic.trace("A", "Un"), log_probs=(), alternatives=())
    assert trace.log_prob is None and trace.alternatives == ((), ()) and Trace.from_json(trace.to_json()) == trace


def test_map_finds_by_kind_and_layer():
    trace = synthetic.trace(layers=3, heads=2, kinds=("cross", "encoder"))
    assert trace.map() is trace.map("cross", -1) is trace.map("cross", 2)
    assert trace.map("encoder", 0).kind == "encoder" and trace.map("encoder", 0).layer == 0


@pytest.mark.parametrize(
    "kind, layer, what, wanted",
    [
        ("decoder", -1, "kind", "decoder"),
        ("decoder", 0, "kind", "decoder"),
        ("cross", 2, "layer", "cross 2"),
        ("cross", -2, "layer", "cross -2"),
    ],
)
def test_map_says_what_there_is(kind, layer, what, wanted):
    trace = synthetic.trace(layers=2, kinds=("cross", "encoder"))
    with pytest.raises(ValueError) as error:
        trace.map(kind, layer)
    assert message(error) == (
        f"{what} must be one that the trace of synthetic has at the level of pieces "
        f"(cross 0, cross 1, encoder 0, encoder 1); got {wanted}"
    )


def test_a_trace_without_attention_says_so():
    trace = replace(synthetic.trace(), maps=())
    with pytest.raises(ValueError) as error:
        trace.map("cross")
    assert message(error) == "synthetic has no attention, so it has no map to show; got cross"


def test_a_trace_without_attention_is_whole_all_the_same():
    with_maps = synthetic.trace("A dog", "Un chien")
    trace = replace(with_maps, maps=())
    assert trace.maps == () and trace.log_prob == with_maps.log_prob and trace.alternatives == with_maps.alternatives
    assert Trace.from_json(trace.to_json()) == trace != with_maps
    assert json.loads(trace.to_json())["maps"] == []


def test_depth_and_heads_may_differ_between_kinds():
    base = synthetic.trace()
    encoder = synthetic.trace(kinds=("encoder",), heads=3, layers=2).maps
    trace = replace(base, maps=base.maps + encoder)
    assert [(m.kind, m.layer, len(m.weights)) for m in trace.maps] == [
        ("cross", 0, 1),
        ("encoder", 0, 3),
        ("encoder", 1, 3),
    ]


def test_one_token_each():
    eos = Token("<eos>", 0, 0, special=True)
    maps = tuple(AttentionMap(kind, 0, [[[1.0]]]) for kind in ("cross", "encoder", "decoder"))
    trace = Trace("m", "m", "", "", False, [eos], [eos], [-0.5], (), maps)
    assert trace.log_prob == -0.5 and trace.alternatives == ((),)
    assert trace.keys(trace.map("decoder")) == (BOS,)
    assert Trace.from_json(trace.to_json()) == trace


def test_log_prob_is_the_sum():
    assert replace(synthetic.trace("A", "Un"), log_probs=(-1.5, -0.25)).log_prob == -1.75


# -- frozen ------------------------------------------------------------------------------------------------------------


def test_frozen_and_apart_from_the_array_it_was_made_from():
    given_weights = np.array(HALF, dtype=np.float32)
    attention = AttentionMap("cross", 0, given_weights)
    given_weights[:] = 0
    assert attention.weights.tolist() == HALF and attention.weights.dtype == np.float32
    with pytest.raises(ValueError, match="read-only"):
        attention.weights[0, 0, 0] = 1
    with pytest.raises(FrozenInstanceError):
        attention.layer = 1
    with pytest.raises(FrozenInstanceError):
        synthetic.trace().text = "other"


def test_equality_looks_into_the_arrays():
    trace = synthetic.trace(heads=2, seed=1)
    assert trace == synthetic.trace(heads=2, seed=1) and hash(trace) == hash(synthetic.trace(heads=2, seed=1))
    assert trace != synthetic.trace(heads=2, seed=2)
    assert trace != replace(trace, forced=True) and trace != replace(trace, complete=False)
    swapped = replace(trace, maps=(AttentionMap("cross", 0, trace.maps[0].weights[::-1]),))
    assert trace != swapped and trace.maps[0] != "a map"
    assert pickle.loads(pickle.dumps(trace)) == trace
