"""Japanese as people write it, divided into words as a corpus with spaces divides it; and pairs that differ in spacing alone."""

import re
import unicodedata

from attnviz.text import Text, train_vocabulary

Pairs = list[tuple[str, str]]
SIZE = 20_000  # pieces: most words that a corpus has more than once are whole
_KATAKANA = "ァ-ヺー"
_WITHIN = re.compile(rf"(?<=[{_KATAKANA}]) (?=[{_KATAKANA}])")  # few of these words are in the corpus: each stays whole
_FOREIGN = re.compile(rf"(?<=[ぁ-ゖ一-鿿])(?=[{_KATAKANA}]{{2}})|(?<=[{_KATAKANA}]{{2}})(?=[ぁ-ゖ])")
_BLANK = re.compile(r"[\s\W_]+")


class Divider:
    """Finds words by their share of a corpus that has spaces between its words.

    divided : its sentences. The division of a text is the one that makes it most probable (`Text`).
    """

    def __init__(self, divided: list[str], size: int = SIZE):
        self.text: Text = train_vocabulary(divided, size, "tokenised")

    def __call__(self, sentence: str) -> str:
        """A sentence with a space between its words."""
        divided = _WITHIN.sub("", self.text.divide(sentence))
        return _FOREIGN.sub(" ", divided)

    def pairs(self, pairs: Pairs) -> Pairs:
        """Pairs whose second side is divided."""
        return [(source, self(target)) for source, target in pairs]


def without_doubles(pairs: Pairs) -> Pairs:
    """Pairs of which none differs from an earlier one in case, marks and spaces alone."""
    kept = {}
    for pair in pairs:
        kept.setdefault(tuple(map(_letters, pair)), pair)
    return list(kept.values())


def _letters(text: str) -> str:
    return _BLANK.sub("", unicodedata.normalize("NFKC", text).lower()) or text
