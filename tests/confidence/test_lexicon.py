"""The usual translations of words: learnt, kept in a file, and missed where a translation leaves them out."""

import math
from itertools import pairwise

import pytest

from attnviz import gold
from attnviz.confidence import Judge, Lexicon
from attnviz.confidence.lexicon import Entry
from attnviz.models.checkpoint_files import CheckpointError

PAIRS = [
    *((f"The dog sees {name}.", f"Le chien voit {name}.") for name in ("Anna", "Otto", "Paul", "Emma", "Karl")),
    *((f"The cat sees {name}.", f"Le chat voit {name}.") for name in ("Anna", "Otto", "Paul", "Emma", "Karl")),
    *((f"{name} sleeps.", f"{name} dort.") for name in ("Anna", "Otto", "Paul", "Emma", "Karl")),
    *((f"{name} eats.", f"{name} mange.") for name in ("Anna", "Otto", "Paul", "Emma", "Karl")),
]


@pytest.fixture(scope="module")
def lexicon():
    return Lexicon.learn([*PAIRS, PAIRS[0]], "en", "fr")


@pytest.fixture(scope="module")
def both_ways():
    """Of common words."""
    names = [first + rest for first in "BDFGKLM" for rest in ("ab", "od", "ul", "ik", "er", "am")]
    animals = {"dog": "chien", "cat": "chat", "cow": "vache", "horse": "cheval", "fish": "poisson"}
    pairs = [(f"The {animal} sees {n}.", f"Le {animals[animal]} voit {n}.") for animal in animals for n in names]
    return Lexicon.learn(pairs, "en", "fr")


def test_words_and_their_translations(lexicon):
    assert lexicon.entries["dog"] == Entry(("chien",), 5, 5) and lexicon.entries["sleeps"].translations == ("dort",)
    assert lexicon.entries["dog"].surprise == pytest.approx(-math.log(1 - 5.5 / 6))
    assert "the" not in lexicon.entries  # a function word


def test_what_a_translation_leaves_out(lexicon):
    missed = lexicon.unsaid("The DOG sleeps, Anna.", "Anna dort.", "en", "fr")
    assert [(word.text, word.translations) for word in missed] == [("DOG", ("chien",))]
    assert not lexicon.unsaid("The dog's cat sleeps.", "Les CHIENS du chat dort.", "en", "fr")  # other forms
    assert lexicon.unsaid("The dog sleeps.", "Le cihen dort.", "en", "fr")[0].text == "dog"
    assert lexicon.unsaid("Narita", "", "en", "fr") == ()  # no training sentence has it


def test_words_that_usually_translate_others(both_ways):
    assert both_ways.sources.keys() == {"chien", "chat", "vache", "cheval", "poisso"}  # and no name
    assert both_ways.sources["chien"] == Entry(("dog",), 42, 42)
    wrong = both_ways.unfounded("The cat sleeps.", "Le Chien dort.", "en", "fr")
    assert [(word.text, word.translations) for word in wrong] == [("Chien", ("dog",))]
    assert both_ways.unfounded("The DOGS sleep.", "Les chiens dorment, Nkechi.", "en", "fr") == ()
    irregular = Lexicon(
        {"saw": Entry(("voyait",), 9, 9)}, {"voyait": Entry(("see",), 9, 9), "trois": Entry(("three",), 9, 9)}
    )
    assert irregular.unfounded("saw 3", "voyait trois", "en", "fr") == ()  # by the other direction; in digits
    assert irregular.unfounded("4", "trois", "en", "fr")[0].text == "trois"


def test_no_words_are_told_apart_without_spaces():
    assert Lexicon.learn([(f"The dog of {name}", "犬") for name in "ABCDE"], "en", "ja").sources == {}


def test_compounds_and_texts_without_spaces():
    words = Lexicon({"apple": Entry(("apfel",), 9, 9), "dog": Entry(("犬",), 9, 9)})
    assert words.unsaid("An apple tree", "ein Apfelbaum", "en", "de") == ()
    assert words.unsaid("a dog", "黒い犬が走る", "en", "ja") == ()
    assert words.unsaid("a dog", "黒い猫が走る", "en", "ja")[0].translations == ("犬",)


def test_saved_and_read(both_ways, tmp_path):
    path = tmp_path / "lexicon.txt.gz"
    both_ways.save(path)
    assert Lexicon.load(path) == both_ways
    path.write_bytes(b"no")
    with pytest.raises(CheckpointError, match=r"lexicon.txt.gz is damaged \(Not a gzipped file"):
        Lexicon.load(path)
    with pytest.raises(CheckpointError, match="^[^ ]*none.txt.gz is missing; restore it"):
        Lexicon.load(tmp_path / "none.txt.gz")
    Lexicon({"dog": Entry(("chien",), 1, 5)}).save(path)  # more translated than there are
    with pytest.raises(CheckpointError, match="lexicon.txt.gz is damaged"):
        Lexicon.load(path)


def test_nothing_to_learn_from():
    assert Lexicon.learn([("a", "b")], "en", "fr").entries == {} == Lexicon.learn([], "en", "fr").entries


@pytest.mark.parametrize("pair", ["en-fr", "en-de"])
def test_translations_by_people_that_lose_a_third_are_seen_and_whole_ones_are_not(pair):
    """The sentences whose words were linked by hand; the third of the words in the middle goes."""
    judge = Judge.load(f"{pair}/transformer")
    cases = [(sentence.source, sentence.target.split()) for sentence in gold.shipped(pair)]
    cases = [(source, words) for source, words in cases if len(words) >= 9]

    def surprises(source, words):
        missed = judge.lexicon.unsaid(source, " ".join(words), "en", pair[-2:])
        return sum(word.surprise for word in missed)

    whole = [surprises(source, words) for source, words in cases]
    cut = [surprises(source, words[: len(words) // 3] + words[2 * len(words) // 3 :]) for source, words in cases]
    assert len(cases) >= 20 and max(whole) <= judge.scale.unsaid
    assert sum(lost > complete + 1 for lost, complete in zip(cut, whole)) >= 0.6 * len(cases), (whole, cut)


@pytest.mark.parametrize("pair", ["en-fr", "en-de"])
def test_words_of_another_sentence_are_seen_in_translations_by_people_and_their_own_are_not(pair):
    """The third of the words in the middle comes from the next linked sentence."""
    lexicon = Judge.load(f"{pair}/transformer").lexicon
    cases = [(sentence.source, sentence.target.split()) for sentence in gold.shipped(pair)]

    def is_seen(source, words):
        return bool(lexicon.unfounded(source, " ".join(words), "en", pair[-2:]))

    own = [is_seen(source, words) for source, words in cases]
    mixed = [
        is_seen(source, words[: len(words) // 3] + others[len(others) // 3 : 2 * len(others) // 3])
        for (source, words), (_, others) in pairwise(cases)
    ]
    assert len(cases) >= 40 and sum(own) <= 0.1 * len(own) and sum(mixed) >= 0.6 * len(mixed), (sum(own), sum(mixed))
