"""Confidence in a translation from its signs: the probability that it is poor (by a scale fitted in calibration.py),
one of three levels, and the reasons in sentences. The judge of a checkpoint reads the scale from its card, and the
words of its training.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from attnviz import arguments, storage
from attnviz.arguments import Checked
from attnviz.confidence import lexicon, training_words
from attnviz.confidence.lexicon import RARE, Lexicon, Unsaid
from attnviz.confidence.signs import FEATURES, SAMPLES, Signs, signs
from attnviz.confidence.training_words import TrainingWords
from attnviz.models import checkpoint_files
from attnviz.models.measured import TraceStatistics
from attnviz.models.names import ModelName
from attnviz.trace import Trace


@dataclass(frozen=True)
class Scale(Checked):
    """risk = 1 / (1 + exp(-(intercept + sum of weight * feature))): the probability that a translation is poor.

    unusual, outside : the risks above which a translation gets these levels. usual : the median over validation of the
    mean log-probability of a piece (nats). unread : a content word of the source counts as untranslated if every row of
    the map gives it less weight than this. unsaid : the surprise (nats, `Signs.surprise`) above which words count as
    left out or made up; 0 for none.

    >>> signs = confidence.signs(trace, confidence.TrainingWords.learn(["The black dog runs."]))
    >>> confidence.Scale(intercept=0.0, weights={"new": 1.0}).risk(signs)  # no word is new
    0.5
    """

    intercept: float
    weights: dict[str, float] = field(default_factory=dict)
    unusual: float = 0.5
    outside: float = 0.9
    usual: float = 0.0
    unread: float = 0.0
    unsaid: float = 0.0

    def __post_init__(self):
        super().__post_init__()
        if unknown := self.weights.keys() - FEATURES.keys():
            raise ValueError(f"weights must be of the features {', '.join(FEATURES)}; got {', '.join(sorted(unknown))}")
        if not all(map(math.isfinite, (self.intercept, self.usual, self.unsaid, *self.weights.values()))):
            raise ValueError(f"numbers must be finite; got {self}")
        if self.usual > 0 or self.unsaid < 0:
            raise ValueError(f"usual must be at most 0, and unsaid at least 0; got {self.usual} and {self.unsaid}")
        if not 0 <= self.unread <= 1:
            raise ValueError(f"unread must be a weight, from 0 to 1; got {self.unread}")
        if not 0 <= self.unusual <= self.outside <= 1:
            raise ValueError(f"thresholds must be 0 <= unusual <= outside <= 1; got {self.unusual} and {self.outside}")

    @property
    def sample_count(self) -> int:
        """How many translations each sampler must draw for the signs that it weighs."""
        return SAMPLES if "agreement" in self.weights else 0

    def risk(self, signs: Signs) -> float:
        """0 to 1. ValueError for signs without the agreement that the scale weighs."""
        if self.sample_count and signs.agreement is None:
            raise ValueError(
                "signs must be of a translation and samples of it, whose agreement is weighed; got no samples"
            )
        score = self.intercept + sum(weight * FEATURES[name](signs) for name, weight in self.weights.items())
        return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))


LEVELS = {
    "usual": "a typical probability for this model",
    "unusual": "unusual for this model",
    "outside": "outside what this model has learnt",
}
MANY_NEW = 1 / 3  # of the words; a text with two new words or more, and so large a share of them, is outside
DIFFERENT = 50.0  # chrF; below this agreement the reasons name another translation
SHOWN = 3  # words of a kind that the reasons name


@dataclass(frozen=True)
class Judgement:
    """level : one of LEVELS. risk : probability of a poor translation. reasons : sentences, of every level.
    strange : remarks on words of the translation, shown even at level usual, as parts of a sentence. untranslated :
    `Judge.untranslated` of the trace.

    >>> confidence.Judge.load("en-fr/bahdanau")(trace).title
    'a typical probability for this model'
    """

    level: str
    risk: float
    reasons: tuple[str, ...]
    strange: tuple[str, ...] = ()
    untranslated: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        """The level in words. At level usual it also has the remarks on strange words, because few readers open the
        reasons."""
        strange = self.strange if self.level == "usual" else ()
        return LEVELS[self.level] + (f", but {' and '.join(strange)}" if strange else "")

    @property
    def why(self) -> tuple[str, ...]:
        """Sentences: the reasons, the risk, and what the risk does not mean."""
        risk = f"Estimated risk that the translation is poor: {_percent(self.risk)}."
        return (*self.reasons, risk, "All this is about probabilities and words: it is not a check of the meaning.")

    @property
    def lines(self) -> tuple[str, ...]:
        """All of it as sentences, for a text without the page's sign."""
        verb = "has" if self.level == "usual" else "is"
        return (f"This translation {verb} {self.title}.", *self.why)


def judgement(signs: Signs, scale: Scale) -> Judgement:
    """The level of a translation and the reasons for it, the most important first.

    >>> judge = confidence.Judge.load("en-fr/bahdanau")
    >>> confidence.judgement(confidence.signs(trace, judge.known_words), judge.scale).level
    'usual'
    """
    risk = scale.risk(signs)
    if outside_by_rule(signs) or risk > scale.outside:
        level = "outside"
    else:
        level = "unusual" if unusual_by_rule(signs, scale.unread, scale.unsaid) or risk > scale.unusual else "usual"
    unread = signs.untranslated(scale.unread)
    return Judgement(level, risk, tuple(_reasons(signs, scale)), tuple(_strange(signs)), unread)


def outside_by_rule(signs: Signs) -> bool:
    """Is it outside at any risk? True for a loop, a cut-off text, unknown characters, or many new words."""
    many_new = len(signs.new) > 1 and len(signs.new) >= MANY_NEW * signs.words
    return bool(signs.loop or not signs.complete or signs.unknown or many_new)


def unusual_by_rule(signs: Signs, unread: float, unsaid: float) -> bool:
    """Is it at least unusual, at any risk? True for numbers, units or new names that differ, a negation on one side
    only, a number inside a word ("trois4"), a repeated phrase, a text longer than those of training, a content word to
    which every row of the map gives less weight than `unread`, or words left out or made up with a surprise above
    `unsaid`."""
    differs = signs.changed or signs.lost_units or signs.lost_names or signs.broken
    differs = differs or signs.lost_negation or signs.added_negation
    words = signs.untranslated(unread) or (unsaid and signs.surprise > unsaid)
    return bool(differs or signs.repeated or signs.longest or words)


def _reasons(signs: Signs, scale: Scale) -> list[str]:
    reasons = []
    if signs.loop:
        reasons.append(
            f"The translation repeats itself: “{signs.looping}” {signs.loop.times} times in a row. "
            "Decoding was stopped there."
        )
    elif not signs.complete:
        reasons.append("The translation did not come to an end and was cut off.")
    reasons += _differences(signs, scale)
    reasons += [f"“{text}” is not in the vocabulary." for text in signs.unknown[:SHOWN]]
    reasons += [
        f"“{word.text}” is in no training sentence and was cut into {_pieces(word.pieces)}."
        for word in signs.new[:SHOWN]
    ]
    if (more := len(signs.new) - SHOWN) > 0:
        reasons.append(f"{more} more {'word is' if more == 1 else 'words are'} in no training sentence either.")
    copied = [word for word, _ in signs.copied]
    reasons += [f"“{word}” stands in the translation as in the source: untranslated." for word in copied[:SHOWN]]
    reasons += [
        f"“{text}” in the translation is in no training sentence of that language."
        for text, _ in signs.invented[:SHOWN]
    ]
    invented = {*copied, *(text for text, _ in signs.invented)}
    reasons += [
        f"“{word.text}” in the translation was put together from {word.pieces} pieces."
        for word in signs.made[:SHOWN]
        if word.text not in invented
    ]
    if signs.other and signs.agreement is not None and signs.agreement < DIFFERENT:
        reasons.append(
            "Translations that models of this pair drew at random differ much from this one, for example "
            f"“{signs.other}”."
        )
    return [*dict.fromkeys(reasons), *_probabilities(signs, scale)]  # a word that is there twice is named once


def _strange(signs: Signs) -> Iterator[str]:
    """Words copied from the source, words of both sides that occur in no training text of their language, words that
    are twice in the translation or probably missing, and words that usually translate others than those of the
    source."""
    copied = [word for word, _ in signs.copied]
    new = [*signs.unlearnt, *(word for word, _ in signs.invented)]
    kinds = (copied, "as in the source"), (new, "in no training text"), (signs.twice, "there twice")
    for listed, what in (*kinds, (signs.dropped, "probably missing or wrong")):
        if words := [f"“{word}”" for word in listed[:SHOWN]]:
            yield f"{', '.join(words)} {'is' if len(words) == 1 else 'are'} {what}"
    for word in _unfounded(signs):
        yield f"“{word.text}” usually translates “{word.translations[0]}”"


def _unfounded(signs: Signs) -> list[Unsaid]:
    """The most surprising words of `unfounded` that are in training texts."""
    new = dict(signs.invented + signs.copied)
    return [word for word in signs.unfounded if word.text not in new][:SHOWN]


def _differences(signs: Signs, scale: Scale) -> list[str]:
    """Sentences on differences between source and translation, and on a source that is too long."""
    reasons = []
    if signs.longest:
        reasons.append(
            f"The text has {signs.read} pieces. Nearly all training texts of this model have at most {signs.longest}."
        )
    if signs.changed:
        listed = ", ".join(f"“{number}”" for number in signs.changed[:SHOWN])
        reasons.append(f"The numbers differ: {listed} {'is' if len(signs.changed) == 1 else 'are'} on one side only.")
    reasons += [f"“{text}” is half a word and half a number." for text in signs.broken[:SHOWN]]
    reasons += [f"The unit “{unit}” of the source is not in the translation." for unit in signs.lost_units[:SHOWN]]
    reasons += [f"The name “{name}” is not in the translation." for name in signs.lost_names[:SHOWN]]
    if signs.lost_negation:
        reasons.append(f"The source denies with “{signs.lost_negation}”, and nothing in the translation seems to.")
    if signs.added_negation:
        reasons.append(f"The translation denies with “{signs.added_negation}”, and nothing in the source seems to.")
    if signs.repeated:
        reasons.append(f"The translation says “{signs.repeated}” again, and the source has no such repeat.")
    elif signs.twice:
        listed = ", ".join(f"“{word}”" for word in signs.twice[:SHOWN])
        reasons.append(f"The translation has {listed} twice, where the source probably has different words.")
    if unread := signs.untranslated(scale.unread)[:SHOWN]:
        listed = ", ".join(f"“{word}”" for word in unread)
        reasons.append(f"No row of the map reads {listed}: part of the source is probably untranslated.")
    rare = [word for word in signs.unsaid if word.surprise >= RARE]
    for word in rare[:SHOWN]:
        usual = ", ".join(word.translations[:SHOWN])
        reasons.append(f"None of the usual translations of “{word.text}” is in the translation: {usual}.")
    for word in _unfounded(signs):
        usual = ", ".join(word.translations[:SHOWN])
        reasons.append(f"“{word.text}” usually translates other words than those of the source: {usual}.")
    return reasons


def _probabilities(signs: Signs, scale: Scale) -> list[str]:
    """Sentences on the model's own probabilities: the mean over all pieces, and the least probable piece."""
    mean, usual = math.exp(np.mean(signs.log_probs)), math.exp(scale.usual)
    return [
        f"The model gave its pieces a probability of {_percent(mean)} on average; {_percent(usual)} is usual.",
        f"It was least sure of “{signs.least}”: {_percent(math.exp(min(signs.log_probs)))}.",
    ]


def _pieces(count: int) -> str:
    return "1 piece" if count == 1 else f"{count} pieces"


def _percent(share: float) -> str:
    if share < 0.01:
        return "under 1%"
    return "over 99%" if share > 0.99 else f"{100 * share:.0f}%"


@dataclass(frozen=True)
class Judge:
    """Call it with a trace of the model: is the translation usual, unusual, or outside what the model has learnt?

    samplers : names of models below `root` that draw other translations of the text, where the scale weighs how much
    the translation agrees with them. target_words : of the translations in training; lexicon : the usual translations
    of words; None where the pair has no such file.

    >>> confidence.Judge.load("en-fr/bahdanau")(model.trace("The zorble is here.")).reasons[0]
    '“zorble” is in no training sentence and was cut into 3 pieces.'
    """

    scale: Scale
    known_words: TrainingWords
    samplers: tuple[str, ...] = ()
    root: Path = checkpoint_files.ROOT
    target_words: TrainingWords | None = None
    lexicon: Lexicon | None = None

    def __repr__(self) -> str:
        """One line: where its models are, and which draw translations."""
        return f"Judge({self.root}{''.join(f', {name}' for name in self.samplers)})"

    @classmethod
    def load(cls, name: str, root: Path | None = None) -> "Judge | None":
        """The judge of a checkpoint; None when its card has no thresholds, when the words of its training or a sampler
        are missing, or when a sampler has other weights than the thresholds are for.

        Raises CheckpointError for a damaged file.
        """
        name = str(arguments.path("name", name))
        root = checkpoint_files.root_of(name) if root is None else arguments.path("root", root)
        pair = ModelName.parse(name).pair
        card = checkpoint_files.read_card(name, root).get("confidence", {})
        scale = read_scale(card.get("scale"))
        known_words, target_words = (_words(root / pair / file) for file in training_words.FILES)
        if scale is None or known_words is None:
            return None
        samplers = _read_samplers(card.get("samplers"), pair, root) if scale.sample_count else ()
        if scale.sample_count and not samplers:
            return None
        return cls(scale, known_words, samplers, root, target_words, _words(root / pair / lexicon.FILE, Lexicon))

    def samples(self, text: str) -> tuple[str, ...]:
        """Translations of a text that the samplers draw; () without samplers. Raises CheckpointError, TextError."""
        files = {name: checkpoint_files.weights(name, self.root) for name in self.samplers}
        models = [_sampler(name, self.root, storage.stamp(file)) for name, file in files.items()]
        return tuple(sample for model in models for sample in model.samples(text, self.scale.sample_count))

    def __call__(self, trace: Trace | TraceStatistics, samples: Sequence[str] | None = None) -> Judgement:
        """samples : the result of `samples(trace.text)`, if it was already computed.

        ValueError for a trace without log-probabilities of pieces; otherwise raises what `samples` raises.
        """
        samples = self.samples(trace.text) if samples is None else samples
        seen = signs(trace, self.known_words, samples, self.target_words, self.lexicon)
        return judgement(seen, self.scale)

    def untranslated(self, trace: Trace) -> tuple[str, ...]:
        """The content words of the source that no row attends to and that have no usual translation in the target, as
        in the reasons. ValueError as `signs`."""
        return signs(trace, self.known_words, (), self.target_words, self.lexicon).untranslated(self.scale.unread)


def _words(path: Path, kind: type = TrainingWords):
    """The content of a file of words, read once for all models of a pair; None if there is no file."""
    return _words_at(path, storage.stamp(path), kind) if path.exists() else None


@lru_cache(maxsize=12)
def _words_at(path: Path, stamp: tuple, kind: Any):
    return kind.load(path)


@lru_cache(maxsize=4)
def _sampler(name: str, root: Path, stamp: tuple):
    from attnviz import loading  # with torch, for which the page does not wait

    return loading.load_checkpoint(name, root)


def _read_samplers(content: object, pair: str, root: Path) -> tuple[str, ...]:
    """The samplers named on a card, which are models of its pair; () if the present models are others."""
    samplers = content if isinstance(content, dict) else {}
    models = {name for name in checkpoint_files.names(root) if ModelName.parse(name).pair == pair}
    same = all(name in models and _has(name, root, sha256) for name, sha256 in samplers.items())
    return tuple(samplers) if same else ()


def _has(name: str, root: Path, sha256: object) -> bool:
    """Do the weights of a model have this SHA-256?"""
    return checkpoint_files.weights(name, root).is_file() and checkpoint_files.fingerprint(name, root) == sha256


def read_scale(content: Any) -> Scale | None:
    """The scale on a card; None if the card has no valid scale."""
    try:
        weights = {str(name): float(weight) for name, weight in content["weights"].items()}
        rest = {name: float(content[name]) for name in ("intercept", "unusual", "outside", "usual")}
        return Scale(weights=weights, **rest, **{name: float(content.get(name, 0.0)) for name in ("unread", "unsaid")})
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
