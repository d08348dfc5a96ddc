"""The mark that vocabularies write for a space, ▁, appears as itself where somebody typed it."""

import pytest

import attnviz
from attnviz.figures.labels import plain
from attnviz.models import checkpoints


@pytest.mark.parametrize("text", ["▁", "a ▁ b", "▁dog", "dog▁", "a▁b ▁▁ c", "  ▁  "])
@pytest.mark.parametrize("pair", ["en-fr", "en-de", "en-ja", "reverse"])
def test_a_typed_mark_is_a_token_of_its_own_text(pair, text):
    tokens = checkpoints.load_tokenizer(pair).encode(text).tokens
    assert all(token.special or text[token.start : token.end] == token.text for token in tokens)
    assert "".join(plain(token.text) for token in tokens).count("▁") == text.count("▁")


def test_in_a_forced_target_too():
    trace = attnviz.load("en-fr/bahdanau").trace("A dog ▁ runs.", "Un ▁ chien court.")
    assert trace.translation == "Un ▁ chien court."
    assert [token.text for token in trace.source].count("▁") == [token.text for token in trace.target].count("▁") == 1
