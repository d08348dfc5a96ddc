"""Function words and content words: the lists, contractions, and pieces of one word."""

import pytest

from attnviz import function_words
from attnviz.trace import Token


@pytest.mark.parametrize("language", ["de", "en", "fr", "ja"])
def test_lists_are_lower_case_words(language):
    assert language in function_words.languages()
    listed = function_words.words(language)
    assert len(listed) > 60 and all(word == word.strip().lower() and word for word in listed)


@pytest.mark.parametrize(
    "word, language, kind",
    [
        ("The", "en", "function"),
        ("dog", "en", "content"),
        ("don't", "en", "function"),
        ("She’s", "en", "function"),
        ("dog's", "en", "content"),
        ("can't", "en", "function"),
        ("'", "en", "other"),
        ("L'", "fr", "function"),
        ("QU'IL", "fr", "function"),
        ("2", "fr", "content"),
        ("…", "de", "other"),
        ("は", "ja", "function"),
        ("犬", "ja", "content"),
    ],
)
def test_the_kind_of_a_word(word, language, kind):
    assert function_words.kind(word, language) == kind


@pytest.mark.parametrize(
    "code, language",
    [
        ("fr", "fr"),
        ("fra_Latn", "fr"),
        ("fr_XX", "fr"),
        ("fr-CA", "fr"),
        ("ger", "de"),
        ("jpn_Jpan", "ja"),
        ("es", "es"),
    ],
)
def test_codes_of_languages(code, language):
    assert function_words.of_code(code) == language


def test_pieces_have_the_kind_of_their_word():
    text = "without cats."
    tokens = (
        Token("with", 0, 4, word=0),
        Token("out", 4, 7, word=0),
        Token("cat", 8, 11, word=1),
        Token("s", 11, 12, word=1),
        Token(".", 12, 13, word=2),
        Token("<eos>", 13, 13, special=True),
    )
    kinds = function_words.kinds(text, tokens, "en")
    assert kinds == ["function", "function", "content", "content", "other", "other"]


def test_a_language_without_a_list():
    with pytest.raises(
        ValueError, match=r"^language must have a list of function words \(de, en, fr, ja\); got 'zxx'$"
    ):
        function_words.words("zxx")
