"""Faults whose cause is told from the pattern of weights or from the code, and what looks like one and is right."""

import math

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import own
from attnviz.own import recognise


class OneHead(nn.Module):
    """Self-attention with one head; `hide` masks its scores."""

    def __init__(self, d_model):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))

    def hide(self, scores):
        return scores

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / math.sqrt(x.shape[-1])
        weights = self.hide(scores).softmax(dim=-1)
        return weights @ self.value(x), weights


class Bare(OneHead):
    """Without projections, so that no formula is looked for among them."""

    def __init__(self):
        nn.Module.__init__(self)
        self.query = self.key = self.value = nn.Identity()


class SeesTheNext(Bare):
    def hide(self, scores):
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(2), -math.inf)


class NotItself(Bare):
    def hide(self, scores):
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(), torch.finfo(scores.dtype).min)


class RowsOfZeros(Bare):
    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / math.sqrt(x.shape[-1])
        hidden = torch.ones_like(scores, dtype=torch.bool).triu()
        weights = scores.masked_fill(hidden, -math.inf).softmax(dim=-1).nan_to_num()
        return weights @ self.value(x), weights


class SqueezedFirst(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.project = nn.Linear(hidden_size, hidden_size)

    def forward(self, decoder_hidden, encoder_outputs):
        weights = (self.project(encoder_outputs) @ decoder_hidden.unsqueeze(2)).squeeze().softmax(dim=-1)
        return torch.einsum("bs,bsd->bd", weights, encoder_outputs), weights


class Twice(Bare):
    def hide(self, scores):
        return scores.softmax(dim=-1)


class KeysForValues(nn.Module):
    def __init__(self, d_model):
        super().__init__()
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, query, key, value):
        weights = (self.query(query) @ self.key(key).mT / math.sqrt(key.shape[-1])).softmax(dim=-1)
        return weights @ self.key(key), weights


class WithoutTanh(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W, self.U = nn.Linear(hidden_size, hidden_size), nn.Linear(hidden_size, hidden_size)
        self.v = nn.Linear(hidden_size, 1)

    def forward(self, decoder_hidden, encoder_outputs):
        return self.v(self.W(decoder_hidden).unsqueeze(1) + self.U(encoder_outputs)).squeeze(-1).softmax(dim=-1)


class HidesRows(nn.Module):
    def forward(self, x, mask=None):
        scores = x @ x.mT / math.sqrt(x.shape[-1])
        weights = (scores if mask is None else scores.masked_fill(mask.unsqueeze(2) == 0, -1e9)).softmax(dim=-1)
        return weights @ x, weights


class Sigmoids(nn.Module):
    def forward(self, query, keys):
        shares = (-(query @ keys.mT).square()).sigmoid()
        return shares / shares.sum(dim=-1, keepdim=True)


class HidesRowsOfQueries(nn.Module):
    """With another number of queries its mask does not run."""

    def forward(self, query, keys, values, mask=None):
        scores = query @ keys.mT
        weights = (scores if mask is None else scores.masked_fill(~mask.unsqueeze(2), -math.inf)).softmax(dim=-1)
        return weights @ values, weights


class MaskOfQueries(HidesRowsOfQueries):
    def forward(self, query, keys, values, query_mask=None):
        return super().forward(query, keys, values, query_mask)


@pytest.mark.parametrize(
    "module, test, cause",
    [
        (SeesTheNext, "permuted keys", "a token sees the one after it, and none further on: the causal mask hides one"),
        (NotItself, "permuted keys", "a token sees those before it and not itself: the causal mask hides one too many"),
        (RowsOfZeros, "weights sum to 1", "some rows of weights are all 0, as of a query that sees no key"),
        (SqueezedFirst, "one sentence", "squeeze() without dim loses an axis of length 1: it raises RuntimeError"),
        (Twice, "weights sum to 1", "softmax is taken twice: that of weights makes all of them nearly the same"),
        (KeysForValues, "context is", "the values do not change the context: are keys in their place?"),
        (WithoutTanh, "every parameter", "the weights are the same for every query: what the query adds to the scores"),
        (
            HidesRows,
            "hidden keys",
            "the mask hides the rows of padding (queries), not its columns (keys): unsqueeze(1)",
        ),
        (HidesRowsOfQueries, "hidden keys", "the mask hides the rows of padding (queries), not its columns (keys)"),
        (Sigmoids, "scores of", "NaN: a row is divided by its sum, which is 0 or infinite"),
    ],
)
def test_the_cause_of_a_fault(module, test, cause):
    reasons = {line.test: line.reason for line in own.check(module).faults}
    assert any(name.startswith(test) and reason.startswith(cause) for name, reason in reasons.items()), reasons
    assert all(name[0].islower() for name in reasons), "a test that raises has a sentence as its name"


def test_a_mask_of_no_known_form_is_said():
    lines = {line.test: (line.verdict, line.reason) for line in own.check(MaskOfQueries).lines}
    for test in ("hidden keys get 0", "nothing leaks from padding", "every key hidden"):
        verdict, reason = lines[test]
        assert verdict == "not tested" and reason.startswith("query_mask fits no form of a mask that is known: bool,")


class Fused(nn.Module):
    """In F.scaled_dot_product_attention a True of the mask keeps a key, in nn.MultiheadAttention it hides one."""

    def __init__(self, d_model):
        super().__init__()
        self.query, self.key, self.value = (nn.Linear(d_model, d_model) for _ in range(3))

    def forward(self, query, key, value, attn_mask=None):
        return F.scaled_dot_product_attention(self.query(query), self.key(key), self.value(value), attn_mask=attn_mask)


class FusedUpsideDown(Fused):
    def forward(self, query, key, value, attn_mask=None):
        mask = None if attn_mask is None else ~attn_mask
        return F.scaled_dot_product_attention(self.query(query), self.key(key), self.value(value), attn_mask=mask)


def test_a_mask_for_the_fused_kernel_keeps_what_it_is_true_for():
    assert own.check(Fused).ok
    (fault,) = own.check(FusedUpsideDown).faults
    assert "attn_mask means, as in PyTorch's scaled_dot_product_attention, that 1 keeps it" in fault.reason


class Divided(nn.Module):
    """Without a matrix: its width is only in the number that it divides by."""

    def __init__(self, dim):
        super().__init__()
        self.keep(dim)

    def keep(self, dim):
        self.sqrt_dim = np.sqrt(dim)

    def forward(self, query, key, value):
        weights = F.softmax(torch.bmm(query, key.transpose(1, 2)) / self.sqrt_dim, dim=-1)
        return weights @ value, weights


class Factor(Divided):
    def keep(self, dim):
        self.sqrt_dim = dim**0.5


class InABuffer(Divided):
    def keep(self, dim):
        self.register_buffer("sqrt_dim", torch.sqrt(torch.tensor(float(dim))))


class Inverse(Divided):
    def keep(self, dim):
        self.scale = dim**-0.5

    def forward(self, query, key, value):
        weights = F.softmax(torch.bmm(query * self.scale, key.transpose(1, 2)), dim=-1)
        return weights @ value, weights


class Temperature(Divided):
    def __init__(self, temperature, attn_dropout=0.1):
        nn.Module.__init__(self)
        self.sqrt_dim = temperature


@pytest.mark.parametrize("module", [Divided, Factor, InABuffer, Inverse, Temperature])
def test_a_module_that_keeps_only_the_root_of_its_width_is_scaled_dot(module):
    report = own.check(module, formula="scaled-dot")
    assert report.ok and report.formula.startswith("scaled dot: q · k / √d")


class Documented(Divided):
    """mask : tensor of bool with the indices to be masked."""

    def forward(self, query, key, value, mask=None):
        scores = torch.bmm(query, key.transpose(1, 2)) / self.sqrt_dim
        weights = F.softmax(scores if mask is None else scores.masked_fill(mask.unsqueeze(1), -1e4), dim=-1)
        return weights @ value, weights


def test_a_docstring_that_names_the_indices_to_be_masked_says_that_1_hides():
    assert own.check(Documented).ok


class Halved(nn.Module):
    def forward(self, query, keys, values):
        weights = torch.softmax(query @ keys.mT, dim=-1) / 2
        return weights @ values, weights


def test_a_formula_is_compared_in_shares_where_rows_do_not_sum_to_1():
    report = own.check(Halved)
    assert not report.ok and float(report.formula.rpartition(" ")[2]) < 1e-6


class Head(nn.Module):
    def __init__(self, d_model, d_head):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_head) for _ in range(3))

    def forward(self, x):
        return (self.q(x) @ self.k(x).mT / math.sqrt(self.q.out_features)).softmax(dim=-1) @ self.v(x)


class HeadsWithBiases(nn.Module):
    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads = nn.ModuleList(Head(d_model, d_model // num_heads) for _ in range(num_heads))
        self.out = nn.Linear(d_model, d_model)

    def forward(self, x):
        return self.out(torch.cat([head(x) for head in self.heads], dim=-1))


def test_heads_that_are_modules_with_biases_are_multi_head():
    report = own.check(HeadsWithBiases, formula="multi-head")
    assert report.ok and report.formula.startswith("multi-head, 2 heads: queries by `heads.*.q.weight` and its bias")


class LocalP(nn.Module):
    """*local-p* as in Luong et al. 2015, eq. 10: the softmax times a Gaussian."""

    def __init__(self, hidden_size):
        super().__init__()
        self.score, self.place = nn.Linear(hidden_size, hidden_size, bias=False), nn.Linear(hidden_size, 1)

    def forward(self, decoder_hidden, encoder_outputs):
        count = encoder_outputs.shape[1]
        away = torch.arange(count) - count * torch.sigmoid(self.place(decoder_hidden))
        weights = torch.einsum("bd,bsd->bs", decoder_hidden, self.score(encoder_outputs)).softmax(dim=-1)
        weights = weights * torch.exp(-(away**2) / 2)
        return torch.einsum("bs,bsd->bd", weights, encoder_outputs), weights


def test_the_gaussian_of_local_attention_is_no_fault():
    report = own.check(LocalP)
    assert report.ok and report.lines[0].verdict == "limit"
    assert report.lines[0].reason.startswith("a softmax times a Gaussian around a position, as in Luong")


class Coverage(nn.Module):
    """See et al. 2017, eq. 11: what was attended to before is an optional argument."""

    def __init__(self, hidden_size):
        super().__init__()
        self.state, self.memory, self.unused = (nn.Linear(hidden_size, hidden_size) for _ in range(3))
        self.before, self.energy = nn.Linear(1, hidden_size, bias=False), nn.Linear(hidden_size, 1)

    def forward(self, decoder_hidden, encoder_outputs, coverage=None):
        hidden = self.state(decoder_hidden).unsqueeze(1) + self.memory(encoder_outputs)
        if coverage is not None:
            hidden = hidden + self.before(coverage.unsqueeze(-1))
        weights = self.energy(hidden.tanh()).squeeze(-1).softmax(dim=-1)
        return torch.einsum("bs,bsd->bd", weights, encoder_outputs), weights


def test_a_layer_of_an_optional_argument_is_a_limit_and_an_unused_one_a_fault():
    with_unused, without = own.check(Coverage), Coverage(16)
    del without.unused
    (line,) = [line for line in own.check(without).lines if line.test == "every parameter gets a gradient"]
    seems = "forward() seems to use that only with `coverage`, which this test leaves out"
    assert (line.verdict, line.reason) == ("limit", f"before.weight gets no gradient here: {seems}")
    (fault,) = with_unused.faults
    assert "unused.weight gets no gradient: it is never used in forward()" in fault.reason


class CoverageFirst(Coverage):
    def forward(self, decoder_hidden, encoder_outputs, coverage):
        return super().forward(decoder_hidden, encoder_outputs, coverage)


def test_weights_of_the_steps_before_are_zeros_where_they_are_needed():
    module = CoverageFirst(16)
    del module.unused
    report = own.check(module)
    assert report.ok and "coverage (B,S) of zeros, as at the first step) -> context (B,D), weights (B,S)" in report.form
    (line,) = [line for line in report.lines if line.test == "every parameter gets a gradient"]
    assert line.reason.endswith("changes no weight, and at the first step there are no weights before")


def test_weights_of_the_steps_before_are_tried_as_no_other_tensor(monkeypatch):
    """With kernels and filters of other widths, ten widths of three tensors in eleven layouts took minutes."""

    class LocationAware(Coverage):
        def forward(self, query, memory, prev_attention=None):
            return super().forward(query, memory, prev_attention)

    trials = []
    monkeypatch.setattr(recognise, "_try", lambda *arguments, own=recognise._try: trials.append(own(*arguments)))
    module = LocationAware(16)
    module.location = nn.Conv1d(1, 5, 7)
    assert "prev_attention" not in recognise.recognise(module).form.roles and len(trials) < 300


class WithASink(nn.Module):
    """Off by one, as Miller calls it: 1 more below the line, with which all weights may be near 0."""

    def forward(self, query, keys, values, mask=None):
        scores = query @ keys.mT / math.sqrt(keys.shape[-1])
        scores = scores if mask is None else scores.masked_fill(mask.unsqueeze(1) == 0, -math.inf)
        weights = F.pad(scores, (1, 0)).softmax(dim=-1)[..., 1:]
        return weights @ values, weights


def test_a_share_that_goes_to_no_key_is_no_fault():
    report = own.check(WithASink)
    assert report.ok and report.formula.startswith("scaled dot: ") and report.lines[0].verdict == "limit"
    assert report.lines[0].reason.endswith("each is divided by more than its sum, so a share goes to no key (a sink)")
    assert "hidden keys get exactly 0 and rows sum to less than 1, as without it" in report.lines[2].reason


class ReadsNormed(OneHead):
    """As in transformers for images: the norm is in the module, and x is added to its result."""

    def __init__(self, d_model):
        super().__init__(d_model)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        context, weights = super().forward(self.norm(x))
        return x + context, weights


class ReadsNormedMixed(ReadsNormed):
    def forward(self, x):
        context, weights = super().forward(x)
        return x + (context - x).transpose(1, 2).reshape(x.shape), weights


def test_values_may_be_normalised_and_x_added_but_not_mixed():
    assert own.check(ReadsNormed).ok
    assert "context is weights times values" in [line.test for line in own.check(ReadsNormedMixed).faults]


class ReturnsScores(OneHead):
    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / math.sqrt(x.shape[-1])
        return scores.softmax(dim=-1) @ self.value(x), scores


def test_scores_that_are_returned_in_place_of_weights_are_told():
    lines = [own.check(module).lines[0] for module in (ReturnsScores, HeadsWithBiases)]
    assert [line.verdict for line in lines] == ["ok", "ok"]
    assert ["it returns the scores before the softmax" in line.reason for line in lines] == [True, False]
