"""attention.py against NumPy loops written from the papers, and against torch's own."""

import math

import numpy as np
import pytest
import torch
from attention_scores import DK, DV, B, S, T, every, module_query_and_score, numbers
from torch.nn import functional as F

from attnviz.attention import MultiHead, ScaledDot


def loops(score, query, keys, values, mask=None):
    """score(q, k) -> a number. Arrays (B, T, Dq), (B, S, Dk), (B, S, Dv), mask (B, T, S) -> context, weights."""
    query, keys, values = (np.asarray(x, dtype=np.float64) for x in (query, keys, values))
    contexts, weights = np.zeros((*query.shape[:2], values.shape[2])), np.zeros((*query.shape[:2], keys.shape[1]))
    for b in range(len(query)):
        for t in range(query.shape[1]):
            seen = [s for s in range(keys.shape[1]) if mask is None or mask[b, t, s]]
            powers = {s: math.exp(score(query[b, t], keys[b, s])) for s in seen}
            for s in seen:
                weights[b, t, s] = powers[s] / sum(powers.values())
                contexts[b, t] += weights[b, t, s] * values[b, s]
    return contexts, weights


@every
@pytest.mark.parametrize("masked", [False, True])
@torch.no_grad()
def test_agrees_with_plain_loops(name, masked):
    module, query, score = module_query_and_score(name)
    keys, values = numbers(B, S, DK, seed=1), numbers(B, S, DV, seed=2)
    mask = None
    if masked:
        mask = numbers(B, T, S, seed=4) > 0
        mask[..., 0] = True
    context, weights = module(query, keys, values, mask)
    wanted_context, wanted_weights = loops(score, query, keys, values, mask)
    np.testing.assert_allclose(weights, wanted_weights, atol=1e-6)
    np.testing.assert_allclose(context, wanted_context, atol=1e-5)
    assert context.shape == (B, T, DV) and weights.shape == (B, T, S)


@pytest.mark.parametrize("masked", [False, True])
def test_scaled_dot_agrees_with_torch(masked):
    query, keys, values = numbers(B, T, DK), numbers(B, S, DK, seed=1), numbers(B, S, DV, seed=2)
    mask = None
    if masked:
        mask = numbers(B, T, S, seed=4) > 0
        mask[..., 0] = True
    context, _ = ScaledDot()(query, keys, values, mask)
    torch.testing.assert_close(
        context, F.scaled_dot_product_attention(query, keys, values, attn_mask=mask), atol=1e-6, rtol=1e-5
    )


@torch.no_grad()
def test_multi_head_agrees_with_torch():
    torch.manual_seed(0)
    width, heads = 8, 4
    ours = MultiHead(width, heads)
    theirs = torch.nn.MultiheadAttention(width, heads, batch_first=True)
    for layer in ours.children():
        torch.nn.init.normal_(layer.bias)
    theirs.in_proj_weight.copy_(torch.cat([ours.query.weight, ours.memory.weight]))
    theirs.in_proj_bias.copy_(torch.cat([ours.query.bias, ours.memory.bias]))
    theirs.out_proj.load_state_dict(ours.output.state_dict())
    query, memory = numbers(B, T, width), numbers(B, S, width, seed=1)
    visible = torch.tensor([[True] * S, [True] * (S - 2) + [False] * 2])
    context, weights = ours(query, memory, visible[:, None, None, :])
    wanted, wanted_weights = theirs(query, memory, memory, key_padding_mask=~visible, average_attn_weights=False)
    torch.testing.assert_close(context, wanted, atol=1e-6, rtol=1e-5)
    torch.testing.assert_close(weights, wanted_weights, atol=1e-6, rtol=1e-5)
    assert weights.shape == (B, heads, T, S)
