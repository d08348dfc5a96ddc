"""The words of training, and those of a text that are not among them."""

import pytest
import tiny

from attnviz import loading
from attnviz.alignment import coverage
from attnviz.confidence.training_words import TrainingWords, words
from attnviz.function_words import FUNCTION, kind
from attnviz.models.checkpoint_files import CheckpointError
from attnviz.trace.visible import WORD

TEXTS = ["Tom's dog runs.", "Tom’s dog runs.", "The dog doesn't run!", "The DOG.", "The DOG."]


def test_counts_by_hand():
    known_words = TrainingWords.learn(TEXTS)
    assert known_words.sentences == 4
    assert [known_words.count(word) for word in ("dog", "Dog", "tom's", "the", "doesn’t", "Narita", "run")] == [
        4,
        4,
        2,
        2,
        1,
        0,
        1,
    ]


def test_parts_speak_for_a_word_with_an_apostrophe():
    known_words = TrainingWords({"anna": 3, "s": 9}, 20)
    assert known_words.count("Anna's") == 3 and known_words.count("Tom's") == 0


def test_saved_and_read(tmp_path):
    known_words = TrainingWords.learn(TEXTS)
    known_words.save(tmp_path / "words.txt.gz")
    assert TrainingWords.load(tmp_path / "words.txt.gz") == known_words
    (tmp_path / "words.txt.gz").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="words.txt.gz is damaged"):
        TrainingWords.load(tmp_path / "words.txt.gz")


def test_words_of_a_trace_and_their_pieces(tmp_path):
    root = tmp_path / "models"
    tiny.write_models(root)
    trace = loading.load("en-fr/bahdanau", root).trace("The dog's cat, 25 jumps.")
    unseen = words(trace)
    assert [word.text for word in unseen] == ["The", "dog's", "cat", "jumps"]
    assert all(trace.text[word.start : word.end] == word.text and word.pieces >= 1 for word in unseen)
    assert [word.text for word in TrainingWords({"the": 1, "cat": 1}, 9).new(trace)] == ["dog's", "jumps"]


@pytest.mark.parametrize("typed", ["Ru\u00adnning wo\u200bmen smi\u200dle.", "Runn\u2060ing ｗomen ﬁle."])
def test_what_prints_nothing_divides_no_word(typed, tmp_path):
    """The reasons said: “nning” is in no training sentence."""
    tiny.write_models(tmp_path / "models")
    trace = loading.load("en-fr/bahdanau", tmp_path / "models").trace(typed)
    known_words = TrainingWords({"running": 2, "women": 1, "smile": 1, "file": 1}, 9)
    assert len(words(trace)) == 3 and not known_words.new(trace)
    assert [word.text for word in coverage(trace)] == [word.text for word in words(trace)]
    assert kind("th\u200be", "en") == FUNCTION


def test_an_accent_typed_as_a_character_of_its_own_belongs_to_its_letter():
    text = "cafe\u0301 a\u0300 Paris"
    assert WORD.findall(text) == text.split() and TrainingWords.learn([text]).counts == {"café": 1, "à": 1, "paris": 1}
