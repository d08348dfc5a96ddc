"""Signs that a translation may be poor, read off a trace: unlikely pieces, new or rare words of the source, words that
no training sentence of the target language has, numbers and units that differ, repetition, omissions, length, negation.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any

import numpy as np

from attnviz import alignment
from attnviz.arguments import checked
from attnviz.confidence import between, training_words
from attnviz.confidence.lexicon import Lexicon, Unsaid
from attnviz.confidence.training_words import KATAKANA, TrainingWords, Word
from attnviz.data.loops import Loop, loop_at_end
from attnviz.data.styles import UNSPACED
from attnviz.function_words import is_content, languages
from attnviz.models.measured import TraceStatistics
from attnviz.models.names import ModelName
from attnviz.trace import Trace
from attnviz.trace.visible import plain, visible

SAMPLES = 20  # translations that each of the models that draw them draws for a sentence
DOUBTFUL = -1.0  # nats; a piece below this log-probability (37 %) counts as doubtful
MANY_PIECES = 3  # of a word of the translation, which then counts as made of pieces
INVENTED = 2.5  # nats: 8 % of the reference translations of validation have a word that no training sentence has
COPIED, FEW = 1 / 6, 2  # German texts have "Spider" too, in "Spider-Man"; "Pool" and "Show" are words of both languages
DROPPED = 3.5  # nats; from here on such a word is named (3 % of right translations have none of its usual ones)
MISSING = 1.0  # nats; from here on a word of which no usual translation is there is taken to be missing
_BROKEN = re.compile(r"[^\W\d_]*[A-Za-zÀ-ÿ]{3}\d\w*")  # "trois4", but not "7h30"
_NO_SPACES = re.compile(f"[{UNSPACED}]")
_BEGINNING = re.compile(r"(?:^|[.!?…:]\s|[\"“«])\W*")  # of a sentence, or of what someone says
_SPAN = 3  # pieces in a row


@dataclass(frozen=True)
class Signs:
    """The signs of one translation.

    log_probs : of the target's pieces, nats. least : the piece with the smallest. new : words of the source that no
    training sentence has. words : number of words of the source. read : number of its pieces. unknown : its characters
    that are not in the vocabulary. made : words of the target with MANY_PIECES pieces or more; () in Chinese and
    Japanese, where no spaces separate words. written : number of words of the target. broken : words of the target that
    change from letters to digits and are not in the source: a number copied in part. loop, looping : a loop at the end
    of the target, and the text that it repeats. complete : the target has its <eos>. agreement : of the translation
    with samples drawn by models (`agreement`), 0 to 100; None without samples. other : a sample that differs more than
    most.

    changed : numbers that only one of the two sides has. lost_units : units of the source that the target lacks.
    lost_names : new names of the source that the target lacks, in languages that copy names. repeated : a phrase that
    only the target repeats. invented : words of the target that are in no training sentence of that language, nor in
    the source, and the mean log-probability of the pieces of each (nats). covered : the largest weight that a row of
    the map gives each content word of the source (alignment.coverage); () without cross-attention. longest :
    `Trace.longest`. unsaid : content words of the source of which the target has no usual translation (lexicon.py).
    rarity : of each content word of the source, ln(1 + number of training sentences that have it). translated :
    content words of the source that have a usual translation in the target. copied : common words of the source that
    the target has untranslated, and what each adds to `surprise` (nats). lost_negation : a negation word of the source
    whose translation has no negation; "" if there is none. twice : content words that are twice in the target and
    probably stand for different ones of the source (`between.twice`). unlearnt : words of `new` in lower case, except
    those of the target's language that it copies. added_negation : the words with which the target alone denies.
    unfounded : content words of the target that usually translate other words than those of the source
    (`Lexicon.unfounded`). dropped : words of `unsaid` that are probably missing or wrong, and not copied.

    >>> signs = confidence.signs(trace, confidence.TrainingWords.learn(["The dog runs."]))
    >>> signs.words, signs.complete
    (4, True)
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
    changed: tuple[str, ...] = ()
    lost_units: tuple[str, ...] = ()
    lost_names: tuple[str, ...] = ()
    repeated: str = ""
    invented: tuple[tuple[str, float], ...] = ()
    covered: tuple[alignment.Covered, ...] = ()
    longest: int = 0
    rarity: tuple[float, ...] = ()
    unsaid: tuple[Unsaid, ...] = ()
    translated: tuple[str, ...] = ()
    copied: tuple[tuple[str, float], ...] = ()
    lost_negation: str = ""
    twice: tuple[str, ...] = ()
    unlearnt: tuple[str, ...] = ()
    unfounded: tuple[Unsaid, ...] = ()
    dropped: tuple[str, ...] = ()
    added_negation: str = ""

    @property
    def surprise(self) -> float:
        """How unlikely it is (nats) that a right translation lacks these words and has these made-up or copied
        words."""
        copies = sum(surprise for _, surprise in self.copied)
        invented = sum(not KATAKANA.fullmatch(word) for word, _ in self.invented)  # those in katakana are named only
        return sum(word.surprise for word in self.unsaid) + INVENTED * invented + copies

    def untranslated(self, least: float) -> tuple[str, ...]:
        """The content words of the source to which every row gives less weight than `least` (0 to 1) and that are not
        in `translated`."""
        words = (word.text for word in self.covered if word.weight < least)
        return tuple(dict.fromkeys(word for word in words if word not in self.translated))


@checked
def signs(
    trace: Trace | TraceStatistics,
    known_words: TrainingWords,
    samples: Sequence[str] = (),
    target_words: TrainingWords | None = None,
    lexicon: Lexicon | None = None,
) -> Signs:
    """The signs of a trace of pieces with log-probabilities. ValueError for any other trace.

    samples : translations of the text drawn by models (`Judge.samples`). target_words : of the translations in
    training; without them no word counts as invented. lexicon : without it no word counts as unsaid.
    A TraceStatistics without its trace has no coverage.

    >>> confidence.signs(trace, confidence.TrainingWords.learn(["The dog runs."])).new[0].text
    'black'
    """
    if (level := getattr(trace, "level", "pieces")) != "pieces" or not trace.log_probs:
        wanted = "the trace must be of pieces and have their log-probabilities"
        raise ValueError(f"{wanted}; got {trace.model} at the level of {level}")
    new, written = tuple(known_words.new(trace)), training_words.target_words(trace)
    produced = [token.text for token in trace.target if not token.special]
    loop = loop_at_end(produced)
    agrees, other = agreement(trace.translation, tuple(samples)) if samples else (None, "")
    return Signs(
        log_probs=trace.log_probs,
        least=visible(trace.target[int(np.argmin(trace.log_probs))].text),
        new=new,
        words=len(training_words.words(trace)),
        read=len(trace.source),
        unknown=tuple(dict.fromkeys(visible(token.text) for token in trace.source if token.unknown)),
        made=tuple(word for word in written if word.pieces >= MANY_PIECES and not _NO_SPACES.search(word.text)),
        written=len(written),
        broken=tuple(word for word in _BROKEN.findall(trace.translation) if word not in trace.text),
        loop=loop,
        looping=_text(trace, loop) if loop else "",
        complete=trace.complete,
        agreement=agrees,
        other=other,
        **_between(trace, known_words, new, target_words, lexicon),
    )


def _text(trace: Trace | TraceStatistics, loop: Loop) -> str:
    """The text that a loop repeats, spaced as in the translation."""
    tokens = [token for token in trace.target if not token.special][loop.start : loop.start + loop.length]
    return visible(trace.translation[tokens[0].start : tokens[-1].end].strip())


def _between(
    trace: Trace | TraceStatistics,
    known_words: TrainingWords,
    new: Sequence[Word],
    target_words: TrainingWords | None,
    lexicon: Lexicon | None,
) -> dict:
    """The signs that compare source and target."""
    task = ModelName.parse(trace.model).task
    whole = trace.trace if isinstance(trace, TraceStatistics) else trace
    sides = trace.text, trace.translation, task.source, task.target
    content = [word for word in training_words.words(trace) if is_content(word.text, "en")]
    unsaid, translated = lexicon.compared(*sides) if lexicon else ((), ())
    lower = plain(trace.translation).lower()
    return dict(
        changed=between.changed(trace.text, trace.translation),
        lost_units=between.lost_units(trace.text, trace.translation),
        lost_names=_lost_names(trace, new) if task.copies_names else (),
        lost_negation=between.lost_negation(*sides[:2], task.target) if task.source == "en" else "",
        added_negation=between.added_negation(*sides[:2], task.target) if task.source == "en" else "",
        repeated=between.repeated(trace.text, trace.translation, task.target),
        twice=between.twice(
            trace.text, trace.translation, task.target, any(word.surprise >= MISSING for word in unsaid)
        ),
        unlearnt=_unlearnt(trace, new, target_words),
        unfounded=lexicon.unfounded(*sides) if lexicon else (),
        dropped=tuple(word.text for word in unsaid if word.surprise >= DROPPED and word.text.lower() not in lower),
        invented=_invented(trace, target_words) if target_words else (),
        copied=_copied(trace, known_words, target_words) if target_words else (),
        covered=alignment.coverage(whole) if whole and task.source in languages() else (),
        longest=trace.longest,
        unsaid=unsaid,
        translated=translated,
        rarity=tuple(math.log1p(known_words.count(word.text)) for word in content),
    )


def _unlearnt(
    trace: Trace | TraceStatistics, new: Sequence[Word], target_words: TrainingWords | None
) -> tuple[str, ...]:
    lower = plain(trace.translation).lower()
    texts = dict.fromkeys(word.text for word in new if word.text.islower() or trace.read_as)
    return tuple(text for text in texts if text.lower() not in lower or (target_words and not target_words.has(text)))


def _lost_names(trace: Trace | TraceStatistics, new: Sequence[Word]) -> tuple[str, ...]:
    """New capitalised words, not at the beginning of a sentence, that the translation lacks."""
    lower = plain(trace.translation).lower()
    begins = {match.end() for match in _BEGINNING.finditer(trace.text)}
    names = (word for word in new if word.text[0].isupper() and word.start not in begins)
    names = () if trace.read_as else names  # in capitals any word would count
    return tuple(dict.fromkeys(name.text for name in names if re.split("['’]", name.text.lower())[0] not in lower))


def _invented(trace: Trace | TraceStatistics, target_words: TrainingWords) -> tuple[tuple[str, float], ...]:
    """Words of the translation that no training sentence has, except words of the source and compounds of two known
    words."""
    source, result = plain(trace.text).lower(), []
    spaced = [word for word in training_words.target_words(trace) if not _NO_SPACES.search(word.text)]
    for word in (*spaced, *training_words.target_words(trace, KATAKANA)):
        if _is_new(word, target_words) and word.text.lower() not in source:
            places = [
                place
                for place, token in enumerate(trace.target)
                if not token.special and token.start < word.end and token.end > word.start
            ]
            result.append((word.text, float(np.mean([trace.log_probs[place] for place in places]))))
    return tuple(result)


def _is_new(word: Word, target_words: TrainingWords) -> bool:
    return len(word.text) > 1 and not target_words.has(word.text)


def _copied(
    trace: Trace | TraceStatistics, known_words: TrainingWords, target_words: TrainingWords
) -> tuple[tuple[str, float], ...]:
    """Lower-case source words that the target has untranslated, in any case: at most FEW training translations have
    them, and at most the share COPIED of the number of training sources that do.

    Capitalised words are taken for names and left out, except in a text in capitals. Nats: INVENTED for a word as typed
    that no training translation has; 0 for the others, because with them four models would flag more than 5 % of the
    better half of validation.
    """
    typed = (word.text for word in training_words.words(trace) if word.text.islower() or trace.read_as)
    common = {word.lower(): known_words.count(word) for word in typed}
    result = {}
    for word in training_words.target_words(trace):
        sources, targets = common.get(word.text.lower(), 0), target_words.count(word.text)
        if sources and targets <= min(FEW, COPIED * sources) and (targets or _is_new(word, target_words)):
            result[word.text] = INVENTED if word.text in common and not targets else 0.0
    return tuple(result.items())


# The numbers that a scale may weigh (scale.py), from the signs of one translation.
FEATURES: dict[str, Callable[[Signs], Any]] = {  # to a number; None of "agreement" where no samples were drawn
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
    "invented": lambda signs: len(signs.invented) / max(1, signs.written),
    "doubted": lambda signs: max((-log_prob for _, log_prob in signs.invented), default=0.0),
    "short": lambda signs: math.log(len(signs.log_probs) / signs.read),
    "unread": lambda signs: -math.log(0.01 + min((word.weight for word in signs.covered), default=1.0)),
    "rarest": lambda signs: -min(signs.rarity, default=0.0),
    "rare": lambda signs: -float(np.mean(signs.rarity or 0.0)),
    "rare_3": lambda signs: -float(np.mean(sorted(signs.rarity)[:3] or 0.0)),
    "span": lambda signs: -float(_lowest_span(signs.log_probs)),
    "repeated": lambda signs: float(bool(signs.repeated)),
    "surprise": lambda signs: signs.surprise,
    "missed": lambda signs: sum(word.surprise for word in signs.unsaid) / max(1, len(signs.rarity)),
}
PLAIN = tuple(name for name in FEATURES if name != "agreement")  # what a scale weighs where none were drawn
SAMPLED = ("mean", "spread", "doubtful", "agreement")  # and where they were


def _lowest_span(log_probs: tuple[float, ...]) -> float:
    """The mean log-probability of the least probable _SPAN consecutive pieces."""
    count = min(_SPAN, len(log_probs))
    return np.convolve(log_probs, np.ones(count) / count, "valid").min()


@lru_cache(maxsize=256)  # a page that is drawn again asks again
def agreement(translation: str, samples: tuple[str, ...]) -> tuple[float, str]:
    """Mean chrF (0 to 100, spaces ignored) of the translation against the half of the samples that agrees least; and
    the median sample of that half.

    Confident models draw samples that agree: Fomicheva et al. 2020, "Unsupervised quality estimation for neural machine
    translation", sec. 3.2 (lexical similarity), here with chrF, and with samples in place of dropout. The other half is
    often the translation itself, even if models are unsure.
    """
    metric = _metric()
    scores = sorted((metric.corpus_score([translation], [[sample]]).score, sample) for sample in samples)
    half = scores[: math.ceil(len(scores) / 2)]
    return sum(score for score, _ in half) / len(half), half[len(half) // 2][1]


@cache
def _metric():
    from sacrebleu.metrics import CHRF  # not needed for most models

    return CHRF()
