"""What a map and a trace refuse (whole messages)."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic

from attnviz.trace import Alternative, AttentionMap, Token

HALF = [[[0.5, 0.5], [0.25, 0.75]]]


def message(error):
    return str(error.value)


def test_maps_of_layers_are_those_made_one_by_one():
    weights = np.array([HALF, [[[1, 0], [0, 1]]]], dtype=np.float32)
    wanted = tuple(AttentionMap("cross", layer, own) for layer, own in enumerate(weights))
    maps = AttentionMap.of_layers("cross", weights)
    assert maps == wanted
    assert [vars(ours).keys() for ours in maps] == [vars(theirs).keys() for theirs in wanted]
    with pytest.raises(ValueError, match="read-only"):
        maps[1].weights[0, 0, 0] = 0.5
    trace = synthetic.trace()
    assert type(trace).of_model(**vars(trace)) == trace
    with pytest.raises(ValueError) as error:
        AttentionMap.of_layers("cross", np.array([HALF, [[[1, 0], [0, np.nan]]]], dtype=np.float32))
    assert "layer 1 must be finite and at least 0; got nan in head 0, query 1, key 1" in message(error)
    with pytest.raises(ValueError, match="log_probs must be finite and at most 0; got nan at step 0"):
        type(trace).of_model(**vars(trace) | {"log_probs": (np.nan, *trace.log_probs[1:])})
    with pytest.raises(ValueError, match="weights of the cross map of layer 0 must have 4 queries"):
        type(trace).of_model(**vars(trace) | {"maps": maps})


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


def test_a_decoder_cannot_see_the_future():
    trace = synthetic.trace("A", "Un chien", kinds=("decoder",))
    with pytest.raises(ValueError) as error:
        replace(trace, maps=(AttentionMap("decoder", 0, [[[1, 0, 0], [0.5, 0.25, 0.25], [0.5, 0.5, 0]]]),))
    assert message(error) == (
        "weights of the decoder map of layer 0 must be 0 on tokens not yet produced; got 0.25 in head 0, query 1, key 2"
    )
