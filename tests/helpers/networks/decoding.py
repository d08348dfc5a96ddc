"""For tests of decoding: small models with opinions, and scores of hypotheses by `forward` alone."""

import pytest
import torch

from attnviz.data.tokenizer import BOS, EOS, PAD
from attnviz.mechanisms import MECHANISMS, Config
from attnviz.networks import decode
from attnviz.networks.registry import build

V = 20
SMALL = {name: {"width": 8, "embedding_width": 6} for name in MECHANISMS} | {
    "luong-local": {"width": 8, "embedding_width": 6, "reach": 2},
    "transformer": {"width": 8, "heads": 2, "layers": 2, "hidden": 12},
}
RECURRENT = [name for name in MECHANISMS if name != "transformer"]
every = pytest.mark.parametrize("name", MECHANISMS)


def random_model(name, seed=0, vocabulary=V, ending=0.0, spread=3.0, **options):
    """A random model with opinions. ending : how much it likes to say <eos>."""
    torch.manual_seed(seed)
    model = build(Config(name, vocabulary, SMALL[name] | options)).eval().requires_grad_(False)
    model.embedding.weight.mul_(spread)
    if hasattr(model, "output_bias"):
        model.output_bias[EOS] = ending
    return model


class Biased(torch.nn.Module):
    """A model whose logits are changed in one column: what it likes to say above all."""

    def __init__(self, model, token, amount=1e3):
        super().__init__()
        self.model, self.token, self.amount, self.encode = model, token, amount, model.encode

    def step(self, memory, state, token):
        step = self.model.step(memory, state, token)
        step.logits[:, self.token] += self.amount
        return step


def ids(*shape, seed=0, vocabulary=V):
    return torch.randint(4, vocabulary, shape, generator=torch.Generator().manual_seed(seed))


def padded(rows):
    """Sentences (1, n) of any lengths as one (B, S)."""
    return torch.nn.utils.rnn.pad_sequence([row[0] for row in rows], batch_first=True, padding_value=PAD)


def close(computed, wanted):
    torch.testing.assert_close(computed, wanted, atol=1e-5, rtol=1e-5)


def scores(model, source, hypotheses, penalty):
    """Log-probability / length ** penalty of each of some hypotheses of one length, from `forward` alone."""
    tokens = torch.tensor(hypotheses)  # (N, T)
    inputs = torch.cat([torch.full((len(tokens), 1), BOS), tokens[:, :-1]], dim=1)
    log_probs = torch.log_softmax(model(source.expand(len(tokens), -1), inputs)[0], dim=-1)
    return (log_probs.gather(-1, tokens[..., None]).sum((1, 2)) / tokens.shape[1] ** penalty).tolist()


def score(model, source, tokens, penalty):
    """The same of one hypothesis."""
    return scores(model, source, [tokens], penalty)[0]


def greedy_ids(model, source):
    unrolled = decode.greedy(model, source)
    return unrolled.tokens[0, : unrolled.lengths()[0]].tolist()
