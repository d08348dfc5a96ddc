"""Translations that repeat themselves are ended, one by one and in batches, greedy and with a beam."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz.data import loops
from attnviz.data.loops import Loop
from attnviz.data.tokenizer import EOS
from attnviz.networks import DecoderStep, decode
from attnviz.networks.recurrent import RecurrentMemory

VOCABULARY = 9


@pytest.mark.parametrize(
    "pieces, loop",
    [
        ([5] * 8, Loop(0, 1, 8)),
        ([4, 5] + [6] * 9, Loop(2, 1, 9)),
        ([5] * 7, None),
        ([4] + [5, 6] * 5, Loop(1, 2, 5)),
        ([5, 6] * 4, None),
        ([6] + [5, 6] * 5, Loop(1, 2, 5)),
        ([4, 5, 6, 7, 8] * 3, Loop(0, 5, 3)),
        ([5] * 8 + [4], None),
        ([], None),
        ([5], None),
    ],
)
def test_at_end_by_hand(pieces, loop):
    assert loops.loop_at_end(pieces) == loop


@given(st.lists(st.integers(4, 6), max_size=40))
def test_a_loop_is_what_it_says(pieces):
    if loop := loops.loop_at_end(pieces):
        unit = pieces[loop.start : loop.start + loop.length]
        assert pieces[loop.start :] == unit * loop.times and loop.times >= loops.LOOP_TIMES[loop.length]


class Circle:
    """A model whose probabilities depend on the step alone: piece 4, then 5 and 6 for ever."""

    def encode(self, source, mask=None):
        return RecurrentMemory(source, None, None, (torch.zeros(len(source), 1),))

    def step(self, memory, state, token):
        place = int(state[0][0, 0])
        logits = torch.full((len(token), VOCABULARY), -9.0)
        logits[:, 4 if place == 0 else 5 + place % 2] = 5.0
        logits[:, EOS] = -5.0
        return DecoderStep(logits, (state[0] + 1,), (torch.ones(len(token), 1, 1),))


def test_greedy_ends_a_loop():
    pieces = decode.greedy(Circle(), torch.full((2, 30), 4), end_loops=True).tokens.tolist()
    assert pieces[0] == pieces[1] == [4, *[6, 5] * 5, EOS]


@pytest.mark.parametrize("width", [1, 2, 4])
def test_a_beam_ends_a_loop(width):
    pieces = decode.beam(Circle(), torch.full((1, 30), 4), width, end_loops=True)
    assert pieces[-1] == EOS and len(pieces) <= 14 and (width > 1 or pieces == [4, *[6, 5] * 5, EOS])
