"""What `own.watch` collects is put in its place: heads in a list, steps after the end, and keys without a token."""

import pytest
import torch
from torch import nn

from attnviz import own

TOKENS, TARGET = ["a", "dog", "runs"], ["un", "chien"]


class Head(nn.Module):
    """One head of a lecture on GPT."""

    def forward(self, x):
        scores = x @ x.mT
        return scores.masked_fill(torch.ones_like(scores).triu(1) == 1, -1e4).softmax(dim=-1) @ x


class Heads(nn.Module):
    def __init__(self):
        super().__init__()
        self.heads = nn.ModuleList(Head() for _ in range(4))

    def forward(self, x):
        return torch.stack([head(number * x) for number, head in enumerate(self.heads)]).mean(dim=0)


def test_heads_in_a_list_are_heads_of_one_layer():
    model = nn.Sequential(Heads(), Heads())
    with torch.no_grad(), own.watch(model) as seen:
        model(torch.randn(1, 3, 8))
    maps = seen.trace(TOKENS).maps
    assert [(m.kind, m.layer, m.weights.shape) for m in maps] == [("decoder", n, (4, 3, 3)) for n in (0, 1)]
    assert torch.equal(torch.tensor(maps[0].weights[2]), seen.weights["0.heads.2"][0][0])


class TenSteps(nn.Module):
    """The decoder of PyTorch's newer translation tutorial goes on after <eos>."""

    def __init__(self):
        super().__init__()
        self.attention, self.cell = nn.MultiheadAttention(8, 1, batch_first=True), nn.GRUCell(8, 8)

    def forward(self, source):
        state, rows = source[:, -1], []
        for _ in range(10):
            context, weights = self.attention(state.unsqueeze(1), source, source)
            state = self.cell(context[:, 0], state)
            rows.append(weights)
        return torch.cat(rows, dim=1)


def test_steps_after_the_last_token_are_left_out_with_a_warning():
    model = TenSteps()
    with torch.no_grad(), own.watch(model) as seen:
        expected = model(torch.randn(1, 3, 8))
    with pytest.warns(UserWarning, match="^attention attended 10 times, and there are 2 target tokens. The trace has"):
        trace = seen.trace(TOKENS, TARGET)
    assert torch.equal(torch.tensor(trace.map("cross").weights), expected[:, :2])


def test_hidden_keys_after_the_last_token_need_no_names():
    padding = torch.tensor([[False, False, False, True, True]])
    source, attention = torch.randn(1, 5, 8), nn.MultiheadAttention(8, 2, batch_first=True)
    for query, target in ((source, ()), (source[:, :2], TARGET)):
        with torch.no_grad(), own.watch(attention) as seen:
            attention(query, source, source, key_padding_mask=padding)
        (shown,) = seen.trace(TOKENS, target).maps
        assert torch.equal(torch.tensor(shown.weights), seen.weights["model"][0][0, :, : len(target) or 3, :3])


def test_other_keys_need_names():
    source, attention = torch.randn(1, 3, 8), nn.MultiheadAttention(8, 2, add_bias_kv=True, batch_first=True)
    with torch.no_grad(), own.watch(attention) as seen:
        attention(source[:, :2], source, source)
    with pytest.raises(ValueError, match="; 4 places are more than the tokens: if they are keys, name <pad> or a le"):
        seen.trace(TOKENS, TARGET)
    assert seen.trace([*TOKENS, "<null>"], TARGET).map("cross").weights.shape == (2, 2, 4)
