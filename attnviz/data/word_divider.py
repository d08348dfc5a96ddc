"""Divide Japanese without spaces into words, as a corpus with spaces does; and find duplicates."""

import re
import unicodedata

from attnviz.data.readers import Pairs
from attnviz.data.tokenizer import SubwordTokenizer, train_vocabulary

SIZE = 20_000  # pieces: most words that a corpus has more than once are whole
_KATAKANA = "ァ-ヺー"
_NATIVE = "ぁ-ゖ一-鿿"
# Few words in katakana, and few numbers, are in the corpus: each stays whole, and ends where the script changes.
_WITHIN = re.compile(rf"(?<=[{_KATAKANA}]) (?=[{_KATAKANA}])|(?<=\d) (?=\d)")
_BETWEEN = re.compile(
    rf"(?<=[{_NATIVE}])(?=[{_KATAKANA}]{{2}}|\d)|(?<=[{_KATAKANA}]{{2}})(?=[ぁ-ゖ])|(?<=\d)(?=[{_NATIVE}{_KATAKANA}])"
)
_NO_LETTER = re.compile(r"[\s\W_]+")


class WordDivider:
    """Finds words by their share of a corpus that has spaces between its words.

    divided : the sentences of the corpus. The division of a text is its most probable one (`SubwordTokenizer.divide`).
    """

    def __init__(self, divided: list[str], size: int = SIZE):
        self.tokenizer: SubwordTokenizer = train_vocabulary(divided, size, "tokenised")

    def __call__(self, sentence: str) -> str:
        """A sentence with a space between its words."""
        divided = _WITHIN.sub("", self.tokenizer.divide(sentence))
        return _BETWEEN.sub(" ", divided)

    def targets(self, pairs: Pairs) -> Pairs:
        """The pairs with their targets divided."""
        return [(source, self(target)) for source, target in pairs]


def without_duplicates(pairs: Pairs) -> Pairs:
    """The pairs without those that differ from an earlier one in case, punctuation and spaces alone."""
    kept = {}
    for pair in pairs:
        kept.setdefault(tuple(map(_letters, pair)), pair)
    return list(kept.values())


def _letters(text: str) -> str:
    return _NO_LETTER.sub("", unicodedata.normalize("NFKC", text).lower()) or text
