"""Listings of tutorials whose form is less usual: a fixed number of keys, channels first, a learnt key, the weights of
the step before, layers that get their width from the first call, numbers in place of vectors; and whole decoders."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from attnviz import mechanisms, own
from attnviz.own.forms import NotRecognised


@pytest.fixture
def wrapped():
    yield own.wrap
    mechanisms.remove("yours")


class FixedKeys(nn.Module):
    """The attention of PyTorch's older translation tutorial: its weights are made of the query alone."""

    def __init__(self, hidden_size, max_length=10):
        super().__init__()
        self.attn = nn.Linear(hidden_size * 2, max_length)

    def forward(self, embedded, hidden, encoder_outputs):
        weights = F.softmax(self.attn(torch.cat((embedded[0], hidden[0]), 1)), dim=1)
        return torch.bmm(weights.unsqueeze(0), encoder_outputs.unsqueeze(0)), weights


class FixedKeysOfBatches(FixedKeys):
    def forward(self, embedded, hidden, encoder_outputs):
        weights = F.softmax(self.attn(torch.cat((embedded, hidden), 1)), dim=1)
        return torch.bmm(weights.unsqueeze(1), encoder_outputs), weights


@pytest.mark.parametrize(
    ("module", "form"),
    [
        (
            FixedKeysOfBatches,
            "attention, batch-first: (embedded (B,D), hidden (B,D), encoder_outputs (B,10,D)) -> context (B,1,D), "
            "weights (B,10); it asks with embedded and hidden",
        ),
        (
            FixedKeys,
            "attention, one sentence at a time: (embedded (1,1,D), hidden (L,1,D), encoder_outputs (10,D)) -> context "
            "(1,1,D), weights (1,10); it asks with embedded and hidden[0]",
        ),
    ],
)
def test_the_number_of_keys_is_a_fact_of_the_module(module, form, wrapped):
    report = own.check(module)
    assert report.ok and report.form == form, (report.faults, report.form)
    limits = [line.reason for line in report.lines if line.verdict == "limit"]
    assert limits[0] == "it takes 10 keys: zeros fill up fewer, as in PyTorch's older tutorial, and get weight"
    assert limits[1] == "it is built for at most 10 keys"
    words = wrapped(module(16)).words
    assert "divided by their sums. The decoder's state is its embedded and its hidden" in words


class ChannelsFirst(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def forward(self, query, keys, values):
        weights = F.softmax(torch.bmm(self.W(query).unsqueeze(1), keys), dim=-1)
        return torch.bmm(weights, values.transpose(1, 2)).squeeze(1), weights.squeeze(1)


class OfAnImage(nn.Module):
    """SAGAN (Zhang et al. 2019)."""

    def __init__(self, in_dim):
        super().__init__()
        self.query, self.key = (nn.Conv2d(in_dim, in_dim // 8, 1) for _ in range(2))
        self.value = nn.Conv2d(in_dim, in_dim, 1)

    def forward(self, x):
        query, key, value = (layer(x).flatten(2) for layer in (self.query, self.key, self.value))
        weights = F.softmax(query.mT @ key, dim=-1)
        return (value @ weights.mT).view_as(x), weights


@pytest.mark.parametrize(
    ("module", "form", "formula"),
    [
        (
            ChannelsFirst,
            "attention, channels first: (query (B,D), keys (B,D,S), values (B,D,S)) -> context (B,D), weights (B,S)",
            "Luong general: q · W k with W = `W.weight`ᵀ",
        ),
        (
            OfAnImage,
            "self-attention, channels first: (x (B,D,1,S)) -> context (B,D,1,T), weights (B,T,S)",
            "near multi-head, one head: queries by `query.weight` and its bias, keys by `key.weight`",
        ),
    ],
)
def test_channels_may_lie_before_keys(module, form, formula):
    report = own.check(module)
    assert report.ok and report.form == form and report.formula.startswith(formula), report


class NullKey(nn.Module):
    def __init__(self, hidden_size, last=False):
        super().__init__()
        self.q, self.last = nn.Linear(hidden_size, hidden_size, bias=False), last
        self.null_key, self.null_value = (nn.Parameter(torch.randn(hidden_size)) for _ in range(2))

    def beside(self, null, x):
        both = [null.expand(len(x), 1, -1), x]
        return torch.cat(both[::-1] if self.last else both, dim=1)

    def forward(self, query, keys, values):
        keys, values = self.beside(self.null_key, keys), self.beside(self.null_value, values)
        weights = F.softmax(self.q(query) @ keys.mT / math.sqrt(keys.shape[-1]), dim=-1)
        return weights @ values, weights


@pytest.mark.parametrize(("last", "place"), [(False, "first"), (True, "last")])
def test_a_learnt_key_takes_a_share(last, place, wrapped):
    torch.manual_seed(482)  # with these weights two keys of the tests happen to have the same score
    report = own.check(NullKey(16, last))
    assert report.ok and report.form.endswith(f"weights (B,T,S+1, the {place} to no key)"), report
    (limit,) = [line.reason for line in report.lines if line.verdict == "limit"]
    assert limit.endswith("so a share goes to no key (a sink)")
    assert wrapped(NullKey(16, last)).words.endswith("Rows that sum to less than 1 are divided by their sums.")


class LinearAttention(nn.Module):
    """Katharopoulos et al. 2020."""

    def __init__(self, hidden_size):
        super().__init__()
        self.q, self.k, self.v = (nn.Linear(hidden_size, hidden_size) for _ in range(3))

    def forward(self, x):
        q, k = F.elu(self.q(x)) + 1, F.elu(self.k(x)) + 1
        return q @ (k.mT @ self.v(x)) / (q @ k.sum(dim=1).unsqueeze(2))


class Tacotron2(nn.Module):
    """As the model of NVIDIA has it: the keys come projected, and the weights of the step before beside their sum."""

    def __init__(self, attention_rnn_dim, embedding_dim, attention_dim, attention_location_n_filters, kernel_size):
        super().__init__()
        self.query_layer = nn.Linear(attention_rnn_dim, attention_dim, bias=False)
        self.memory_layer = nn.Linear(embedding_dim, attention_dim, bias=False)
        padding = (kernel_size - 1) // 2
        self.convolution = nn.Conv1d(2, attention_location_n_filters, kernel_size, padding=padding, bias=False)
        self.location = nn.Linear(attention_location_n_filters, attention_dim, bias=False)
        self.v = nn.Linear(attention_dim, 1, bias=False)

    def forward(self, attention_hidden_state, memory, processed_memory, attention_weights_cat, mask):
        """
        mask: binary mask for padded data
        """
        location = self.location(self.convolution(attention_weights_cat).transpose(1, 2))
        query = self.query_layer(attention_hidden_state.unsqueeze(1))
        scores = self.v(torch.tanh(query + location + processed_memory)).squeeze(-1)
        if mask is not None:
            scores = scores.masked_fill(mask, -math.inf)
        weights = F.softmax(scores, dim=1)
        return torch.bmm(weights.unsqueeze(1), memory).squeeze(1), weights


def test_the_weights_of_the_step_before_may_come_beside_their_sum(wrapped):
    report = own.check(Tacotron2)
    words = "attention_weights_cat (B,2,S) of zeros, as at the first step, mask (B,S) bool, 1 hides a key)"
    assert report.ok and words in report.form and report.formula.startswith("additive (Bahdanau)"), report
    assert any(line.reason.endswith("What comes projected is projected before the call") for line in report.lines)
    words = wrapped(Tacotron2(16, 16, 16, 4, 3)).words
    assert words.endswith("The weights of the steps before are zeros at every step, so what reads them does not train.")


class LazyAdditive(nn.Module):
    """d2l.ai, *Dive into Deep Learning*."""

    def __init__(self, num_hiddens):
        super().__init__()
        self.W_k, self.W_q = (nn.LazyLinear(num_hiddens, bias=False) for _ in range(2))
        self.w_v = nn.LazyLinear(1, bias=False)

    def forward(self, queries, keys, values):
        features = torch.tanh(self.W_q(queries).unsqueeze(2) + self.W_k(keys).unsqueeze(1))
        self.attention_weights = F.softmax(self.w_v(features).squeeze(-1), dim=-1)
        return torch.bmm(self.attention_weights, values)


def test_lazy_layers_get_the_widths_of_a_decoder(wrapped):
    module = LazyAdditive(8)
    yours = wrapped(module).score()
    assert yours.widths == (64, 128) and yours.module.W_k.weight.shape == (8, 128)
    assert isinstance(module.W_k, nn.LazyLinear)  # that of the caller stays as it is


class OfNumbers(nn.Module):
    """The kernel regression of Nadaraya and Watson in d2l.ai."""

    def __init__(self):
        super().__init__()
        self.w = nn.Parameter(torch.rand(1))

    def forward(self, queries, keys, values):
        queries = queries.repeat_interleave(keys.shape[1]).reshape((-1, keys.shape[1]))
        self.attention_weights = F.softmax(-(((queries - keys) * self.w) ** 2) / 2, dim=1)
        return torch.bmm(self.attention_weights.unsqueeze(1), values.unsqueeze(-1)).reshape(-1)


def test_queries_and_keys_may_be_numbers():
    report = own.check(OfNumbers)
    assert report.ok and report.form == (
        "attention, of numbers: (queries (B), keys (B,S), values (B,S)) -> context (B), weights (B,S) kept as "
        "self.attention_weights"
    )
    assert report.formula.startswith("none of the known ones: the squared distance of q and k")
    with pytest.raises(ValueError, match="OfNumbers reads numbers, and the state of a decoder is a vector"):
        own.wrap(OfNumbers())


class ScoresOfOne(nn.Module):
    """A blog's: it reads a batch of one, and the decoder around it takes the softmax."""

    def forward(self, decoder_hidden, encoder_outputs):
        return encoder_outputs.bmm(decoder_hidden.view(1, -1, 1)).squeeze(-1)


def test_a_batch_of_one_is_one_sentence_at_a_time():
    report = own.check(ScoresOfOne)
    assert report.form == (
        "attention, one sentence at a time: (decoder_hidden (1,1,D), encoder_outputs (1,S,D)) -> weights (1,S)"
    )
    assert report.faults[0].reason.startswith("these are scores: no softmax over the keys was taken")


class Bahdanau(nn.Module):
    def __init__(self, hidden_size):
        super().__init__()
        self.W, self.U, self.v = (nn.Linear(hidden_size, n) for n in (hidden_size, hidden_size, 1))

    def forward(self, query, keys):
        weights = F.softmax(self.v(torch.tanh(self.W(query) + self.U(keys))).transpose(1, 2), dim=-1)
        return torch.bmm(weights, keys), weights


class WholeDecoder(nn.Module):
    """The newer tutorial of PyTorch: ten steps in a call."""

    def __init__(self, hidden_size, output_size):
        super().__init__()
        self.embedding, self.attention = nn.Embedding(output_size, hidden_size), Bahdanau(hidden_size)
        self.gru = nn.GRU(2 * hidden_size, hidden_size, batch_first=True)
        self.out = nn.Linear(hidden_size, output_size)

    def forward(self, encoder_outputs, encoder_hidden, target_tensor=None):
        token, hidden = torch.zeros(len(encoder_outputs), 1, dtype=torch.long), encoder_hidden
        rows, words = [], []
        for _ in range(10):
            context, weights = self.attention(hidden.permute(1, 0, 2), encoder_outputs)
            output, hidden = self.gru(torch.cat((self.embedding(token), context), dim=2), hidden)
            words.append(self.out(output))
            token = words[-1].argmax(dim=-1)
            rows.append(weights)
        return torch.cat(words, dim=1), hidden, torch.cat(rows, dim=1)


class WholeStep(FixedKeys):
    """That of the older one, with tokens as input."""

    def __init__(self, hidden_size, output_size):
        super().__init__(hidden_size)
        self.embedding = nn.Embedding(output_size, hidden_size)

    def forward(self, input, hidden, encoder_outputs):
        return super().forward(self.embedding(input).view(1, 1, -1), hidden, encoder_outputs)


class DenseSynthesizer(nn.Module):
    """Tay et al. 2020, for a number of tokens."""

    def __init__(self, d_model, max_len=10):
        super().__init__()
        self.W, self.v = nn.Linear(d_model, max_len), nn.Linear(d_model, d_model)

    def forward(self, x):
        weights = F.softmax(self.W(x), dim=-1)
        return weights @ self.v(x), weights


class NeedsAStart(ChannelsFirst):
    """Location-sensitive attention that keeps the weights of the step before, as of a TTS library."""

    def forward(self, query, keys):
        scores = torch.einsum("bd,bsd->bs", self.W(query), keys) + self.before
        self.before = scores.softmax(dim=-1)
        return self.before


class StepOfFive(nn.Module):
    """CS224n: `step` of the translator takes five tensors."""

    def forward(self, Ybar_t, dec_state, enc_hiddens, enc_hiddens_proj, enc_masks):
        return dec_state


@pytest.mark.parametrize(
    ("module", "reason"),
    [
        (
            LinearAttention,
            "it returned (3, 5, 16), and none of it has an axis for the keys, as weights have. If it is linear "
            "attention, it makes none to test or to show.",
        ),
        (
            WholeDecoder,
            "it attends 10 times in a call, once a step, as a whole decoder does. It holds Bahdanau (self.attention): "
            "test that class by itself.",
        ),
        (
            WholeStep,
            "it reads numbers of tokens, and attention reads vectors. It seems to be a whole step of a decoder",
        ),
        (NeedsAStart, ", AttributeError: 'NeedsAStart' object has no attribute 'before'"),
        (DenseSynthesizer, "; it runs with 10 tokens: take such sizes from the inputs, not from a number"),
        (
            StepOfFive,
            "it needs Ybar_t, dec_state, enc_hiddens, enc_hiddens_proj, enc_masks, and attention takes a query, keys "
            "and values, beside masks. It seems to be a whole step of a decoder: test its attention in a class of its ",
        ),
    ],
)
def test_what_is_no_attention_by_itself_is_told_what_it_is(module, reason):
    with pytest.raises(NotRecognised) as error:
        own.check(module)
    assert reason in str(error.value)


N_EMBD = 32


class Head(nn.Module):
    """One of a lecture on GPT: its width is a number of the file."""

    def __init__(self, head_size):
        super().__init__()
        self.key, self.query, self.value = (nn.Linear(N_EMBD, head_size, bias=False) for _ in range(3))

    def forward(self, x):
        scores = self.query(x) @ self.key(x).mT * self.key.out_features**-0.5
        weights = scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -math.inf).softmax(dim=-1)
        return weights @ self.value(x)


def test_a_width_that_is_a_number_of_the_file_is_told():
    report = own.check(Head, in_trained=True)
    assert report.trained.endswith("it stays 32 wide whatever its arguments are: its width is a number in the file")
