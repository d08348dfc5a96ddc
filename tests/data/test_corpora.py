"""From a data folder to batches."""

import gzip
import hashlib
import random

import pytest
import tiny
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz.data import MOST_PIECES, batching, corpora, readers, tasks
from attnviz.data.corpora import length_filter
from attnviz.data.tokenizer import EOS, PAD


def test_load(data):
    corpus = corpora.load("en-fr", data)
    assert corpus.train == [*tiny.sentences(120, 0), ("Hi.", "Salut."), ("Run!", "Cours !")]
    assert corpus.val == tiny.sentences(12, 1)
    assert corpus.tests == {"test_2016_flickr": tiny.sentences(10, 2), "test_2017_flickr": tiny.sentences(8, 3)}
    assert set(corpus.files) == {
        *(
            f"multi30k/{split}{ending}"
            for split in ("train", "val", "test_2016_flickr", "test_2017_flickr")
            for ending in (".en", ".fr.gz")
        ),
        "tatoeba_enfr/pairs.tsv",
    }
    for name, digest in corpus.files.items():
        assert digest == hashlib.sha256((data / name).read_bytes()).hexdigest()


def test_load_without_everyday_sentences(tmp_path):
    folder = tiny.write_data(tmp_path)
    (folder / "tatoeba_enfr" / "pairs.tsv").unlink()
    (folder / "tatoeba_enfr").rmdir()
    assert corpora.load("en-fr", folder).train == tiny.sentences(120, 0)


def test_load_english_to_german(tmp_path):
    folder = tiny.write_data(tmp_path)
    for path in (folder / "multi30k").glob("*.fr.gz"):
        path.rename(path.with_name(path.name.replace(".fr.", ".de.")))
    corpus = corpora.load("en-de", folder)
    assert corpus.train == tiny.sentences(120, 0) and len(corpus.files) == 8  # no everyday sentences, which are French
    assert (corpus.metric, corpus.style) == ("bleu_lc", "written")


def test_load_english_to_japanese(tmp_path):
    (tmp_path / "tanaka_enja").mkdir()
    for split, count in (("train", 3), ("dev", 2), ("test", 1)):
        (tmp_path / "tanaka_enja" / f"{split}.en").write_text(f"he 's {split} .\n" * count)
        (tmp_path / "tanaka_enja" / f"{split}.ja.gz").write_bytes(gzip.compress(f"彼 は {split} 。\n".encode() * count))
    corpus = corpora.load("en-ja", tmp_path)
    assert (
        corpus.train == [("he 's train .", "彼 は train 。")] * 3
        and corpus.val == [("he 's dev .", "彼 は dev 。")] * 2
    )
    assert corpus.tests == {"test": [("he 's test .", "彼 は test 。")]}
    assert set(corpus.files) == {f"tanaka_enja/{s}.{e}" for s in ("train", "dev", "test") for e in ("en", "ja.gz")}
    assert (corpus.metric, corpus.style) == ("bleu_morphemes", "tokenised")


def test_reverse():
    corpus = corpora.load("reverse", None)
    splits = [corpus.train, corpus.val, corpus.tests["test"]]
    assert [len(split) for split in splits] == [18_500, 500, 1000] and corpus.tests.keys() == {"test"}
    every = [pair for split in splits for pair in split]
    assert len({source for source, _ in every}) == 20_000  # no two alike, so none in two splits
    assert all(target.split() == source.split()[::-1] for source, target in every)
    assert {letter for source, _ in every for letter in source.split()} == set("abcdefghijklmnopqrstuvwxyz")
    for split in splits[1:]:
        lengths = [len(source.split()) for source, _ in split]
        assert min(lengths) <= 3 and max(lengths) == 20 and 10 < sum(lengths) / len(lengths) < 12
    assert corpora.load("reverse", None) == corpus  # seeded
    other = tasks.read_reverse(seed=2)
    assert other.train != corpus.train and other.files != corpus.files
    assert (corpus.metric, corpus.style) == ("exact_match", "symbols")


@pytest.mark.parametrize("name, answer", [("copy", list), ("sort", sorted)])
def test_the_other_toy_tasks_are_other_letters_with_another_answer(name, answer):
    corpus = corpora.load(name, None)
    assert all(target.split() == answer(source.split()) for source, target in corpus.train[:200])
    assert corpus.train != corpora.load("reverse", None).train


def test_no_corpora():
    with pytest.raises(ValueError) as caught:
        corpora.load("xx-yy", None)
    assert str(caught.value) == (
        "there are no corpora for xx-yy; choose one of en-fr, en-de, en-ja, reverse, copy, sort, shift, "
        "piglatin, dates, sst2, en, shakespeare, or give files of your own"
    )


@pytest.mark.parametrize("size, wanted", [(None, 20), (7, 7), (99, 99), (1, 1)])
def test_own_sentences_are_divided_the_same_way_every_time(size, wanted):
    pairs = [(f"a {i}", f"b {i}") for i in range(100)]
    corpus = corpora.own(pairs, {"mine.tsv": "0"}, size)
    assert len(corpus.val) == wanted and sorted(corpus.train + corpus.val) == sorted(pairs)
    assert corpus == corpora.own(pairs, {"mine.tsv": "0"}, size)
    assert (corpus.tests, corpus.files, corpus.metric, corpus.style) == ({}, {"mine.tsv": "0"}, "bleu_lc", "written")


def test_default_validation_is_a_twentieth_of_few_a_fifth_and_at_most_a_thousand():
    for count, wanted in ((2, 1), (9, 1), (10, 2), (39, 7), (100, 20), (400, 20), (1_000, 50), (30_000, 1000)):
        assert len(corpora.own([(f"a {i}", "b") for i in range(count)], {}).val) == wanted


def test_own_validation_sentences_are_nowhere_in_training():
    pairs = [(f"a {i % 10}", f"b {i}") for i in range(100)]
    corpus = corpora.own(pairs, {}, 3)
    assert not {a for a, _ in corpus.train} & {a for a, _ in corpus.val} and len(corpus.val) == 3
    assert len(corpus.train) == 100 - 10 * len({a for a, _ in corpus.val})


@pytest.mark.parametrize(
    "pairs, size, message",
    [
        (
            [("a", "b")],
            None,
            "validation and training need at least one sentence pair each; got 1 pairs, 1 of them for validation",
        ),
        (
            [("a", "b"), ("c", "d")],
            2,
            "validation and training need at least one sentence pair each; got 2 pairs, 2 of them for validation",
        ),
        (
            [("a", "b"), ("a", "d")],
            1,
            "no sentence is left for training: validation has every source sentence; give more different sentences",
        ),
    ],
)
def test_own_sentences_that_cannot_be_divided(pairs, size, message):
    with pytest.raises(ValueError) as caught:
        corpora.own(pairs, {}, size)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "target, style, metric",
    [
        ("un chien", "written", "bleu_lc"),
        ("狗在跑。", "written", "bleu_char"),
        ("犬 が 走る", "tokenised", "bleu_words"),
        ("un chien 狗", "written", "bleu_lc"),
        ("a b", "symbols", "exact_match"),
    ],
)
def test_own_sentences_are_scored_by_what_suits_them(target, style, metric):
    corpus = corpora.own([("a", target), ("b", target)], {}, 1, style)
    assert (corpus.metric, corpus.style) == (metric, style)


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress])
@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("a\nb\n", ["a", "b"]),
        ("a\nb", ["a", "b"]),
        ("a\n\nb\n", ["a", "", "b"]),
        ("a\n\n", ["a", ""]),
        ("", []),
        ("\n", [""]),
        ("\ufeffa\n\ufeffb\n", ["a", "\ufeffb"]),
        ("a\u2028b\x0bc\n", ["a\u2028b\x0bc"]),
    ],
)
def test_lines_stay_aligned(tmp_path, pack, text, lines):
    """Only \\n ends a line: what else Unicode calls a line break stays, and blank lines stay.

    A byte-order mark is no text.
    """
    path = tmp_path / "any name"
    path.write_bytes(pack(text.encode()))
    assert readers.read_lines(path) == lines


@pytest.mark.parametrize(
    "content, message",
    [
        (b"caf\xe9\n", "{path} must be UTF-8 text; got byte 0xe9 at 3"),
        (
            gzip.compress(b"text", mtime=0)[:-6],
            "{path} is a damaged gzip file: Compressed file ended before the end-of-stream marker was reached",
        ),
        (b"\x1f\x8bnot gzip", "{path} is a damaged gzip file: Unknown compression method"),
        (None, "cannot read {path}: No such file or directory"),
    ],
)
def test_a_file_that_is_no_text(tmp_path, content, message):
    path = tmp_path / "x"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ValueError) as caught:
        readers.read_lines(path)
    assert str(caught.value) == message.format(path=path)


def test_pairs_with_an_empty_side_are_left_out(tmp_path):
    (tmp_path / "a").write_text("one\n\nthree\nfour\n")
    (tmp_path / "b").write_text(" un \ndeux\n  \nquatre\n")
    assert readers.read_parallel(tmp_path / "a", tmp_path / "b") == [("one", "un"), ("four", "quatre")]


def test_tsv_takes_two_columns(tmp_path):
    (tmp_path / "t").write_text("a\tb\tc\nno tab\n\t\nd\te\n")
    assert readers.read_tsv(tmp_path / "t") == [("a", "b"), ("d", "e")]


def test_misaligned(tmp_path):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("one\ntwo\n")
    b.write_text("un\n")
    with pytest.raises(ValueError) as caught:
        readers.read_parallel(a, b)
    assert str(caught.value) == f"{a} has 2 lines and {b} has 1; they must be aligned"


def test_missing(tmp_path):
    with pytest.raises(FileNotFoundError) as caught:
        corpora.load("en-fr", tmp_path)
    assert str(caught.value) == (
        f"no train.en or train.en.gz in {tmp_path / 'multi30k'}; point --data at the folder that holds the "
        "corpora, or fetch them: python -m attnviz download"
    )


@given(st.lists(st.integers(1, 40), min_size=1, max_size=80), st.integers(1, 200), st.integers(0, 5))
def test_batches_hold_everything_once_and_keep_to_size(lengths, tokens, seed):
    batches = batching.batches(lengths, tokens, random.Random(seed))
    assert sorted(i for batch in batches for i in batch) == list(range(len(lengths)))
    assert all(
        batch and (len(batch) == 1 or len(batch) * max(lengths[i] for i in batch) <= tokens) for batch in batches
    )
    assert batches == batching.batches(lengths, tokens, random.Random(seed))


def test_pad():
    assert torch.equal(batching.pad([[5, 2], [6, 7, 2]]), torch.tensor([[5, 2, PAD], [6, 7, 2]]))


def test_encode_ends_both_sides(data):
    text, pairs = tiny.vocabulary(), tiny.sentences(5, 1)
    for (source, target), (a, b) in zip(batching.encode(pairs, text), pairs):
        assert (source[-1], target[-1]) == (EOS, EOS)
        assert (text.decode(source), text.decode(target)) == (a, b)


LONG = "the " * MOST_PIECES
PAIRS = tiny.sentences(6, 1)


@pytest.mark.parametrize("pair", [(LONG, "le"), ("the", LONG), ("\u200b", "le"), ("the", "\u200b"), ("", "le")])
def test_a_pair_that_no_model_reads_is_left_out_of_train_and_of_val(pair):
    text = tiny.vocabulary()
    corpus = corpora.Corpus([*PAIRS[:3], pair], [pair, *PAIRS[3:]], {"test": [pair]}, {"a": "b"})
    filtered, left_out = length_filter(corpus, text)
    assert (filtered.train, filtered.val) == (PAIRS[:3], PAIRS[3:])
    assert (filtered.tests, filtered.files) == (corpus.tests, corpus.files)
    assert left_out == [pair[0]] * 2 and length_filter(filtered, text) == (filtered, [])


def test_the_longest_text_stays():
    """With <eos> it is as long as a text may be; with one piece more it is not."""
    text, short = tiny.vocabulary(), PAIRS[0][0].split()[0]
    pieces = len(text.ids(short)) - 1
    fits = " ".join([short] * ((MOST_PIECES - 1) // pieces))
    pairs = [(fits, "le"), (f"{fits} {short}", "le")]
    assert len(text.ids(pairs[1][0])) > MOST_PIECES >= len(text.ids(fits))
    assert length_filter(corpora.Corpus(pairs, PAIRS, {}, {}), text)[0].train == pairs[:1]


def test_a_label_always_fits():
    pairs = [("a dog", "positive"), ("\u200b", "negative")]
    corpus = corpora.Corpus(pairs, pairs, {}, {}, labelled=True)
    assert length_filter(corpus, tiny.vocabulary())[0].val == pairs[:1]


@pytest.mark.parametrize("train, val, empty", [([(LONG, "le")], PAIRS, "train"), (PAIRS, [("\u200b", "le")], "val")])
def test_nothing_left_is_said(train, val, empty):
    with pytest.raises(ValueError, match=f"^no sentence of {empty} has visible text and at most {MOST_PIECES} pieces"):
        length_filter(corpora.Corpus(train, val, {}, {}), tiny.vocabulary())
