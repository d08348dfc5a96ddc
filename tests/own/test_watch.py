"""Weights of any model's attention, collected by hooks; the model computes what it computes without them."""

import pytest
import torch
from listings import BahdanauAttention
from torch import nn

from attnviz import own

TOKENS, TARGET = ["a", "dog", "runs"], ["un", "chien", "court", "."]


def test_a_transformer_whose_modules_return_no_weights():
    """In evaluation, PyTorch's encoder layers take a fast path, and every layer calls with need_weights=False."""
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 2, 32, batch_first=True).eval()
    source, target = torch.randn(1, 3, 16), torch.randn(1, 4, 16)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    with torch.no_grad(), own.watch(model) as seen:
        watched = model(source, target, tgt_mask=causal)
    with torch.no_grad():
        assert torch.allclose(model(source, target, tgt_mask=causal), watched, atol=1e-5)
        first = model.encoder.layers[0].self_attn
        _, expected = first(source, source, source, average_attn_weights=False)
    assert torch.allclose(seen.weights["encoder.layers.0.self_attn"][0], expected, atol=1e-6)
    trace = seen.trace(TOKENS, TARGET)
    assert [(m.kind, m.layer, m.weights.shape) for m in trace.maps] == [
        ("encoder", 0, (2, 3, 3)),
        ("decoder", 0, (2, 4, 4)),
        ("decoder", 1, (2, 4, 4)),
        ("cross", 0, (2, 4, 3)),
        ("cross", 1, (2, 4, 3)),
    ]


def test_a_loop_over_the_steps_is_one_text():
    """It reads all tokens again at each step, the source too or not; or it keeps those before, as a cache does."""
    torch.manual_seed(0)
    model = nn.Transformer(16, 2, 1, 2, 32, batch_first=True).eval()
    source, target = torch.randn(1, 4, 16), torch.randn(1, 4, 16)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    traces = []
    for lengths, again in (([4], True), ([1, 2, 3, 4], True), ([1, 2, 3, 4], False)):
        with torch.no_grad(), own.watch(model) as seen:
            memory = model.encoder(source)
            for n in lengths:
                of = memory if not again else model.encoder(source)
                model.decoder(target[:, :n], of, tgt_mask=causal[:n, :n])
        traces.append(seen.trace(TARGET, TARGET))
    first = traces[0]
    for trace in traces[1:]:
        assert [(m.kind, m.layer) for m in trace.maps] == [(m.kind, m.layer) for m in first.maps]
        assert all(abs(a.weights - b.weights).max() < 1e-5 for a, b in zip(trace.maps, first.maps))
    attention = model.decoder.layers[0].self_attn
    for parts in ([target[:, :2], target[:, 2:3], target[:, 3:]], [target[:, :2], target[:, :3], target]):
        with torch.no_grad(), own.watch(attention) as seen:
            read = 0
            for part in parts:
                read = read + part.shape[1] if part.shape[1] == 1 else part.shape[1]
                keys = target[:, :read]
                attention(part, keys, keys, attn_mask=causal[read - part.shape[1] : read, :read], need_weights=False)
        for written in ((), TARGET):  # no name says the kind, and there are as many tokens here as there
            (shown,) = seen.trace(TARGET, written).maps
            assert shown.kind == "decoder" and abs(shown.weights - first.map("decoder", 0).weights).max() < 1e-5


class Seq2Seq(nn.Module):
    """A decoder of a tutorial: attention once a step."""

    def __init__(self, width=8):
        super().__init__()
        self.attention, self.cell = BahdanauAttention(width), nn.GRUCell(width, width)

    def forward(self, source, steps):
        state = source[:, -1]
        for _ in range(steps):
            context, _ = self.attention(state.unsqueeze(1), source)
            state = self.cell(context[:, 0], state)
        return state


def test_a_decoder_that_attends_once_a_step():
    model = Seq2Seq()
    with own.watch(model) as seen:
        model(torch.randn(1, 3, 8), 4)
    assert seen.trace(TOKENS, TARGET).map("cross").weights.shape == (1, 4, 3)
    assert not model.attention._forward_hooks and not model.attention._forward_pre_hooks


class AttnDecoder(Seq2Seq):
    """Its class is called attention too, and its softmax is that of the words."""

    def forward(self, source, steps):
        return torch.softmax(super().forward(source, steps), dim=-1)


class Unnamed(nn.Module):
    """Attention in a class of another name."""

    def __init__(self):
        super().__init__()
        self.key, self.softmax = nn.Linear(8, 8), nn.Softmax(dim=-1)

    def forward(self, source, query):
        return self.softmax(query @ self.key(source).transpose(1, 2)) @ source


def test_an_attention_within_a_module_of_that_name_and_one_of_another_name():
    model = AttnDecoder()
    with own.watch(model) as seen:
        model(torch.randn(1, 3, 8), 4)
    assert [m.weights.shape for m in seen.trace(TOKENS, TARGET).maps] == [(1, 4, 3)]
    model.attention.__class__ = type("Bahdanau", (BahdanauAttention,), {})  # whose name is not that of an attention
    with own.watch(model) as seen:
        model(torch.randn(1, 3, 8), 4)
    assert [m.weights.shape for m in seen.trace(TOKENS, TARGET).maps] == [(1, 4, 3)]
    model = nn.Sequential(Unnamed())
    source, query = torch.randn(1, 3, 8), torch.randn(1, 4, 8)
    with own.watch(model) as seen:
        model[0](source, query)
    expected = torch.softmax(query @ model[0].key(source).transpose(1, 2), dim=-1)
    assert torch.allclose(torch.tensor(seen.trace(TOKENS, TARGET).map("cross").weights), expected)


class LinearAttention(nn.Module):
    """Without weights."""

    def forward(self, x):
        return x.exp() @ (x.exp().mT @ x)


class InForward(nn.Module):
    """A decoder whose attention is a softmax in its forward(), once a step, beside that of the words."""

    def __init__(self):
        super().__init__()
        self.encoder, self.cell, self.words = LinearAttention(), nn.GRUCell(8, 8), nn.Linear(8, 11)

    def step(self, state, memory):
        weights = torch.softmax((state.unsqueeze(1) * memory).sum(dim=-1), dim=-1)
        state = self.cell((weights.unsqueeze(2) * memory).sum(dim=1), state)
        return torch.softmax(self.words(state), dim=-1), state, weights

    def forward(self, source):
        memory = self.encoder(source).tanh()
        state, rows = memory[:, -1], []
        for _ in TARGET:
            _, state, weights = self.step(state, memory)
            rows.append(weights)
        return torch.stack(rows, dim=1)


class AttnDecoder2(InForward):
    """Its own name says attention."""


@pytest.mark.parametrize("kind", [InForward, AttnDecoder2])
def test_a_softmax_in_forward_is_seen_beside_a_module_that_is_called_attention(kind):
    model = kind()
    with torch.no_grad(), own.watch(model) as seen:
        expected = model(torch.randn(1, 3, 8))
    with pytest.warns(UserWarning, match="^encoder was called, and has no weights: .* It is not in the trace$"):
        trace = seen.trace(TOKENS, TARGET)
    assert len(trace.maps) == 1 and torch.allclose(torch.tensor(trace.map("cross").weights), expected)


class Classified(nn.Module):
    """As many classes as tokens, and a helper of an attention whose name says so."""

    def __init__(self):
        super().__init__()
        self.attention, self.words = TorchAttention(), nn.Linear(8, 3)

    def forward(self, source):
        return self.words(self.attention(source)).softmax(dim=-1)


class TorchAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention_output = type("AttentionOutput", (nn.Linear,), {})(8, 8)

    def forward(self, source):
        return self.attention_output((source @ source.mT).softmax(dim=-1) @ source)


def test_the_output_is_no_attention_and_a_part_of_an_attention_needs_no_weights(recwarn):
    model, source = Classified(), torch.randn(1, 3, 8)
    with torch.no_grad(), own.watch(model) as seen:
        model(source)
    (shown,) = seen.trace(TOKENS).maps
    assert torch.allclose(torch.tensor(shown.weights), (source @ source.mT).softmax(dim=-1)) and not recwarn.list


class TwoLayers(nn.Module):
    """Two attentions in one forward(), beside a module of that name."""

    def __init__(self):
        super().__init__()
        self.first, self.attention = LinearAttention(), BahdanauAttention(8)

    def forward(self, source):
        for _ in range(2):
            source = torch.softmax(source @ source.mT, dim=-1) @ source
        return self.attention(source[:, -1:], source)


def test_softmaxes_of_one_forward_are_layers():
    model = TwoLayers()
    with torch.no_grad(), own.watch(model) as seen:
        model(torch.randn(1, 3, 8))
    maps = seen.trace(TOKENS, ["un"]).maps
    assert {(m.kind, m.layer, m.weights.shape) for m in maps} == {
        ("encoder", 0, (1, 3, 3)),
        ("encoder", 1, (1, 3, 3)),
        ("cross", 0, (1, 1, 3)),
    }


class Hops(nn.Module):
    """One attention, three times: layers that share their parameters."""

    def __init__(self):
        super().__init__()
        self.softmax, self.words = nn.Softmax(dim=1), nn.Linear(8, 6)

    def forward(self, query, keys):
        for _ in range(3):
            query = query + (self.softmax((keys @ query.unsqueeze(2))[..., 0]).unsqueeze(1) @ keys)[:, 0]
        return self.softmax(self.words(query))


def test_layers_that_share_their_parameters_and_queries_that_are_learnt():
    model, keys = Hops(), torch.randn(1, 3, 8)
    with torch.no_grad(), own.watch(model) as seen:
        model(torch.randn(1, 8), keys)
    assert [(m.layer, m.weights.shape) for m in seen.trace(TOKENS, ["le"]).maps] == [(n, (1, 1, 3)) for n in range(3)]
    model.register_module("first", nn.Linear(8, 2))
    with torch.no_grad(), own.watch(model) as seen:  # keys in the middle axis
        weights = model.softmax(model.first(keys))
    (shown,) = seen.trace(TOKENS, ["vector"]).maps
    assert torch.equal(torch.tensor(shown.weights[:, 0]), weights[0].T)


class PointerAttention(BahdanauAttention):
    """It gives scores, of which the module around it takes the softmax; or their logarithms."""

    def __init__(self, logs):
        super().__init__(8)
        self.logs = logs

    def forward(self, query, keys):
        scores = self.Va(torch.tanh(self.Wa(query) + self.Ua(keys)))[..., 0]
        return scores.log_softmax(dim=-1) if self.logs else scores


class Pointer(nn.Module):
    def __init__(self, logs):
        super().__init__()
        self.attention = PointerAttention(logs)

    def forward(self, source):
        scores = self.attention(source[:, :1], source)
        return (scores.exp() if self.attention.logs else scores.softmax(dim=-1)), scores


@pytest.mark.parametrize("logs", [False, True])
def test_a_pointer_network(logs, recwarn):
    model, source = Pointer(logs), torch.randn(1, 3, 8)
    with torch.no_grad(), own.watch(model) as seen:
        expected, _ = model(source)
    assert torch.allclose(torch.tensor(seen.trace(TOKENS, ["un"]).map("cross").weights[0]), expected)
    assert not recwarn.list


def test_a_decoder_without_a_causal_mask_is_left_out_with_a_warning():
    model = nn.Transformer(16, 2, 1, 1, 32, batch_first=True).eval()
    with torch.no_grad(), own.watch(model) as seen:
        model(torch.randn(1, 3, 16), torch.randn(1, 4, 16))
    with pytest.warns(UserWarning, match=r"^decoder.layers.0.self_attn sees later tokens of the target: it has no ca"):
        assert [m.kind for m in seen.trace(TOKENS, TARGET).maps] == ["encoder", "cross"]


class ByHand(nn.Module):
    """Two heads, of which no attribute says the number, and a softmax that is written out."""

    def forward(self, source):
        heads = source.unflatten(-1, (2, 4)).transpose(1, 2)
        weights = (heads @ heads.mT).exp()
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return (weights @ heads).transpose(1, 2).flatten(2), weights


class Unsaid(ByHand):
    def forward(self, source):
        heads = source.unflatten(-1, (2, 4)).transpose(1, 2)
        return ((heads @ heads.mT).softmax(dim=-1) @ heads).transpose(1, 2).flatten(2)


def test_weights_that_come_back_are_seen_without_a_softmax_and_heads_without_their_number():
    source = torch.randn(1, 3, 8)
    for kind in (ByHand, Unsaid):
        model = nn.Sequential(kind())
        with own.watch(model) as seen:
            model(source) if kind is Unsaid else model[0](source)
        expected = ByHand()(source)[1][0]
        assert torch.allclose(torch.tensor(seen.trace(TOKENS).map("encoder").weights), expected, atol=1e-6)


def test_what_does_not_fit_is_said():
    linear = nn.Linear(2, 2)
    with own.watch(linear) as seen:
        linear(torch.randn(1, 2))
    with pytest.raises(ValueError, match="no attention was seen"):
        seen.trace(TOKENS)
    model = nn.Sequential(type("LinearAttention", (nn.Linear,), {})(2, 2))
    with own.watch(model) as seen:
        model(torch.randn(1, 2))
    with pytest.raises(
        ValueError, match="^0 was called, and has no weights: it takes no softmax, and returns and keeps"
    ):
        seen.trace(TOKENS)
    model = Seq2Seq()
    with own.watch(model) as seen:
        pass
    with pytest.raises(ValueError, match="no attention was seen"):
        seen.trace(TOKENS)
    for batch, times in ((2, 1), (1, 2)):
        with own.watch(model) as seen:
            for _ in range(times):
                model(torch.randn(batch, 3, 8), 4)
        words = f"{4 * times} calls of shape .* in a batch of one{'; it ran 2 times' * (times - 1)}"
        with pytest.raises(ValueError, match=f"fit neither 3 source tokens nor 4 target tokens: {words}"):
            seen.trace(TOKENS, TARGET)


@pytest.mark.filterwarnings("ignore:.*torch.jit.(script|trace)")
def test_what_torchscript_compiled_is_refused_in_a_sentence():
    model = nn.ModuleDict({"attend": torch.jit.script(nn.Softmax(-1))})
    words = "^attend is compiled by torch.jit.script, whose modules cannot be watched"
    with pytest.raises(ValueError, match=words), own.watch(model):
        pass
    with pytest.raises(ValueError, match="torch.jit.trace keeps no names of parameters, so test the module that it"):
        own.check(torch.jit.trace(nn.Softmax(-1), torch.randn(2, 3)))


class Gumbel(nn.Module):
    def __init__(self):
        super().__init__()
        self.query, self.key = nn.Linear(4, 4), nn.Linear(4, 4)

    def forward(self, x):
        return nn.functional.gumbel_softmax(self.query(x) @ self.key(x).mT, hard=True) @ x


def test_gumbel_softmax_is_a_softmax():
    with own.watch(model := Gumbel()) as seen:
        model(torch.randn(1, 3, 4))
    weights = seen.trace(["a", "b", "c"]).map("encoder").weights
    assert weights.shape == (1, 3, 3) and (weights.max(axis=-1) == 1).all()
