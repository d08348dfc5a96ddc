"""What differs from a known formula is named: how weights are normalised, heads are mixed, and what positions add."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import own
from attnviz.own.formula import recognised
from attnviz.own.recognise import recognise
from attnviz.own.scores import entmax


class Heads(nn.Module):
    """Self-attention of two heads. `scores`, `shares` and `mixed` are for subclasses."""

    def __init__(self, d_model=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.width = d_model // 2

    def scores(self, q, k):
        return q @ k.mT / math.sqrt(self.width)

    def shares(self, scores):
        return scores.softmax(dim=-1)

    def mixed(self, weights):
        return weights

    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (2, -1)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        weights = self.mixed(self.shares(self.scores(q, k)))
        return (weights @ v).transpose(1, 2).flatten(2), weights


class Sparsemax(Heads):
    """Martins & Astudillo 2016, algorithm 1."""

    def shares(self, scores):
        ordered = scores.sort(dim=-1, descending=True).values
        sums, counts = ordered.cumsum(dim=-1), torch.arange(1, scores.shape[-1] + 1)
        size = (1 + counts * ordered > sums).sum(dim=-1, keepdim=True)
        return (scores - (sums.gather(-1, size - 1) - 1) / size).clamp_min(0)


class Entmax(Heads):
    """1.5-entmax: squares of what is above a threshold, which is found by search."""

    def shares(self, scores):
        least, most = scores.amax(-1, keepdim=True) / 2 - 1, scores.amax(-1, keepdim=True) / 2
        for _ in range(80):
            middle = (least + most) / 2
            much = (scores / 2 - middle).clamp_min(0).square().sum(-1, keepdim=True) > 1
            least, most = torch.where(much, middle, least), torch.where(much, most, middle)
        return (scores / 2 - least).clamp_min(0).square()


class TopThree(Heads):
    def shares(self, scores):
        least = scores.topk(min(3, scores.shape[-1]), dim=-1).values[..., -1:]
        return scores.masked_fill(scores < least, -math.inf).softmax(dim=-1)


class MixedBefore(Heads):
    def __init__(self, d_model=16):
        super().__init__(d_model)
        self.mix = nn.Parameter(torch.tensor([[1.0, 0.3], [-0.4, 0.8]]))

    def scores(self, q, k):
        return torch.einsum("bhts,hg->bgts", super().scores(q, k), self.mix)


class MixedAfter(MixedBefore):
    def scores(self, q, k):
        return Heads.scores(self, q, k)

    def mixed(self, weights):
        return torch.einsum("bhts,hg->bgts", weights, self.mix)


class Cosine(Heads):
    """As in Swin Transformer v2: the temperature of each head is learnt as its logarithm."""

    def __init__(self, d_model=16):
        super().__init__(d_model)
        self.logit_scale = nn.Parameter(torch.tensor([2.0, 2.5])[:, None, None])

    def scores(self, q, k):
        return F.normalize(q, dim=-1) @ F.normalize(k, dim=-1).mT * self.logit_scale.exp()


class Normed(Heads):
    def __init__(self, d_model=16):
        super().__init__(d_model)
        self.q_norm, self.k_norm = nn.LayerNorm(self.width), nn.LayerNorm(self.width)

    def scores(self, q, k):
        return super().scores(self.q_norm(q), self.k_norm(k))


class UnitKeys(Heads):
    """As in Reformer, where one matrix makes queries and keys."""

    def scores(self, q, k):
        return super().scores(q, F.normalize(k, dim=-1))


class Relative(Heads):
    """Shaw et al. 2018, eq. 4: a learnt vector of each distance, up to 2, is added to the keys."""

    def __init__(self, d_model=16):
        super().__init__(d_model)
        self.distances = nn.Parameter(torch.randn(5, self.width, generator=torch.Generator().manual_seed(0)))

    def between(self, length):
        away = torch.arange(length) - torch.arange(length)[:, None]
        return self.distances[away.clamp(-2, 2) + 2]

    def scores(self, q, k):
        added = torch.einsum("bhtd,tsd->bhts", q, self.between(q.shape[2]))
        return (q @ k.mT + added) / math.sqrt(self.width)


class Disentangled(Relative):
    def scores(self, q, k):
        added = torch.einsum("bhsd,tsd->bhts", k, self.between(q.shape[2]).flip(-1))
        return super().scores(q, k) + added


class WithContentBias(Relative):
    def scores(self, q, k):
        added = torch.einsum("bhsd,d->bhs", k, self.distances[0]).unsqueeze(2)
        return super().scores(q, k) + added + torch.einsum("tsd,d->ts", self.between(q.shape[2]), self.distances[1])


PRODUCTS = "multi-head, 2 heads: queries by `q.weight` and its bias, keys by `k.weight`"
SHAW = "plus q · r, r a learnt vector of the distance (relative positions, Shaw et al. 2018)"
TALKING = "the softmax (talking heads, Shazeer et al. 2020)"
TOLD = [
    (Sparsemax, f"{PRODUCTS}, values", "normalised by sparsemax (Martins & Astudillo 2016), not by softmax"),
    (Entmax, f"{PRODUCTS}, values", "normalised by 1.5-entmax (Peters et al. 2019), not by softmax"),
    (TopThree, f"{PRODUCTS}, values", "only the 3 keys with the largest scores get weight (top-k)"),
    (MixedBefore, "multi-head, 2 heads: queries", f"heads mixed before {TALKING}"),
    (MixedAfter, f"{PRODUCTS}, and a context", f"heads mixed after {TALKING}"),
    (Normed, f"{PRODUCTS}, values", "queries of heads after `q_norm`, keys after `k_norm`"),
    (UnitKeys, f"{PRODUCTS}, values", "keys divided by their length"),
    (Relative, PRODUCTS, SHAW),
    (Disentangled, PRODUCTS, "plus q · r + k · r′, of the distance (as in DeBERTa, He et al. 2021)"),
    (WithContentBias, PRODUCTS, "plus u · k, and q · r and a number of the distance (Transformer-XL, Dai et al. 2019)"),
]


@pytest.mark.parametrize("module, words, more", TOLD, ids=lambda value: getattr(value, "__name__", None))
def test_what_differs_from_a_formula_is_named(module, words, more):
    torch.manual_seed(0)
    report = own.check(module())
    assert report.ok, report.faults
    assert report.formula.startswith(words) and report.formula.endswith(f"; {more}")
    assert float(report.formula.removesuffix(f"; {more}").split("largest difference ")[1]) < 1e-9


def test_a_learnt_temperature_is_named():
    with torch.no_grad():
        formula = recognised(recognise(Cosine()))
    assert "times 7.39, 12.2, which is learnt: exp(`logit_scale`); largest difference" in formula.words
    query_and_key = "the cosine of W q and U k with W = `q.weight`, U = `k.weight`"
    assert formula.words.startswith(f"none of the known ones: {query_and_key}")


def test_heads_mixed_after_the_softmax_are_no_fault_but_rows_need_not_sum_to_1():
    report = own.check(MixedAfter())
    assert report.ok and (report.lines[0].verdict, report.lines[0].reason) == (
        "limit",
        f"heads are mixed after {TALKING}: rows need not sum to 1",
    )


class TanhTimesDistance(Heads):
    def scores(self, q, k):
        positions = torch.arange(q.shape[2])
        return torch.tanh(super().scores(q, k)) * (positions - positions[:, None]).abs()


class TanhTimesPosition(Heads):
    def scores(self, q, k):
        return torch.tanh(super().scores(q, k)) * torch.arange(q.shape[2])


@pytest.mark.parametrize(
    "module, words",
    [(TanhTimesDistance, "the distance between query and key"), (TanhTimesPosition, "the positions of")],
)
def test_what_is_not_known_says_whether_it_depends_on_positions(module, words):
    with torch.no_grad():
        formula = recognised(recognise(module()))
    assert formula.words.startswith(f"none of the known ones; it depends on {words}")


def test_weights_of_entmax_by_hand():
    """Scores 1 and 0.5: sparsemax takes off .25. With alpha 1.5, sqrt(w1) - sqrt(w2) = .25 and w1 + w2 = 1."""
    scores = torch.tensor([1.0, 0.5], dtype=torch.float64)
    assert torch.allclose(entmax(scores, 2.0), torch.tensor([0.75, 0.25], dtype=torch.float64))
    roots = entmax(scores, 1.5).sqrt()
    assert torch.allclose(roots[0] - roots[1], torch.tensor(0.25, dtype=torch.float64))
    assert torch.allclose(roots.square().sum(), torch.ones((), dtype=torch.float64))


class AddedPositions(Heads):
    """A learnt vector of each position is added to the tokens."""

    def __init__(self, d_model=16):
        super().__init__(d_model)
        self.positions = nn.Parameter(torch.randn(512, d_model))

    def forward(self, x):
        return super().forward(x + self.positions[: x.shape[1]])


def test_products_of_query_and_key_are_named_beside_other_terms():
    with torch.no_grad():
        words = recognised(recognise(AddedPositions())).words
    assert words == f"{PRODUCTS}; plus terms that do not depend on query and key together, such as of positions"


class AxesOfOne(nn.Module):
    """Parameters with axes of length 1, and a bias that is named after its matrix."""

    def __init__(self):
        super().__init__()
        self.W_q, self.W_k = (nn.Parameter(torch.randn(1, 8, 8)) for _ in range(2))
        self.b_q, self.v = (nn.Parameter(torch.randn(1, 1, 8)) for _ in range(2))

    def forward(self, query, keys):  # (B, 1, D), (B, S, D)
        hidden = torch.tanh(query @ self.W_q + keys @ self.W_k + self.b_q)
        return torch.softmax((hidden * self.v).sum(dim=-1), dim=-1).unsqueeze(1)


class Blocks(nn.Module):
    """Each head reads its part of the input with a matrix of its own."""

    def __init__(self):
        super().__init__()
        self.wq, self.wk = (nn.Parameter(torch.randn(2, 8, 8)) for _ in range(2))

    def forward(self, x):
        x = x.unflatten(-1, (2, -1)).transpose(1, 2)
        weights = torch.softmax(x @ self.wq @ (x @ self.wk).mT / math.sqrt(8), dim=-1)
        return (weights @ x).transpose(1, 2).flatten(2), weights


@pytest.mark.parametrize(
    "module, words",
    [
        (AxesOfOne, "W = `W_q`ᵀ and its bias, U = `W_k`ᵀ, v = `v`; largest difference"),
        (
            Blocks,
            "multi-head, 2 heads: queries by `wq` of each head for its part, keys by `wk` of each head for its part",
        ),
    ],
)
def test_parameters_may_have_three_axes(module, words):
    with torch.no_grad():
        assert words in recognised(recognise(module())).words


class StartsAt0(nn.Module):
    """Parameters that begin as 0, as an output projection in GPT and a query projection in muP may."""

    def __init__(self, d_model, zeros="o"):
        super().__init__()
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))
        for part in (getattr(self, name) for name in zeros):
            nn.init.zeros_(part.weight)
            nn.init.zeros_(part.bias)

    def forward(self, query, key, value):
        weights = torch.softmax(self.q(query) @ self.k(key).mT / math.sqrt(key.shape[-1]), dim=-1)
        return self.o(weights @ self.v(value)), weights


@pytest.mark.parametrize("zeros", ["o", "q", "vo"])
def test_what_begins_as_0_is_no_fault(zeros):
    module = StartsAt0(16, zeros)
    report = own.check(module)
    assert report.ok, report.faults
    words = "queries by `q.weight`, keys by `k.weight`, values by `v.weight`, output by `o.weight`; "
    assert words in report.formula.replace(" and its bias", "")
    names = ", ".join(f"`{name}.weight`" for name in zeros)
    assert report.formula.endswith(f"; tested with random numbers for {names}, all 0 at the start")
    assert not any(getattr(module, name).weight.any() for name in zeros)


class Adapted(StartsAt0):
    """LoRA: what is added to a matrix begins as 0."""

    def __init__(self, d_model):
        super().__init__(d_model, "")
        self.lora_A, self.lora_B = nn.Parameter(torch.randn(2, d_model)), nn.Parameter(torch.zeros(d_model, 2))

    def forward(self, query, key, value):
        return super().forward(query + query @ self.lora_A.T @ self.lora_B.T, key, value)


def test_the_formula_of_what_begins_as_0_is_told_with_0_if_it_is_a_known_one_only_then():
    report = own.check(Adapted)
    assert report.ok and report.formula.startswith("multi-head, one head: queries by `q.weight`"), report


def squared(query, keys):
    products = (query @ keys.mT) ** 2
    return products / products.sum(dim=-1, keepdim=True)


def test_an_even_function_of_the_query_does_not_ignore_it():
    lines = {line.test: line.verdict for line in own.check(squared).lines}
    assert lines["every parameter gets a gradient"] == "ok"


class CutKeys(Heads):
    def scores(self, q, k):
        return super().scores(q, k.detach())


def test_a_bias_that_cancels_is_not_called_unused():
    (reason,) = [line.reason for line in own.check(CutKeys).lines if line.test == "every parameter gets a gradient"]
    cut = "k.weight gets no gradient: it is used, but its gradient is cut (detach, .data, no_grad)"
    assert reason == f"{cut}; k.bias gets no gradient: it is used, but changes no result"


def cut_weights(query, keys):
    weights = (query @ keys.mT).exp()  # no softmax of PyTorch, after which a change would be told
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return torch.where(weights < 0.1, 0, weights)


def boxcar(query, keys):
    weights = (torch.cdist(query, keys) < 2.5).to(query.dtype)
    return weights / weights.sum(dim=-1, keepdim=True)


@pytest.mark.parametrize(
    "module, reason",
    [
        (cut_weights, "some weights are cut to 0, and rows are not divided by their sums after it: they do not sum"),
        (boxcar, "a row is NaN, 0 divided by 0, where all weights are cut to 0: a softmax gives every key a share"),
    ],
)
def test_weights_that_are_cut_are_not_called_relu(module, reason):
    assert own.check(module).lines[0].reason.startswith(reason)


@pytest.mark.parametrize(
    "norm, words",
    [(nn.BatchNorm1d(16), "multi-head, 2 heads: queries by `q.weight`"), (nn.GroupNorm(4, 16), "none of the known")],
)
def test_a_norm_of_a_batch_or_of_groups_is_no_norm_of_a_vector(norm, words):
    class Normed(Heads):
        def forward(self, x):
            return super().forward(self.norm(x.mT).mT)

    module = Normed()
    module.norm = norm
    with torch.no_grad():
        assert recognised(recognise(module.eval())).words.startswith(words)
