"""A module of a person's in a decoder computes what the shipped mechanism of the same formula computes."""

import pytest
import torch
from listings import Attention, Attn, BahdanauAttention, SelfAttentionV1
from torch import nn

from attnviz import mechanisms, own
from attnviz.attention import Additive, General
from attnviz.mechanisms import Config
from attnviz.networks.registry import build
from attnviz.own.wrap import DIVIDED, NO_SCORES, OF_THE_LAST, SCORES


class Fused(nn.Module):
    """Two heads in PyTorch's fused kernel."""

    def __init__(self):
        super().__init__()
        self.mha = nn.MultiheadAttention(16, 2, batch_first=True)

    def forward(self, query, keys, values):
        return self.mha(query, keys, values)


SIZES = {"width": 16, "embedding_width": 8}


@pytest.fixture
def wrapped():
    yield own.wrap
    mechanisms.remove("yours")


def logits(network, names):
    """Logits and weights of two sentences, one of them padded, with the parameters of another network."""
    network.load_state_dict({names(name): value for name, value in network.other.items()})
    source, mask = torch.tensor([[5, 6, 7, 8], [9, 6, 4, 4]]), torch.tensor([[True] * 4, [True, True, False, False]])
    return network.eval()(source, torch.tensor([[1, 5, 6], [1, 7, 8]]), mask)


@pytest.mark.parametrize(
    "module, shipped, order",
    [(General(16, 32), "luong-general", "current"), (Additive(16, 32, 16), "bahdanau", "previous")],
)
def test_the_weights_and_the_logits_are_those_of_the_shipped_decoder(wrapped, module, shipped, order):
    torch.manual_seed(0)
    ours = build(Config(shipped, 12, SIZES))
    yours = build(Config(wrapped(module, order=order).name, 12, SIZES))
    ours.other = ours.state_dict()
    yours.other = ours.state_dict()
    expected = logits(ours, lambda name: name)
    computed = logits(yours, lambda name: name.replace("attention.", "attention.module."))
    assert all(torch.allclose(a, b, atol=1e-5) for a, b in zip(computed, expected))


class MaskedAfter(BahdanauAttention):
    """Its rows sum to less than 1 where a key is hidden."""

    def forward(self, query, keys, mask):
        context, weights = super().forward(query, keys)
        return context, weights * mask.unsqueeze(1)


@pytest.mark.parametrize("module", [BahdanauAttention, MaskedAfter])
def test_a_module_without_a_mask_or_with_one_after_its_softmax_gives_padding_nothing_and_learns(module, wrapped):
    mechanism = wrapped(module(16))
    assert (DIVIDED in mechanism.words) == (module is MaskedAfter) and mechanism.title == f"Yours · {module.__name__}"
    network = build(Config(mechanism.name, 12, SIZES))
    source, mask = torch.tensor([[5, 6, 7], [9, 4, 4]]), torch.tensor([[True] * 3, [True, False, False]])
    out, weights = network(source, torch.tensor([[1, 5], [1, 7]]), mask)
    assert torch.allclose(weights.sum(dim=-1), torch.ones(2, 2)) and bool((weights[1, :, 1:] == 0).all())
    out.logsumexp(dim=-1).sum().backward()
    assert float(network.attention.module.Wa.weight.grad.abs().max()) > 0


class Sparse(nn.Module):
    """All the weight is on the largest key, which padding may be."""

    def forward(self, query, keys):
        scores = query @ keys.mT
        return torch.zeros_like(scores).scatter(-1, scores.argmax(dim=-1, keepdim=True), 1.0)


def test_exact_zeros_are_those_of_a_sentence_without_its_padding(wrapped):
    wrapped(Sparse())
    yours = build(Config("yours", vocabulary=30)).attention.eval()
    keys = torch.tensor([[[1.0], [2.0], [3.0]]]).expand(1, 3, 128)
    _, weights = yours(torch.ones(1, 1, 128), keys, keys, torch.tensor([[[True, True, False]]]))
    assert weights.tolist() == [[[0.0, 1.0, 0.0]]]


def test_a_sequence_first_module_is_called_as_it_was_written(wrapped):
    network = build(Config(wrapped(Attn("general", 16)).name, 12, SIZES))
    _, weights = network(torch.tensor([[5, 6, 7]]), torch.tensor([[1, 5]]))
    assert weights.shape == (1, 2, 3)


def with_a_sink(query, keys):
    """A share of each row goes to no key."""
    return nn.functional.pad(query @ keys.mT, (1, 0)).softmax(dim=-1)[..., 1:]


@pytest.mark.parametrize(
    "module, words",
    [(BahdanauAttention(16), SCORES), (Fused(), NO_SCORES), (with_a_sink, f"{NO_SCORES}{DIVIDED}")],
)
def test_the_scores_of_a_step_are_those_of_its_softmax_or_it_is_said_that_they_are_not(wrapped, module, words):
    mechanism = wrapped(module)
    attention = build(Config(mechanism.name, 12, SIZES)).eval().attention
    query, keys = torch.randn(1, 1, 16), torch.randn(1, 4, 16)
    _, weights = attention.read(query, attention.prepare(keys), keys)
    scores = attention.score(query, attention.prepare(keys))
    assert torch.allclose(weights.sum(dim=-1), torch.ones(1, 1))  # else a trace refuses them
    assert mechanism.words.endswith(words) and torch.allclose(torch.softmax(scores, dim=-1), weights, atol=1e-6)
    if words == SCORES:
        own = attention.module
        expected = own.Va(torch.tanh(own.Wa(query) + own.Ua(keys)))[..., 0]
        assert torch.allclose(scores[0], expected, atol=1e-6)
    elif words == NO_SCORES:
        assert torch.allclose(scores, weights.log(), atol=1e-6)


class LooksBack(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT / x.shape[-1] ** 0.5
        later = torch.ones(scores.shape[-2:]).triu(1).bool()
        return scores.masked_fill(later, -torch.inf).softmax(dim=-1) @ x


@pytest.mark.parametrize("module", [LooksBack(16), SelfAttentionV1(16, 16)])
def test_a_self_attention_reads_the_state_as_its_last_token(wrapped, module):
    mechanism = wrapped(module)
    attention = build(Config(mechanism.name, 12, SIZES)).eval().attention
    query, keys = torch.randn(2, 3, 16), torch.randn(2, 4, 16)
    mask = torch.tensor([[[True, True, True, True]], [[True, True, False, False]]])
    own = attention.module
    made = (own.query(query), own.key(keys)) if hasattr(own, "key") else (query @ own.W_query, keys @ own.W_key)
    scores = made[0] @ made[1].mT / 16**0.5
    context, weights = attention.read(query, keys, keys, mask)
    expected = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    assert torch.allclose(weights, expected, atol=1e-6) and bool((weights[~mask.expand_as(weights)] == 0).all())
    assert torch.allclose(context, expected @ keys, atol=1e-6)
    assert torch.allclose(attention.score(query, keys), scores, atol=1e-5)
    assert mechanism.words.endswith(f"{SCORES}{OF_THE_LAST}")


class Positions(LooksBack):
    """With learnt positions, so that it matters where the last token stands."""

    def __init__(self, width):
        super().__init__(width)
        self.places = nn.Embedding(9, width)

    def forward(self, x, mask=None):
        x = x + self.places(torch.arange(x.shape[1]))
        scores = self.query(x) @ self.key(x).mT
        weights = (scores if mask is None else scores.masked_fill(~mask.unsqueeze(1), -torch.inf)).softmax(dim=-1)
        return weights @ x, weights


class FourHeads(LooksBack):
    """Without a mask: the weights of each head are divided by their sum, not those of the mean."""

    def forward(self, query, keys):
        query, keys = (x.unflatten(-1, (4, -1)).transpose(1, 2) for x in (3 * self.query(query), self.key(keys)))
        weights = (query @ keys.mT).softmax(dim=-1)
        return (weights @ keys).transpose(1, 2).flatten(2), weights


@pytest.mark.parametrize("kind", [LooksBack, Positions, FourHeads])
def test_a_padded_sentence_has_the_weights_that_it_has_alone(wrapped, kind):
    attention = build(Config(wrapped(kind(16)).name, 12, SIZES)).eval().attention
    query, keys = torch.randn(2, 3, 16), torch.randn(2, 6, 16)
    mask = torch.arange(6) < torch.tensor([[[6]], [[4]]])
    _, weights = attention.read(query, keys, keys, mask)
    _, alone = attention.read(query[1:], keys[1:, :4], keys[1:, :4])
    assert torch.allclose(weights[1, :, :4], alone[0], atol=1e-6) and bool((weights[1, :, 4:] == 0).all())
    assert torch.allclose(attention.score(query, keys).softmax(dim=-1)[0], weights[0], atol=1e-6)


class BuiltForEight(LooksBack):
    def forward(self, query, keys):
        places = torch.zeros(8, keys.shape[-1])
        return (query @ (keys + places[: keys.shape[1]]).mT).softmax(dim=-1)


def test_its_shapes_alone_can_be_built_as_for_the_check_of_a_checkpoint(wrapped):
    mechanism = wrapped(Attn("general", 16))
    with torch.device("meta"):
        network = build(Config(mechanism.name, 12, SIZES))
    assert {parameter.device.type for parameter in network.parameters()} == {"meta"}


class Squeezed(BahdanauAttention):
    def forward(self, query, keys):
        return super().forward(query, keys)[1].squeeze()


def test_what_no_decoder_can_ask_is_refused():
    with pytest.raises(
        ValueError, match=r"^Squeezed loses an axis of length 1, as a squeeze\(\) without dim does: resu"
    ):
        own.wrap(Squeezed(8))
    with pytest.raises(ValueError, match="keys must be as wide as the query, or twice as wide; got 24 and 8"):
        own.wrap(Attention(12, 8))
    with pytest.raises(
        ValueError, match="BuiltForEight cannot read 9 keys with one query: it raises RuntimeError: The"
    ):
        own.wrap(BuiltForEight(16))
    with pytest.raises(ValueError, match="order must be previous or current; got 'last'"):
        own.wrap(Attn("general", 16), order="last")
    with pytest.raises(ValueError, match="module must be a module that is built"):
        own.wrap(BahdanauAttention)


class RootInATensor(nn.Module):
    """`scale` is no buffer, so it stays in single precision."""

    def __init__(self, hid_dim, causal=False):
        super().__init__()
        self.key, self.causal = nn.Linear(hid_dim, hid_dim), causal
        self.scale = torch.sqrt(torch.FloatTensor([hid_dim]))

    def forward(self, query, key, value):
        scores = query @ self.key(key).mT / self.scale
        later = torch.ones_like(scores).triu(1) == 1
        weights = torch.softmax(scores.masked_fill(later, -1e10) if self.causal else scores, dim=-1)
        return weights @ value, weights


def test_a_module_keeps_single_precision_in_a_decoder_of_bfloat16(wrapped):
    yours = wrapped(RootInATensor(8)).score().to(torch.bfloat16).train()
    query, keys = torch.randn(2, 1, 8).bfloat16(), torch.randn(2, 3, 8).bfloat16()
    context, weights = yours.read(query, keys, keys)
    assert context.dtype == weights.dtype == torch.bfloat16 and yours.module.key.weight.dtype == torch.float32


def test_a_causal_mask_over_the_source_is_refused_for_a_decoder():
    assert own.check(RootInATensor(16, causal=True)).ok
    with pytest.raises(ValueError, match="hides all keys but the first from one query, as a causal mask does"):
        own.wrap(RootInATensor(16, causal=True))


def test_scores_in_place_of_weights_are_refused():
    with pytest.raises(ValueError, match="^scores gives numbers below 0, as scores are: take their softmax over"):
        own.wrap(lambda query, keys: query @ keys.mT, title="scores")
