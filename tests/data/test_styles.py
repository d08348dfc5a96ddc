"""Text of corpora that were tokenised before, of Japanese, and of symbols: what is typed reads as what was learnt."""

import unicodedata
from functools import cache

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tokenizers import models

from attnviz.data.styles import STYLES
from attnviz.data.tokenizer import EOS, SPECIALS, UNK, SubwordTokenizer, train_vocabulary

PAIRS = (
    ("don 't you think so ?", "そう 思 い ま せ ん か ？"),
    ("i 'm in the tennis club .", "私 は テニス 部員 で す 。"),
    ("he said , '' i can 't go . ''", "彼 は 「 行 け な い 」 と 言 っ た 。"),
    ("it is ten o 'clock .", "１０ 時 で す 。"),
    ("she is my friend .", "彼女 は 私 の 友達 で す 。"),
    ("this book costs 1,000 yen .", "この 本 は １０００ 円 だ 。"),
    ("the dog likes the boy .", "犬 は 少年 が 好き だ 。"),
    ("we 'll go to tokyo tomorrow !", "私 達 は 明日 東京 へ 行 く 。"),
    ("mr. smith is a teacher .", "スミス 氏 は 先生 で す 。"),
    ("ten minutes ' walk .", "歩 い て １０ 分 。"),
)


@cache
def tokenised():
    return train_vocabulary([side for pair in PAIRS for side in pair] * 4, 400, "tokenised")


@cache
def symbols():
    return train_vocabulary(["a b c d e", "e d c b a"] * 3, 100, "symbols")


@pytest.fixture(params=[tokenised, symbols], ids=["tokenised", "symbols"])
def text(request):
    return request.param()


@pytest.mark.parametrize(
    "typed, corpus",
    [
        ("Don't you think so?", "don 't you think so ?"),
        ("DON’T YOU THINK SO ?", "don 't you think so ?"),
        ("I'm in the tennis club.", "i 'm in the tennis club ."),
        ("It is ten o'clock.", "it is ten o 'clock ."),
        ('He said, "I can\'t go."', "he said , '' i can 't go . ''"),
        ("He said, “I can’t go.”", "he said , '' i can 't go . ''"),
        ("This book costs 1,000 yen.", "this book costs 1,000 yen ."),
        ("Mr. Smith is a teacher.", "mr. smith is a teacher ."),
        ("Ten minutes' walk.", "ten minutes ' walk ."),
        ("We'll go  to Tokyo\ttomorrow!", "we 'll go to tokyo tomorrow !"),
        ("Don't you think so？", "don 't you think so ?"),
    ],
)
def test_what_is_typed_is_read_as_in_the_corpus(typed, corpus):
    encoded = tokenised().encode(typed)
    assert list(encoded.ids) == tokenised().ids(corpus) and UNK not in encoded.ids
    assert all(token.text == typed[token.start : token.end] for token in encoded.tokens[:-1])
    assert "".join(token.text for token in encoded.tokens[:-1]) == "".join(typed.split())


def words_of(tokens):
    """The text of each word, its pieces joined."""
    words = {}
    for token in tokens:
        if not token.special:
            words[token.word] = words.get(token.word, "") + token.text
    return list(words.values())


def test_words_of_typed_english():
    tokens = tokenised().encode("Don't pay 1,000 yen, Mr. Smith!").tokens
    assert words_of(tokens) == ["Don't", "pay", "1,000", "yen", ",", "Mr", ".", "Smith", "!"]


@pytest.mark.parametrize("given", [japanese for _, japanese in PAIRS])
def test_japanese_is_printed_without_spaces_and_scored_with_them(given):
    text = tokenised()
    ids = text.ids(given)
    assert text.spaced().decode(ids) == given and text.decode(ids) == given.replace(" ", "")
    printed, tokens = text.spell(ids)
    assert printed == given.replace(" ", "") and "".join(token.text for token in tokens[:-1]) == printed
    assert all(token.text == printed[token.start : token.end] for token in tokens[:-1])
    assert words_of(tokens) == given.split()  # a word is a morpheme as given
    assert text.spaced().spell(ids)[0] == given


@pytest.mark.parametrize("given", [japanese for _, japanese in PAIRS])
def test_japanese_typed_without_spaces_is_divided(given):
    """Also when it is what a model has just produced, which is how a translation is forced on another model."""
    text, typed = tokenised(), given.replace(" ", "")
    encoded = text.encode(typed)
    assert list(encoded.ids) == text.ids(typed) == text.batch_ids([typed])[0]
    assert "".join(token.text for token in encoded.tokens[:-1]) == typed
    assert text.decode(encoded.ids) == typed
    assert len(words_of(encoded.tokens)) > 1


def test_division_finds_the_words_of_a_sentence_it_knows():
    assert tokenised().spaced().decode(tokenised().ids("私は東京へ行く。")) == "私 は 東京 へ 行 く 。"
    assert tokenised().ids("犬は少年が好きだ。 彼女は私の友達です。") == tokenised().ids(
        "犬は少年が好きだ。彼女は私の友達です。"
    )


def test_division_keeps_a_word_of_several_pieces_whole():
    """テニス is three pieces in a vocabulary this small, and only the first of them begins words."""
    text = train_vocabulary(
        ["私 は テニス を", "彼 は テニス を", "私 は", "彼 は", "本 を", "私 を", "彼 を", "本 は"], 19, "tokenised"
    )
    pieces = [text.piece(number) for number in text.ids("テニス")[:-1]]
    assert len(pieces) > 1 and "".join(pieces).replace("␣", "") == "テニス"
    assert text.spaced().decode(text.ids("私はテニスを")) == "私 は テニス を"


def test_division_takes_letters_and_their_marks_typed_apart():
    typed = "犬は少年が好きだ。"
    assert tokenised().ids(unicodedata.normalize("NFD", typed)) == tokenised().ids(typed)


def test_words_that_are_given_are_not_divided_again():
    ids = tokenised().ids("私は 東京へ")
    assert tokenised().spaced().decode(ids) == "私は 東京へ"


@pytest.mark.parametrize("typed", ["日本語はtennisで１０００円。", "tennis の 本", "か\u3099く", "👍私は行く"])
def test_mixed_scripts_keep_their_place(typed):
    for token in tokenised().encode(typed).tokens[:-1]:
        assert token.text == typed[token.start : token.end]


def test_a_text_without_shares_is_left_as_it_is():
    text = train_vocabulary([side for pair in PAIRS for side in pair] * 4, 300)
    assert isinstance(text.backend.model, models.BPE)
    assert (
        text.decode(text.ids("私 は 行 く")) == "私は行く"
        and text.spaced().decode(text.ids("私 は 行 く")) == "私 は 行 く"
    )
    assert text.ids("私は行く") != text.ids("私 は 行 く")


@pytest.mark.parametrize("typed", ["a b c", "abc", "A B C", "a  bc", "\uff41bc"])
def test_symbols_may_be_typed_together(typed):
    assert symbols().ids(typed) == [4, 5, 6, EOS] and symbols().decode([4, 5, 6, EOS]) == "a b c"


def test_symbols():
    assert len(symbols()) == len(SPECIALS) + 5
    tokens = symbols().encode("ab?").tokens
    assert [(token.text, token.start, token.word, token.unknown) for token in tokens[:-1]] == [
        ("a", 0, 0, False),
        ("b", 1, 1, False),
        ("?", 2, 2, True),
    ]


ODD = st.text(st.sampled_from("aB é'’` \t\u3000\u200bテニスは私。、？！１1<>eos▁.,-か\u3099ー👍"), max_size=20)


@settings(max_examples=200, deadline=None)
@given(typed=st.text(max_size=30) | ODD)
@example("")
@example("''")
@example("▁▁a▁は▁")
@example("は ▁ は")
def test_offsets_of_anything_typed(typed):
    for text in (tokenised(), symbols()):
        encoded = text.encode(typed)
        assert list(encoded.ids) == text.ids(typed) == text.batch_ids([typed, "x"])[0]
        starts = [token.start for token in encoded.tokens]
        assert starts == sorted(starts)
        for token in encoded.tokens[:-1]:
            assert 0 <= token.start <= token.end <= len(typed) and token.text == typed[token.start : token.end]
        words = [token.word for token in encoded.tokens[:-1]]
        assert words == sorted(words)


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_ids_spell_a_text(data):
    text = tokenised()
    ids = data.draw(st.lists(st.integers(0, len(text) - 1), max_size=12))
    for shown in (text, text.spaced()):
        spelt, tokens = shown.spell(ids)
        assert len(tokens) == len(ids) and shown.decode(ids) == spelt.strip()
        for token, number in zip(tokens, ids):
            assert token.text == (SPECIALS[number] if token.special else spelt[token.start : token.end])
        starts, words = [t.start for t in tokens], [t.word for t in tokens if not t.special]
        assert starts == sorted(starts) and words == sorted(words)


def test_a_file_holds_all_that_a_pair_needs(tmp_path, text):
    text.save(tmp_path / "tokenizer.json")
    again = SubwordTokenizer.load(tmp_path / "tokenizer.json")
    for typed in ("Don't you?", "私は東京へ行く。", "abc", "ten minutes ' walk"):
        assert again.encode(typed) == text.encode(typed)
        assert again.spell(text.ids(typed)) == text.spell(text.ids(typed))


@pytest.mark.parametrize("style", ["tokenised", "symbols"])
def test_learning_is_repeatable(style):
    texts = [side for pair in PAIRS for side in pair]
    assert train_vocabulary(texts, 200, style).backend.to_str() == train_vocabulary(texts, 200, style).backend.to_str()


def test_no_piece_is_a_broken_character(text):
    for number in range(len(SPECIALS), len(text)):
        assert "\ufffd" not in text.piece(number) and not text.piece(number).startswith("<0x")


def test_unknown_style():
    with pytest.raises(ValueError) as caught:
        train_vocabulary(["a"], 100, "spoken")
    assert str(caught.value) == f"style must be one of {', '.join(STYLES)}; got 'spoken'"


@pytest.mark.parametrize("style", ["written", "tokenised"])
def test_every_digit_is_a_piece_and_a_number_one_word(style):
    text = train_vocabulary(["in 1998 and 1998 and 1998, 25 of 25"] * 9, 60, style)
    pieces = [text.piece(number) for number in text.ids("and 1998")[:-1]]
    assert "".join(pieces[-4:]) == "1998" and len(words_of(text.encode("and 1998").tokens)) == 2


@pytest.mark.parametrize("style", ["written", "tokenised"])
def test_letters_of_european_names_are_known_where_there_is_room_for_them(style):
    texts = [f"{a}{b}{c}" for a in "abcdefghijkl" for b in "mnopqrst" for c in "uvwxyz"] * 2
    text = train_vocabulary(texts, 4000, style)
    assert UNK not in text.ids("Łukasz Đoković, Çelik & Åsa Öztürk: 30 €; 50% #1")
    assert UNK in train_vocabulary(texts, 200, style).ids("Łukasz")
