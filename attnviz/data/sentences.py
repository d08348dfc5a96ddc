"""A text of several sentences, and what to say of a text that a model did not read as a person expects.

    >>> split("Mr. Hill has gone. Where is he?")
    ('Mr. Hill has gone.', 'Where is he?')

Models that learnt from single sentences leave out parts of a longer text, or say them twice.
"""

from collections.abc import Callable

import sentencex

from attnviz.arguments import checked
from attnviz.trace import Trace


@checked
def split(text: str, language: str = "en") -> tuple[str, ...]:
    """The sentences of a text without the spaces around them; () where it has none. Each stands in the text as it is.

    language : its code, for abbreviations ("Mr.", "e.g.") and full stops. A full stop within a number, a name or an
    address does not end a sentence.
    """
    parts = (part.strip() for part in sentencex.segment(language, text))
    return tuple(part for part in parts if any(map(str.isalnum, part)))


def one_by_one(text: str, pieces: Callable[[str], int], longest: int, language: str = "en") -> tuple[str, ...]:
    """The sentences that are better translated alone: those of a text of several that has more pieces than texts of
    training. () where the text can be read whole, and where it is a single sentence.

    pieces : how many a text is read in. longest : `Trained.longest`, pieces.
    """
    sentences = split(text, language)
    return sentences if len(sentences) > 1 and pieces(text) > longest else ()


def notices(trace: Trace) -> tuple[str, ...]:
    """Sentences on how a model read a trace's text, to be read before the result; () where it was read as typed and is
    no longer than those of training."""
    lines = []
    if trace.read_as:
        lines.append(f"Words in capitals were read as normal words: “{trace.read_as}”")
    if trace.longest:
        count = len(split(trace.text))
        todo = f" It has {count} sentences: translate one at a time." if count > 1 else ""
        lines.append(
            f"This text is too long for the model: nearly all of its training texts have at most {trace.longest} "
            f"pieces, this one has {sum(token.pieces for token in trace.source)}. Expect parts to be left out or said "
            f"twice.{todo}"
        )
    return (*lines, *trace.notes)
