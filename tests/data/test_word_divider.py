"""Japanese divided as a corpus divides it, and duplicate pairs."""

from attnviz.data.word_divider import WordDivider, without_duplicates

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
