"""decode.py: the ways of decoding agree with each other, with forward, and with trying everything."""

import itertools
import math
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from attnviz.data.tokenizer import BOS, EOS, PAD, UNK
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


def made(name, seed=0, vocabulary=V, ending=0.0, spread=3.0, **options):
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


def close(found, wanted):
    torch.testing.assert_close(found, wanted, atol=1e-5, rtol=1e-5)


def score(model, source, tokens, penalty):
    """Log-probability / length ** penalty of one hypothesis, from `forward` alone."""
    inputs = torch.tensor([[BOS, *tokens[:-1]]])
    log_probs = torch.log_softmax(model(source, inputs)[0][0], dim=-1)
    return sum(log_probs[t, token].item() for t, token in enumerate(tokens)) / len(tokens) ** penalty


def greedy_ids(model, source):
    unrolled = decode.greedy(model, source)
    return unrolled.tokens[0, : unrolled.lengths()[0]].tolist()


# Forced, stepwise and forward.


@every
@pytest.mark.parametrize("length", [1, 6])
def test_forced_is_stepwise_is_forward(name, length):
    model, source = made(name), ids(1, 5)
    target = torch.cat([ids(1, length - 1, seed=1), torch.tensor([[EOS]])], 1)
    unrolled = decode.forced(model, source, target)
    assert torch.equal(unrolled.tokens, target)
    forward, weights = model(source, torch.cat([torch.tensor([[BOS]]), target[:, :-1]], 1))
    torch.testing.assert_close(unrolled.logits, forward, atol=1e-5, rtol=1e-5)
    assert (weights is None) == (not unrolled.cross)
    if weights is not None:
        torch.testing.assert_close(unrolled.cross[-1].view_as(weights), weights, atol=1e-6, rtol=1e-5)
    memory = model.encode(source)
    state, token = memory.state, torch.tensor([BOS])
    for t in range(length):
        step = model.step(memory, state, token)
        state, token = step.state, target[:, t]
        close(unrolled.logits[:, t], step.logits)
        for kept, now in zip(unrolled.cross, step.cross, strict=True):
            close(kept[:, :, t], now)
        for kept, now in zip(unrolled.decoder, step.decoder, strict=True):
            close(kept[:, :, t, : t + 1], now)
            assert (kept[:, :, t, t + 1 :] == 0).all()


@pytest.mark.parametrize(
    "name, options", [(name, {}) for name in MECHANISMS] + [(name, {"cell": "lstm"}) for name in RECURRENT]
)
@settings(max_examples=10)
@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 6)), min_size=1, max_size=4), st.integers(0, 3))
def test_a_batch_is_forced_as_its_sentences_are(name, options, sizes, seed):
    """sizes : source and target lengths. Also by the loop over `step`, which has every product in it."""
    model = made(name, seed, **options)
    pairs = [
        (ids(1, size, seed=seed + i), torch.cat([ids(1, steps - 1, seed=seed + i + 9), torch.tensor([[EOS]])], 1))
        for i, (size, steps) in enumerate(sizes)
    ]
    source, target = padded([source for source, _ in pairs]), padded([target for _, target in pairs])
    together = decode.forced(model, source, target, source != PAD)
    assert together.lengths() == [steps for _, steps in sizes]
    for i, (source, target) in enumerate(pairs):
        alone = decode.unroll(model, source, None, lambda t, _: target[:, t], target.shape[1])
        size, steps = sizes[i]
        close(together.logits[i, :steps], alone.logits[0])
        for kept, wanted in zip(together.cross, alone.cross, strict=True):
            close(kept[i, :, :steps, :size], wanted[0])
            assert (kept[i, :, :, size:] == 0).all()
        for kept, wanted in zip(together.encoder, alone.encoder, strict=True):
            close(kept[i, :, :size, :size], wanted[0])
        for kept, wanted in zip(together.decoder, alone.decoder, strict=True):
            close(kept[i, :, :steps, :steps], wanted[0])


@every
def test_forced_says_what_it_is_told_whatever_the_model_would_say(name):
    target = torch.tensor([[UNK, 7, PAD, EOS, 9, EOS]])  # an <eos> in the middle ends it: nothing comes after one
    unrolled = decode.forced(made(name), ids(1, 3), target)
    assert unrolled.tokens.tolist() == [[UNK, 7, PAD, EOS]]


@every
def test_shapes(name):
    model, source = made(name), ids(2, 5)
    unrolled = decode.unroll(model, source, None, decode.best, 3)
    heads, layers = (2, 2) if name == "transformer" else (1, int(name != "fixed-context"))
    steps = unrolled.tokens.shape[1]
    assert unrolled.logits.shape == (2, steps, V)
    assert [w.shape for w in unrolled.cross] == [(2, heads, steps, 5)] * layers
    own = layers if name == "transformer" else 0
    assert [w.shape for w in unrolled.encoder] == [(2, heads, 5, 5)] * own
    assert [w.shape for w in unrolled.decoder] == [(2, heads, steps, steps)] * own


# Greedy.


@every
def test_greedy_takes_the_most_probable_token_that_may_be_said(name):
    unrolled = decode.greedy(made(name), ids(1, 5))
    allowed = [i for i in range(V) if i not in (PAD, BOS, UNK)]
    for t, token in enumerate(unrolled.tokens[0].tolist()):
        assert token == max(allowed, key=lambda i: unrolled.logits[0, t, i])


@every
def test_logits_are_kept_as_the_model_gave_them(name):
    model, source = made(name), ids(1, 5)
    unrolled = decode.greedy(model, source)
    forward, _ = model(source, torch.cat([torch.tensor([[BOS]]), unrolled.tokens[:, :-1]], 1))
    torch.testing.assert_close(unrolled.logits, forward, atol=1e-5, rtol=1e-5)  # -inf nowhere


@every
@pytest.mark.parametrize("token", [PAD, BOS, UNK])
def test_some_tokens_are_never_produced(name, token):
    model, source = Biased(made(name), token), ids(1, 4)
    assert decode.NEVER == (PAD, BOS, UNK)
    assert token not in decode.greedy(model, source).tokens
    assert token not in decode.beam(model, source, 3)


@every
def test_the_limit_is_respected(name):
    model, source = Biased(made(name), EOS, -1e3), ids(1, 4)  # never ends by itself
    assert decode.limit(4) == 18
    unrolled = decode.greedy(model, source)
    assert unrolled.tokens.shape == (1, 18) and unrolled.lengths() == [18]
    cut = decode.beam(model, source, 3)
    assert len(cut) == 18 and EOS not in cut


@every
def test_decoding_stops_at_the_end_of_sentence(name):
    model, source = Biased(made(name), EOS), ids(3, 4)
    unrolled = decode.greedy(model, source)
    assert unrolled.tokens.tolist() == [[EOS]] * 3 and unrolled.lengths() == [1, 1, 1]
    assert decode.beam(model, source[:1], 3) == [EOS]


@every
def test_a_batch_goes_on_until_its_last_sentence_has_ended(name):
    said = torch.tensor([[EOS, 5, 5, 5, 5], [5, 5, EOS, 5, 5]])
    unrolled = decode.unroll(made(name), ids(2, 4), None, lambda t, logits: said[:, t], 5)
    assert unrolled.tokens.tolist() == said[:, :3].tolist() and unrolled.lengths() == [1, 3]


def test_lengths_count_to_the_first_end():
    tokens = torch.tensor([[5, EOS, 7, EOS], [EOS, 5, 5, 5], [5, 6, 7, 8]])
    assert decode.Unrolled(tokens, torch.zeros(3, 4, V), [], [], []).lengths() == [2, 1, 4]


@every
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_decodes_as_its_sentences_do(name, seed):
    model = made(name, seed, ending=2.0)
    sentences = [ids(length, seed=seed + length) for length in (6, 1, 3)]
    source = torch.full((3, 6), PAD)
    for row, sentence in zip(source, sentences):
        row[: len(sentence)] = sentence
    together = decode.greedy(model, source, source != PAD)
    for i, sentence in enumerate(sentences):
        alone = decode.greedy(model, sentence[None])
        steps, size = min(together.lengths()[i], alone.lengths()[0]), len(sentence)
        assert together.tokens[i, :steps].tolist() == alone.tokens[0, :steps].tolist()
        for kept, wanted in zip(together.cross, alone.cross):
            torch.testing.assert_close(kept[i, :, :steps, :size], wanted[0, :, :steps], atol=1e-5, rtol=0)
            assert (kept[i, :, :, size:] == 0).all()


# Beam.


@every
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_of_one_is_greedy(name, seed, penalty):
    model, source = made(name, seed, ending=2.0), ids(1, 4, seed=seed)
    assert decode.beam(model, source, 1, penalty) == greedy_ids(model, source)


@pytest.mark.parametrize(
    "name, options", [(name, {}) for name in MECHANISMS] + [(name, {"cell": "lstm"}) for name in RECURRENT]
)
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_what_trying_everything_finds(name, options, penalty, monkeypatch):
    monkeypatch.setattr(decode, "limit", lambda length: 4)
    words = (4, 5, 6)  # all that may be said besides <eos>
    everything = [[*said, EOS] for length in range(4) for said in itertools.product(words, repeat=length)]
    for seed in range(5):
        model, source = made(name, seed, vocabulary=7, **options), ids(1, 3, seed=seed, vocabulary=7)
        ranked = sorted(everything, key=lambda tokens: score(model, source, tokens, penalty), reverse=True)
        assert decode.beam(model, source, len(everything) + 1, penalty) == ranked[0]


@every
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_scores_at_least_what_greedy_scores(name, penalty):
    # No theorem: a beam may drop greedy's path for better beginnings. It holds for these models, and for most.
    compared = 0
    for seed in range(12):
        model, source = made(name, seed, ending=2.0, spread=2.0), ids(1, 4, seed=seed)
        greedy = greedy_ids(model, source)
        if greedy[-1] != EOS:
            continue
        compared += 1
        found = decode.beam(model, source, 5, penalty)
        assert found[-1] == EOS
        assert score(model, source, found, penalty) >= score(model, source, greedy, penalty) - 1e-5, seed
    assert compared >= 1


class Scripted(torch.nn.Module):
    """A model that says what a table says: what was said so far -> token -> probability."""

    class Memory(NamedTuple):
        state: tuple

    def __init__(self, table):
        super().__init__()
        self.table = table

    def encode(self, source, mask=None):
        return self.Memory((torch.zeros(1, 0, dtype=torch.long),))

    def step(self, memory, state, token):
        said = torch.cat([state[0], token[:, None]], dim=1)
        logits = torch.full((len(said), 8), -100.0)
        for row, tokens in enumerate(said[:, 1:].tolist()):  # without <bos>
            for token, chance in self.table.get(tuple(tokens), {EOS: 1.0}).items():
                logits[row, token] = math.log(chance)
        return SimpleNamespace(logits=logits, state=(said,))


def test_the_beam_goes_on_while_a_living_hypothesis_is_better_than_those_that_ended():
    # Two have ended after two steps, at .3 and .1 * .9; the one that lives, at .6 * .9, ends best, at .6 * .9 * .9.
    table = {
        (): {4: 0.6, EOS: 0.3, 5: 0.1},
        (4,): {6: 0.9, 7: 0.1},
        (5,): {EOS: 0.9, 7: 0.1},
        (4, 6): {EOS: 0.9, 7: 0.1},
    }
    assert decode.beam(Scripted(table), ids(1, 3), 2, penalty=0.0) == [4, 6, EOS]


# Nothing is left behind.


@every
def test_decoding_leaves_the_model_and_the_source_as_they_were(name):
    model, source = made(name).train(), ids(1, 5)
    before, given, rng = {k: v.clone() for k, v in model.state_dict().items()}, source.clone(), torch.get_rng_state()
    model.eval()
    for run in (
        lambda: decode.greedy(model, source),
        lambda: decode.beam(model, source, 3),
        lambda: decode.forced(model, source, torch.tensor([[5, EOS]])),
    ):
        run()
    assert all(torch.equal(v, before[k]) for k, v in model.state_dict().items())
    assert torch.equal(source, given) and torch.equal(torch.get_rng_state(), rng) and not model.training
    assert torch.is_grad_enabled() and not torch.is_inference_mode_enabled()


def test_without_leaves_its_argument_as_it_was():
    scores = torch.arange(6.0)[None]
    assert decode.without((1, 5), scores).tolist() == [[0, -torch.inf, 2, 3, 4, -torch.inf]]
    assert scores.tolist() == [[0, 1, 2, 3, 4, 5]]
