"""trace.py: what a Trace holds, and what it refuses (whole messages)."""

import json
import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import synthetic

from attnviz.trace import BOS, Alternative, AttentionMap, Token, Trace

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


def reads(kind, pieces=False):
    """A trace without a target: its self-attention is over the source."""
    trace = synthetic.trace("", "The black dog", kinds=("encoder", "decoder"), layers=2, heads=2, pieces=pieces)
    maps = tuple(AttentionMap(kind, m.layer, m.weights) for m in trace.maps if m.kind == "decoder")
    return replace(
        trace,
        text=trace.translation,
        source=trace.target,
        translation="",
        target=(),
        log_probs=(),
        alternatives=(),
        maps=maps,
    )


def test_the_axes_of_a_model_that_only_reads():
    for kind, sides in (("encoder", ("source", "source")), ("decoder", ("input", "input"))):
        trace = reads(kind)
        assert all(trace.queries(m) == trace.keys(m) == trace.source and trace.sides(m) == sides for m in trace.maps)
    assert trace.visible(trace.map("decoder")).tolist() == np.tri(4, dtype=bool).tolist()
    assert reads("encoder").visible(reads("encoder").map("encoder")).all()


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_trace_without_a_target_keeps_in_json(kind):
    trace = reads(kind)
    assert Trace.from_json(trace.to_json()) == trace and trace.log_prob is None and trace.alternatives == ()


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
    "kind, layer, wanted", [("decoder", -1, "decoder"), ("cross", 2, "cross 2"), ("cross", -2, "cross -2")]
)
def test_map_says_what_there_is(kind, layer, wanted):
    trace = synthetic.trace(layers=2, kinds=("cross", "encoder"))
    with pytest.raises(ValueError) as error:
        trace.map(kind, layer)
    assert message(error) == (
        "map must be one that synthetic has at the level of pieces "
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
    ones = tuple(AttentionMap(kind, 0, [[[1.0]]]) for kind in ("cross", "encoder", "decoder"))
    trace = Trace("m", "m", "", "", False, [eos], [eos], [-0.5], (), ones)
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


# -- refusals ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "kind, layer, weights, wanted",
    [
        ("self", 0, HALF, "kind must be one of cross, encoder, decoder; got 'self'"),
        ("cross", -1, HALF, "layer must be an integer of at least 0; got -1"),
        ("cross", "0", HALF, "layer must be an integer of at least 0; got '0'"),
        (
            "cross",
            0,
            HALF[0],
            "weights of the cross map of layer 0 must have axes [heads, queries, keys], none empty; got shape (2, 2)",
        ),
        (
            "cross",
            0,
            np.zeros((1, 0, 3)),
            "weights of the cross map of layer 0 must have axes [heads, queries, keys], none empty; got shape (1, 0, "
            "3)",
        ),
        (
            "cross",
            0,
            [[[1.0], [0.5, 0.5]]],
            "weights of the cross map of layer 0 must be numbers with axes [heads, queries, keys]",
        ),
        (
            "cross",
            0,
            [[[1 + 1j]]],
            "weights of the cross map of layer 0 must be numbers with axes [heads, queries, keys]",
        ),
        ("cross", 0, [[["a"]]], "weights of the cross map of layer 0 must be numbers with axes [heads, queries, keys]"),
        (
            "cross",
            0,
            [[[1.0, 0], [0.5, 0.4]]],
            "weights of the cross map of layer 0 must sum to 1 over the keys of every row; got 0.9000 in head 0, query "
            "1",
        ),
        (
            "cross",
            3,
            [[[0.5, 0.5]], [[1.25, -0.25]]],
            "weights of the cross map of layer 3 must be finite and at least 0; got -0.25 in head 1, query 0, key 1",
        ),
        (
            "cross",
            0,
            [[[0.5, np.nan]]],
            "weights of the cross map of layer 0 must be finite and at least 0; got nan in head 0, query 0, key 1",
        ),
        (
            "cross",
            0,
            [[[np.inf, 0]]],
            "weights of the cross map of layer 0 must be finite and at least 0; got inf in head 0, query 0, key 0",
        ),
    ],
)
def test_a_map_refuses(kind, layer, weights, wanted):
    with pytest.raises(ValueError) as error:
        AttentionMap(kind, layer, weights)
    assert message(error) == wanted


@pytest.mark.parametrize("off, fine", [(0.5e-4, True), (-0.5e-4, True), (3e-4, False), (-3e-4, False)])
def test_rows_may_be_off_by_a_ten_thousandth(off, fine):
    weights = [[[0.5, 0.5 + off]]]
    if fine:
        AttentionMap("cross", 0, weights)
    else:
        with pytest.raises(ValueError, match="must sum to 1 over the keys of every row"):
            AttentionMap("cross", 0, weights)


def token(text, start, end):
    return (Token(text, start, end, word=0), Token("<eos>", 5, 5, special=True))


@pytest.mark.parametrize(
    "change, wanted",
    [
        ({"level": "letters"}, "level must be one of pieces, words; got 'letters'"),
        ({"source": ()}, "source must hold at least one token, if only <eos>; got none"),
        ({"source": token("hello", 0, 6)}, "source token 0 must lie within the 5 characters of its text; got 0 to 6"),
        ({"source": token("hello", -1, 5)}, "source token 0 must lie within the 5 characters of its text; got -1 to 5"),
        ({"source": token("hello", 3, 2)}, "source token 0 must lie within the 5 characters of its text; got 3 to 2"),
        ({"source": token("Hello", 0, 5)}, "source token 0 must be its text from 0 to 5, 'hello'; got 'Hello'"),
        (
            {"source": synthetic.tokens("hello") * 2},
            "weights of the cross map of layer 0 must have 3 queries and 4 keys, as the tokens do; got shape (1, 3, 2)",
        ),
        (
            {"target": token("cher", 0, 4), "log_probs": (-1, -1), "alternatives": ()},
            "weights of the cross map of layer 0 must have 2 queries and 2 keys, as the tokens do; got shape (1, 3, 2)",
        ),
        ({"log_probs": (-1.0, -1.0)}, "log_probs must have one entry for each of the 3 target tokens; got 2"),
        ({"log_probs": (-1.0, 0.5, -1.0)}, "log_probs must be finite and at most 0; got 0.5 at step 1"),
        ({"log_probs": (-1.0, -1.0, -np.inf)}, "log_probs must be finite and at most 0; got -inf at step 2"),
        ({"log_probs": (np.nan, -1.0, -1.0)}, "log_probs must be finite and at most 0; got nan at step 0"),
        ({"alternatives": ((),) * 4}, "alternatives must have one entry for each of the 3 target tokens; got 4"),
        (
            {"alternatives": ((), (Alternative("a", 0.1), Alternative("b", 0.2)), ())},
            "alternatives must be probabilities, most probable first; got [0.1, 0.2] at step 1",
        ),
        (
            {"alternatives": ((Alternative("a", 1.5),), (), ())},
            "alternatives must be probabilities, most probable first; got [1.5] at step 0",
        ),
    ],
)
def test_a_trace_refuses(change, wanted):
    trace = synthetic.trace("hello", "cher ami")
    with pytest.raises(ValueError) as error:
        replace(trace, **change)
    assert message(error) == wanted


def test_a_trace_refuses_the_same_map_twice():
    trace = synthetic.trace()
    with pytest.raises(ValueError) as error:
        replace(trace, maps=trace.maps * 2)
    assert message(error) == "maps must differ in kind or layer; got the cross map of layer 0 twice"


@pytest.mark.parametrize(
    "change, wanted",
    [
        (
            {"maps": (AttentionMap("cross", 0, HALF),)},
            "the cross map of layer 0 must have target tokens for its rows; got none",
        ),
        ({"translation": "Un"}, "target must hold the tokens of the translation, 'Un'; got none"),
        ({"log_probs": (-1.0,)}, "log_probs must have one entry for each of the 0 target tokens; got 1"),
        (
            {"maps": (AttentionMap("decoder", 0, np.full((1, 4, 4), 0.25)),)},
            "weights of the decoder map of layer 0 must be 0 on tokens not yet read; got 0.25 in head 0, query 0, key "
            "1",
        ),
        ({"source": ()}, "source must hold at least one token, if only <eos>; got none"),
    ],
)
def test_a_trace_without_a_target_refuses(change, wanted):
    with pytest.raises(ValueError) as error:
        replace(reads("decoder"), **change)
    assert message(error) == wanted


def test_a_decoder_cannot_see_the_future():
    trace = synthetic.trace("A", "Un chien", kinds=("decoder",))
    with pytest.raises(ValueError) as error:
        replace(trace, maps=(AttentionMap("decoder", 0, [[[1, 0, 0], [0.5, 0.25, 0.25], [0.5, 0.5, 0]]]),))
    assert message(error) == (
        "weights of the decoder map of layer 0 must be 0 on tokens not yet produced; got 0.25 in head 0, query 1, key 2"
    )
