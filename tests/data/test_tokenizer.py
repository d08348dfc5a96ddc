"""tokenizer.py: every piece knows its place in the text as typed, whatever that is, and pieces spell a text back."""

import pytest
import sentences
from hypothesis import example, given, settings
from hypothesis import strategies as st

from attnviz.data.tokenizer import BOS, EOS, PAD, SPECIALS, UNK, SubwordTokenizer, train_vocabulary
from attnviz.models import checkpoint_files
from attnviz.trace.visible import shown

SHIPPED = checkpoint_files.ROOT / "en-fr" / "tokenizer.json"


def tokenizers():
    yield pytest.param(sentences.tiny_text, id="tiny")
    yield pytest.param(lambda: SubwordTokenizer.load(SHIPPED), id="shipped")


@pytest.fixture(scope="module", params=tokenizers())
def text(request):
    return request.param()


def words(tokens):
    """The text of each word, its pieces joined."""
    by_word = {}
    for token in tokens:
        if not token.special:
            by_word[token.word] = by_word.get(token.word, "") + token.text
    return [word.strip() for word in by_word.values()]


ODD = st.text(st.sampled_from("aéÀœ'’ \t\n\u00a0\u200b\u202e…ﬁ½½👍🏽日の\u0301<>eos▁.,-\x00İß"), max_size=20)


@settings(max_examples=200, deadline=None)
@given(typed=st.text(max_size=40) | ODD)
@example("")
@example(" ")
@example("<eos> </script> <b>x</b>")
@example("👨‍👩‍👧 שלום العربية 한국어")
@example("e\u0301te\u0301")
@example("▁▁a▁")
def test_offsets_of_anything_typed(text, typed):
    encoded = text.encode(typed)
    tokens, end = encoded.tokens[:-1], encoded.tokens[-1]
    assert (end.text, end.start, end.end, end.special, end.word) == ("<eos>", len(typed), len(typed), True, None)
    assert len(encoded.ids) == len(encoded.tokens) and encoded.ids[-1] == EOS
    assert not any(i in (PAD, BOS, EOS) for i in encoded.ids[:-1])  # nobody types a special
    for token, number in zip(tokens, encoded.ids):
        assert 0 <= token.start <= token.end <= len(typed)
        assert token.text == typed[token.start : token.end]
        assert not token.special and token.pieces == 1 and token.unknown == (number == UNK)
    starts, groups = [t.start for t in tokens], [t.word for t in tokens]
    assert starts == sorted(starts) and groups == sorted(groups) and (not groups or groups[0] == 0)
    assert list(encoded.ids) == text.ids(typed) == text.batch_ids([typed, "x"])[0]


@settings(max_examples=100, deadline=None)
@given(typed=st.text(max_size=40) | ODD)
def test_every_visible_letter_is_shown(text, typed):
    shown = {i for t in text.encode(typed).tokens for i in range(t.start, t.end)}
    assert [c for i, c in enumerate(typed) if i not in shown and c.isalnum()] == []


@pytest.mark.parametrize("typed", [*sentences.ENGLISH, *sentences.FRENCH])
def test_pieces_join_to_the_sentence(text, typed):
    tokens = text.encode(typed).tokens[:-1]
    assert "".join(t.text for t in tokens).replace(" ", "") == typed.replace(" ", "")


@pytest.mark.parametrize(
    "typed, wanted",
    [
        ("I don't, you're, we'll, he's, I'd, I'm, they've", "I don't , you're , we'll , he's , I'd , I'm , they've"),
        ("The dog's ball isn't red.", "The dog's ball isn't red ."),
        ("l'homme qu'il n'a d'abord", "l' homme qu' il n' a d' abord"),
        ("L’échelle", "L’ échelle"),  # as typed, though it is read as L'
        ("aujourd'hui", "aujourd' hui"),
        ("rock'n'roll", "rock' n' roll"),
        ("c'est l'd", "c' est l'd"),
        ("T-shirt, 25.5!", "T - shirt , 25 . 5 !"),
        ("a1b", "a 1 b"),
        ("(Oui) « non »", "( Oui ) « non »"),
    ],
)
def test_words(text, typed, wanted):
    assert " ".join(words(text.encode(typed).tokens)) == wanted


@pytest.mark.parametrize(
    "typed, plain",
    [
        ("l’homme", "l'homme"),
        ("don‘t", "don't"),
        ("don`t", "don't"),
        ("“a” «b»", '"a" "b"'),
        ("a – b—c", "a - b-c"),
        ("a\u00a0b\tc\n\nd", "a b c d"),
        ("  a  b  ", "a b"),
        ("e\u0301te\u0301", "été"),
        ("\uff21", "A"),
        ("a…", "a..."),
        ("a\u200b\u200db", "ab"),
        ("½ cup", "1/2 cup"),
        ("1½ cups, ¼", "1 1/2 cups, 1/4"),
        ("3⁄4", "3/4"),
        ("№ 5™", "No 5TM"),
        ("oﬃce", "office"),
        ("👍🏽 a", "👍 a"),
        ("👨‍👩‍👧 a", "👨 a"),
        ("☺️ a", "☺ a"),
        ("🇫🇷 a", "🇫 a"),
        ("fin\x00", "fin"),
    ],
)
def test_what_reads_the_same_is_the_same(text, typed, plain):
    assert text.ids(typed) == text.ids(plain)


def test_what_is_shown_is_what_was_typed(text):
    def shown(typed):
        return [t.text for t in text.encode(typed).tokens[:-1] if t.text]

    assert "".join(shown("l’e\u0301te\u0301")) == "l’e\u0301te\u0301"  # accents typed apart stay with their letter
    assert "".join(shown("\u202ea\u200bb")) in (
        "ab",
        "a\u200bb",
    )  # a mark that nobody sees is shown inside a piece only
    tokens = text.encode("  a  b ").tokens
    assert [(t.start, t.end) for t in tokens if t.text in "ab" and t.text] == [(2, 3), (5, 6)]


INVISIBLE = "\u00ad\u200b\u200c\u200d\u200e\u2060\u2064\ufeff\ufe0e\ufe0f\u202a\u202e\u2066\u2069\u061c\u034f\U000e0101"


@pytest.mark.parametrize("mark", INVISIBLE, ids=ascii)
@pytest.mark.parametrize("place", [0, 3, 7])
def test_a_character_that_prints_nothing_does_not_divide_a_word(text, mark, place):
    typed = f"A {'running'[:place]}{mark}{'running'[place:]} dog"
    encoded = text.encode(typed)
    assert list(encoded.ids) == text.ids("A running dog")
    assert [word.replace(mark, "") for word in words(encoded.tokens)] == ["A", "running", "dog"]


@pytest.mark.parametrize(
    "typed", "… ½ ¾ ™ № ﬁ ㎏ ℃ Ⅻ ŉ ﷺ 👍🏽 👨‍👩‍👧 ☺️ 🇫🇷 1⃣ 1️⃣ #️⃣ *̵ —🏽 b🏽 x̄̃ é 각 １２".split(), ids=ascii
)
def test_one_character_is_one_word(text, typed):
    """Its pieces are parts of it, which pictures number; with words as tokens it is one."""
    tokens = [token for token in text.encode(f"a {typed} b").tokens if token.text.strip() and not token.special]
    assert len({token.word for token in tokens}) == 3 and tokens[-1].text == "b"
    assert max(token.end for token in tokens[:-1]) == 2 + len(typed)


def test_a_mark_at_the_end_of_a_sentence_is_one_word_of_three_pieces(text):
    tokens = text.encode("a dog…").tokens
    assert [token.text for token in tokens[-4:-1]] == ["…"] * 3 and len({token.word for token in tokens[-4:-1]}) == 1
    separate = text.encode("a dog...").tokens[-4:-1]
    assert len({token.word for token in separate}) == 3  # three full stops are three


@pytest.mark.parametrize("typed", ["½", "1½", "…", "e\u0301", "é", "👨\u200d👩\u200d👧"], ids=ascii)
def test_in_a_vocabulary_of_letters_a_character_with_an_unknown_part_is_one_unknown(typed):
    """“½” is read as 1/2, which was three unknown letters."""
    letters = train_vocabulary(["a b c d e f i"], 60, "symbols")
    encoded = letters.encode(f"a{typed}b")
    shown = [(token.text, token.unknown) for token in encoded.tokens[:-1]]
    whole = ["1", "½"] if typed == "1½" else [typed]
    assert shown == [("a", False), *((character, True) for character in whole), ("b", False)]
    assert list(encoded.ids) == letters.ids(f"a{typed}b") == letters.batch_ids([f"a{typed}b"])[0]
    assert [token.text for token in letters.encode("ﬁ").tokens[:-1]] == ["ﬁ", "ﬁ"]  # two letters, both known


@pytest.mark.parametrize("special", SPECIALS)
def test_a_typed_special_is_not_special(text, special):
    encoded = text.encode(f"a {special} b")
    assert not any(t.special for t in encoded.tokens[:-1]) and encoded.ids.count(EOS) == 1
    assert "".join(t.text for t in encoded.tokens[:-1]).replace(" ", "") == f"a{special}b"
    assert text.encode(special).tokens[0].start == 0


def test_unknown_characters_are_marked(text):
    tokens = text.encode("a 日本 b").tokens
    assert [t.text for t in tokens if t.unknown] == ["日本"] and not tokens[-1].unknown


# Produced pieces back to text.


@pytest.mark.parametrize("typed", sentences.FRENCH)
def test_what_is_spelt_encodes_to_the_same(text, typed):
    ids = text.ids(typed)
    spelt, tokens = text.spell(ids)
    encoded = text.encode(spelt)
    assert list(encoded.ids) == ids and spelt == text.decode(ids)
    assert encoded.tokens == tokens  # pieces, offsets and words alike


@settings(max_examples=100, deadline=None)
@given(data=st.data())
def test_any_ids_spell_a_text(text, data):
    ids = data.draw(st.lists(st.integers(0, min(len(text), 180) - 1), max_size=12))
    spelt, tokens = text.spell(ids)
    assert len(tokens) == len(ids) and not spelt.startswith(" ")
    for token, number in zip(tokens, ids):
        assert token.special == (number < len(SPECIALS)) and token.unknown is False
        assert token.text == (SPECIALS[number] if token.special else spelt[token.start : token.end])
        assert 0 <= token.start <= token.end <= len(spelt) and (token.word is None) == token.special
    starts, groups = [t.start for t in tokens], [t.word for t in tokens if not t.special]
    assert starts == sorted(starts) and groups == sorted(groups)
    assert "".join(t.text for t in tokens if not t.special).replace(" ", "") == spelt.replace(" ", "")


def test_spelling_ends_where_the_ids_do(text):
    ids = text.ids("Le chien")
    spelt, tokens = text.spell(ids)
    assert spelt == "Le chien" and tokens[-1].text == "<eos>" and (tokens[-1].start, tokens[-1].end) == (8, 8)
    assert text.spell(ids[:-1])[1][-1].special is False and text.spell([]) == ("", ())


def test_a_piece_as_a_reader_sees_it(text):
    assert text.piece(EOS) == "<eos>" and text.piece(text.backend.token_to_id("▁")) == "␣"
    assert "▁" not in "".join(text.piece(i) for i in range(len(text)))


def test_a_choice_has_the_marks_of_the_token_that_it_would_be(text):
    """After a special token none goes on; and where a vocabulary has letters only, none has a mark."""
    ids = text.ids("The dog runs, and he is there.")
    _, tokens = text.spell(ids)
    after = [place for place in range(1, len(ids)) if not tokens[place - 1].special]
    marked = shown(tokens)
    assert [text.choice(ids[place]) for place in after] == [marked[place] for place in after]
    assert any(text.choice(number)[0] == "·" for number in range(len(text)))
    letters = train_vocabulary(["abc", "cab"], 20, "letters")
    assert [letters.choice(number) for number in letters.ids("ab")] == ["a", "b", "<eos>"]


# The vocabulary.


def test_specials_come_first():
    assert [sentences.tiny_text().backend.id_to_token(i) for i in (PAD, BOS, EOS, UNK)] == list(SPECIALS)
    assert len(sentences.tiny_text()) <= 180


def test_training_is_repeatable():
    texts = [*sentences.ENGLISH, *sentences.FRENCH] * 2
    assert train_vocabulary(texts, 100).backend.to_str() == train_vocabulary(texts, 100).backend.to_str()


def test_save_then_load(tmp_path, text):
    text.save(tmp_path / "tokenizer.json")
    again = SubwordTokenizer.load(tmp_path / "tokenizer.json")
    assert len(again) == len(text)
    for typed in (*sentences.ENGLISH, *sentences.FRENCH, "<eos> l’été 👍"):
        assert again.encode(typed) == text.encode(typed)


def test_a_loosened_vocabulary_reads_the_same_text_in_more_pieces(text):
    loose = text.loosened(0.5)
    for typed in (*sentences.ENGLISH, *sentences.FRENCH):
        assert loose.decode(loose.ids(typed)) == text.decode(text.ids(typed))
    count = [sum(map(len, reader.batch_ids(sentences.ENGLISH * 5))) for reader in (text, loose)]
    assert count[1] > count[0] and text.ids(typed) == text.ids(typed)


def test_a_vocabulary_without_merges_cannot_be_loosened():
    with pytest.raises(ValueError, match="piece_dropout needs a vocabulary of byte-pair merges"):
        train_vocabulary(sentences.ENGLISH * 3, 60, "tokenised").loosened(0.1)
