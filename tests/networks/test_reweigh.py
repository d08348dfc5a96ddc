"""Other weights put in place of a network's own, and encoding from rows of the embedding; see recurrents.py,
transformer."""

import pytest
import recurrents
import torch

from attnviz.mechanisms import Config
from attnviz.networks.registry import build

TRANSFORMER = {"width": 8, "hidden": 8, "layers": 2, "heads": 2}


def model(name):
    if name != "transformer":
        return recurrents.random_model(name)
    torch.manual_seed(0)
    return build(Config(name, recurrents.V, TRANSFORMER)).eval().requires_grad_(False)


def layers(name):
    return TRANSFORMER["layers"] if name == "transformer" else 1


def uniform(weights, _mask):
    return torch.full_like(weights, 1 / weights.shape[-1])


@pytest.mark.parametrize("name", [*recurrents.ATTENDING, "transformer"])
def test_other_weights_are_used_and_returned(name):
    network, source, token = model(name), recurrents.ids(1, 5), torch.tensor([4])
    memory = network.encode(source)
    plain = network.step(memory, memory.state, token)
    same = network.step(memory, memory.state, token, (lambda weights, _mask: weights,) * layers(name))
    changed = network.step(memory, memory.state, token, (uniform,) * layers(name))
    assert torch.equal(same.logits, plain.logits)
    assert all(torch.equal(weights, torch.full_like(weights, 0.2)) for weights in changed.cross)
    assert not torch.allclose(changed.logits, plain.logits)


def test_the_context_of_even_weights_is_the_mean_of_what_a_window_shows():
    """Luong et al. 2015, sec. 3.2: what is changed is inside the window, so the mask holds it."""
    network, seen = model("luong-local"), []
    memory = network.encode(recurrents.ids(1, 9))

    def look(weights, mask):
        seen.append((weights, mask))
        return weights

    network.step(memory, memory.state, torch.tensor([4]), (look,))
    (weights, mask), *_ = seen
    assert 0 < mask.sum() < 9 and torch.equal(weights > 0, mask)


def test_a_transformer_changes_the_layers_that_were_named():
    network, token = model("transformer"), torch.tensor([4])
    memory = network.encode(recurrents.ids(1, 5))
    plain = network.step(memory, memory.state, token)
    changed = network.step(memory, memory.state, token, (None, uniform))
    assert torch.equal(plain.cross[0], changed.cross[0]) and not torch.equal(plain.cross[1], changed.cross[1])


@pytest.mark.parametrize("name", [*recurrents.RECURRENT, "transformer"])
def test_rows_of_the_embedding_are_read_as_their_tokens_are(name):
    network = model(name)
    source, mask = recurrents.ids(2, 5), torch.tensor([[True] * 5, [True] * 3 + [False] * 2])
    tokens, vectors = network.encode(source, mask), network.encode_vectors(network.embedding(source), mask)
    for ours, theirs in zip(tokens.state, vectors.state):
        assert torch.equal(ours, theirs) if isinstance(ours, torch.Tensor) else ours == theirs
    step = network.step(tokens, tokens.state, torch.tensor([4, 5]))
    assert torch.equal(step.logits, network.step(vectors, vectors.state, torch.tensor([4, 5])).logits)
