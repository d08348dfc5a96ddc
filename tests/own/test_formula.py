"""The formula of a module is told with its own parameters in it; a near miss is told by what differs."""

import copy
import math

import pytest
import torch
from listings import (
    Attention,
    Attn,
    BahdanauAttention,
    DotProductAttention,
    ListOfHeads,
    ListOfThree,
    MultiHead,
    ProjectedKeys,
    SelfAttentionV1,
)
from torch import nn
from torch.nn import functional as F

from attnviz import attention, own
from attnviz.own import formula as formulas
from attnviz.own.formula import recognised
from attnviz.own.recognise import recognise


def told(module):
    with torch.no_grad():
        return recognised(recognise(module))


FORMULAS = [
    (BahdanauAttention(16), "additive", "W = `Wa.weight` and its bias, U = `Ua.weight` and its bias, v = `Va.weight`"),
    (DotProductAttention(0.0), "scaled-dot", "scaled dot: q · k / √d; largest difference"),
    (Attn("dot", 16), "dot", "dot: q · k; largest difference"),
    (Attn("general", 16), "general", "Luong general: q · W k with W = `attn.weight`"),
    (Attn("concat", 16), "concat", "Luong concat: v · tanh(W [q; k]) with W = `attn.weight` and its bias, v = `v`"),
    (Attention(12, 8), "concat", "v = `v.weight`"),
    (MultiHead(16, 2, 0.0), "multi-head", "multi-head, 2 heads: queries by `W_q.weight`, keys by `W_k.weight`"),
    (nn.MultiheadAttention(16, 4), "multi-head", "4 heads: queries by third 1 of `in_proj_weight`"),
    (SelfAttentionV1(16, 16), "scaled-dot", "multi-head, one head: queries by `W_query`ᵀ, keys by `W_key`ᵀ"),
    (ListOfThree(16), "additive", "W = 1, U = 1, v = `scale`"),
    (ListOfHeads(2, 8, 16), "multi-head", "2 heads: queries by `heads.*.query.weight`, keys by `heads.*.key.weight`"),
    (ProjectedKeys(16), "additive", "W = `query_layer.weight`, U = 1"),
    (attention.General(8, 12), "general", "W = `key.weight`"),
    (attention.Additive(8, 12, 10), "additive", "W = `query.weight`, U = `key.weight`, v = `energy.weight`"),
    (attention.Concat(8, 12, 10), "concat", "W = `joint.weight`"),
]


@pytest.mark.parametrize("module, name, words", FORMULAS, ids=lambda value: type(value).__name__)
def test_a_known_formula(module, name, words):
    formula = told(module)
    assert name in formula.names and words in formula.words


class Scored(nn.Module):
    """A module with a score of the test's."""

    def __init__(self, score):
        super().__init__()
        self.W_a, self.v = nn.Linear(8, 8, bias=False), nn.Parameter(torch.randn(8))
        self.score = score

    def forward(self, query, keys, values):
        weights = torch.softmax(self.score(self, query, keys), dim=-1)
        return weights @ values, weights


def dot(query, keys):
    return query @ keys.transpose(1, 2)


@pytest.mark.parametrize(
    "score, words",
    [
        (lambda m, q, k: dot(q, k) / 8, "dot products divided by d, not by its root: near scaled dot"),
        (lambda m, q, k: dot(q, k) * math.sqrt(8), "dot products multiplied by √d, not divided by it: near scaled dot"),
        (lambda m, q, k: dot(m.W_a(q), k), "Luong general: q · W k with W = `W_a.weight`ᵀ; largest difference"),
        (
            lambda m, q, k: dot(m.W_a(q), k) / math.sqrt(8),
            "W = `W_a.weight`ᵀ, divided by √d, which the paper does not do",
        ),
        (lambda m, q, k: dot(m.W_a(q), m.W_a(k)), "near multi-head, one head: queries by `W_a.weight`, keys by"),
        (lambda m, q, k: F.relu(m.W_a(q)[:, :, None] + m.W_a(k)[:, None]) @ m.v, "with ReLU in place of tanh"),
        (lambda m, q, k: dot(F.normalize(q, dim=-1), F.normalize(k, dim=-1)), "the cosine of q and k, times 1"),
        (
            lambda m, q, k: dot(m.W_a(q), torch.sin(k)),
            "none of the known ones; it is linear in the query and not in the keys",
        ),
    ],
)
def test_a_near_miss_is_told_by_what_differs(score, words):
    torch.manual_seed(0)
    formula = told(Scored(score))
    assert words in formula.words
    assert bool(formula.names) == formula.words.startswith("Luong")


def test_the_formula_can_be_part_of_the_verdict():
    module = Attn("general", 16)
    assert own.check(module, formula="general").ok
    (fault,) = own.check(module, formula="additive").faults
    assert fault.test == "the formula is additive" and fault.reason.startswith("Luong general: q · W k")
    with pytest.raises(ValueError, match="formula must be one of additive, dot, .*; got 'best'"):
        own.check(module, formula="best")


class Copied(nn.Module):
    """Layers that begin as copies of one, as *The Annotated Transformer* makes them."""

    def __init__(self, width=16, root=8):
        super().__init__()
        layer = nn.Linear(width, width)
        self.layers = nn.ModuleList([copy.deepcopy(layer) for _ in range(4)])
        self.root = root

    def forward(self, query, key, value):
        q, k, v = (
            layer(x).unflatten(-1, (2, -1)).transpose(1, 2)
            for layer, x in zip(self.layers, (query, key, value), strict=False)
        )
        weights = torch.softmax(q @ k.transpose(-2, -1) / self.root**0.5, dim=-1)
        return self.layers[3]((weights @ v).transpose(1, 2).flatten(2)), weights


def test_layers_that_begin_as_copies_of_one_are_told_apart():
    formula = told(Copied())
    assert "multi-head" in formula.names and [place.parameter for place in formula.places.values()] == [
        f"layers.{layer}.{part}" for layer in (0, 1, 2, 3) for part in ("weight", "bias")
    ]


class Block(nn.Module):
    """One causal head of a language model for at most `block_size` tokens, divided by the root of `n_embd`."""

    def __init__(self, config):
        super().__init__()
        self.query, self.key = (nn.Linear(config["n_embd"], 8, bias=False) for _ in range(2))
        self.register_buffer("tril", torch.tril(torch.ones(24, 24)))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).transpose(-2, -1) * x.shape[-1] ** -0.5
        weights = torch.softmax(scores.masked_fill(self.tril[: x.shape[1], : x.shape[1]] == 0, float("-inf")), dim=-1)
        return weights @ x, weights


def test_a_root_of_the_wrong_width_is_a_fault_and_a_stated_length_is_none():
    report = own.check(Block)
    verdicts = {line.test: (line.verdict, line.reason) for line in report.lines}
    assert verdicts["one sentence, one key, 200 keys"] == ("limit", "it is built for at most 24 keys")
    verdict, reason = verdicts["scores are scaled as in the formula"]
    assert verdict == "fault" and reason.endswith("divided by the root of the width of the input, not of a head's")


def test_a_learnt_matrix_does_not_excuse_a_wrong_root():
    line = formulas.scaling(told(Scored(lambda m, q, k: dot(m.W_a(q), k) / 8)))
    assert line.verdict == "fault" and line.reason.endswith("divided by d, not by its root")
