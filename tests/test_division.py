"""Japanese divided as a corpus divides it, and pairs that are doubles."""

from attnviz.division import Divider, without_doubles

CORPUS = ["私 は テニス が 好き だ 。", "彼 は 学校 へ 行 く 。", "私 は 学校 が 好き だ 。", "彼 は テニス へ 行 く 。"] * 5


def test_words_of_the_corpus_are_found():
    divider = Divider(CORPUS, 200)
    assert divider("私は学校へ行く。") == "私 は 学校 へ 行 く 。"
    assert divider.pairs([("I go.", "私は行く。")]) == [("I go.", "私 は 行 く 。")]


def test_katakana_is_one_word_even_when_it_is_new():
    assert Divider(CORPUS, 200)("私はトムが好きだ。") == "私 は トム が 好き だ 。"


def test_doubles_are_dropped_and_the_first_kept():
    pairs = [("i 'm here .", "私 は いる 。"), ("I'm here.", "私はいる。"), ("I'm here.", "私がいる。"), ("...", "？"), ("!", "？")]
    assert without_doubles(pairs) == [pairs[0], *pairs[2:]]
