"""The texts that models learn to write on: what is read, and what is kept out of training."""

import pytest
import tiny_writer

from attnviz.data import corpora
from attnviz.data.tasks.writing import chapters


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    return tiny_writer.write_data(tmp_path_factory.mktemp("texts"))


def test_an_empty_line_ends_a_text():
    lines = ["A king.", "He slept.", "", " ", "A queen.", ""]
    assert chapters(lines) == ["A king.\nHe slept.", "A queen."] and chapters(["", ""]) == []


def test_books_captions_and_everyday_sentences(data):
    corpus = corpora.load("en", data)
    parts = [part for _, part in corpus.train]
    assert parts.count("stories") == 6 and parts.count("captions") == 5  # the others are in val or in a test
    assert [text for text, part in corpus.train if part == "everyday"] == ["Hi there.", "Go on!", "Who is it?"]
    assert corpus.train[0][0].count("\n") == 2  # three paragraphs
    assert [part for _, part in corpus.val] == list(corpus.parts) == ["stories"] * 2 + ["captions"] * 9 + ["everyday"]
    assert {name: len(pairs) for name, pairs in corpus.tests.items()} == {
        "stories": 2,
        "captions_2016": 9,
        "captions_2017": 9,
        "everyday": 1,
    }
    assert corpus.metric == "bits_a_character" and corpus.style == "prose" and len(corpus.files) == 16


def test_no_sentence_of_val_or_test_is_trained_on(data):
    """“Run!” is in the test of one language and in the train of others."""
    corpus = corpora.load("en", data)
    held_out = {text for pairs in (corpus.val, *corpus.tests.values()) for text, _ in pairs}
    assert "Run!" in held_out and not held_out & {text for text, _ in corpus.train}


def test_shakespeare_is_divided_by_its_characters(data):
    corpus = corpora.load("shakespeare", data)
    ((train, _),), ((val, _),) = corpus.train, corpus.val
    whole = (data / "tinyshakespeare" / "input.txt").read_text(encoding="utf-8")
    assert train + val == whole and len(train) == int(0.9 * len(whole)) and corpus.tests == {}
