"""For tests of the Transformer: small ones, and their two ways to decode."""

import pytest
import torch
from torch import nn

from attnviz.networks.transformer import Transformer

V, D, H, HIDDEN = 30, 8, 2, 12


def random_transformer(seed=0, layers=2, **options):
    torch.manual_seed(seed)
    model = Transformer(V, D, H, layers, HIDDEN, **options).eval().requires_grad_(False)
    for name, parameter in model.named_parameters():  # biases and norms start at 0 and 1, which would hide a mix-up
        if parameter.dim() == 1:
            parameter.add_(torch.randn_like(parameter), alpha=0.3)
    return model


def ids(*shape, seed=0):
    return torch.randint(4, V, shape, generator=torch.Generator().manual_seed(seed))


def close(a, b, atol=1e-5):
    torch.testing.assert_close(a, b, atol=atol, rtol=1e-5)


def stepwise(model, source, target, mask=None):
    """One token at a time with kept keys and values: logits (B, T, V), cross (B, H, T, S) and own (B, H, T, T) by
    layer."""
    memory = model.encode(source, mask)
    state, logits, cross, own = memory.state, [], [], []
    for token in target.unbind(1):
        step = model.step(memory, state, token)
        state = step.state
        logits.append(step.logits)
        cross.append(step.cross)
        own.append([nn.functional.pad(w, (0, target.shape[1] - w.shape[-1])) for w in step.decoder])
    return torch.stack(logits, 1), [torch.stack(w, 2) for w in zip(*cross)], [torch.stack(w, 2) for w in zip(*own)]


def at_once(model, source, target, mask=None):
    """All tokens in one call, nothing kept: what `stepwise` gives."""
    memory = model.encode(source, mask)
    readouts, cross, own = model.force(memory, target)
    return model.logits(readouts), list(cross), list(own)


# The oracle: torch's layers with the same numbers in them, and the norm before or after each sub-layer.
FIRST = pytest.mark.parametrize("norm_first", [True, False])


def hidden(*shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


LENGTHS = torch.arange(6) < torch.tensor([[6], [2], [4]])  # (B, S) True = a real token
