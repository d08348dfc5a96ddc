"""The beam against greedy decoding and against trying everything; and no side effects of any way of decoding."""

import itertools
import math
from types import SimpleNamespace
from typing import NamedTuple

import pytest
import torch
from decoding import RECURRENT, every, greedy_ids, ids, random_model, score, scores

from attnviz.data.tokenizer import EOS
from attnviz.mechanisms import MECHANISMS
from attnviz.networks import decode


# Beam.
@every
@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_of_one_is_greedy(name, seed, penalty):
    model, source = random_model(name, seed, ending=2.0), ids(1, 4, seed=seed)
    assert decode.beam(model, source, 1, penalty) == greedy_ids(model, source)


@pytest.mark.parametrize(
    "name, options", [(name, {}) for name in MECHANISMS] + [(name, {"cell": "lstm"}) for name in RECURRENT]
)
@pytest.mark.parametrize("penalty", [0.0, 0.6, 1.0])
def test_a_wide_beam_finds_what_trying_everything_finds(name, options, penalty, monkeypatch):
    monkeypatch.setattr(decode, "limit", lambda length: 4)
    words = (4, 5, 6)  # all that may be said besides <eos>
    everything = [[[*pieces, EOS] for pieces in itertools.product(words, repeat=length)] for length in range(4)]
    count = sum(map(len, everything))
    for seed in range(2):
        model, source = random_model(name, seed, vocabulary=7, **options), ids(1, 3, seed=seed, vocabulary=7)
        rates, log_probs = (
            {tuple(pieces): rate for same in everything for rate, pieces in zip(scores(model, source, same, by), same)}
            for by in (penalty, 0.0)
        )
        assert decode.beam(model, source, count + 1, penalty) == list(max(rates, key=rates.get))
        listed = {tuple(pieces): log_prob for log_prob, pieces in decode.beams(model, source, count + 1, penalty)}
        assert list(listed) == sorted(listed, key=rates.get, reverse=True) and len(listed) > 1
        for pieces, log_prob in listed.items():
            assert log_prob == pytest.approx(log_probs[pieces], abs=1e-4)


@every
@pytest.mark.parametrize("penalty", [0.0, 1.0])
def test_a_beam_scores_at_least_what_greedy_scores(name, penalty):
    # No theorem: a beam may drop greedy's path for better beginnings. It holds for these models, and for most.
    compared = 0
    for seed in range(12):
        model, source = random_model(name, seed, ending=2.0, spread=2.0), ids(1, 4, seed=seed)
        greedy = greedy_ids(model, source)
        if greedy[-1] != EOS:
            continue
        compared += 1
        best = decode.beam(model, source, 5, penalty)
        assert best[-1] == EOS
        assert score(model, source, best, penalty) >= score(model, source, greedy, penalty) - 1e-5, seed
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
        produced = torch.cat([state[0], token[:, None]], dim=1)
        logits = torch.full((len(produced), 8), -100.0)
        for row, tokens in enumerate(produced[:, 1:].tolist()):  # without <bos>
            for token, probability in self.table.get(tuple(tokens), {EOS: 1.0}).items():
                logits[row, token] = math.log(probability)
        return SimpleNamespace(logits=logits, state=(produced,))


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
    model, source = random_model(name).train(), ids(1, 5)
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
