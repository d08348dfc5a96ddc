"""The words of training, and those of a text that are not among them."""

import pytest
import tiny

from attnviz import loading
from attnviz.familiar import Familiar, words
from attnviz.files import CheckpointError

TEXTS = ["Tom's dog runs.", "Tom’s dog runs.", "The dog doesn't run!", "The DOG.", "The DOG."]


def test_counts_by_hand():
    familiar = Familiar.learn(TEXTS)
    assert familiar.sentences == 4
    assert [familiar.count(word) for word in ("dog", "Dog", "tom's", "the", "doesn’t", "Narita", "run")] == [4, 4, 2, 2, 1, 0, 1]


def test_parts_speak_for_a_word_with_an_apostrophe():
    familiar = Familiar({"anna": 3, "s": 9}, 20)
    assert familiar.count("Anna's") == 3 and familiar.count("Tom's") == 0


def test_saved_and_read(tmp_path):
    familiar = Familiar.learn(TEXTS)
    familiar.save(tmp_path / "words.txt.gz")
    assert Familiar.load(tmp_path / "words.txt.gz") == familiar
    (tmp_path / "words.txt.gz").write_bytes(b"no")
    with pytest.raises(CheckpointError, match="words.txt.gz is damaged"):
        Familiar.load(tmp_path / "words.txt.gz")


def test_words_of_a_trace_and_their_pieces(tmp_path):
    root = tmp_path / "models"
    tiny.write_models(root)
    trace = loading.load("en-fr/bahdanau", root).trace("The dog's cat, 25 jumps.")
    found = words(trace)
    assert [word.text for word in found] == ["The", "dog's", "cat", "jumps"]
    assert all(trace.text[word.start : word.end] == word.text and word.pieces >= 1 for word in found)
    assert [word.text for word in Familiar({"the": 1, "cat": 1}, 9).new(trace)] == ["dog's", "jumps"]
