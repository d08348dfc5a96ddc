"""Words to be copied beside a sentence."""

import random

import pytest

from attnviz.data.augmentation.augmenter import Asides

NAMES = ["Anna", "Marie", "Tom", "Thomas"]


def beside(pair, seed, names=NAMES):
    return Asides(names).beside(pair, random.Random(seed))


@pytest.mark.parametrize("names", [NAMES, []])
def test_both_sides_get_the_same_words_and_keep_their_own(names):
    forms = set()
    for seed in range(200):
        source, target = beside(("She left.", "Elle est partie."), seed, names)
        parts = [side.replace(own, "|").split("|") for side, own in ((source, "She left"), (target, "Elle est partie"))]
        assert parts[0] == parts[1], (source, target)
        forms.add(tuple(bool(part) for part in parts[0]))
        assert source != "She left."
    assert len(forms) == 3  # before, behind, alone


def test_brackets_stand_before_the_final_mark():
    ends = {beside(("Who?", "Qui ?"), seed)[1][-2:] for seed in range(50)}
    assert ")?" in ends
    assert all(side.endswith(".") for side in beside(("No.", "Non."), 0) if "(" in side)


def test_each_digit_may_repeat_the_one_before_it():
    texts = [word for seed in range(300) for word in beside(("", ""), seed)[0].split() if word.isdigit()]
    pairs = [text[place : place + 2] for text in texts for place in range(len(text) - 1)]
    share = sum(first == second for first, second in pairs) / len(pairs)
    assert 0.3 < share < 0.5 and not any(text.startswith("0") for text in texts)


def test_the_same_random_numbers_give_the_same_words():
    assert beside(("a", "b"), 5) == beside(("a", "b"), 5) != beside(("a", "b"), 6)
