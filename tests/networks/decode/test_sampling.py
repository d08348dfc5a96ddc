"""Translations drawn at random: how often each token comes, against the model's own probabilities."""

from collections import Counter

import pytest
import torch
from decoding import Biased, every, ids, random_model

from attnviz.data.tokenizer import BOS, EOS
from attnviz.networks import decode

COUNT = 3000


def probabilities(model, source, inputs, temperature):
    """Of the token after `inputs`, from `forward` alone."""
    logits, _ = model(source, torch.tensor([[BOS, *inputs]]))
    logits = logits[0, -1] / temperature
    logits[list(decode.NEVER)] = -torch.inf
    return logits.softmax(dim=-1)


@every
@pytest.mark.parametrize("temperature", [0.75, 2.0])
def test_tokens_come_as_often_as_their_probability_says(name, temperature):
    """The first token, and the one after the most frequent first token; within 5 standard errors."""
    model, source = random_model(name), ids(1, 5)
    drawn = decode.sample(model, source, COUNT, temperature)
    [(first, _)] = Counter(tokens[0] for tokens in drawn if tokens[0] != EOS).most_common(1)
    for inputs in ([], [first]):
        tokens = [tokens[len(inputs)] for tokens in drawn if tokens[: len(inputs)] == inputs]
        counts, total = Counter(tokens), len(tokens)
        assert total > 50
        for token, share in enumerate(probabilities(model, source, inputs, temperature).tolist()):
            assert abs(counts[token] / total - share) <= 5 * (share * (1 - share) / total) ** 0.5 + 1e-9, token


@every
def test_the_same_seed_draws_the_same_and_another_others(name):
    model, source = random_model(name), ids(1, 5)
    first, again, other = (decode.sample(model, source, 30, seed=seed) for seed in (1, 1, 2))
    assert first == again != other and len(set(map(tuple, first))) > 5


@every
def test_nothing_follows_the_end_and_the_limit_is_kept(name):
    drawn = decode.sample(Biased(random_model(name), EOS, 3.0), ids(1, 4), 50)
    assert all(EOS not in tokens[:-1] for tokens in drawn) and any(tokens[-1] == EOS for tokens in drawn)
    assert all(tokens[-1] == EOS or len(tokens) == decode.limit(4) for tokens in drawn)
    assert decode.sample(Biased(random_model(name), EOS), ids(1, 4), 3) == [[EOS]] * 3
    endless = decode.sample(Biased(random_model(name), EOS, -1e3), ids(1, 4), 3)
    assert [len(tokens) for tokens in endless] == [decode.limit(4)] * 3
    endless = decode.sample(Biased(random_model(name), EOS, -1e3), ids(1, 40), 3)
    assert [len(tokens) for tokens in endless] == [60] * 3


@every
def test_a_cold_model_draws_what_greedy_decoding_takes(name):
    model, source = random_model(name), ids(1, 5)
    unrolled = decode.greedy(model, source)
    greedy = unrolled.tokens[0, : unrolled.lengths()[0]].tolist()
    assert decode.sample(model, source, 2, temperature=1e-4) == [greedy] * 2
