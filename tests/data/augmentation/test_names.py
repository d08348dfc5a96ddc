"""Names that stand on both sides, and others in their place."""

import random

import pytest

from attnviz.data.augmentation.names import Name, Names, copied, made_up, transliterated

PAIRS = [
    ("Tom saw Anna in Boston.", "Tom a vu Anna à Boston."),
    ("She is Anna.", "Elle est Anna."),
    ("He is Tom.", "Il est Tom."),
    ("Tom's dog runs.", "Le chien de Tom court."),
    ("He and his dog like Tom.", "Il aime Tom."),
    ("She likes Anna.", "Elle aime Anna."),
]


def test_copied_names_and_whose_they_are():
    names = copied([*PAIRS, ("A Hotel or a hotel.", "Ein Hotel."), ("The man.", "Der Mann.")]).by_source
    assert {spelling: name.woman for spelling, name in names.items()} == {"Tom": False, "Anna": True, "Boston": None}


@pytest.mark.parametrize(
    "language, pair, new, expected",
    [
        ("fr", ("Tom's dog", "le chien de Tom"), "Anna", ("Anna's dog", "le chien d'Anna")),
        (
            "fr",
            ("I see that Tom runs", "Je vois que Tom court"),
            "Élise",
            ("I see that Élise runs", "Je vois qu'Élise court"),
        ),
        ("fr", ("Tom runs", "Tom court"), "Anna", ("Anna runs", "Anna court")),
        ("de", ("Tom's dog", "Toms Hund"), "Anna", ("Anna's dog", "Annas Hund")),
        ("de", ("Tom's dog", "Toms Hund"), "Max", ("Max's dog", "Max' Hund")),
        ("fr", ("Tom and Tom", "Tom"), "Anna", ("Tom and Tom", "Tom")),  # in other places
        ("fr", ("Tomorrow", "Tom"), "Anna", ("Tomorrow", "Tom")),
    ],
)
def test_exchanged(language, pair, new, expected):
    names = Names([Name("Tom", "Tom")], copied=True)
    names.pools = {None: [Name(new, new)]}
    generator = random.Random(1)  # whose first draws give no family name
    assert names.exchanged(pair, language, generator) == expected


def test_back_from_a_vowel():
    names = Names([Name("Anna", "Anna", True)], copied=True)
    names.pools = {True: [Name("Marie", "Marie")]}
    assert names.exchanged(("Anna's dog", "le chien d'Anna"), "fr", random.Random(1)) == (
        "Marie's dog",
        "le chien de Marie",
    )


def test_transliterated_names_take_each_others_place():
    pairs = [
        ("Tom runs.", "トム は 走 る 。"),
        ("Anna runs.", "アンナ は 走 る 。"),
        ("You like the tennis.", "テニス 。"),
        ("You run.", "走 る 。"),
    ] * 3
    names = transliterated(pairs)
    assert {(name.source, name.target) for name in names.by_source.values()} == {("Tom", "トム"), ("Anna", "アンナ")}
    assert {names.exchanged(("Tom runs.", "トム は 走 る 。"), "ja", random.Random(seed)) for seed in range(9)} == {
        ("Tom runs.", "トム は 走 る 。"),
        ("Anna runs.", "アンナ は 走 る 。"),
    }


def test_made_up_names_are_new_and_the_same_for_a_seed():
    real = ["Tom", "Tomas", "Anna", "Hannah", "Marianne", "Thomas", "Johanna", "Romana"]
    made = made_up(real, 20, seed=3)
    assert made == made_up(real, 20, seed=3) and made != made_up(real, 20, seed=4)
    assert len(set(made)) == 20 and not set(made) & set(real) and all(name[0].isupper() for name in made)
