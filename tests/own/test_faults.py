"""Common faults of a student's attention: each is told by its true cause. The module without the fault passes."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import own


class Right(nn.Module):
    """Scaled dot in a mask's usual form. Faults are methods of subclasses."""

    def __init__(self, width=16, dropout=0.5):
        super().__init__()
        self.project = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)

    def scores(self, query, keys):
        return self.project(query) @ self.project(keys).transpose(1, 2) / math.sqrt(keys.shape[-1])

    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.unsqueeze(1) == 0, torch.finfo(scores.dtype).min)

    def shares(self, scores):
        return torch.softmax(scores, dim=-1)

    def weigh(self, query, keys, mask):
        return self.shares(self.hide(self.scores(query, keys), mask))

    def forward(self, query, keys, values, mask=None):
        weights = self.weigh(query, keys, mask)
        return self.drop(weights) @ values, weights


class OverQueries(Right):
    def shares(self, scores):
        return torch.softmax(scores, dim=1)


class OverBatch(Right):
    def shares(self, scores):
        return torch.softmax(scores, dim=0)


class NoSoftmax(Right):
    def shares(self, scores):
        return scores


class Logarithms(Right):
    def shares(self, scores):
        return torch.log_softmax(scores, dim=-1)


class UpsideDown(Right):
    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.unsqueeze(1) == 1, -math.inf)


class Forgotten(Right):
    def hide(self, scores, mask):
        return scores


class Multiplied(Right):
    def hide(self, scores, mask):
        return scores if mask is None else scores * mask.unsqueeze(1)


class MaskAfter(Right):
    def weigh(self, query, keys, mask):
        weights = torch.softmax(self.scores(query, keys), dim=-1)
        return weights if mask is None else weights * mask.unsqueeze(1)


class DividedBySum(MaskAfter):
    def weigh(self, query, keys, mask):
        return (weights := super().weigh(query, keys, mask)) / weights.sum(dim=-1, keepdim=True)


class FilledAfter(Right):
    def weigh(self, query, keys, mask):
        weights = torch.softmax(self.scores(query, keys), dim=-1)
        return weights if mask is None else weights.masked_fill(mask.unsqueeze(1) == 0, -1e9)


class Viewed(nn.Module):
    """A sequence-first module that makes its keys batch-first by view."""

    def __init__(self, hidden_size=16):
        super().__init__()
        self.project = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):  # (B, D), (S, B, D)
        keys = encoder_outputs.reshape(encoder_outputs.shape[1], -1, encoder_outputs.shape[2])
        scores = (self.project(keys) @ hidden.unsqueeze(2)).squeeze(2)
        return torch.softmax(scores, dim=1)


class HeadsByView(nn.Module):
    """Splits its heads by view alone, so that positions mix."""

    def __init__(self, d_model=16, heads=2):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))

    def split(self, x):
        return x.reshape(len(x), self.heads, x.shape[1], -1)

    def forward(self, query, keys, values):
        q, k, v = self.split(self.query(query)), self.split(self.key(keys)), self.split(self.value(values))
        weights = torch.softmax(q @ k.transpose(2, 3) / math.sqrt(q.shape[-1]), dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), weights


class AlwaysDrops(Right):
    def shares(self, scores):
        return F.dropout(torch.softmax(scores, dim=-1), 0.5)


class TooLargeForHalf(Right):
    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.unsqueeze(1) == 0, -1e9)


class InPlace(Right):
    def scores(self, query, keys):
        query /= math.sqrt(keys.shape[-1])
        return query @ keys.transpose(1, 2) + self.project(query) @ keys.transpose(1, 2)


class Unused(Right):
    def __init__(self, width=16):
        super().__init__(width)
        self.forgotten = nn.Linear(width, width)


class Detached(Right):
    def scores(self, query, keys):
        return query @ keys.transpose(1, 2) + self.project(query).detach() @ keys.transpose(1, 2)


class TimesKeys(Right):
    def forward(self, query, keys, values, mask=None):
        weights = self.weigh(query, keys, mask)
        return weights @ keys, weights


class HandMade(Right):
    def shares(self, scores):
        return scores.exp() / scores.exp().sum(dim=-1, keepdim=True)


class Squeezed(nn.Module):
    """squeeze() without an axis: one sentence loses its batch."""

    def __init__(self, hidden_size=16):
        super().__init__()
        self.project = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):  # (B, D), (B, S, D)
        scores = (encoder_outputs @ self.project(hidden).unsqueeze(2)).squeeze()
        return torch.softmax(scores, dim=-1)


class DividedByWidth(Right):
    def scores(self, query, keys):
        return self.project(query) @ self.project(keys).transpose(1, 2) / keys.shape[-1]


class LengthOneAxis(nn.Module):
    """The scores (B, S, 1) go through a softmax over their last axis."""

    def __init__(self, units=16):
        super().__init__()
        self.query, self.keys, self.score = nn.Linear(units, units), nn.Linear(units, units), nn.Linear(units, 1)

    def forward(self, query, values):  # (B, D), (B, S, D)
        scores = self.score(torch.tanh(self.query(query.unsqueeze(1)) + self.keys(values)))
        weights = torch.softmax(scores, dim=-1)
        return (weights * values).sum(dim=1), weights


class JoinedByView(HeadsByView):
    """Splits its heads rightly and joins them by reshape alone."""

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, query, keys, values):
        _, weights = super().forward(query, keys, values)
        return (weights @ self.split(self.value(values))).reshape(query.shape), weights


class Printing(Right):
    def scores(self, query, keys):
        print("scores of", query.shape)
        return super().scores(query, keys)


class SequenceFirst(nn.Module):
    """The scores (S, B) go through a softmax over the sentences, and are turned after it."""

    def __init__(self, hidden_size=16):
        super().__init__()
        self.attn = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):  # (1, B, D), (S, B, D)
        return F.softmax(torch.sum(hidden * self.attn(encoder_outputs), dim=2), dim=1).t().unsqueeze(1)


class ScaledAfter(Right):
    def scores(self, query, keys):
        return self.project(query) @ self.project(keys).transpose(1, 2)

    def shares(self, scores):
        return torch.softmax(scores, dim=-1) / 4


class Unscaled(nn.Module):
    """Two heads of self-attention. Subclasses hide keys."""

    def __init__(self, d_model=16):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))

    def split(self, x):
        return x.unflatten(-1, (2, -1)).transpose(1, 2)

    def shares(self, scores):
        return torch.softmax(scores, dim=-1)

    def forward(self, x):
        q, k, v = self.split(self.query(x)), self.split(self.key(x)), self.split(self.value(x))
        weights = self.shares(q @ k.transpose(2, 3))
        return (weights @ v).transpose(1, 2).flatten(2), weights


class Causal(Unscaled):
    def shares(self, scores):
        hidden = torch.ones_like(scores).triu().bool()
        return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)


class UpperTriangle(Unscaled):
    def shares(self, scores):
        hidden = torch.ones_like(scores).tril(-1).bool()
        return torch.softmax(scores.masked_fill(hidden, -math.inf), dim=-1)


class ZeroedAfter(Unscaled):
    def shares(self, scores):
        return torch.softmax(scores, dim=-1).tril()


class PlainList(Right):
    def __init__(self, width=16):
        super().__init__(width)
        self.layers = [nn.Linear(width, width), nn.Linear(width, width)]

    def scores(self, query, keys):
        first, second = self.layers
        return first(query) @ second(keys).transpose(1, 2) / 4 + super().scores(query, keys)


class ScaledDotProduct(nn.Module):
    def forward(self, q, k, v):
        weights = torch.softmax(q @ k.transpose(1, 2), dim=-1)
        return weights @ v, weights


class InfiniteMask(Right):
    def hide(self, scores, mask):
        return scores if mask is None else scores.masked_fill(mask.unsqueeze(1) == 0, -math.inf)


FAULTS = [
    (OverQueries, "weights sum to 1", "sum to 1 over the queries"),
    (OverBatch, "weights sum to 1", "sum to 1 over the sentences of the batch"),
    (OverBatch, "sentences of a batch", "changes the result of another"),
    (NoSoftmax, "weights sum to 1", "no softmax"),
    (Logarithms, "weights sum to 1", "log_softmax"),
    (UpsideDown, "hidden keys", "the other way round"),
    (Forgotten, "hidden keys", "mask is taken and never used"),
    (Multiplied, "hidden keys", "multiplies the scores"),
    (MaskAfter, "hidden keys", "after the softmax"),
    (FilledAfter, "hidden keys", "after the softmax"),
    (Viewed, "sentences of a batch", "view or reshape in place of transpose"),
    (HeadsByView, "permuted keys", "view or reshape in place of transpose"),
    (AlwaysDrops, "no dropout", "dropout stays on after eval()"),
    (InPlace, "no input is changed", "query is changed in place"),
    (Unused, "every parameter", "forgotten.weight gets no gradient: it is never used"),
    (Detached, "every parameter", "project.weight gets no gradient: it is used, but its gradient is cut"),
    (TimesKeys, "context is", "weights times keys, not values"),
    (HandMade, "scores of", "overflows"),
    (DividedByWidth, "scores are scaled", "divided by d, not by its root"),
    (LengthOneAxis, "weights sum to 1", "softmax runs over an axis of length 1"),
    (JoinedByView, "context is", "heads joined by view or reshape"),
    (Squeezed, "one sentence", "squeeze() without dim"),
    (SequenceFirst, "weights sum to 1", "sum to 1 over the sentences of the batch"),
    (ScaledAfter, "weights sum to 1", "multiplied by 0.25 after the softmax"),
    (Unscaled, "scores are scaled", "not divided by √d"),
    (PlainList, "every parameter", "self.layers holds layers that PyTorch does not see"),
    (Causal, "weights sum to 1", "the first row is NaN: the causal mask hides a token from itself"),
    (UpperTriangle, "permuted keys", "the causal mask is upside down"),
    (ZeroedAfter, "weights sum to 1", "set to 0 after the softmax"),
    (ScaledDotProduct, "scores are scaled", "its name says scaled"),
]


@pytest.mark.parametrize("module, test, cause", FAULTS, ids=lambda value: getattr(value, "__name__", None))
def test_a_fault_is_told_by_its_cause(module, test, cause):
    report = own.check(module())
    reasons = {line.test: line.reason for line in report.faults}
    assert not report.ok
    assert any(name.startswith(test) and cause in reason for name, reason in reasons.items()), reasons


def test_the_module_without_a_fault_passes_every_test():
    report = own.check(Right())
    assert {line.test: line.reason for line in report.lines if line.verdict != "ok"} == {}


@pytest.mark.parametrize(
    "module, test, reason",
    [
        (InfiniteMask, "every key hidden", "NaN: the softmax of −∞ alone"),
        (DividedBySum, "every key hidden", "NaN: weights of 0 divided by their sum"),
        (TooLargeForHalf, "half precision", "the number that hides a key is beyond half precision"),
    ],
)
def test_what_is_right_in_ordinary_use_is_a_limit_and_no_fault(module, test, reason):
    report = own.check(module())
    (limit,) = [line for line in report.lines if line.verdict == "limit"]
    assert report.ok and limit.test == test and limit.reason.startswith(reason)


def test_a_test_that_waits_for_another_says_so():
    """A mask cannot hide a key of weights that are no shares, and NaN hides all else."""
    verdicts = {line.test: (line.verdict, line.reason) for line in own.check(OverQueries()).lines}
    reason = "weights are no shares of the keys: mend that first"
    assert verdicts["hidden keys get 0"] == verdicts["every key hidden"] == ("not tested", reason)
    verdicts = {line.test: (line.verdict, line.reason) for line in own.check(Causal()).lines}
    assert verdicts["no dropout in evaluation"][1] == "some weights are NaN without a mask: mend that first"
    (line,) = own.check(LengthOneAxis()).faults
    assert line.test == "weights sum to 1 over keys"


def test_what_a_module_prints_is_not_shown(capsys):
    assert own.check(Printing()).ok
    assert capsys.readouterr().out == ""


def test_the_smallest_example_is_shown():
    (line,) = [line for line in own.check(OverBatch()).faults if line.test.startswith("weights")]
    assert line.example.startswith("1 sentence, 1 query, 2 keys: a row of weights is 1 1, its sum 2")


class Documented(UpsideDown):
    """mask: 1 hides a key."""


def test_the_way_of_a_mask_can_be_stated():
    assert not own.check(UpsideDown()).ok
    assert own.check(UpsideDown(), mask="hide").ok
    assert own.check(Documented()).ok
    assert not own.check(Right(), mask="hide").ok
    with pytest.raises(ValueError, match="mask must be keep or hide; got 'up'"):
        own.check(Right(), mask="up")


def test_a_check_leaves_the_module_and_the_random_numbers_as_they_were():
    module = Right().train()
    before, state = {name: value.clone() for name, value in module.state_dict().items()}, torch.get_rng_state()
    own.check(module)
    assert module.training and module.drop.training
    assert all(torch.equal(value, before[name]) for name, value in module.state_dict().items())
    assert all(parameter.grad is None for parameter in module.parameters())
    assert torch.equal(torch.get_rng_state(), state)


def test_a_check_computes_with_one_thread_and_leaves_their_number():
    counts = set()

    class Counting(Right):
        def scores(self, query, keys):
            counts.add(torch.get_num_threads())
            return super().scores(query, keys)

    threads = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        own.check(Counting())
        assert (counts, torch.get_num_threads()) == ({1}, 2)
    finally:
        torch.set_num_threads(threads)
