"""Text in capitals is read as a normal sentence."""

import pytest

from attnviz.data.sentences import as_sentence

NAMES = {"Tom", "Paris", "Nobody"}


def pieces(word):
    """A vocabulary that has names with a capital only, and all other words in small letters."""
    return 1 if word in NAMES or (word.islower() and word.capitalize() not in NAMES) else 2


@pytest.mark.parametrize(
    "text, read",
    [
        ("THE DOG RUNS.", "The dog runs."),
        ("WHY IS TOM IN PARIS?", "Why is Tom in Paris?"),
        ("WHY IS NOBODY HERE?", "Why is nobody here?"),
        ("I'M SURE THAT I DON'T.", "I'm sure that I don't."),
        ("Stop! GO AWAY.", "Stop! Go away."),
        ("He said GO AWAY NOW to me.", "He said go away now to me."),
        ("The USA and the UK.", "The USA and the UK."),
        ("USA, UK", "Usa, uk"),  # nothing tells that these are names
        ("OK.", "OK."),
        ("The dog runs.", "The dog runs."),
        ("İSTANBUL STRASSE", "İstanbul strasse"),
        ("", ""),
        ("7 × 8 = 56", "7 × 8 = 56"),
    ],
)
def test_as_sentence(text, read):
    assert as_sentence(text, pieces) == read and len(read) == len(text)
