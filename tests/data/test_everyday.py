"""Captions and everyday sentences together."""

import gzip

import pytest
import tiny

from attnviz.data import corpora, tasks
from attnviz.data.corpora import WordDivider, length_filter, without_duplicates

EVERYDAY = {"train": "I go.\tJe vais.\nRun!\tCours !\n", "val": "You go.\tTu vas.\n", "test": "He goes.\tIl va.\n"}


def write(folder, texts):
    folder.mkdir(parents=True)
    for name, text in texts.items():
        (folder / f"{name}.tsv.gz").write_bytes(gzip.compress(text.encode()))


def test_a_pass_has_each_caption_and_each_everyday_sentence_once(tmp_path):
    folder = tiny.write_data(tmp_path)
    write(folder / "everyday_enfr", EVERYDAY)
    corpus = corpora.load("en-fr", folder)
    assert corpus.train == [
        *tiny.sentences(120, 0),
        ("I go.", "Je vais."),
        ("Run!", "Cours !"),
    ]  # Tatoeba's pairs are among these
    assert corpus.val == [*tiny.sentences(12, 1), ("You go.", "Tu vas.")]
    assert corpus.parts == ("captions",) * 12 + ("everyday",)
    assert corpus.tests["everyday"] == [("He goes.", "Il va.")] and next(iter(corpus.tests)) == "test_2016_flickr"
    assert {"everyday_enfr/train.tsv.gz", "everyday_enfr/val.tsv.gz", "everyday_enfr/test.tsv.gz"} < set(corpus.files)


def test_a_task_may_read_its_own_sentences_several_times(tmp_path):
    folder = tiny.write_data(tmp_path)
    for file in (folder / "multi30k").glob("*.fr*"):
        file.rename(file.with_name(file.name.replace(".fr", ".de")))
    write(folder / "everyday_ende", EVERYDAY)
    assert tasks.find("en-de").everyday.repeat == 2
    assert corpora.load("en-de", folder).train == [
        *tiny.sentences(120, 0) * 2,
        ("I go.", "Je vais."),
        ("Run!", "Cours !"),
    ]


def test_a_run_may_say_how_often_it_reads_a_task_s_own_sentences(tmp_path):
    folder = tiny.write_data(tmp_path)
    with pytest.raises(ValueError, match="en-fr has no everyday sentences"):
        corpora.load("en-fr", folder, repeat=2)
    write(folder / "everyday_enfr", EVERYDAY)
    once, thrice = corpora.load("en-fr", folder), corpora.load("en-fr", folder, repeat=3)
    assert thrice.train == 2 * tiny.sentences(120, 0) + once.train
    assert thrice.val == once.val


def test_everyday_japanese_is_divided_and_duplicates_are_dropped(tmp_path):
    tanaka = tmp_path / "tanaka_enja"
    tanaka.mkdir()
    lines = {"en": "he is here .\nshe is here .\n" * 3, "ja": "彼 は ここ に いる 。\n彼女 は ここ に いる 。\n" * 3}
    for split in ("train", "dev", "test"):
        for language, text in lines.items():
            (tanaka / f"{split}.{language}").write_text(text, encoding="utf-8")
    write(
        tmp_path / "everyday_enja",
        dict.fromkeys(EVERYDAY, "He is here.\t彼はここにいる。\nHere he is.\t彼はここにいる。\n"),
    )
    corpus = corpora.load("en-ja", tmp_path)
    assert corpora.load("en-ja", tmp_path, repeat=2).train == corpus.train[:2] + corpus.train
    assert corpus.train == [
        ("he is here .", "彼 は ここ に いる 。"),
        ("she is here .", "彼女 は ここ に いる 。"),
        ("Here he is.", "彼 は ここ に いる 。"),
    ]
    assert corpus.tests["everyday"][1] == ("Here he is.", "彼 は ここ に いる 。") and len(corpus.val) == 8
    assert corpus.parts == ("tanaka",) * 6 + ("everyday",) * 2
    assert (corpus.metric, corpus.style) == ("bleu_char", "tokenised")


def test_a_sentence_that_is_too_long_leaves_its_part(tmp_path):
    folder = tiny.write_data(tmp_path)
    too_long = "x " * 300 + "\ty\n"
    write(folder / "everyday_enfr", EVERYDAY | {"val": f"The dog runs.\tLe chien court.\n{too_long}The cat runs.\tx\n"})
    corpus, left_out = length_filter(corpora.load("en-fr", folder), tiny.vocabulary())
    assert corpus.parts == ("captions",) * 12 + ("everyday",) * 2 and len(left_out) == 1


CORPUS = [
    "私 は テニス が 好き だ 。",
    "彼 は 学校 へ 行 く 。",
    "私 は 学校 が 好き だ 。",
    "彼 は テニス へ 行 く 。",
] * 5


def test_words_of_the_corpus_are_found():
    divider = WordDivider(CORPUS, 200)
    assert divider("私は学校へ行く。") == "私 は 学校 へ 行 く 。"
    assert divider.targets([("I go.", "私は行く。")]) == [("I go.", "私 は 行 く 。")]


def test_katakana_is_one_word_even_when_it_is_new():
    assert WordDivider(CORPUS, 200)("私はトムが好きだ。") == "私 は トム が 好き だ 。"


def test_a_number_is_one_word():
    divider = WordDivider([*CORPUS, "１ 月 ２ 日 。", "３ つ 。"] * 5, 200)
    assert divider("１２３つ。私は3つ。") == "１２３ つ 。 私 は 3 つ 。"


def test_duplicates_are_dropped_and_the_first_kept():
    pairs = [
        ("i 'm here .", "私 は いる 。"),
        ("I'm here.", "私はいる。"),
        ("I'm here.", "私がいる。"),
        ("...", "？"),
        ("!", "？"),
    ]
    assert without_duplicates(pairs) == [pairs[0], *pairs[2:]]
