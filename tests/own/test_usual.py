"""Modules as courses and blogs have them, right ones and usual mistakes, each told by its cause."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import own


class Projected(nn.Module):
    """Queries, keys and values in projections. `weigh` and `read` are for subclasses."""

    def __init__(self, d_model):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))

    def weigh(self, q, k):
        return F.softmax(q @ k.mT / math.sqrt(q.shape[-1]), dim=-1)

    def read(self, weights, values):
        return weights @ self.v(values)

    def forward(self, x):
        weights = self.weigh(self.q(x), self.k(x))
        return self.read(weights, x), weights


class Bare(Projected):
    """Without projections, so that no formula is looked for among them."""

    def __init__(self):
        nn.Module.__init__(self)
        self.q = self.k = self.v = nn.Identity()


class Transposed(Projected):
    def read(self, weights, values):
        return weights.mT @ self.v(values)


class RootOfKeys(Projected):
    def weigh(self, q, k):
        return F.softmax(q @ k.mT / math.sqrt(k.shape[1]), dim=-1)


class OverFeatures(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):
        weights = F.softmax((self.W(encoder_outputs) * hidden.unsqueeze(1)).sum(-1), dim=1)
        return (weights.unsqueeze(2) * encoder_outputs).sum(dim=2), weights


class MeanForSum(OverFeatures):
    def forward(self, hidden, encoder_outputs):
        _, weights = super().forward(hidden, encoder_outputs)
        return (weights.unsqueeze(2) * encoder_outputs).mean(dim=1), weights


class CutOff(nn.Module):
    """A score for each of 24 places, of which as many are kept as there are keys."""

    def __init__(self, hidden_size):
        super().__init__()
        self.places = nn.Linear(hidden_size, 24)

    def forward(self, hidden, encoder_outputs):
        return F.softmax(self.places(hidden), dim=1)[:, : encoder_outputs.shape[1]]


class Gumbel(Bare):
    def weigh(self, q, k):
        return F.gumbel_softmax(q @ k.mT, dim=-1)


class ByTheLargest(Bare):
    def weigh(self, q, k):
        return super().weigh(q, k) / super().weigh(q, k).amax(dim=-1, keepdim=True)


class LargeForVisible(nn.Module):
    def forward(self, query, key, value, mask=None):
        scores = query @ key.mT / math.sqrt(query.shape[-1])
        if mask is not None:
            scores = scores + mask.unsqueeze(1).to(scores) * 1e9
        weights = F.softmax(scores, dim=-1)
        return weights @ value, weights


class OtherWeightsUsed(nn.Module):
    """Two softmaxes, as hops have them, but the weights that come back are used for nothing."""

    def __init__(self, embed_dim):
        super().__init__()
        self.values = nn.Linear(embed_dim, embed_dim)

    def forward(self, query, memory):
        scores = torch.einsum("bd,bsd->bs", query, memory)
        used, returned = F.softmax(scores / 2, dim=1), F.softmax(scores, dim=1)
        return torch.einsum("bs,bsd->bd", used, self.values(memory)), returned


class ValuesTwice(Projected):
    def read(self, weights, values):
        return self.v(weights @ self.v(values))


def rectified_shares(query, keys):
    scores = F.relu(query @ keys.mT)
    return scores / scores.sum(dim=-1, keepdim=True)


def rectified(query, keys):
    return F.relu(query @ keys.mT)


class OverAll(OverFeatures):
    def forward(self, hidden, encoder_outputs):
        scores = torch.einsum("bd,bsd->bs", self.W(hidden), encoder_outputs)
        return F.softmax(scores.flatten(), dim=0).view_as(scores)


class HidesScoresOfZero(OverFeatures):
    def hide(self, scores, keys):
        return scores.masked_fill(scores == 0, -1e4)

    def forward(self, hidden, encoder_outputs):
        scores = torch.einsum("bd,bsd->bs", F.linear(hidden, self.W.weight), encoder_outputs)
        return F.softmax(self.hide(scores, encoder_outputs), dim=1)


class HidesKeysOfZeros(HidesScoresOfZero):
    def hide(self, scores, keys):
        return scores.masked_fill((keys == 0).all(dim=-1), -1e4)


def by_keys(query, key, value):
    weights = F.softmax(query @ key.mT / math.sqrt(key.shape[1]), dim=-1)
    return weights @ value, weights


class TakesTheLargest(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.project = nn.Linear(hidden_size, hidden_size)

    def forward(self, decoder_hidden, encoder_outputs):
        scores = torch.einsum("bd,bsd->bs", self.project(decoder_hidden), encoder_outputs)
        return F.one_hot(scores.argmax(dim=-1), scores.shape[-1]).to(scores.dtype)


class Uniform(nn.Module):
    def forward(self, query, keys, values):
        weights = torch.full((len(query), query.shape[1], keys.shape[1]), 1 / keys.shape[1], dtype=query.dtype)
        return weights @ values, weights


def hides_for_all(query, keys, mask=None):
    scores = torch.einsum("bd,bsd->bs", query, keys)
    return F.softmax(scores if mask is None else scores.masked_fill((mask == 0).any(dim=0), -1e4), dim=1)


def largest_part(query, keys):
    weights = F.softmax(torch.einsum("bd,bsd->bs", query, keys), dim=1)
    return (weights.unsqueeze(2) * keys).amax(dim=1), weights


def hides_one_too_many(query, keys, lengths):
    scores = torch.einsum("bd,bsd->bs", query, keys)
    return F.softmax(scores.masked_fill(torch.arange(keys.shape[1]) >= lengths[:, None] - 1, -1e4), dim=1)


def next_to_0(query, keys, mask=None):
    scores = query @ keys.mT
    return F.softmax(scores if mask is None else scores + (1 - mask.unsqueeze(1).float()) * -1e-9, dim=-1)


class QueriesForKeys(Projected):
    def forward(self, x):
        weights = self.weigh(self.q(x), self.q(x))
        return self.read(weights, x), weights


class OnlyLater(Bare):
    def weigh(self, q, k):
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        return F.softmax(scores.masked_fill(torch.ones_like(scores).tril() == 1, -1e4), dim=-1)


@pytest.mark.parametrize(
    "module, test, cause",
    [
        (Uniform, "every parameter", "the query gets no gradient: it is not used, or cut off"),
        (TakesTheLargest, "every parameter", "project.weight, project.bias: the result has no gradient at all (detach"),
        (hides_for_all, "hidden keys get 0", "visible keys get 0 too: the mask of one sentence"),
        (largest_part, "context is", "the context is not the weights times any projection of the values"),
        (hides_one_too_many, "hidden keys get 0", "the length is counted one too few"),
        (next_to_0, "hidden keys get 0", "a number next to 0 hides (-1e-9 for -1e9?)"),
        (QueriesForKeys, "every parameter", "never used in forward(); `q.weight` makes queries and keys"),
        (OnlyLater, "permuted keys", "a token sees those after it and none before: the causal mask is upside down"),
        (ByTheLargest, "weights sum to 1", "each row is divided by its largest number, and not by its sum"),
        (ValuesTwice, "context is", "the values go through `v.weight` twice: give each projection a layer of its own"),
        (
            rectified_shares,
            "weights sum to 1",
            "a row is NaN, 0 divided by 0, where no score is above 0 and ReLU leaves",
        ),
        (rectified, "weights sum to 1", "ReLU of each score in place of a softmax over the keys"),
        (OverAll, "weights sum to 1", "weights sum to 1 over the whole tensor and not over the keys"),
        (HidesScoresOfZero, "hidden keys get 0", "a key is hidden where its score is 0, which is no sign of padding"),
        (by_keys, "scores are scaled", "dot products divided by the root of the number of keys, not by √d"),
        (Transposed, "context is", "the weights are transposed before they are multiplied with the values"),
        (RootOfKeys, "scores are scaled", "divided by the root of the number of keys, not by √d"),
        (OverFeatures, "context is", "weights times values, summed over the features and not over the keys"),
        (
            LargeForVisible,
            "hidden keys get 0",
            "with a mask all visible keys get the same weight: a number such as 1e9",
        ),
        (OtherWeightsUsed, "context is", "the context is not the weights times any projection of the values"),
    ],
)
def test_a_usual_mistake_is_told_by_its_cause(module, test, cause):
    reasons = {line.test: line.reason for line in own.check(module).faults}
    assert any(name.startswith(test) and cause in reason for name, reason in reasons.items()), reasons


def added(query, keys, mask=None):
    scores = query @ keys.mT
    return F.softmax(scores if mask is None else scores + mask.unsqueeze(1), dim=-1)


def test_a_mask_that_may_be_of_another_kind_is_a_limit():
    lines = [own.check(module).lines[2] for module in (HidesKeysOfZeros, added)]
    assert [line.verdict for line in lines] == ["limit", "limit"]
    assert lines[0].reason.startswith("a key of zeros, or whose score is 0, is hidden: right if padding is")
    assert lines[1].reason == "mask is added to the scores: right for 0 and −∞, and 1 and 0 would hide nothing"


def test_random_weights_are_one_fault():
    assert [line.test for line in own.check(Gumbel).faults] == ["no dropout in evaluation"]


class CausalAndPadding(Projected):
    """As `key_padding_mask` of PyTorch: 1 hides."""

    def forward(self, x, padding_mask=None):
        scores = self.q(x) @ self.k(x).mT / math.sqrt(x.shape[-1])
        scores = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -math.inf)
        scores = scores if padding_mask is None else scores.masked_fill(padding_mask.unsqueeze(1), -math.inf)
        return self.read(scores.softmax(dim=-1), x)


def test_a_causal_mask_beside_one_of_padding_is_right():
    """Upside down, the first tokens would see nothing, and their weights be NaN."""
    report = own.check(CausalAndPadding)
    assert report.ok and "padding_mask (B,S) bool, 1 hides a key" in report.form, report.faults


class AmongHeads(Projected):
    def forward(self, x):
        q, k, v = (layer(x).unflatten(-1, (2, -1)) for layer in (self.q, self.k, self.v))
        weights = self.weigh(q, k)
        return (weights @ v).flatten(2), weights


class BatchOf32(OverFeatures):
    def __init__(self, hidden_size, batch_size=32):
        super().__init__(hidden_size)
        self.batch_size = batch_size

    def forward(self, hidden, encoder_outputs):
        return F.softmax((encoder_outputs @ self.W(hidden).view(self.batch_size, -1, 1)).squeeze(2), dim=1)


@pytest.mark.parametrize(
    "module, reason",
    [
        (AmongHeads, "the heads of a token attend to each other, not tokens: swap the axes of tokens and heads"),
        (BatchOf32, "it runs with a batch of 32 sentences: take such sizes from the inputs, not from a number"),
    ],
)
def test_what_cannot_be_tested_is_told_why(module, reason):
    with pytest.raises(own.forms.NotRecognised, match=reason):
        own.check(module)


class Latents(nn.Module):
    """Learnt queries read the tokens, as in Perceiver and in Lin et al. 2017."""

    def __init__(self, d_model, latents=4):
        super().__init__()
        self.latents, self.k, self.v = nn.Parameter(torch.randn(latents, d_model)), *(nn.Linear(d_model, d_model),) * 2

    def forward(self, x):
        weights = F.softmax(self.latents @ self.k(x).mT, dim=-1)
        return weights @ self.v(x), weights


def test_pooling_may_have_several_learnt_queries():
    report = own.check(Latents)
    assert report.ok, report.faults
    assert report.form == "pooling, batch-first: (x (B,S,D)) -> context (B,H,D), weights (B,H,S)"


class Hops(nn.Module):
    """Sukhbaatar et al. 2015: the answer of a hop is the next query."""

    def __init__(self, embed_dim, hops=3):
        super().__init__()
        self.hops, self.H = hops, nn.Linear(embed_dim, embed_dim, bias=False)

    def forward(self, query, memory):
        for _ in range(self.hops):
            weights = F.softmax(torch.einsum("bd,bsd->bs", query, memory), dim=1)
            query = self.H(query) + torch.einsum("bs,bsd->bd", weights, memory)
        return query, weights


class HopsApart(Hops):
    """Keys and values apart, as those of Sukhbaatar et al. (2015)."""

    def forward(self, query, keys, values):
        for _ in range(self.hops):
            weights = torch.softmax(query @ keys.mT, dim=-1)
            query = self.H(query) + weights @ values
        return query, weights


def test_the_context_of_several_hops_is_right():
    assert not own.check(HopsApart).faults
    report = own.check(Hops)
    assert report.ok, report.faults
    assert report.lines[1].reason.endswith("of every softmax that is taken (hops, or heads)")


class Pointer(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W, self.U = (nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(2))
        self.v = nn.Linear(hidden_size, 1, bias=False)

    def forward(self, decoder_state, encoder_outputs, mask):
        scores = self.v(torch.tanh(self.U(encoder_outputs) + self.W(decoder_state).unsqueeze(1))).squeeze(-1)
        return F.log_softmax(scores.masked_fill(mask == 0, -math.inf), dim=-1)


def test_logarithms_of_weights_alone_are_a_limit_and_all_else_is_tested():
    report = own.check(Pointer)
    lines = {line.test: (line.verdict, line.reason) for line in report.lines}
    assert report.ok and report.form.endswith("-> logarithms of weights (B,S)")
    assert lines["weights sum to 1 over keys"][0] == "limit" and lines["hidden keys get 0"][0] == "ok"
    assert report.formula.startswith("additive (Bahdanau): v · tanh(W q + U k) with W = `W.weight`, U = `U.weight`")


class AdditiveHeads(nn.Module):
    def __init__(self, hidden_size, num_heads):
        super().__init__()
        self.heads, self.W, self.U = num_heads, nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.v = nn.Parameter(torch.randn(num_heads, hidden_size // num_heads))

    def forward(self, query, keys):
        q, k = (x.unflatten(-1, (self.heads, -1)) for x in (self.W(query), self.U(keys)))
        return F.softmax((torch.tanh(q + k) * self.v).sum(-1), dim=1).transpose(1, 2)


class TanhLast(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W, self.v = nn.Linear(2 * hidden_size, hidden_size), nn.Linear(hidden_size, 1, bias=False)

    def forward(self, hidden, encoder_outputs):
        both = torch.cat([hidden.unsqueeze(1).expand_as(encoder_outputs), encoder_outputs], dim=-1)
        return F.softmax(torch.tanh(self.v(self.W(both))).squeeze(-1), dim=1)


@pytest.mark.parametrize(
    "module, words",
    [
        (
            AdditiveHeads,
            "additive (Bahdanau): v · tanh(W q + U k) with W = `W.weight` and its bias, U = `U.weight` and",
        ),
        (
            TanhLast,
            "near additive (Bahdanau): W [q; k] with W = `W.weight` and its bias, v = `v.weight`, with tanh after v",
        ),
    ],
)
def test_other_additive_scores(module, words):
    report = own.check(module)
    assert report.ok and report.formula.startswith(words)
