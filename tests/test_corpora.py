"""From a data folder to batches."""

import gzip
import hashlib
import random

import pytest
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz import corpora
from attnviz.text import EOS, PAD


def test_load(data):
    corpus = corpora.load("en-fr", data)
    assert corpus.train == [*tiny.sentences(120, 0), ("Hi.", "Salut."), ("Run!", "Cours !")]
    assert corpus.val == tiny.sentences(12, 1)
    assert corpus.tests == {"test_2016_flickr": tiny.sentences(10, 2), "test_2017_flickr": tiny.sentences(8, 3)}
    assert set(corpus.files) == {
        *(f"multi30k/{split}{ending}" for split in ("train", "val", "test_2016_flickr", "test_2017_flickr")
          for ending in (".en", ".fr.gz")),
        "tatoeba_enfr/pairs.tsv",
    }  # fmt: skip
    for name, digest in corpus.files.items():
        assert digest == hashlib.sha256((data / name).read_bytes()).hexdigest()


def test_load_without_everyday_sentences(tmp_path):
    folder = tiny.write_data(tmp_path)
    (folder / "tatoeba_enfr" / "pairs.tsv").unlink()
    (folder / "tatoeba_enfr").rmdir()
    assert corpora.load("en-fr", folder).train == tiny.sentences(120, 0)


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
@pytest.mark.parametrize(
    ("text", "lines"),
    [("a\nb\n", ["a", "b"]), ("a\nb", ["a", "b"]), ("a\n\nb\n", ["a", "", "b"]), ("a\n\n", ["a", ""]), ("", [""]),
     ("a\u2028b\x0bc\n", ["a\u2028b\x0bc"])],
)  # fmt: skip
def test_lines_stay_aligned(tmp_path, pack, text, lines):
    """Only \\n ends a line: what else Unicode calls a line break stays, and blank lines stay."""
    path = tmp_path / "any name"
    path.write_bytes(pack(text.encode()))
    assert corpora.read_lines(path) == lines


def test_pairs_with_an_empty_side_are_left_out(tmp_path):
    (tmp_path / "a").write_text("one\n\nthree\nfour\n")
    (tmp_path / "b").write_text(" un \ndeux\n  \nquatre\n")
    assert corpora.read_parallel(tmp_path / "a", tmp_path / "b") == [("one", "un"), ("four", "quatre")]


def test_tsv_takes_two_columns(tmp_path):
    (tmp_path / "t").write_text("a\tb\tc\nno tab\n\t\nd\te\n")
    assert corpora.read_tsv(tmp_path / "t") == [("a", "b"), ("d", "e")]


def test_misaligned(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one\ntwo\n")
    b.write_text("un\n")
    with pytest.raises(ValueError) as caught:
        corpora.read_parallel(a, b)
    assert str(caught.value) == f"{a} has 2 lines and {b} has 1; they must be aligned"


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        corpora.load("en-fr", tmp_path)
    assert str(caught.value) == (
        f"no train.en or train.en.gz in {tmp_path / 'multi30k'}; point --data at the folder that holds the corpora"
    )


@given(st.lists(st.integers(1, 40), min_size=1, max_size=80), st.integers(1, 200), st.integers(0, 5))
def test_batches_hold_everything_once_and_keep_to_size(lengths, tokens, seed):
    batches = corpora.batches(lengths, tokens, random.Random(seed))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(batch and (len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens) for batch in batches)
    assert batches == corpora.batches(lengths, tokens, random.Random(seed))


def test_pad():
    assert torch.equal(corpora.pad([[5, 2], [6, 7, 2]]), torch.tensor([[5, 2, PAD], [6, 7, 2]]))


def test_encode_ends_both_sides(data):
    text, pairs = tiny.vocabulary(), tiny.sentences(5, 1)
    for (source, target), (a, b) in zip(corpora.encode(pairs, text), pairs):
        assert (source[-1], target[-1]) == (EOS, EOS)
        assert (text.decode(source), text.decode(target)) == (a, b)
