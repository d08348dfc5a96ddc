"""Names and numbers that stand alike in both languages, put beside a sentence, so that a model learns to copy.

Text that is the same on both sides teaches copying (Currey, Miceli Barone & Heafield 2017, "Copied monolingual data
improves low-resource neural machine translation"). The names of a corpus are too few: a model learns them by heart.
So each of these is made up when it is needed.
"""

import random

from attnviz.data.augmentation.made_up_names import NameMaker
from attnviz.data.augmentation.numbers import full_width, random_number
from attnviz.data.readers import SentencePair

_LETTERS = "aaaabcdeeeefghiiijklmnooopqrstuuvwxyzáäåçéèíłñóöøšüž"
_NUMBERS = 0.55  # of the words: numbers, telephone numbers among them
_MOST = 3  # copied words in an aside; twice as many where they are the whole text


class Asides:
    """names : those that made-up ones are to look like. japanese : whether the targets are Japanese; then the copied
    words are numbers only, and the target has them in full-width digits."""

    def __init__(self, names: list[str], japanese: bool = False):
        self._maker, self._japanese = NameMaker(names) if names and not japanese else None, japanese

    def beside(self, pair: SentencePair, chance: random.Random) -> SentencePair:
        """The pair with copied words in brackets, after a dash, before it, or, of one in four, these words alone.

        Japanese text has them in brackets or before it only: from text that ends with a number a model learns to stop
        after any number.
        """
        form = chance.choice(("brackets", "before") if self._japanese else ("brackets", "dash", "before", "alone"))
        words = [self._word(chance) for _ in range(chance.randint(1, _MOST * (1 + (form == "alone"))))]
        text = chance.choice((" ", ", ")).join(words)
        target_text = full_width(text) if self._japanese else text
        return _together(form, pair[0], text), _together(form, pair[1], target_text)

    def _word(self, chance: random.Random) -> str:
        kind = chance.random() * (_NUMBERS if self._japanese else 1)
        if kind < 0.45:
            return random_number(chance.choice((1, 2, 2, 3, 3, 4, 4, 4, 5, 6)), chance)
        if kind < _NUMBERS:
            return f"{random_number(3, chance)}-{random_number(4, chance)}"
        if kind < 0.85 and self._maker:
            return self._maker.name(chance).capitalize()
        return "".join(chance.choice(_LETTERS) for _ in range(chance.randint(3, 10))).capitalize()


def _together(form: str, side: str, text: str) -> str:
    if form == "brackets":
        end = side[-1:] if side[-1:] in ".。!?" else ""
        return f"{side.removesuffix(end).rstrip() if end else side} ({text}){end}"
    return {"dash": f"{side} - {text}", "before": f"{text} - {side}", "alone": text}[form]
