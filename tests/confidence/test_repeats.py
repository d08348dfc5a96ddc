"""Phrases that only the translation says twice."""

import pytest

from attnviz.confidence.between import repeated


@pytest.mark.parametrize(
    "text, translation, language, phrase",
    [
        ("near the flag", "in der Nähe der Flagge in der Nähe der Flagge", "de", "in der nähe der flagge"),
        ("of medium size", "de taille moyenne de taille moyenne", "fr", "de taille moyenne"),
        ("jumping high", "la femme saute haut haut", "fr", "haut"),
        ("We see ourselves", "nous nous voyons", "fr", ""),  # function words may
        ("near the shop and near the park", "in der Nähe des Ladens und in der Nähe des Parks", "de", ""),
        ("a man near a woman", "ein Mann in der Nähe, eine Frau in der Nähe", "de", ""),  # one content word, apart
        ("he loved the work", "qu'il a fait penser à elle, qu'il a fait penser", "fr", "a fait penser"),
        ("very, very good", "très, très bon bon", "fr", ""),  # the source repeats too
        ("I saw it", "私はそれを見ました私はそれを見ました", "ja", "私はそれを見"),
    ],
)
def test_repeated(text, translation, language, phrase):
    assert repeated(text, translation, language) == phrase
