"""The query among the output and the states of a decoder: it is found, and asked with, wherever a module reads it."""

import pytest
import torch
from torch import nn

from attnviz import own


class Step(nn.Module):
    """Luong's general score of a decoder's output and states. `query` is for subclasses."""

    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size, bias=False)

    def query(self, output, hidden):
        return output

    def forward(self, rnn_output, hidden, encoder_outputs):
        scores = self.query(rnn_output, hidden) @ self.W(encoder_outputs).mT
        weights = scores.softmax(dim=-1)
        return weights @ encoder_outputs, weights


class Unpacked(Step):
    def query(self, output, hidden):
        state, cell = hidden
        return output


class OfState(Step):
    def query(self, output, hidden):
        state, cell = hidden
        return state[-1].unsqueeze(1)


class OfCell(Step):
    def query(self, output, hidden):
        state, cell = hidden
        return cell[-1].unsqueeze(1)


class OfLSTMCell(Step):
    def query(self, output, hidden):
        state, cell = hidden
        return state.unsqueeze(1)


class OfGRU(Step):
    def query(self, output, hidden):
        return hidden[-1].unsqueeze(1)


class OfOneLayer(Step):
    def query(self, output, hidden):
        return hidden.permute(1, 0, 2)


class OfFirst(Step):
    def query(self, output, hidden):
        return hidden[0].unsqueeze(1)


TOP, LIMIT = "the query is the top layer's state", "the first layer's state: right for a decoder of one layer. The top "
CELL = "it reads c[-1] of hidden, the cell of an LSTM. Papers and textbooks ask with its state, h[-1] of hidden"


@pytest.mark.parametrize(
    "module, states, asks, verdict",
    [
        (Step, "(L,B,D)", "rnn_output", "ok: it reads rnn_output, and nothing else of the decoder"),
        (Unpacked, "((L,B,D), (L,B,D))", "rnn_output", "ok: it reads rnn_output, and nothing else of the decoder"),
        (OfState, "((L,B,D), (L,B,D))", "h[-1] of hidden", "ok: it reads h[-1] of hidden, and nothing else of"),
        (OfLSTMCell, "((B,D), (B,D))", "h of hidden", "ok: it reads h of hidden, and nothing else of the decoder"),
        (OfGRU, "(L,B,D)", "hidden[-1]", "ok: it reads hidden[-1], and nothing else of the decoder"),
        (OfOneLayer, "(1,B,D)", "hidden", "ok: it reads hidden, and nothing else of the decoder"),
        (OfFirst, "(L,B,D)", "hidden[0]", f"limit: it reads hidden[0], {LIMIT}layer's is hidden[-1]"),
        (OfCell, "((L,B,D), (L,B,D))", "c[-1] of hidden", f"limit: {CELL}"),
    ],
)
def test_the_output_of_a_decoder_comes_with_its_states(module, states, asks, verdict):
    report = own.check(module)
    assert f"hidden {states}, encoder_outputs (B,S,D)) -> context" in report.form
    assert report.form.endswith(f"; it asks with {asks}") and report.formula.startswith("Luong general: q · W k")
    assert report.ok, report.faults
    (line,) = [line for line in report.lines if line.test == TOP]
    assert f"{line.verdict}: {line.reason}".startswith(verdict)


class Both(Step):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)
        self.join = nn.Linear(2 * hidden_size, hidden_size)

    def query(self, output, hidden):
        return self.join(torch.cat([output, hidden[-1].unsqueeze(1)], dim=-1))


def test_output_and_state_may_both_be_read():
    report = own.check(Both)
    assert report.ok and report.form.endswith("; it asks with rnn_output and hidden[-1]")


class OverSentences(Step):
    def forward(self, rnn_output, hidden, encoder_outputs):
        weights = (rnn_output @ self.W(encoder_outputs).mT).softmax(dim=0)
        return weights @ encoder_outputs, weights


def test_a_fault_is_told_beside_states_as_elsewhere():
    report = own.check(OverSentences)
    assert "sum to 1 over the sentences of the batch" in report.faults[0].reason
    assert report.form.endswith("; it asks with rnn_output")


def first(hidden, encoder_outputs):
    return torch.einsum("bd,bsd->bs", hidden[0], encoder_outputs).softmax(dim=-1)


def last(hidden, encoder_outputs):
    return torch.einsum("bd,bsd->bs", hidden[-1], encoder_outputs).softmax(dim=-1)


def only(hidden, encoder_outputs):
    return torch.einsum("bd,bsd->bs", hidden.squeeze(0), encoder_outputs).softmax(dim=-1)


def test_the_first_layer_in_place_of_the_last_is_a_limit():
    """With one layer they are the same."""
    lines = {line.test: (line.verdict, line.reason) for line in own.check(first).lines}
    assert lines[TOP] == ("limit", f"it reads hidden[0], {LIMIT}layer's is hidden[-1]")
    assert TOP in [line.test for line in own.check(last).lines if line.verdict == "ok"]
    assert TOP not in [line.test for line in own.check(only).lines]  # one layer is all it takes


class OfStateAndCell(Step):
    """State and cell are parameters of their own."""

    def forward(self, hidden, cell, encoder_outputs):
        return super().forward(hidden[-1].unsqueeze(1), None, encoder_outputs)


class OfCellAlone(Step):
    def forward(self, hidden, cell, encoder_outputs):
        return super().forward(cell.unsqueeze(1), None, encoder_outputs)


def test_state_and_cell_may_be_parameters_of_their_own():
    report = own.check(OfStateAndCell)
    lines = {line.test: f"{line.verdict}: {line.reason}" for line in report.lines}
    assert report.ok and "(hidden (L,B,D), cell (L,B,D), encoder_outputs (B,S,D)) -> context" in report.form
    assert report.formula.startswith("Luong general") and lines[TOP] == "ok: it reads hidden[-1]"
    lines = {line.test: f"{line.verdict}: {line.reason}" for line in own.check(OfCellAlone).lines}
    assert lines[TOP].startswith("limit: it reads cell, the cell of an LSTM.") and lines[TOP].endswith("state, hidden")


class WholeStep(Step):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)
        self.cell = nn.GRUCell(hidden_size, hidden_size)

    def forward(self, input, hidden, encoder_outputs):
        hidden = self.cell(input, hidden)
        context, weights = super().forward(hidden.unsqueeze(1), None, encoder_outputs)
        return context.squeeze(1), hidden, weights.squeeze(1)


def test_a_step_of_a_decoder_may_be_within():
    report = own.check(WholeStep)
    assert report.ok and report.form.endswith("weights (B,S); it asks with input and hidden")


class MeanOfLayers(Step):
    def query(self, output, hidden):
        return hidden.mean(dim=0).unsqueeze(1)

    def forward(self, hidden, encoder_outputs):
        return super().forward(None, hidden, encoder_outputs)


class BothDirections(MeanOfLayers):
    def __init__(self, hidden_size):
        super().__init__(hidden_size)
        self.W = nn.Linear(hidden_size, 2 * hidden_size, bias=False)

    def query(self, output, hidden):
        return torch.cat([hidden[-2], hidden[-1]], dim=-1).unsqueeze(1)


class FirstTwo(BothDirections):
    def query(self, output, hidden):
        return torch.cat([hidden[0], hidden[1]], dim=-1).unsqueeze(1)


class StateAndCell(BothDirections):
    def forward(self, hidden, cell, encoder_outputs):
        return super().forward(torch.stack([hidden, cell]), encoder_outputs)


@pytest.mark.parametrize(
    "module, verdict, query",
    [
        (
            MeanOfLayers,
            "limit: it reads the mean or sum of all layers: right for a decoder of one layer.",
            "the mean of",
        ),
        (BothDirections, "ok: it reads hidden[-1] and hidden[-2]", "[hidden[-2]; hidden[-1]]"),
        (
            FirstTwo,
            "limit: it reads hidden[1] and hidden[0], the first two states: right for one",
            "[hidden[0]; hidden[1]]",
        ),
        (StateAndCell, "ok: it reads hidden and cell", "[hidden; cell]"),
    ],
)
def test_several_states_may_be_the_query(module, verdict, query):
    report = own.check(module)
    (line,) = [line for line in report.lines if line.test == TOP]
    assert report.ok and f"{line.verdict}: {line.reason}".startswith(verdict)
    assert report.formula.startswith("Luong general: ") and f"; the query is {query}" in report.formula


class OfPair(nn.Module):
    """Of the states of a GRU, `hidden[0][-1]` would be one sentence's, and its product is broadcast to all."""

    def __init__(self, hidden_size):
        super().__init__()
        self.W = nn.Linear(hidden_size, hidden_size)

    def forward(self, hidden, encoder_outputs):
        return (self.W(encoder_outputs) @ hidden[0][-1].unsqueeze(-1)).squeeze(-1).softmax(dim=-1)


def test_states_are_a_pair_where_sentences_would_mix_otherwise():
    report = own.check(OfPair)
    assert (
        report.form == "attention, batch-first: (hidden ((L,B,D), (L,B,D)), encoder_outputs (B,S,D)) -> weights (B,S)"
    )
    assert report.ok and report.formula.startswith("Luong general"), report


class Recurrent(nn.Module):
    """Attention over the states of a network within, as in hierarchical attention networks."""

    def __init__(self, input_dim=16, hidden_size=16):
        super().__init__()
        self.gru, self.score = nn.GRU(input_dim, hidden_size, batch_first=True), nn.Linear(hidden_size, 1)

    def forward(self, x):
        states = self.gru(x)[0]
        weights = self.score(states.tanh()).squeeze(-1).softmax(dim=1)
        return (weights.unsqueeze(-1) * states).sum(dim=1), weights


class Convolved(nn.Module):
    def __init__(self, dim=16):
        super().__init__()
        self.query, self.key, self.value = (nn.Conv1d(dim, dim, 3, padding=1) for _ in range(3))

    def forward(self, x):
        query, key, value = (layer(x.mT).mT for layer in (self.query, self.key, self.value))
        return (weights := torch.softmax(query @ key.mT * key.shape[-1] ** -0.5, dim=-1)) @ value, weights


@pytest.mark.parametrize(("module", "layer"), [(Recurrent, "gru"), (Convolved, "query")])
def test_keys_may_be_made_of_several_tokens(module, layer):
    report = own.check(module)
    assert report.ok, report.faults
    reason = f"`{layer}` reads several tokens at once, so a key and its value change with the others"
    assert reason in [line.reason for line in report.lines]


class NotItself(nn.Module):
    """With two tokens, of which one is hidden, a token that does not see itself sees none."""

    def __init__(self, d_model=16):
        super().__init__()
        self.query, self.key = nn.Linear(d_model, d_model), nn.Linear(d_model, d_model)

    def forward(self, x, mask=None):
        scores = self.query(x) @ self.key(x).mT * x.shape[-1] ** -0.5
        hidden = torch.eye(x.shape[1]).bool() if mask is None else torch.eye(x.shape[1]).bool() | (mask[:, None] == 0)
        return (weights := scores.masked_fill(hidden, -1e4).softmax(dim=-1)) @ x, weights


def test_a_token_that_does_not_see_itself_gets_nothing_from_padding():
    assert own.check(NotItself).ok


class Grouped(nn.Module):
    """The softmax is taken of (B, G, R, T, S), and no weights come back."""

    def __init__(self, d_model=16, n_heads=4, n_kv_heads=2):
        super().__init__()
        self.groups, self.query = n_kv_heads, nn.Linear(d_model, d_model)
        self.repeats = n_heads // n_kv_heads
        self.key, self.value = (nn.Linear(d_model, d_model // self.repeats) for _ in range(2))

    def forward(self, x):
        query = self.query(x).unflatten(-1, (self.groups, self.repeats, -1))
        key, value = (layer(x).unflatten(-1, (self.groups, -1)) for layer in (self.key, self.value))
        scores = torch.einsum("btgrd,bsgd->bgrts", query, key) * key.shape[-1] ** -0.5
        return torch.einsum("bgrts,bsgd->btgrd", scores.softmax(dim=-1), value).flatten(2)


def test_heads_may_lie_in_groups():
    report = own.check(Grouped)
    assert report.ok and report.formula.startswith("grouped-query, 4 heads with 2 key heads: queries by `query.weight`")
    assert "values by `value.weight`" in report.formula


def added(query, keys, values, mask):
    """mask : 1 for real tokens, 0 for padding."""
    weights = (query @ keys.mT * query.shape[-1] ** -0.5 + mask.unsqueeze(1)).softmax(dim=-1)
    return weights @ values, weights


def test_a_mask_of_0_and_1_that_is_added_is_a_fault_where_its_docstring_says_1():
    assert [line.reason for line in own.check(added).faults] == [
        "mask is added to the scores: right for 0 and −∞, and 1 and 0 would hide nothing"
    ]


def of_the_first(hidden, encoder_outputs):
    """A loop reads the keys of the first sentence for all."""
    scores = [encoder_outputs[0] @ query for query in hidden]
    return torch.stack(scores).softmax(dim=1)


def summed(query, keys, values):
    """`bqd,bkd->bk` for `bqd,bkd->bqk`."""
    scores = torch.einsum("bqd,bkd->bk", query, keys).unsqueeze(1).expand(-1, query.shape[1], -1)
    return (weights := scores.softmax(dim=-1)) @ values, weights


@pytest.mark.parametrize(
    ("function", "reason", "example"),
    [
        (of_the_first, "one sentence changes the result of another", "another first sentence changes the last one's"),
        (summed, "a query changes the weights of another one: a sum over the queries", "another last query changes"),
    ],
)
def test_what_comes_from_another_sentence_or_query_is_told(function, reason, example):
    line = next(line for line in own.check(function).faults if line.test == "sentences of a batch do not mix")
    assert line.reason.startswith(reason) and example in line.example, line
