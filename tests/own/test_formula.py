"""The formula of a module is told with its own parameters in it; a near miss is told by what differs."""

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
