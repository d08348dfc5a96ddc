"""Bits a character: windows, and the sum by hand."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional as F

from attnviz.data.tokenizer import BOS, train_vocabulary
from attnviz.evaluation.language import Surprise, surprise, windows
from attnviz.networks.decoder_only import DecoderOnly

TEXTS = ["The dog runs. The cat sleeps.\nA boy jumps.", "The horse sleeps.", "Run!"] * 2


def test_windows_by_hand():
    assert list(windows([5, 6, 7, 8, 9], 3, 2)) == [
        ([BOS, 5, 6], [5, 6, 7], 0),
        ([BOS, 7, 8], [7, 8, 9], 1),
    ]
    assert list(windows([5, 6, 7, 8], 3, 3)) == [([BOS, 5, 6], [5, 6, 7], 0), ([BOS], [8], 0)]


@given(st.integers(1, 40), st.integers(2, 9), st.data())
def test_windows_count_every_piece_once(length, longest, data):
    stride, ids = data.draw(st.integers(1, longest)), list(range(4, 4 + length))
    counted = []
    for source, target, before in windows(ids, longest, stride):
        assert source == [BOS, *target[:-1]] and 0 < len(target) <= longest
        counted += target[before:]
    assert counted == ids


@pytest.mark.parametrize("stride", [None, 3, 6])
def test_surprise_is_the_sum_over_pieces(stride):
    text = train_vocabulary(TEXTS, 80, "prose")
    torch.manual_seed(1)
    network = DecoderOnly(len(text), 8, 2, 1, 8, longest=6).eval().requires_grad_(False)
    nats, characters = 0.0, 0
    for given_text in TEXTS:
        ids = text.ids(given_text)
        characters += len(given_text) + 1
        for place, number in enumerate(ids):
            step = stride or 6
            start = max(0, -(-(place - 5) // step)) * step if stride else place // 6 * 6
            logits = network(torch.tensor([[BOS, *ids[start:place]]]))[0][0, -1]
            nats += float(F.cross_entropy(logits, torch.tensor(number)))
    measured = surprise(network, text, TEXTS, stride)
    assert measured.nats == pytest.approx(nats, rel=1e-5) and measured.characters == characters
    assert measured.pieces == sum(len(text.ids(given_text)) for given_text in TEXTS)


def test_units():
    measured = Surprise(nats=math.log(2) * 12, pieces=4, characters=6)
    assert measured.bits_a_character == pytest.approx(2) and measured.nats_a_piece == pytest.approx(3 * math.log(2))
    assert measured.nats_a_character == pytest.approx(2 * math.log(2))
