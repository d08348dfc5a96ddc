"""Signs that a translation may be poor, read off a trace: unlikely pieces, new words of the source, words of the
translation that are made of many pieces, repetition.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from attnviz.arguments import checked
from attnviz.confidence import training_words
from attnviz.confidence.agreement import agreement
from attnviz.confidence.training_words import TrainingWords, Word
from attnviz.data.styles import UNSPACED
from attnviz.models.tracing.measured import Measured
from attnviz.networks import loops
from attnviz.networks.loops import Loop
from attnviz.trace import Trace
from attnviz.trace.visible import visible

DOUBTFUL = -1.0  # nats; a piece below this log-probability (37 %) counts as doubtful
MANY_PIECES = 3  # of a word of the translation, which then counts as made of pieces
_BROKEN = re.compile(r"[^\W\d_]*[A-Za-zÀ-ÿ]{3}\d\w*")  # "trois4", but not "7h30"
_NO_SPACES = re.compile(f"[{UNSPACED}]")


@dataclass(frozen=True)
class Signs:
    """The signs of one translation.

    log_probs : of the target's pieces, nats. least : the piece with the smallest. new : words of the source that no
    training sentence has. words : number of words of the source. read : number of its pieces. unknown : its characters
    that are not in the vocabulary. made : words of the target that have MANY_PIECES or more; none in Chinese and
    Japanese, where no spaces say what a word is. written : number of words of the target. broken : what goes over from
    letters to digits in the target and is not in the source: a number that was copied in part. loop, looping : a loop
    at the end of the target, and the text that it repeats. complete : the target has its <eos>. agreement : of the
    translation with others that models draw (agreement.py), 0 to 100; None where none were drawn. other : one of
    these, which differs more than most.
    """

    log_probs: tuple[float, ...]
    least: str
    new: tuple[Word, ...]
    words: int
    read: int
    unknown: tuple[str, ...]
    made: tuple[Word, ...]
    written: int
    broken: tuple[str, ...]
    loop: Loop | None
    looping: str
    complete: bool
    agreement: float | None = None
    other: str = ""


@checked
def signs(trace: Trace | Measured, known_words: TrainingWords, samples: Sequence[str] = ()) -> Signs:
    """The signs of a trace of pieces with log-probabilities. ValueError for any other trace.

    samples : other translations of the text that models draw (`Judge.samples`).
    """
    if getattr(trace, "level", "pieces") != "pieces" or not trace.log_probs:
        raise ValueError(
            f"the trace must be of pieces and have their log-probabilities; got {trace.model} at the level of "
            f"{getattr(trace, 'level', 'pieces')}"
        )
    written = training_words.target_words(trace)
    produced = [token.text for token in trace.target if not token.special]
    loop = loops.at_end(produced)
    agrees, other = agreement(trace.translation, tuple(samples)) if samples else (None, "")
    return Signs(
        log_probs=trace.log_probs,
        least=visible(trace.target[int(np.argmin(trace.log_probs))].text),
        new=tuple(known_words.new(trace)),
        words=len(training_words.words(trace)),
        read=len(trace.source),
        unknown=tuple(dict.fromkeys(token.text for token in trace.source if token.unknown)),
        made=tuple(word for word in written if word.pieces >= MANY_PIECES and not _NO_SPACES.search(word.text)),
        written=len(written),
        broken=tuple(word for word in _BROKEN.findall(trace.translation) if word not in trace.text),
        loop=loop,
        looping=_text(trace, loop) if loop else "",
        complete=trace.complete,
        agreement=agrees,
        other=other,
    )


def _text(trace: Trace | Measured, loop: Loop) -> str:
    """What a loop repeats, spaced as in the translation."""
    tokens = [token for token in trace.target if not token.special][loop.start : loop.start + loop.length]
    return visible(trace.translation[tokens[0].start : tokens[-1].end].strip())


# The numbers that a scale may weigh (scale.py), from the signs of one translation.
FEATURES: dict[str, Callable[[Signs], float | None]] = {
    "mean": lambda signs: -float(np.mean(signs.log_probs)),
    "spread": lambda signs: float(np.sqrt(np.mean(np.square(signs.log_probs)))),
    "least": lambda signs: -min(signs.log_probs),
    "first": lambda signs: -signs.log_probs[0],
    "doubtful": lambda signs: float(np.mean(np.array(signs.log_probs) < DOUBTFUL)),
    "length": lambda signs: math.log(len(signs.log_probs)),
    "read": lambda signs: math.log(signs.read),
    "new": lambda signs: len(signs.new) / max(1, signs.words),
    "made": lambda signs: len(signs.made) / max(1, signs.written),
    "agreement": lambda signs: signs.agreement,
}
PLAIN = tuple(name for name in FEATURES if name != "agreement")  # what a scale weighs where none were drawn
SAMPLED = ("mean", "spread", "doubtful", "agreement")  # what a scale weighs where translations were drawn
