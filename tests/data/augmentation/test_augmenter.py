"""Sentences changed to what people type: both sides stay translations of each other."""

import random
import re
from dataclasses import fields, replace

import pytest

from attnviz.data import augmentation
from attnviz.data.augmentation import Asides, Augmenter, Shares, names
from attnviz.data.augmentation.numbers import random_number

NONE = Shares(**{field.name: 0 for field in fields(Shares)})
PAIRS = [
    ("Tom saw Anna in Boston.", "Tom a vu Anna à Boston."),
    ("She is Anna.", "Elle est Anna."),
    ("He is Tom.", "Il est Tom."),
    ("Tom's dog runs.", "Le chien de Tom court."),
    ("He and his dog like Tom.", "Il aime Tom."),
    ("She likes Anna.", "Elle aime Anna."),
]


def changed(pair, language="fr", **shares):
    return Augmenter(names.copied(PAIRS), language, shares=replace(NONE, **shares))([pair], 0)[0]


def test_the_same_seed_and_pass_give_the_same_pairs_and_others_give_others():
    pairs = PAIRS * 20

    def read(seed, epoch):
        return augmentation.for_pair(pairs, "en-fr", 1.0, seed)(pairs, epoch)

    assert read(1, 3) == read(1, 3)
    assert read(1, 3) != read(1, 4) and read(1, 3) != read(2, 3)
    assert augmentation.for_pair(pairs, "en-fr", 0.0)(pairs, 3) == pairs


@pytest.mark.parametrize(
    "pair, expected",
    [
        (("I go.", "Je vais."), ("I go", "Je vais")),
        (("I go.", "私 は 行 く 。"), ("I go", "私 は 行 く")),
        (("Well...", "Eh bien..."), ("Well...", "Eh bien...")),
        (("I go!", "Je vais."), ("I go!", "Je vais.")),
    ],
)
def test_a_full_stop_is_left_out_on_both_sides(pair, expected):
    assert changed(pair, stop=1) == expected


def test_a_question_mark_is_left_out_of_the_source_alone():
    assert changed(("Is it?", "Oui ?"), question=1) == ("Is it", "Oui ?")


@pytest.mark.parametrize(
    "source, small", [("Tom Is here.", "tom Is here."), ("I am.", "I am."), ("I'm here.", "I'm here.")]
)
def test_the_first_letter_is_written_small_but_not_of_the_word_i(source, small):
    assert changed((source, "x"), first=1)[0] == small


def test_a_source_is_written_small():
    assert changed(("Tom Is I.", "Tom."), lower=1) == ("tom is i.", "Tom.")


@pytest.mark.parametrize(
    "full, short",
    [
        ("I do not know.", "I don't know."),
        ("Do not go.", "Don't go."),
        ("They are here.", "They're here."),
        ("I cannot see.", "I can't see."),
    ],
)
def test_contractions_and_full_forms(full, short):
    forms = {augmentation.other_form(text, random.Random(seed)) for text in (full, short) for seed in range(9)}
    assert forms == {full, short}


@pytest.mark.parametrize("text", ["Yes, I am.", "Don't you know?", "Isn't it?"])
def test_forms_that_have_no_other(text):
    assert {augmentation.other_form(text, random.Random(seed)) for seed in range(9)} == {text}


def test_numbers_on_both_sides_become_others_of_as_many_digits():
    source, target = changed(("At 7:30 on May 12, 1998.", "Le 12 mai 1998 à 7h30."), numbers=1)
    day, year = target.split()[1], target.split()[3]
    hour, minutes = target.split()[5].rstrip(".").split("h")
    assert source == f"At {hour}:{minutes} on May {day}, {year}." and (day, year) != ("12", "1998")
    assert [len(number) for number in (hour, minutes, day, year)] == [1, 2, 2, 4]


@pytest.mark.parametrize("digits, least", [(1, 2), (2, 10), (4, 1000)])
def test_random_numbers_have_so_many_digits_and_are_never_0_or_1(digits, least):
    numbers = [random_number(digits, random.Random(seed)) for seed in range(200)]
    assert all(len(number) == digits and int(number) >= least for number in numbers) and len(set(numbers)) > 5


def test_a_number_becomes_another_one():
    assert {changed((f"{number} dogs.", f"{number} chiens."), numbers=1)[0] for number in (2, 33)}.isdisjoint(
        {"2 dogs.", "33 dogs."}
    )


@pytest.mark.parametrize(
    "pair", [("2 dogs.", "Deux chiens."), ("1 dog.", "1 chien."), ("At 2.", "À 14."), ("A dog.", "Un chien.")]
)
def test_numbers_that_stay(pair):
    assert changed(pair, numbers=1) == pair


@pytest.mark.parametrize(
    "language, pair, form",
    [
        (
            "de",
            ("Two men own three dogs.", "Zwei Männer besitzen drei Hunde."),
            r"(\d+) men own (\d+) dogs\.|\1 Männer besitzen \2 Hunde\.",
        ),
        ("fr", ("Ninety or two.", "Deux ou quatre-vingt-dix."), r"(\d+) or (\d+)\.|\2 ou \1\."),
        ("fr", ("Two or two.", "Deux, ou trois."), None),
        ("fr", ("Twenty-two.", "Vingt-deux."), None),
        ("de", ("Two hundred.", "Zwei hundert."), None),
        ("de", ("The two came at half past one.", "Die zwei kamen um halb zwei."), None),
        ("fr", ("Twenty one dogs.", "Vingt et un chiens."), None),
        ("de", ("One dog.", "Ein Hund."), None),
        ("es", ("Two dogs.", "Dos perros."), None),
    ],
)
def test_number_words_that_stand_once_on_both_sides_become_the_same_digits(language, pair, form):
    """form : of both sides as a regular expression; None where the pair stays as it is."""
    expected = form.replace("|", "[|]") if form else re.escape("|".join(pair))
    assert re.fullmatch(expected, "|".join(changed(pair, language, number_words=1)))


def test_full_width_digits_stay_so():
    source, target = changed(("10 o'clock.", "１０ 時 。"), numbers=1)
    assert target.split()[0] == "".join(chr(ord(digit) - ord("0") + ord("０")) for digit in source.split()[0])


@pytest.mark.parametrize("pair", ["de-en", "reverse", "sst2"])
def test_only_english_is_changed(pair):
    with pytest.raises(ValueError) as caught:
        augmentation.for_pair([], pair, 1.0)
    assert str(caught.value) == (
        f"augment must be 0 for {pair}: it changes English sentences and their translations only"
    )


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
