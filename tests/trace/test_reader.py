"""Traces of models that only read: they have no target."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic

from attnviz.trace import AttentionMap, Trace

HALF = [[[0.5, 0.5], [0.25, 0.75]]]


def message(error):
    return str(error.value)


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
