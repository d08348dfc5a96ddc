"""Formulas besides the usual ones are named with their paper, and a near miss, with another constant, is not."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import own
from attnviz.own.formula import recognised
from attnviz.own.recognise import recognise


def words_of(module):
    torch.manual_seed(0)
    with torch.no_grad():
        return recognised(recognise(module())).words


class Heads(nn.Module):
    """Self-attention of two heads. `shares` is for subclasses."""

    root = 0.5

    def __init__(self, d_model=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (2, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        weights = self.shares(q @ k.mT / q.shape[-1] ** self.root)
        return (weights @ v).transpose(1, 2).flatten(2), weights


class Rectified(Heads):
    """Wortsman et al. 2023: ReLU, divided by the number of keys."""

    power = 1.0

    def shares(self, scores):
        return F.relu(scores) / scores.shape[-1] ** self.power


class ByTheRoot(Rectified):
    power = 0.5


class WithoutRoot(Rectified):
    root = 0.0


class Capped(Heads):
    """Gemma 2: cap * tanh(scores / cap)."""

    times, divided = 50, 50

    def shares(self, scores):
        return (self.times * torch.tanh(scores / self.divided)).softmax(dim=-1)


class CappedCausal(Capped):
    def shares(self, scores):
        later = torch.ones_like(scores, dtype=torch.bool).triu(1)
        return (5 * torch.tanh(scores / 5)).masked_fill(later, -math.inf).softmax(dim=-1)


class CappedTwice(Capped):
    times, divided = 10, 5


class CappedWithoutRoot(Capped):
    root = 0.0


class Query(nn.Module):
    """Attention of a query (B,T,8) to keys (B,S,12). `score` is for subclasses."""

    def __init__(self, query_dim=8, key_dim=12):
        super().__init__()
        self.W, self.b = nn.Parameter(torch.randn(query_dim, key_dim) / 4), nn.Parameter(torch.tensor([0.3]))

    def forward(self, query, keys, values):
        return (weights := self.score(query @ self.W @ keys.mT).softmax(dim=-1)) @ values, weights


class Clipped(Query):
    """Bello et al. 2016, with C = 10."""

    def score(self, products):
        return 10 * torch.tanh(products)


class Interactive(Query):
    """Ma et al. 2017, eq. 5."""

    def score(self, products):
        return torch.tanh(products + self.b)


class Shares(Query):
    def score(self, products):
        return products.sigmoid()


class Gated(nn.Module):
    """Ilse et al. 2018, eq. 9."""

    gate = torch.sigmoid

    def __init__(self, input_dim=16, hidden_dim=8):
        super().__init__()
        self.V, self.U = nn.Linear(input_dim, hidden_dim), nn.Linear(input_dim, hidden_dim)
        self.w = nn.Linear(hidden_dim, 1)

    def forward(self, x):
        scores = self.w(torch.tanh(self.V(x)) * type(self).gate(self.U(x))).squeeze(-1)
        return ((weights := scores.softmax(dim=-1)).unsqueeze(1) @ x).squeeze(1), weights


class GatedByTanh(Gated):
    gate = torch.tanh


class Gat(nn.Module):
    """Veličković et al. 2018, eq. 3, of heads that share a vector."""

    slope, heads = 0.2, 1

    def __init__(self, in_features=16, out_features=8):
        super().__init__()
        self.W = nn.Linear(in_features, out_features, bias=False)
        self.a = nn.Linear(2 * out_features // self.heads, 1, bias=False)

    def forward(self, x):
        h = self.W(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)  # (B, H, N, d)
        first, second = torch.broadcast_tensors(h.unsqueeze(3), h.unsqueeze(2))
        scores = F.leaky_relu(self.a(torch.cat([first, second], dim=-1)).squeeze(-1), self.slope)
        weights = scores.softmax(dim=-1)
        return (weights @ h).transpose(1, 2).flatten(2), weights


class GatOfHeads(Gat):
    heads = 2


class GatOfTwoVectors(Gat):
    """As in PyTorch Geometric: a vector for each end, and for each head."""

    heads = 2

    def __init__(self, in_features=16, out_features=8):
        super().__init__(in_features, out_features)
        self.a, self.b = (nn.Parameter(torch.randn(1, 2, out_features // 2)) for _ in range(2))

    def forward(self, x):
        h = self.W(x).unflatten(-1, (2, -1))
        ends = ((h * self.a).sum(-1).transpose(1, 2), (h * self.b).sum(-1).transpose(1, 2))
        weights = F.leaky_relu(ends[0].unsqueeze(-1) + ends[1].unsqueeze(-2), 0.2).softmax(dim=-1)
        return (weights @ h.transpose(1, 2)).transpose(1, 2).flatten(2), weights


class GatOfAnotherSlope(Gat):
    slope = 0.01


class GatOfAGraph(nn.Module):
    """As in pyGAT: the neighbours of each node of one graph are given."""

    def __init__(self, in_features=16, out_features=8):
        super().__init__()
        self.W, self.a = nn.Parameter(torch.randn(in_features, out_features)), nn.Parameter(torch.randn(16, 1))

    def forward(self, x, adj):
        h = x @ self.W
        scores = F.leaky_relu(h @ self.a[:8] + (h @ self.a[8:]).T, 0.2)
        return (weights := torch.where(adj > 0, scores, -9e15).softmax(dim=-1)) @ h, weights


class Gatv2(nn.Module):
    """Brody et al. 2022, eq. 7."""

    slope = 0.2

    def __init__(self, in_features=16, out_features=8):
        super().__init__()
        self.W, self.U = (nn.Linear(in_features, out_features) for _ in range(2))
        self.a = nn.Linear(out_features, 1, bias=False)

    def forward(self, x):
        h = self.U(x)
        scores = self.a(F.leaky_relu(self.W(x).unsqueeze(2) + h.unsqueeze(1), self.slope))
        return (weights := scores.squeeze(-1).softmax(dim=-1)) @ h, weights


class Gatv2OfAnotherSlope(Gatv2):
    slope = 0.01


GAT, GATED = "GAT (Veličković et al. 2018): LeakyReLU(0.2) of v · ([W q; W k])", "gated attention pooling (Ilse et al."
NAMED = [
    (Rectified, "multi-head", "normalised by ReLU and the number of keys (Wortsman et al. 2023), not by softmax"),
    (Capped, "multi-head", "scores s become 50 · tanh(s / 50) (soft cap, Gemma Team 2024)"),
    (CappedCausal, "multi-head", "scores s become 5 · tanh(s / 5) (soft cap, Gemma Team 2024)"),
    (Clipped, "10 · tanh(s) (Bello et al. 2016), where s is Luong general: q · W k with W = `W`; largest", ""),
    (Interactive, "tanh(s) (as in Ma et al. 2017), where s is Luong general: q · W k with W = `W`; largest", ""),
    (Shares, "sigmoid(s), where s is Luong general: q · W k with W = `W`; largest difference", ""),
    (Gated, f"{GATED} 2018): v · (tanh(V k) ⊙ sigmoid(U k)) with V = `V.weight` and its bias, U = `U.weight`", ""),
    (Gat, f"{GAT} with W = `W.weight`, v = `a.weight`; largest difference", ""),
    (GatOfHeads, f"{GAT} with W = `W.weight`, v = `a.weight`; largest difference", ""),
    (GatOfTwoVectors, f"{GAT} with W = `W.weight`, v = [`a`; `b`]; largest difference", ""),
    (GatOfAGraph, f"{GAT} with W = `W`ᵀ, v = `a`; largest difference", ""),
    (Gatv2, "GATv2 (Brody et al. 2022): v · LeakyReLU(0.2)(W q + U k) with W = `W.weight` and its bias, U = `U.w", ""),
]


@pytest.mark.parametrize("module, words, more", NAMED, ids=lambda value: getattr(value, "__name__", None))
def test_a_formula_is_named_with_its_paper(module, words, more):
    formula = words_of(module)
    assert formula.startswith(words) and formula.endswith(more), formula
    assert float(formula.split("largest difference ")[1].split(";")[0]) < 1e-6


@pytest.mark.parametrize(
    "module, words",
    [
        (ByTheRoot, "none of the known ones; some keys get exactly 0 without a mask"),
        (WithoutRoot, "none of the known ones; some keys get exactly 0 without a mask"),
        (CappedTwice, "but the products are times 0.707; scores s become 10 · tanh(s / 10)"),
        (CappedWithoutRoot, "but the products are not divided by √d; scores s become 50 · tanh(s / 50)"),
        (GatedByTanh, "none of the known ones: pooling"),
        (GatOfAnotherSlope, "none of the known ones: LeakyReLU(0.01) of v · ([W q; W k]) with W = `W.weight`"),
        (Gatv2OfAnotherSlope, "near additive (Bahdanau): W q + U k with W = `W.weight` and its bias"),
    ],
)
def test_a_near_miss_is_not_named(module, words):
    formula = words_of(module)
    assert words in formula and "20" not in formula, formula  # no year of a paper


def test_the_rows_of_relu_attention_are_a_limit_and_those_of_another_constant_a_fault():
    (limit,) = [line for line in own.check(Rectified).lines if line.test == "weights sum to 1 over keys"]
    assert limit.verdict == "limit" and "as in ReLU attention (Wortsman et al. 2023)" in limit.reason
    assert "weights sum to 1 over keys" in [line.test for line in own.check(ByTheRoot).faults]


def test_the_tanh_of_a_formula_is_another_one_and_a_soft_cap_is_not():
    assert own.check(Capped, formula="multi-head").ok
    assert [line.test for line in own.check(Interactive, formula="general").faults] == ["the formula is general"]


def test_a_missing_root_is_a_fault_of_capped_scores_too():
    assert [line.test for line in own.check(CappedWithoutRoot).faults] == ["scores are scaled as in the formula"]
