"""arrays.py: attention computed elsewhere, as a Trace."""

import numpy as np
import pytest
import synthetic
import torch

import attnviz
from attnviz import figures, select, stats
from attnviz.export import html_page
from attnviz.trace import Trace

SOURCE, TARGET = ["[CLS]", "The", "dog", "the"], ["Le", "chien"]


def draw(heads, queries, keys, causal=False, seed=0):
    scores = np.random.default_rng(seed).normal(size=(heads, queries, keys))
    return synthetic.softmax(scores, np.tri(queries, keys, dtype=bool) if causal else True)


def test_an_encoder():
    weights = [draw(2, 4, 4), draw(2, 4, 4, seed=1)]
    trace = attnviz.from_arrays(weights, SOURCE, special=["[CLS]"])
    assert [(m.kind, m.layer) for m in trace.maps] == [("encoder", 0), ("encoder", 1)]
    assert all(np.array_equal(m.weights, own) for m, own in zip(trace.maps, weights))
    assert trace.text == "The dog the" and trace.target == () and trace.translation == "" and trace.log_prob is None
    assert [(t.text, t.start, t.end, t.special) for t in trace.source] == [
        ("[CLS]", 0, 0, True),
        ("The", 0, 3, False),
        ("dog", 4, 7, False),
        ("the", 8, 11, False),
    ]


def test_heads_may_differ_by_layer():
    trace = attnviz.from_arrays([draw(1, 4, 4), draw(3, 4, 4)], SOURCE)
    assert [len(m.weights) for m in trace.maps] == [1, 3]


def test_a_decoder_that_reads():
    trace = attnviz.from_arrays([draw(2, 4, 4, causal=True)], SOURCE, kind="decoder")
    m = trace.map("decoder")
    assert trace.queries(m) == trace.keys(m) == trace.source
    assert np.array_equal(trace.visible(m), np.tri(4, dtype=bool))


def test_cross_attention_is_meant_with_a_target():
    trace = attnviz.from_arrays([draw(2, 2, 4)], SOURCE, TARGET, log_probs=[-1, -0.5])
    assert [m.kind for m in trace.maps] == ["cross"] and trace.log_prob == -1.5
    assert [t.text for t in trace.target] == TARGET and trace.translation == "Le chien"


def test_a_whole_translator_with_layers_and_heads_of_its_own_a_kind():
    weights = {"cross": [draw(2, 2, 4)], "encoder": [draw(4, 4, 4)] * 3, "decoder": [draw(1, 2, 2, causal=True)] * 2}
    trace = attnviz.from_arrays(weights, SOURCE, TARGET, start="<pad>", name="mine")
    assert [(m.kind, m.layer, len(m.weights)) for m in trace.maps] == [
        ("cross", 0, 2),
        ("encoder", 0, 4),
        ("encoder", 1, 4),
        ("encoder", 2, 4),
        ("decoder", 0, 1),
        ("decoder", 1, 1),
    ]
    assert [t.text for t in trace.keys(trace.map("decoder"))] == ["<pad>", "Le"] and trace.model == "mine"


def test_the_tensors_that_models_return():
    """A tuple of (1, H, Q, K), one a layer."""
    attentions = tuple(torch.tensor(draw(2, 4, 4, seed=seed))[None] for seed in range(2))
    trace = attnviz.from_arrays(attentions, SOURCE)
    assert (
        all(np.array_equal(m.weights, own[0].numpy()) for m, own in zip(trace.maps, attentions))
        and len(trace.maps) == 2
    )


@pytest.mark.parametrize(
    "weights, target",
    [
        ([draw(2, 4, 4)], ()),
        ({"decoder": [draw(2, 4, 4, causal=True)]}, ()),
        ({"cross": [draw(2, 2, 4)], "encoder": [draw(2, 4, 4)], "decoder": [draw(2, 2, 2, causal=True)]}, TARGET),
    ],
)
def test_everything_that_shows_a_trace_shows_it(weights, target):
    trace = attnviz.from_arrays(weights, SOURCE, target, special=["[CLS]"])
    assert Trace.from_json(trace.to_json()) == trace
    for m in trace.maps:
        grid = select.select(trace, m.kind, words=True, special=False)
        assert figures.heatmap(grid, 0).data and figures.step_bars(grid, 0).data and len(stats.of_grid(grid))
    assert len(stats.summary(trace)) and b"<h3>One step</h3>" in html_page.page(trace)


def test_sums_to_one_says_what_to_give():
    with pytest.raises(ValueError, match="; give them as they are after the softmax and before dropout"):
        attnviz.from_arrays([draw(1, 4, 4) * 0.5], SOURCE)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.float64])
def test_tensors_of_any_precision_with_or_without_a_gradient(kind):
    exact = torch.from_numpy(draw(2, 200, 200)).double()
    given = exact.clone().to(kind).requires_grad_()
    tokens = [f"w{i}" for i in range(200)]
    for layer in (given, given.detach()[None]):
        weights = attnviz.from_arrays([layer], tokens).map("encoder").weights
        assert np.allclose(weights, exact.numpy(), rtol=0.01) and np.allclose(weights.sum(-1), 1, atol=1e-5)
    if kind is torch.float16:
        assert np.array_equal(attnviz.from_arrays([given.detach().numpy()], tokens).map("encoder").weights, weights)


@pytest.mark.parametrize("tokens", [["a"], ["<eos>"]])
def test_one_token(tokens):
    trace = attnviz.from_arrays([[[[1.0]]]], tokens, special=["<eos>"])
    assert trace.map("encoder").weights.tolist() == [[[1.0]]] and len(trace.source) == 1


@pytest.mark.parametrize(
    "weights, tokens, more, wanted",
    [
        (
            [draw(1, 4, 4) * 0.5],
            SOURCE,
            {},
            "weights of the encoder map of layer 0 must sum to 1 over the keys of every row; got 0.5000 in head 0, "
            "query ",
        ),
        (5, SOURCE, {}, "weights must be one array of axes [heads, queries, keys] a layer; got 5"),
        ([draw(1, 4, 4)], None, {}, "tokens must be a list of strings, one per token; got None"),
        ([draw(1, 4, 4)], SOURCE, {"special": "[CLS]"}, "special must be a list of tokens; got '[CLS]'"),
        (
            [(draw(1, 4, 4) * 0.99).astype(np.float16)],
            SOURCE,
            {},
            "weights of the encoder map of layer 0 must sum to 1 over the keys of every row; got 0.9",
        ),
        (
            [draw(1, 4, 4), draw(1, 4, 3)],
            SOURCE,
            {},
            "weights of the encoder map of layer 1 must have 4 queries and 4 keys, as the tokens do; got shape (1, 4, "
            "3)",
        ),
        (
            [draw(1, 4, 4)],
            SOURCE[:3],
            {},
            "weights of the encoder map of layer 0 must have 3 queries and 3 keys, as the tokens do; got shape (1, 4, "
            "4)",
        ),
        ([draw(1, 4, 4)], [], {}, "source must hold at least one token, if only <eos>; got none"),
        ([draw(1, 4, 4)], "four", {}, "tokens must be a list of strings, one per token; got 'four'"),
        ([draw(1, 4, 4)], [1, 2, 3, 4], {}, "tokens must be a list of strings, one per token; got [1, 2, 3, 4]"),
        ([draw(1, 2, 4)], SOURCE, {"target": "ab"}, "target must be a list of strings, one per token; got 'ab'"),
        ({}, SOURCE, {}, "weights must hold at least one layer; got none"),
        (
            draw(4, 4, 4),
            SOURCE,
            {},
            "weights must be a list with one array of axes [heads, queries, keys] a layer; got one array of shape (4, "
            "4, 4)",
        ),
        (
            [draw(1, 4, 4)[None].repeat(2, 0)],
            SOURCE,
            {},
            "a layer has shape (2, 1, 4, 4), and this looks like a batch of 2; choose one with batch=0",
        ),
        ([draw(1, 4, 4)], SOURCE, {"kind": "self"}, "kind must be one of cross, encoder, decoder; got 'self'"),
        (
            [draw(1, 4, 4)],
            SOURCE,
            {"kind": "cross"},
            "the cross map of layer 0 must have target tokens for its rows; got none",
        ),
        (
            [draw(1, 4, 4)],
            SOURCE,
            {"kind": "decoder"},
            "weights of the decoder map of layer 0 must be 0 on tokens not yet read; got ",
        ),
        (
            [draw(1, 2, 4)],
            SOURCE,
            {"target": TARGET, "log_probs": [-1]},
            "log_probs must have one entry for each of the 2 target tokens; got 1",
        ),
        (
            [draw(1, 4, 4)],
            SOURCE,
            {"log_probs": [-1]},
            "log_probs must have one entry for each of the 0 target tokens; got 1",
        ),
        (
            [[[["a"]]]],
            ["a"],
            {},
            "weights of the encoder map of layer 0 must be numbers with axes [heads, queries, keys]",
        ),
    ],
)
def test_what_does_not_fit_is_refused(weights, tokens, more, wanted):
    with pytest.raises(ValueError) as error:
        attnviz.from_arrays(weights, tokens, **more)
    assert str(error.value).startswith(wanted)


def test_there_is_nothing_else_to_ask_the_package_for():
    with pytest.raises(AttributeError, match="^module 'attnviz' has no attribute 'from_lists'$"):
        attnviz.from_lists


def test_a_name_with_half_a_character_is_refused():
    """The statistics of such a trace failed inside pandas."""
    with pytest.raises(ValueError, match="^name must hold whole characters; got half of one .*: 'a.ud800'$"):
        attnviz.from_arrays([np.full((1, 2, 2), 0.5)], ["a", "b"], name="a\ud800")
