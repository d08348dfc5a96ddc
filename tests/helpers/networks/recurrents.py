"""What tests of recurrent translators share: small random models of each mechanism, and ids to read."""

import pytest
import torch

from attnviz.data.tokenizer import PAD
from attnviz.mechanisms import MECHANISMS, Config
from attnviz.networks.registry import build

V, W, E = 30, 6, 4  # vocabulary, state width, embedding width
RECURRENT = [name for name in MECHANISMS if name != "transformer"]
ATTENDING = [name for name in RECURRENT if MECHANISMS[name].kinds]
SUMMED = tuple(name for name in RECURRENT if MECHANISMS[name].summed)
LUONG = [name for name in ATTENDING if name != "bahdanau"]
every = pytest.mark.parametrize("name", RECURRENT)
attending = pytest.mark.parametrize("name", ATTENDING)
luong = pytest.mark.parametrize("name", LUONG)
both_cells = pytest.mark.parametrize("cell", ["gru", "lstm"])


def untouched(name, cell="gru", **options):
    own = {"reach": 2} if name == "luong-local" else {}  # a window that leaves something out
    return build(Config(name, V, {"width": W, "embedding_width": E, "cell": cell, **own, **options}))


def random_model(name, cell="gru", seed=0, **options):
    """A random model with opinions about where to look."""
    torch.manual_seed(seed)
    model = untouched(name, cell, **options).eval().requires_grad_(False)
    torch.nn.init.normal_(model.output_bias)
    model.embedding.weight.mul_(2)
    for parameter in getattr(model, "attention", torch.nn.Module()).parameters():
        parameter.mul_(3)
    return model


def ids(*shape, seed=0):
    return torch.randint(4, V, shape, generator=torch.Generator().manual_seed(seed))


def padded(sentences):
    batch = torch.full((len(sentences), max(map(len, sentences))), PAD)
    for row, sentence in zip(batch, sentences):
        row[: len(sentence)] = sentence
    return batch
