"""How usual a trained model's translations are for it: the thresholds on its card and the words of its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from attnviz import arguments, storage
from attnviz.confidence.judgement import Judgement, Scale, judgement
from attnviz.confidence.signs import signs
from attnviz.confidence.training_words import FILE, TARGET_FILE, TrainingWords
from attnviz.models import checkpoint_files
from attnviz.models.names import WEIGHTS, ModelName
from attnviz.models.tracing.measured import Measured
from attnviz.trace import Trace


@dataclass(frozen=True)
class Judge:
    """Call it with a trace of the model: is the translation usual, unusual, or outside what the model has learnt?

    samplers : names of models below `root` that draw other translations of the text, where the scale weighs how much
    the translation agrees with them. target_words : of the translations in training; None where the checkpoint has no
    such file.
    """

    scale: Scale
    known_words: TrainingWords
    samplers: tuple[str, ...] = ()
    root: Path = checkpoint_files.ROOT
    target_words: TrainingWords | None = None

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
        if scale is None or not (root / pair / FILE).exists():
            return None
        samplers = _read_samplers(card.get("samplers"), pair, root) if scale.sample_count else ()
        if scale.sample_count and not samplers:
            return None
        return cls(scale, _words(root / pair / FILE), samplers, root, _words(root / pair / TARGET_FILE))

    def samples(self, text: str) -> tuple[str, ...]:
        """Translations of a text that the samplers draw; () without samplers. Raises CheckpointError, TextError."""
        models = [_sampler(name, self.root, storage.stamp(self.root / name / WEIGHTS)) for name in self.samplers]
        return tuple(sample for model in models for sample in model.samples(text, self.scale.sample_count))

    def __call__(self, trace: Trace | Measured, samples: Sequence[str] | None = None) -> Judgement:
        """samples : what `samples(trace.text)` returns, if it is there already.

        ValueError for a trace that has no log-probabilities of pieces; else what `samples` raises.
        """
        drawn = self.samples(trace.text) if samples is None else samples
        return judgement(signs(trace, self.known_words, drawn, self.target_words), self.scale)


def _words(path: Path) -> TrainingWords | None:
    """The words in a file, read once for all models of a pair; None where there is none."""
    return _words_at(path, storage.stamp(path)) if path.exists() else None


@lru_cache(maxsize=8)
def _words_at(path: Path, stamp: tuple) -> TrainingWords:
    return TrainingWords.load(path)


@lru_cache(maxsize=4)
def _sampler(name: str, root: Path, stamp: tuple):
    from attnviz import loading  # with torch, for which the page does not wait

    return loading.load_checkpoint(name, root)


def _read_samplers(content: object, pair: str, root: Path) -> tuple[str, ...]:
    """The samplers on a card, which are models of its pair; () where they are not those that are there."""
    samplers = content if isinstance(content, dict) else {}
    there = {name for name in checkpoint_files.names(root) if ModelName.parse(name).pair == pair}
    same = all(name in there and _has(name, root, sha256) for name, sha256 in samplers.items())
    return tuple(samplers) if same else ()


def _has(name: str, root: Path, sha256: object) -> bool:
    """Does a model have the weights of this SHA-256?"""
    return (root / name / WEIGHTS).is_file() and checkpoint_files.fingerprint(name, root) == sha256


def read_scale(content: object) -> Scale | None:
    """The scale on a card; None if the card has no valid scale."""
    try:
        weights = {str(name): float(weight) for name, weight in content["weights"].items()}
        rest = {name: float(content[name]) for name in ("intercept", "unusual", "outside", "usual")}
        return Scale(weights=weights, **rest, unread=float(content.get("unread", 0.0)))
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
