"""writing.py: which tokens may be drawn, by hand; a text written step by step against passes over the whole of it."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from writer_by_hand import LONGEST, ids, random_writer

from attnviz.data.tokenizer import BOS, EOS
from attnviz.networks.decode import NEVER
from attnviz.networks.writing import Sampling, allowed, chooser, write

# <pad>, <bos>, <eos>, <unk>, then four tokens with probabilities of .4, .3, .2 and .1
LOGITS = torch.tensor([9.0, 9.0, -30.0, 9.0, *map(math.log, (0.2, 0.4, 0.1, 0.3))])


def probabilities(**settings):
    return allowed(LOGITS, Sampling(**settings)).softmax(dim=-1)[4:].tolist()


@pytest.mark.parametrize(
    "settings, wanted",
    [
        ({}, [0.2, 0.4, 0.1, 0.3]),
        ({"temperature": 0}, [0, 1, 0, 0]),
        ({"temperature": 0.5}, [4 / 30, 16 / 30, 1 / 30, 9 / 30]),  # squared, then divided by their sum
        ({"top_k": 2}, [0, 4 / 7, 0, 3 / 7]),
        ({"top_k": 9}, [0.2, 0.4, 0.1, 0.3]),
        ({"top_p": 0.69}, [0, 4 / 7, 0, 3 / 7]),  # .4 alone is not enough
        ({"top_p": 0.71}, [2 / 9, 4 / 9, 0, 3 / 9]),
        ({"top_p": 1e-9}, [0, 1, 0, 0]),
        ({"top_k": 3, "top_p": 0.5}, [0, 4 / 7, 0, 3 / 7]),  # of the three, .4 has 4/9
    ],
)
def test_cut_offs_by_hand(settings, wanted):
    assert probabilities(**settings) == pytest.approx(wanted, abs=1e-6)


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"temperature": -1}, "temperature must be from 0 to 100; got -1"),
        ({"temperature": math.nan}, "temperature must be from 0 to 100; got nan"),
        ({"temperature": True}, "temperature must be from 0 to 100; got True"),
        ({"temperature": "hot"}, "temperature must be from 0 to 100; got 'hot'"),
        ({"top_k": 1.5}, "top_k must be a whole number of at least 0, where 0 means all tokens; got 1.5"),
        ({"top_p": 0}, "top_p must be above 0 and at most 1; got 0"),
        ({"top_p": math.inf}, "top_p must be above 0 and at most 1; got inf"),
        ({"seed": -1}, "seed must be a whole number of at least 0 and below 2^63; got -1"),
    ],
)
def test_settings_out_of_range_are_refused(settings, message):
    with pytest.raises(ValueError) as caught:
        Sampling(**settings)
    assert str(caught.value) == message


@given(st.integers(0, 1000), st.floats(0.01, 100), st.integers(0, 40), st.floats(0.001, 1))
def test_what_is_drawn_was_allowed(seed, temperature, top_k, top_p):
    logits = torch.randn(30, generator=torch.Generator().manual_seed(seed)) * 5
    how = Sampling(temperature, top_k, top_p, seed)
    left = allowed(logits, how).isfinite()
    assert left.any() and not left[list(NEVER)].any() and (not top_k or left.sum() <= top_k)
    assert left[[chooser(how)(logits) for _ in range(3)]].all()


def test_draws_follow_the_probabilities_and_the_seed():
    draw, again, other = (chooser(Sampling(seed=seed)) for seed in (1, 1, 2))
    drawn = [draw(LOGITS) for _ in range(2000)]
    assert drawn == [again(LOGITS) for _ in range(2000)] != [other(LOGITS) for _ in range(2000)]
    shares = [drawn.count(number) / 2000 for number in range(4, 8)]
    assert shares == pytest.approx([0.2, 0.4, 0.1, 0.3], abs=0.05)


def test_steps_are_those_of_whole_passes():
    network, begun = random_writer(), ids(5).tolist()
    written = write(network, begun, 8, chooser(Sampling(temperature=0)))
    assert written.ids[:5] == begun and len(written.ids) <= 13
    logits, maps = network(torch.tensor([[BOS, *written.ids[:-1]]]))
    torch.testing.assert_close(written.logits, logits[0], atol=1e-5, rtol=1e-5)
    for ours, whole in zip(written.maps, maps, strict=True):
        torch.testing.assert_close(ours, whole[0], atol=1e-5, rtol=1e-5)
    best = logits[0].index_fill(-1, torch.tensor(NEVER), -torch.inf).argmax(dim=-1)
    assert written.ids[5:] == best[5:].tolist()


def test_it_ends_with_eos_or_with_its_steps():
    network, choices = random_writer(), iter([7, 8, EOS, 9])
    assert write(network, [5], 9, lambda logits: next(choices)).ids == [5, 7, 8, EOS]
    assert write(network, [5, 6], 3, lambda logits: 9).ids == [5, 6, 9, 9, 9]
    assert len(write(network, [5], LONGEST - 1, lambda logits: 9).ids) == LONGEST


def test_no_steps_only_read():
    network, begun = random_writer(), ids(6).tolist()
    written = write(network, begun, 0, chooser(Sampling()))
    logits, maps = network(torch.tensor([[BOS, *begun[:-1]]]))
    assert written.ids == begun and torch.equal(written.logits, logits[0])
    assert all(torch.equal(ours, whole[0]) for ours, whole in zip(written.maps, maps, strict=True))
