"""A module in the trained model of its formula looks where ours looks, and writes what ours writes."""

import html
import json

import listings
import numpy as np
import pytest
import torch
from listings import (
    Attention,
    Attn,
    BahdanauAttention,
    CausalSelfAttention,
    DotProductAttention,
    ListOfHeads,
    LSTMStates,
    ProjectedKeys,
    SelfAttentionV1,
)
from torch import nn

import attnviz
from attnviz import inside, intervene, mechanisms, own, stats
from attnviz.__main__ import main
from attnviz.export import html_page
from attnviz.own import trained

LISTINGS = listings.__file__
TEXT = ["A black dog is running."]
ALONE = "its weights alone, on the trained values"
NO_BIASES = "it has no biases, so those of the trained model are 0 in both"


class KeepsTheRoot(nn.Module):
    """It has no matrix, and must be built in the trained width all the same."""

    def __init__(self, dim):
        super().__init__()
        self.scale = dim**-0.5

    def forward(self, query, key, value):
        weights = torch.softmax(query @ key.mT * self.scale, dim=-1)
        return weights @ value, weights


class WidthOfAHead(nn.Module):
    """As in code for images: the width of a head is a parameter with a default."""

    def __init__(self, query_dim, context_dim=None, heads=2, dim_head=8):
        super().__init__()
        self.heads, width = heads, heads * dim_head
        self.to_q = nn.Linear(query_dim, width, bias=False)
        self.to_k, self.to_v = (nn.Linear(context_dim or query_dim, width, bias=False) for _ in range(2))
        self.to_out = nn.Linear(width, query_dim)

    def forward(self, x, context=None, mask=None):
        context = x if context is None else context
        parts = (self.to_q(x), self.to_k(context), self.to_v(context))
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        scores = q @ k.mT * q.shape[-1] ** -0.5
        scores = scores if mask is None else scores.masked_fill(~mask[:, None, None, :], -torch.finfo(scores.dtype).max)
        return self.to_out((scores.softmax(dim=-1) @ v).transpose(1, 2).flatten(-2))


class SharedKeys(WidthOfAHead):
    """Each key head serves two heads."""

    def __init__(self, query_dim, heads=4, kv_heads=2):
        super().__init__(query_dim, heads=heads, dim_head=query_dim // heads)
        self.times, width = heads // kv_heads, query_dim * kv_heads // heads
        self.to_k, self.to_v = (nn.Linear(query_dim, width, bias=False) for _ in range(2))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (-1, self.to_q.out_features // self.heads))
            for layer in (self.to_q, self.to_k, self.to_v)
        )
        k, v = (part.transpose(1, 2).repeat_interleave(self.times, dim=1) for part in (k, v))
        weights = (q.transpose(1, 2) @ k.mT * q.shape[-1] ** -0.5).softmax(dim=-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(-2)), weights


class OneKeyHead(SharedKeys):
    def __init__(self, query_dim, heads=4):
        super().__init__(query_dim, heads, 1)


class WidthInTheClass(WidthOfAHead):
    def __init__(self, query_dim, heads=2):
        super().__init__(query_dim, heads=heads, dim_head=96)


class WeightNormed(nn.Module):
    """v is made of its length and its direction at each call, in one of two ways of PyTorch."""

    def __init__(self, hidden_size, normed=nn.utils.parametrizations.weight_norm):
        super().__init__()
        self.w, self.u = (nn.Linear(hidden_size, hidden_size, bias=False) for _ in range(2))
        self.v = normed(nn.Linear(hidden_size, 1, bias=False))

    def forward(self, query, keys):
        return self.v(torch.tanh(self.w(query).unsqueeze(1) + self.u(keys))).squeeze(-1).softmax(dim=-1)


class WeightNormedByHook(WeightNormed):
    def __init__(self, hidden_size):
        super().__init__(hidden_size, nn.utils.weight_norm)


class MatrixOfEachHead(nn.Module):
    """Each head has matrices of its own, in one parameter of three axes, and biases in another."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        shape = num_heads, d_model, d_model // num_heads
        self.wq, self.wk, self.wv = (nn.Parameter(torch.randn(shape)) for _ in range(3))
        self.bq, self.bk, self.bv = (nn.Parameter(torch.randn(shape[0], 1, shape[2])) for _ in range(3))
        self.out = nn.Parameter(torch.randn(num_heads, d_model // num_heads, d_model))
        self.out_bias = nn.Parameter(torch.randn(1, 1, d_model))

    def forward(self, query, key, value):
        parts = (query, self.wq, self.bq), (key, self.wk, self.bk), (value, self.wv, self.bv)
        q, k, v = (torch.einsum("btd,hdk->bhtk", x, w) + b for x, w, b in parts)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return torch.einsum("bhtk,hkd->btd", weights @ v, self.out) + self.out_bias, weights


class OneParameter(nn.Module):
    """Matrices one behind the other in a parameter of three axes, and their biases in another."""

    def __init__(self, embed_dim, num_heads):
        super().__init__()
        self.heads, self.qkv = num_heads, nn.Parameter(torch.randn(3, embed_dim, embed_dim))
        self.qkv_bias = nn.Parameter(torch.randn(3, 1, embed_dim))

    def forward(self, x):
        parts = (x @ weight + bias for weight, bias in zip(self.qkv, self.qkv_bias))
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return (weights @ v).transpose(1, 2).flatten(2), weights


class JointByHeads(nn.Module):
    """One matrix, in which each head has its query, its key and its value before the next head."""

    def __init__(self, d_model, num_heads):
        super().__init__()
        self.heads, self.joint, self.out = num_heads, nn.Linear(d_model, 3 * d_model), nn.Linear(d_model, d_model)

    def forward(self, x):
        q, k, v = self.joint(x).unflatten(-1, (self.heads, -1)).transpose(1, 2).chunk(3, dim=-1)
        weights = (q @ k.mT / q.shape[-1] ** 0.5).softmax(dim=-1)
        return self.out((weights @ v).transpose(1, 2).flatten(2)), weights


class SharedByHeads(nn.Module):
    """A matrix as wide as one head, for the part of each head, as in a tutorial on Transformers from scratch."""

    def __init__(self, embed_size, heads):
        super().__init__()
        self.heads, self.width = heads, embed_size // heads
        self.keys, self.queries = (nn.Linear(self.width, self.width, bias=False) for _ in range(2))

    def forward(self, x):
        parts = x.unflatten(-1, (self.heads, self.width))
        energy = torch.einsum("nqhd,nkhd->nhqk", self.queries(parts), self.keys(parts))
        weights = torch.softmax(energy / self.width**0.5, dim=3)
        return torch.einsum("nhql,nlhd->nqhd", weights, parts).flatten(2), weights


class LearntTemperature(nn.Module):
    """1 at the start, where its logarithm is 0."""

    def __init__(self):
        super().__init__()
        self.log_temperature = nn.Parameter(torch.zeros(1))

    def forward(self, query, keys):
        return (query @ keys.mT / self.log_temperature.exp()).softmax(dim=-1)


MODULES = [
    (BahdanauAttention, "en-fr/bahdanau", "built 512 wide, with zeros beside the trained numbers"),
    (Attn("dot", 16), "en-fr/luong-dot", ""),
    (Attn("concat", 16), "en-fr/luong-concat", "built 512 wide"),
    (Attention, "en-fr/luong-concat", ""),
    (LSTMStates, "en-fr/luong-general", "built 512 wide"),
    (LearntTemperature, "en-fr/luong-dot", ""),
    (DotProductAttention(0.0), "en-fr/scaled-dot", ""),
    (KeepsTheRoot, "en-fr/scaled-dot", ""),
    (WeightNormed, "en-fr/bahdanau", "the trained matrix takes the place of `v.weight`, which it makes itself"),
    (WeightNormedByHook, "en-fr/bahdanau", "the trained matrix takes the place of `v.weight`"),
    (nn.MultiheadAttention, "en-fr/transformer", "in 11 attentions of its layers"),
    (CausalSelfAttention, "en-fr/transformer", f"in 3 attentions of its layers; {NO_BIASES}"),
    (WidthOfAHead, "en-fr/transformer", f"in 11 attentions of its layers; {NO_BIASES}"),
    (
        SharedKeys,
        "en-fr/transformer",
        f"in 5 attentions of its layers; built with a key head for every head; {NO_BIASES}",
    ),
    (OneKeyHead, "en-fr/transformer", f"so its first is the first of each; {ALONE}; {NO_BIASES}"),
    (MatrixOfEachHead, "en-fr/transformer", "in 11 attentions of its layers"),
    (OneParameter, "en-fr/transformer", f"in 5 attentions of its layers; {ALONE}"),
    (JointByHeads, "en-fr/transformer", "in 5 attentions of its layers"),
    (ListOfHeads, "en-fr/transformer", f"in 5 attentions of its layers; {NO_BIASES}"),
    (SelfAttentionV1, "en-fr/transformer", f"it has one head, and is the first of each; {ALONE}; {NO_BIASES}"),
]


@pytest.mark.filterwarnings("ignore:.*weight_norm")
@pytest.mark.parametrize("module, model, words", MODULES, ids=lambda value: getattr(value, "__name__", None))
def test_a_module_with_the_trained_matrices_is_the_trained_attention(module, model, words):
    result = own.in_trained(module, TEXT)
    assert result.model == model and words in result.words and "the same translations" in result.words
    assert (NO_BIASES in result.words) == (NO_BIASES in words)
    assert result.difference < 1e-5 and result.ours[0].translation == result.yours[0].translation
    assert [m.weights.shape for m in result.ours[0].maps] == [m.weights.shape for m in result.yours[0].maps]


def test_heads_of_another_width_are_refused():
    with pytest.raises(ValueError, match="^its heads are 96 wide, the trained ones 48$"):
        own.in_trained(WidthInTheClass, TEXT)


class ScaledOutput(nn.MultiheadAttention):
    """Its weights are right, its context is not."""

    def forward(self, query, key, value, **options):
        context, weights = super().forward(query, key, value, **options)
        return 2 * context, weights


def test_another_value_or_output_shows(monkeypatch):
    """With the trained matrices of values and output, a context of twice the size changes every layer after it."""
    right = own.in_trained(nn.MultiheadAttention, TEXT)
    taken = trained._with_module

    def wrong(made, subject, formula, network):
        network, notes = taken(made, subject, formula, network)
        network.encoder[0].attention.module.__class__ = ScaledOutput
        return network, notes

    monkeypatch.setattr(trained, "_with_module", wrong)
    assert own.in_trained(nn.MultiheadAttention, TEXT).difference > 0.1 > 1e-5 > right.difference


def masked_after(query, keys, mask=None):
    weights = torch.softmax(query @ keys.mT, dim=-1)
    return weights if mask is None else weights * mask.unsqueeze(1)


def test_a_fault_of_the_mask_that_does_not_show_is_named():
    words = own.check(masked_after, in_trained=True).trained
    assert "the same translations" in words
    assert words.endswith("; a sentence read by itself hides no key, so the fault of its mask does not show here")


class OneMatrix(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w, self.v = nn.Linear(width, width), nn.Linear(width, 1, bias=False)

    def scores(self, query, keys):
        return self.v(torch.tanh(self.w(query).unsqueeze(1) + self.w(keys))).squeeze(-1)

    def forward(self, query, keys):
        weights = torch.softmax(self.scores(query, keys), dim=-1)
        return torch.bmm(weights.unsqueeze(1), keys).squeeze(1), weights


class LosesASentence(OneMatrix):
    def __init__(self, width):
        super().__init__(width)
        self.u = nn.Linear(width, width)

    def scores(self, query, keys):
        return self.v(torch.tanh(self.w(query).unsqueeze(1) + self.u(keys))).squeeze()


class DividedByWidth(nn.Module):
    def forward(self, query, keys):
        return torch.softmax(query @ keys.transpose(1, 2) / query.shape[-1], dim=-1)


@pytest.mark.parametrize(
    "module, reason",
    [
        (DividedByWidth(), "no trained en-fr model has its formula"),
        (SharedByHeads, "^its W is one matrix for all heads$"),
        (LosesASentence, "^called with one sentence it raises (RuntimeError|IndexError): "),
        (OneMatrix, "^its W and U are one matrix, and the trained model has one for each$"),
        (ProjectedKeys, "^its formula has no U, and the trained one has$"),
    ],
)
def test_what_cannot_be_is_said(module, reason):
    with pytest.raises(ValueError, match=reason):
        own.in_trained(module, TEXT)


def test_a_report_says_what_cannot_be():
    assert own.check(DividedByWidth(), in_trained=True).trained == "not run: no trained en-fr model has its formula"


def test_a_check_says_it(tmp_path, capsys):
    file = tmp_path / "mine.py"
    file.write_text("def dot(query, keys):\n    return (query @ keys.transpose(1, 2)).softmax(-1)\n")
    words = "en-fr/luong-dot on 3 sentences: the same translations, largest difference of a weight"
    assert main(["check", f"{file}:dot"]) == 0
    assert f"in a trained model: {words}" in capsys.readouterr().out
    assert main(["check", f"{file}:dot", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["trained"].startswith(words)


@pytest.mark.filterwarnings("ignore:.*torch.jit.script")
def test_objects_of_a_file_are_built_again_if_their_class_can_be(tmp_path):
    file = tmp_path / "mine.py"
    lines = ["import torch", "from listings import BahdanauAttention", "plain = BahdanauAttention(16)"]
    file.write_text("\n".join([*lines, "compiled = torch.jit.script(plain)"]))
    plain, compiled = (own.load(f"{file}:{name}") for name in ("plain", "compiled"))
    assert own.in_trained(plain, TEXT).model == "en-fr/bahdanau"
    report = own.check(compiled, in_trained=True)
    assert report.ok and "additive" in report.formula
    assert report.trained.endswith("TorchScript has compiled it; name the class that it was made from")


@pytest.mark.parametrize("listing", ["AdditiveAttention", "MultiheadAttention"])
def test_what_is_done_with_a_trained_model_is_done_with_it(listing, tmp_path):
    """Its trace, statistics, step, change of attention and page are those of the model whose matrices it has."""
    try:
        like, notes = trained.save(tmp_path, f"{LISTINGS}:{listing}", {})
        ours, yours = attnviz.load(f"en-fr/{like}"), attnviz.load("en-fr/yours-trained", tmp_path)
        traces = [model.trace(TEXT[0]) for model in (ours, yours)]
        assert traces[0].translation == traces[1].translation and mechanisms.find("yours-trained").words.endswith(".")
        first, second = (stats.summary(trace).select_dtypes("number").to_numpy() for trace in traces)
        np.testing.assert_allclose(first, second, atol=1e-4)
        changed = [intervene.run(model, TEXT[0], intervene.Uniform()) for model in (ours, yours)]
        assert changed[0].free.translation == changed[1].free.translation != traces[0].translation
        np.testing.assert_allclose(changed[0].total_variation, changed[1].total_variation, atol=1e-4)
        assert html.escape(traces[1].translation) in html_page.page(traces[1]).decode()
        if like == "bahdanau":
            scores = [inside.step(model, trace, 1).scores for model, trace in zip((ours, yours), traces)]
            np.testing.assert_allclose(*scores, atol=1e-4)
        else:
            with pytest.raises(ValueError, match="a module of your own shows its weights alone"):
                inside.step(yours, traces[1], 1)
    finally:
        mechanisms.remove("yours-trained")
