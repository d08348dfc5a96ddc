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
from attnviz.own.formula import recognised
from attnviz.own.recognise import recognise
from attnviz.own.source import build


def words_of(module):
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
    formula = words_of(module)
    assert name in formula.names and words in formula.words


class Scored(nn.Module):
    """A module with a score of the test's."""

    def __init__(self, score, dim=-1):
        super().__init__()
        self.dim = dim
        self.W_a, self.v = nn.Linear(8, 8, bias=False), nn.Parameter(torch.randn(8))
        self.score = score

    def forward(self, query, keys, values):
        weights = torch.softmax(self.score(self, query, keys), dim=self.dim)
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
        (lambda m, q, k: -(torch.cdist(q, k) ** 2) / 2, "the squared distance of q and k, times −0.5"),
        (
            lambda m, q, k: dot(m.W_a(q), k) + (k @ m.v).unsqueeze(1),
            "near Luong general: q · W k + u · k (biaffine) with W = `W_a.weight`ᵀ, u = `v`; largest difference",
        ),
        (
            lambda m, q, k: dot(m.W_a(q), torch.sin(k)),
            "none of the known ones; it is linear in the query and not in the keys",
        ),
    ],
)
def test_a_near_miss_is_told_by_what_differs(score, words):
    torch.manual_seed(0)
    formula = words_of(Scored(score))
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
    formula = words_of(Copied())
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
    line = own.check(Scored(lambda m, q, k: dot(m.W_a(q), k) / 8)).lines[-1]
    assert line.verdict == "fault" and line.reason.endswith("divided by d, not by its root")


class Heads(nn.Module):
    """Self-attention of four heads that share two key heads. `change` and `hide` are for subclasses."""

    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__()
        self.heads, self.key_heads, self.width = num_heads, num_kv_heads, d_model // num_heads
        self.q_proj, self.o_proj = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.kv_proj = nn.Linear(d_model, 2 * num_kv_heads * self.width, bias=False)

    def change(self, x):
        return x

    def shared(self, x):
        return x.repeat_interleave(self.heads // self.key_heads, dim=1)

    def hide(self, scores):
        return scores

    def forward(self, x):
        parts = (self.q_proj(x), *self.kv_proj(x).chunk(2, dim=-1))
        q, k, v = (part.unflatten(-1, (-1, self.width)).transpose(1, 2) for part in parts)
        k, v = self.shared(k), self.shared(v)
        weights = self.hide(self.change(q) @ self.change(k).mT / math.sqrt(self.width)).softmax(dim=-1)
        return self.o_proj((weights @ v).transpose(1, 2).flatten(2)), weights


class Tiled(Heads):
    def shared(self, x):
        return x.repeat(1, self.heads // self.key_heads, 1, 1)


class Rotary(Heads):
    """As in the code of Llama: the two numbers of a pair lie in the two halves."""

    def change(self, x):
        speeds = 10000 ** (-torch.arange(0, self.width, 2, dtype=x.dtype) / self.width)
        angles = (torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * speeds).repeat(1, 2)
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat([-second, first], dim=-1) * angles.sin()


class RotaryPairs(Heads):
    """As in the paper: neighbours are a pair, here the real and the imaginary part of a number."""

    def change(self, x):
        speeds = 500000 ** (-torch.arange(0, self.width, 2, dtype=x.dtype) / self.width)
        angles = torch.arange(x.shape[-2], dtype=x.dtype)[:, None] * speeds
        turned = torch.view_as_complex(x.unflatten(-1, (-1, 2)).contiguous()) * torch.polar(
            torch.ones_like(angles), angles
        )
        return torch.view_as_real(turned).flatten(-2)


class Normalised(Heads):
    def change(self, x):
        return F.normalize(x, dim=-1)


class AfterNorm(Heads):
    def __init__(self, d_model, num_heads, num_kv_heads):
        super().__init__(d_model, num_heads, num_kv_heads)
        self.norm = nn.LayerNorm(d_model)

    def forward(self, x):
        return super().forward(self.norm(x))


class LinearBias(Heads):
    """ALiBi: the distance, times a number of each head, is taken off a score."""

    def hide(self, scores):
        positions = torch.arange(scores.shape[-1])
        away = (positions[:, None] - positions).abs() * 0.5 ** torch.arange(1, 1 + self.heads)[:, None, None]
        return (scores - away).masked_fill(torch.ones_like(scores, dtype=torch.bool).triu(1), -math.inf)


class ForEachDistance(Heads):
    def hide(self, scores):
        positions = torch.arange(scores.shape[-1])
        return scores + torch.cos(positions - positions[:, None])


class UpsideDown(Heads):
    def hide(self, scores):
        return scores.masked_fill(torch.ones_like(scores, dtype=torch.bool).tril(), -math.inf)


class InAWindow(Heads):
    def hide(self, scores):
        far = torch.ones_like(scores, dtype=torch.bool)
        return scores.masked_fill(far.triu(2) | far.tril(-3), -math.inf)


GROUPED = "grouped-query, 4 heads with 2 key heads"


@pytest.mark.parametrize(
    "module, words, more",
    [
        (Heads, f"{GROUPED}: queries by `q_proj.weight`, keys by half 1 of `kv_proj.weight`, values by half 2", ""),
        (Tiled, f"{GROUPED}, shared by every 2nd head in place of neighbours: queries", ""),
        (lambda: Heads(16, 4, 1), "multi-query, 4 heads with one key head: queries by `q_proj.weight`, keys by", ""),
        (Rotary, f"{GROUPED}: queries", "rotary positions, base 10000"),
        (RotaryPairs, f"{GROUPED}: queries", "rotary positions, base 500000"),
        (AfterNorm, f"{GROUPED}: queries", "queries and keys after `norm`"),
        (LinearBias, f"{GROUPED}: queries", "less 0.5, 0.25, 0.125, 0.0625 times the distance (ALiBi)"),
        (ForEachDistance, f"{GROUPED}: queries", "plus a number for each distance"),
        (InAWindow, f"{GROUPED}: queries", "in a window: a token sees at most 2 before and 1 after it"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_shared_key_heads_and_positions_in_the_scores(module, words, more):
    report = own.check(module if isinstance(module, type) else module(), formula="grouped-query", in_trained=bool(more))
    *_, difference = report.formula.removesuffix(f"; {more}").split()
    assert report.ok and report.formula.startswith(words) and report.formula.endswith(more)
    assert float(difference) < 1e-6
    if more:
        assert report.trained == f"not run: no trained en-fr model has its formula: {more}"


class JointByHeads(nn.Module):
    """One matrix that has the query, the key and the value of the first head, then those of the second."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads, self.joint = num_heads, nn.Linear(embed_dim, 3 * embed_dim)

    def forward(self, x):
        q, k, v = self.joint(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, dim=-1)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), weights


class TalkingHeads(JointByHeads):
    """Shazeer et al. 2020, with the bias that layers over heads have in code for images."""

    def __init__(self, embed_dim, num_heads):
        super().__init__(embed_dim, num_heads)
        self.over_heads = nn.Linear(num_heads, num_heads)

    def forward(self, x):
        q, k, v = self.joint(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, dim=-1)
        weights = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1)
        return (self.over_heads(weights.movedim(1, -1)).movedim(-1, 1) @ v).transpose(1, 2).flatten(2)


def test_a_bias_after_the_softmax_is_told():
    report = own.check(TalkingHeads(16, 2))
    assert report.ok and report.lines[1].verdict == "limit"
    assert report.lines[1].reason == "a number is added to all weights after the softmax, as by the bias of a layer"


def test_queries_keys_and_values_may_lie_head_by_head_in_one_matrix():
    third = "of each head in `joint.weight`"
    formula = words_of(JointByHeads(16, 2))
    assert formula.names == ("multi-head",)
    assert (
        f"queries by third 1 {third} and its bias, keys by third 2 {third}, values by third 3 {third};" in formula.words
    )


def test_a_causal_mask_upside_down_is_no_window():
    assert "window" not in words_of(UpsideDown(16, 4, 2)).words


def test_the_size_of_a_window_is_no_width():
    class Windowed(InAWindow):
        def __init__(self, d_model, num_heads, num_kv_heads, window_size):
            super().__init__(d_model, num_heads, num_kv_heads)

    assert build(Windowed).title == "Windowed(d_model=16, num_heads=4, num_kv_heads=2, window_size=2)"


def test_a_cosine_of_heads_is_told():
    words = "none of the known ones: the cosine of W q and U k with W = `q_proj.weight`, U = half 1 of `kv_proj.weight`"
    assert words_of(Normalised(16, 4, 2)).words.startswith(f"{words}, times 0.5; largest difference ")


def test_a_wrong_root_of_shared_heads_is_a_fault():
    class WrongRoot(Heads):
        def change(self, x):
            return x / x.shape[-1] ** 0.25

    report = own.check(WrongRoot(32, 4, 2), formula="grouped-query")
    assert [line.test[:10] for line in report.faults] == ["scores are", "the formul"]
    assert "but the products are divided by d, not by its root" in report.formula


class LocationBased(nn.Module):
    """Luong et al. 2015, eq. 8, *location*."""

    def __init__(self, hidden_size, max_length=10):
        super().__init__()
        self.attn = nn.Linear(hidden_size, max_length)

    def forward(self, decoder_hidden, encoder_outputs):
        weights = self.attn(decoder_hidden)[:, : encoder_outputs.shape[1]].softmax(dim=-1)
        return torch.einsum("bs,bsd->bd", weights, encoder_outputs), weights


def test_weights_that_do_not_depend_on_the_keys():
    words = "none of the known ones: weights of positions that do not depend on the keys, as in Luong's location-based"
    assert own.check(LocationBased).formula.startswith(words)
    over_queries = words_of(Scored(lambda m, q, k: dot(m.W_a(q), k), dim=1))  # one query: every weight is 1
    assert over_queries.words == "none of the known ones"


def test_values_in_the_place_of_keys_are_told():
    class Exchanged(Scored):
        def forward(self, query, keys, values):
            return super().forward(query, values, keys)

    words = "none of the known ones: the scores are of the query and the values, not the keys: values are in the place"
    assert words_of(Exchanged(lambda m, q, k: dot(m.W_a(q), k))).words.startswith(words)


def test_a_module_that_computes_in_single_precision_is_told_its_formula():
    class Single(Scored):
        def forward(self, query, keys, values):
            weights = (dot(self.W_a(query).float(), keys.float())).softmax(dim=-1).to(query.dtype)
            return weights @ values, weights

    assert words_of(Single(None)).names == ("general",)
