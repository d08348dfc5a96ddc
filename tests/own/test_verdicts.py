"""A verdict follows from what a module does and what it is made of, not from words in its code or in a message."""

import math
import re

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import own
from attnviz.own.forms import KEEP, MaskForm, NotRecognised
from attnviz.own.source import meant

SCALED, LARGE = "scores are scaled as in the formula", "scores of ±10⁴"


def line_of(module, test):
    (line,) = [line for line in own.check(module).lines if line.test == test]
    return line


class NoRoot(nn.Module):
    """Not a non-local block: theta, phi and nn.Conv2d( stand only here."""

    def __init__(self, d_model=16):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))
        self.out = nn.Conv1d(d_model, d_model, 1)

    def forward(self, x):
        weights = (self.q(x) @ self.k(x).mT).softmax(dim=-1)
        return self.out((weights @ self.v(x)).mT).mT, weights


class ByConvolutions(nn.Module):
    """As in SAGAN (Zhang et al. 2019)."""

    def __init__(self, channels=16):
        super().__init__()
        self.f, self.g = (nn.Conv1d(channels, channels // 2, 1) for _ in range(2))

    def forward(self, x):
        weights = (self.f(x.mT).mT @ self.g(x.mT)).softmax(dim=-1)
        return weights @ x + x, weights


def test_no_root_is_excused_by_what_makes_queries_and_keys_alone():
    assert line_of(NoRoot, SCALED).verdict == "fault"
    assert line_of(ByConvolutions, SCALED).verdict == "limit"


class MultipliedByTheRoot(nn.Module):
    def __init__(self, hidden_size=16):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, query, keys):
        return (query @ self.W(keys).mT * keys.shape[-1] ** 0.5).softmax(dim=-1)


def test_a_root_that_multiplies_is_a_fault_of_a_learnt_matrix_too():
    line = line_of(MultipliedByTheRoot, SCALED)
    assert line.verdict == "fault" and line.reason.endswith("multiplied by √d, not divided by it")


def kernel(distances):
    """Weights from distances (B, T, S): of a Gaussian of spread 1, each divided by the sum of a row."""
    weights = torch.exp(-distances / 2)
    return weights / weights.sum(dim=-1, keepdim=True)


def squared(query, keys):
    return (query.unsqueeze(2) - keys.unsqueeze(1)).square().sum(dim=-1)


def gaussian(query, keys):
    return kernel(squared(query, keys))


def gaussian_with_epsilon(query, keys):
    weights = torch.exp(-squared(query, keys) / 2)
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-12)


def laplacian(query, keys):
    return kernel((query.unsqueeze(2) - keys.unsqueeze(1)).abs().sum(dim=-1))


def by_softmax(query, keys):
    return (-squared(query, keys) / 2).softmax(dim=-1)


def products(query, keys):
    return kernel(-2 * query @ keys.mT / keys.shape[-1] ** 0.5)


@pytest.mark.parametrize("score", [gaussian, gaussian_with_epsilon, laplacian])
def test_a_distance_whose_exp_becomes_0_far_from_every_key_is_a_limit(score):
    line = line_of(score, LARGE)
    assert line.verdict == "limit" and own.check(score).ok
    assert line.reason.startswith("a query whose scores are all below −103, as one far from every key, gets no weights")
    far = torch.full((1, 1, 4), 100.0)  # where it does so
    assert not torch.allclose(score(far, torch.zeros(1, 2, 4)).sum(dim=-1), torch.ones(1, 1))


def test_a_distance_with_softmax_is_right_and_products_whose_exp_overflows_are_a_fault():
    assert line_of(by_softmax, LARGE).verdict == "ok"
    line = line_of(products, LARGE)
    assert line.verdict == "fault" and line.reason.startswith("NaN: exp() of a large score overflows")


class FirstHead(nn.Module):
    """Projections of all heads, of whose keys and values only the first head is kept."""

    def __init__(self, d_model=16, num_heads=2):
        super().__init__()
        self.heads = num_heads
        self.q, self.k, self.v = (nn.Linear(d_model, d_model) for _ in range(3))

    def made(self, x):
        return self.q(x), self.k(x), self.v(x)

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.made(x))
        k, v = k[:, :1], v[:, :1]
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), weights


class FirstHeadOfOne(FirstHead):
    def __init__(self, d_model=16, num_heads=2):
        super().__init__(d_model, num_heads)
        self.q, self.k, self.v = None, None, None
        self.qkv = nn.Linear(d_model, 3 * d_model)

    def made(self, x):
        return self.qkv(x).chunk(3, dim=-1)


class OneHead(FirstHead):
    """Right multi-query attention: projections of one head of keys and values."""

    def __init__(self, d_model=16, num_heads=2):
        super().__init__(d_model, num_heads)
        self.k, self.v = (nn.Linear(d_model, d_model // num_heads) for _ in range(2))

    def forward(self, x):
        q, k, v = self.q(x).unflatten(-1, (self.heads, -1)).transpose(1, 2), self.k(x)[:, None], self.v(x)[:, None]
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), weights


def test_heads_that_are_made_and_cut_off_are_a_fault():
    report = own.check(FirstHead)
    assert report.formula.startswith("multi-query, 2 heads with one key head: queries by `q.weight` and its bias")
    (fault,) = report.faults
    assert fault.test == "every parameter gets a gradient"
    unused = "rows 9 to 16 get no gradient: the heads that they make are not used"
    assert fault.reason == f"k.weight: {unused}; v.weight: {unused}"
    four = own.check(FirstHead, settings={"num_heads": 4})
    assert "keys by part 1 of 4 of `k.weight`, values by part 1 of 4 of `v.weight`" in four.formula
    (fault,) = own.check(FirstHeadOfOne).faults
    assert fault.reason.startswith("qkv.weight: rows 25 to 32 and more get no gradient")
    assert own.check(OneHead).ok


class Positions(nn.Module):
    """Two heads, and a table with twice as many positions as the test of gradients has tokens."""

    def __init__(self, d_model=16, num_heads=2):
        super().__init__()
        self.heads, self.table = num_heads, nn.Embedding(10, d_model)
        self.q, self.k = (nn.Linear(d_model, d_model) for _ in range(2))

    def forward(self, x):
        placed = x + self.table(torch.arange(x.shape[1]) % 10)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in (self.q(placed), self.k(placed), x))
        return (weights := F.softmax(q @ k.mT / 8**0.5, dim=-1)) @ v, weights


def test_positions_that_are_not_reached_are_no_unused_heads():
    assert line_of(Positions, "every parameter gets a gradient").verdict == "ok"


def over_queries(query, keys, values, mask):
    scores = (query @ keys.mT * keys.shape[-1] ** -0.5).masked_fill(mask.unsqueeze(2) == 0, -1e4)
    return (weights := scores.softmax(dim=-1)) @ values, weights


def of_queries(query, keys, values, query_mask):
    return over_queries(query, keys, values, query_mask)


def test_a_mask_over_queries_that_is_required_is_read_as_one():
    report = own.check(over_queries)
    assert "mask (B,T) bool, a row for each query, all 1) -> context (B,T,D), weights (B,T,S)" in report.form
    (fault,) = report.faults
    assert fault.reason.startswith("the mask hides the rows of padding (queries), not its columns (keys)")
    line = line_of(of_queries, "hidden keys get 0")
    assert line.verdict == "not tested" and "query_mask lies over queries, (B,T), so no key is hidden" in line.reason


def test_a_mask_for_each_query_that_is_required_is_read_in_a_batch():
    def attention(x, mask):
        weights = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(mask == 0, -1e4).softmax(dim=-1)
        return weights @ x, weights

    report = own.check(attention)
    assert report.ok and report.form.startswith("self-attention, batch-first: (x (B,S,D), mask (B,1,S) bool")


@pytest.mark.parametrize("rows", [False, True])
def test_a_padding_mask_is_read_where_a_large_number_hides_whole_rows(rows):
    """The wrong way round it hides all that the causal mask leaves, and a row of equal numbers has equal weights."""

    def attention(x, pad_mask=None):
        hide = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(len(x[0]) if rows else 1)
        if pad_mask is not None:
            hide = hide | pad_mask[:, None] | (pad_mask[:, :, None] & rows)
        weights = (x @ x.mT / x.shape[-1] ** 0.5).masked_fill(hide, -1e4).softmax(dim=-1)
        return weights @ x, weights

    report = own.check(attention)
    assert report.ok and "pad_mask (B,S) bool, 1 hides a key" in report.form


def test_a_mask_that_is_added_is_one_in_causal_attention_too():
    """Where the causal mask hides all that follows, hidden keys at the end change the rows of padding alone."""

    def attention(x, attention_mask=None):
        hide = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = x @ x.mT / x.shape[-1] ** 0.5 + (0 if attention_mask is None else attention_mask)
        return (weights := scores.masked_fill(hide, -math.inf).softmax(dim=-1)) @ x, weights

    assert "attention_mask (B,1,S) added to the scores, -inf hides" in own.check(attention).form


class LogPointer(nn.Module):
    """Hidden keys as in AllenNLP's `masked_log_softmax`: 1e-45 is the smallest number above 0."""

    def __init__(self, hidden_size=16):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, decoder_state, encoder_outputs, mask):
        scores = (encoder_outputs @ self.W(decoder_state).unsqueeze(-1)).squeeze(-1)
        return F.log_softmax(scores + (mask.float() + 1e-45).log(), dim=-1)


def test_the_smallest_number_in_a_logarithm_hides_a_key():
    report = own.check(LogPointer)
    assert report.ok and "mask (B,S) bool, 1 keeps a key" in report.form


@pytest.mark.parametrize(
    "words", ["0 and 1, 0 = pad", "a (B,1,S) tensor, padded keys are False", "1.0 = real, 0.0 = pad"]
)
def test_what_a_mask_has_at_other_keys_is_not_taken_for_what_1_means(words):
    assert meant(f'"""mask: {words}"""', MaskForm("mask", "bool", "BS"))[0] == KEEP


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16])
def test_weights_of_half_precision_have_too_few_digits_to_test(kind):
    def attention(query, keys, values):
        weights = (query.to(kind) @ keys.to(kind).mT / keys.shape[-1] ** 0.5).softmax(dim=-1).to(values)
        return weights @ values, weights

    with pytest.raises(ValueError, match=f"attention makes its weights in {kind}, which has too few digits to test"):
        own.check(attention)


class OfFirstHead(nn.Module):
    """Four heads. alone : the first head's weights serve all, and else they are returned alone."""

    def __init__(self, d_model=32, num_heads=4, alone=False):
        super().__init__()
        self.heads, self.alone = num_heads, alone
        self.q, self.k, self.v, self.o = (nn.Linear(d_model, d_model) for _ in range(4))

    def forward(self, query, key, value):
        sources = zip((self.q, self.k, self.v), (query, key, value))
        q, k, v = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer, x in sources)
        weights = F.softmax(q @ k.mT / q.shape[-1] ** 0.5, dim=-1)
        if self.alone:
            weights = weights[:, :1]
        return self.o((weights @ v).transpose(1, 2).flatten(2)), weights[:, 0]


def test_the_weights_of_the_first_head_alone_are_told():
    (fault,) = own.check(OfFirstHead(alone=True)).faults
    assert fault.reason.startswith("q.weight: rows 9 to 32 get no gradient: the heads that they make are not used")
    (fault,) = own.check(OfFirstHead()).faults
    assert fault.reason.startswith("only the weights of the first head come back, and the context is made of all")


def test_transposed_weights_have_no_wrong_axis_of_the_softmax():
    def returned(x):
        weights = (x @ x.mT / x.shape[-1] ** 0.5).softmax(dim=-1)
        return weights @ x, weights.mT

    def used(x):
        weights = (x @ x.mT / x.shape[-1] ** 0.5).softmax(dim=-1).mT
        return weights @ x, weights

    for attention in (returned, used):
        (fault,) = own.check(attention).faults
        assert fault.reason.startswith("the weights are transposed after the softmax: a row must belong to a query")


class Bahdanau(nn.Module):
    """A state of a decoder beside keys."""

    def __init__(self, width=16):
        super().__init__()
        self.w, self.u, self.v = nn.Linear(width, width), nn.Linear(width, width), nn.Linear(width, 1)

    def weights(self, state, keys):
        return self.v(torch.tanh(self.w(state) + self.u(keys))).squeeze(-1).softmax(-1)


class ForgetsAnAxis(Bahdanau):
    def forward(self, decoder_hidden, keys):
        weights = self.weights(decoder_hidden, keys)
        return (weights.unsqueeze(1) @ keys).squeeze(1), weights


class SaysTheAxis(Bahdanau):
    def forward(self, decoder_hidden, keys):  # (B, 1, D), (B, S, D)
        weights = self.weights(decoder_hidden, keys)
        return (weights.unsqueeze(1) @ keys).squeeze(1), weights


class MultipliesTwoAxes(Bahdanau):
    def forward(self, decoder_hidden, keys):
        weights = self.weights(decoder_hidden.unsqueeze(1), keys)
        return torch.bmm(weights, keys).squeeze(1), weights


class SumsWithoutAnAxis(Bahdanau):
    def forward(self, decoder_hidden, keys):
        weights = self.weights(decoder_hidden.unsqueeze(1), keys)
        return (weights * keys).sum(1), weights


class MultipliesAsItsCommentSays(Bahdanau):
    def forward(self, a, b):  # (batch, hidden), (batch, max_len, hidden)
        weights = self.weights(a.unsqueeze(1), b)
        return torch.bmm(weights, b).squeeze(1), weights


def test_a_query_without_an_axis_for_queries_is_tried_too():
    report = own.check(ForgetsAnAxis)
    assert report.ok and "decoder_hidden (B,1,D)" in report.form
    error = "The size of tensor a (3) must match the size of tensor b (5) at non-singleton dimension 1"
    assert re.fullmatch(
        rf"decoder_hidden \(3, 16\), keys \(3, 5, 16\) it raises RuntimeError: {re.escape(error)} \(test_verdicts.py, "
        r"line \d+\): unsqueeze\(1\) of the query is missing, if you call it so\. With as many keys as sentences it "
        "runs, and mixes the sentences",
        report.called,
    )
    assert f"\ncalled with {report.called}\n" in str(report) and report.to_dict()["called"] == report.called
    assert own.check(SaysTheAxis).called == ""


@pytest.mark.parametrize(
    "kind, reason",
    [
        (MultipliesTwoAxes, ": bmm multiplies (B,1,S) and (B,S,D), so an unsqueeze(1) is missing."),
        (MultipliesAsItsCommentSays, ": bmm multiplies (B,1,S) and (B,S,D), so an unsqueeze(1) is missing."),
        (SumsWithoutAnAxis, ": weights (B,S) times (B,S,D) need unsqueeze(-1)."),
    ],
)
def test_a_refusal_quotes_the_call_that_is_meant(kind, reason):
    with pytest.raises(NotRecognised) as error:
        own.check(kind)
    assert re.search(r"attention: called with \w+ \(3, 16\), \w+ \(3, 5, 16\) it raised RuntimeError", str(error.value))
    assert reason in str(error.value)


class NamesNothing(Bahdanau):
    def forward(self, decoder_hidden, keys):
        return self.weights(decoder_hidden.unsqueeze(1), key)  # noqa: F821


class LacksAPart(Bahdanau):
    def forward(self, decoder_hidden, keys):
        return torch.softmax(self.score(decoder_hidden, keys), dim=-1)


@pytest.mark.parametrize(
    "kind, error",
    [
        (NamesNothing, "NameError: name 'key' is not defined"),
        (LacksAPart, "AttributeError: 'LacksAPart' object has no attribute 'score'"),
    ],
)
def test_a_slip_is_its_line_and_its_error(kind, error):
    with pytest.raises(NotRecognised, match=rf"^{kind.__name__}\(\) cannot run: test_verdicts.py, line \d+, {error}$"):
        own.check(kind)
