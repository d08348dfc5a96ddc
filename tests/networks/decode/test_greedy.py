"""Greedy decoding: the most probable token, limits, and batches that decode as their sentences do."""

import pytest
import torch
from decoding import Biased, V, every, ids, random_model

from attnviz.data.tokenizer import BOS, EOS, PAD, UNK
from attnviz.networks import decode

# Greedy.
GUESSES = {
    "right": lambda pieces: [pieces],
    "too long": lambda pieces: [[*pieces, 5, 6, 7]],
    "wrong in the middle": lambda pieces: [[*pieces[:2], *(4 + number % 7 for number in pieces[2:5]), *pieces[5:]]],
    "right only together": lambda pieces: [[*pieces[:2], 4 + pieces[2] % 7], [], [4 + pieces[0] % 7, *pieces[1:]]],
    "a word more": lambda pieces: [[5, *pieces]],
    "a word less": lambda pieces: [pieces[1:]],
    "always the same": lambda pieces: [pieces[:1] * 9],
}


@every
@pytest.mark.parametrize("kind", GUESSES)
def test_a_guess_changes_nothing_but_rounding(name, kind, monkeypatch):
    model, source, calls = random_model(name, 3, ending=-1.0), ids(1, 5), []
    plain = decode.greedy(model, source)
    pieces = [number for number in plain.tokens[0].tolist() if number != EOS]
    logits = model.logits
    monkeypatch.setattr(model, "logits", lambda readout: [calls.append(readout), logits(readout)][1])
    guessed = decode.greedy(model, source, guesses=GUESSES[kind](pieces))
    assert guessed.tokens.tolist() == plain.tokens.tolist()
    torch.testing.assert_close(guessed.logits, plain.logits, atol=1e-5, rtol=1e-5)
    for ours, theirs in zip(guessed.cross + guessed.decoder, plain.cross + plain.decoder, strict=True):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)  # shapes too
    assert len(calls) <= {"right": 1, "too long": 1, "right only together": 3}.get(kind, len(plain.tokens[0]))


def test_a_network_that_cannot_go_back_takes_no_guess():
    model, source = Biased(random_model("bahdanau"), EOS, -1e3), ids(1, 4)
    wanted = decode.greedy(model, source)
    assert torch.equal(decode.greedy(model, source, guesses=[[9, 9, 9]]).logits, wanted.logits)


@every
def test_greedy_takes_the_most_probable_token_that_may_be_said(name):
    unrolled = decode.greedy(random_model(name), ids(1, 5))
    allowed = [i for i in range(V) if i not in (PAD, BOS, UNK)]
    for t, token in enumerate(unrolled.tokens[0].tolist()):
        assert token == max(allowed, key=lambda i: unrolled.logits[0, t, i])


@every
def test_logits_are_kept_as_the_model_gave_them(name):
    model, source = random_model(name), ids(1, 5)
    unrolled = decode.greedy(model, source)
    forward, _ = model(source, torch.cat([torch.tensor([[BOS]]), unrolled.tokens[:, :-1]], 1))
    torch.testing.assert_close(unrolled.logits, forward, atol=1e-5, rtol=1e-5)  # -inf nowhere


@every
@pytest.mark.parametrize("token", [PAD, BOS, UNK])
def test_some_tokens_are_never_produced(name, token):
    model, source = Biased(random_model(name), token), ids(1, 4)
    assert decode.NEVER == (PAD, BOS, UNK)
    assert token not in decode.greedy(model, source).tokens
    assert token not in decode.beam(model, source, 3)


@every
def test_the_limit_is_respected(name):
    model, source = Biased(random_model(name), EOS, -1e3), ids(1, 4)  # never ends by itself
    assert decode.limit(4) == 18
    unrolled = decode.greedy(model, source)
    assert unrolled.tokens.shape == (1, 18) and unrolled.lengths() == [18]
    cut = decode.beam(model, source, 3)
    assert len(cut) == 18 and EOS not in cut


@every
def test_decoding_stops_at_the_end_of_sentence(name):
    model, source = Biased(random_model(name), EOS), ids(3, 4)
    unrolled = decode.greedy(model, source)
    assert unrolled.tokens.tolist() == [[EOS]] * 3 and unrolled.lengths() == [1, 1, 1]
    assert decode.beam(model, source[:1], 3) == [EOS]


@every
def test_a_batch_goes_on_until_its_last_sentence_has_ended(name):
    pieces = torch.tensor([[EOS, 5, 5, 5, 5], [5, 5, EOS, 5, 5]])
    unrolled = decode.unroll(random_model(name), ids(2, 4), None, lambda t, logits: pieces[:, t], 5)
    assert unrolled.tokens.tolist() == pieces[:, :3].tolist() and unrolled.lengths() == [1, 3]


def test_lengths_count_to_the_first_end():
    tokens = torch.tensor([[5, EOS, 7, EOS], [EOS, 5, 5, 5], [5, 6, 7, 8]])
    assert decode.Unrolled(tokens, torch.zeros(3, 4, V), [], [], []).lengths() == [2, 1, 4]


@every
@pytest.mark.parametrize("seed", range(4))
def test_a_batch_decodes_as_its_sentences_do(name, seed):
    model = random_model(name, seed, ending=2.0)
    sentences = [ids(length, seed=seed + length) for length in (6, 1, 3)]
    source = torch.full((3, 6), PAD)
    for row, sentence in zip(source, sentences):
        row[: len(sentence)] = sentence
    together = decode.greedy(model, source, source != PAD)
    for i, sentence in enumerate(sentences):
        alone = decode.greedy(model, sentence[None])
        steps, size = min(together.lengths()[i], alone.lengths()[0]), len(sentence)
        assert together.tokens[i, :steps].tolist() == alone.tokens[0, :steps].tolist()
        for batched, wanted in zip(together.cross, alone.cross):
            torch.testing.assert_close(batched[i, :, :steps, :size], wanted[0, :, :steps], atol=1e-5, rtol=0)
            assert (batched[i, :, :, size:] == 0).all()
