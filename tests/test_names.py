"""Names that stand on both sides, and others in their place."""

import random

import pytest
from test_augment import PAIRS

from attnviz import names
from attnviz.names import Name, Names


def test_copied_names_and_whose_they_are():
    known = names.copied([*PAIRS, ("A Hotel or a hotel.", "Ein Hotel."), ("The man.", "Der Mann.")]).known
    assert {name: found.woman for name, found in known.items()} == {"Tom": False, "Anna": True, "Boston": None}


@pytest.mark.parametrize("language, pair, new, expected", [
    ("fr", ("Tom's dog", "le chien de Tom"), "Anna", ("Anna's dog", "le chien d'Anna")),
    ("fr", ("I see that Tom runs", "Je vois que Tom court"), "Élise", ("I see that Élise runs", "Je vois qu'Élise court")),
    ("fr", ("Tom runs", "Tom court"), "Anna", ("Anna runs", "Anna court")),
    ("de", ("Tom's dog", "Toms Hund"), "Anna", ("Anna's dog", "Annas Hund")),
    ("de", ("Tom's dog", "Toms Hund"), "Max", ("Max's dog", "Max' Hund")),
    ("fr", ("Tom and Tom", "Tom"), "Anna", ("Tom and Tom", "Tom")),  # in other places
    ("fr", ("Tomorrow", "Tom"), "Anna", ("Tomorrow", "Tom")),
])  # fmt: skip
def test_exchanged(language, pair, new, expected):
    found = Names([Name("Tom", "Tom")], copied=True)
    found.pools = {None: [Name(new, new)]}
    chance = random.Random(1)  # whose first draws give no family name
    assert found.exchanged(pair, language, chance) == expected


def test_back_from_a_vowel():
    found = Names([Name("Anna", "Anna", True)], copied=True)
    found.pools = {True: [Name("Marie", "Marie")]}
    assert found.exchanged(("Anna's dog", "le chien d'Anna"), "fr", random.Random(1)) == ("Marie's dog", "le chien de Marie")


def test_transliterated_names_take_each_others_place():
    pairs = [("Tom runs.", "トム は 走 る 。"), ("Anna runs.", "アンナ は 走 る 。"), ("You like the tennis.", "テニス 。"), ("You run.", "走 る 。")] * 3
    found = names.transliterated(pairs)
    assert {(name.source, name.target) for name in found.known.values()} == {("Tom", "トム"), ("Anna", "アンナ")}
    assert {found.exchanged(("Tom runs.", "トム は 走 る 。"), "ja", random.Random(seed)) for seed in range(9)} == {
        ("Tom runs.", "トム は 走 る 。"), ("Anna runs.", "アンナ は 走 る 。")}  # fmt: skip


def test_made_up_names_are_new_and_the_same_for_a_seed():
    real = ["Tom", "Tomas", "Anna", "Hannah", "Marianne", "Thomas", "Johanna", "Romana"]
    made = names.made_up(real, 20, seed=3)
    assert made == names.made_up(real, 20, seed=3) and made != names.made_up(real, 20, seed=4)
    assert not {name.source for name in made} & set(real) and all(name.source == name.target for name in made)
