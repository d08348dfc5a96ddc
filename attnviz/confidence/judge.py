"""How usual a trained model's translations are for it: the thresholds on its card and the words of its training."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from attnviz import arguments
from attnviz.confidence.judgement import Judgement, judgement
from attnviz.confidence.scale import Scale
from attnviz.confidence.signs import signs
from attnviz.confidence.training_words import FILE, TrainingWords
from attnviz.models import checkpoint_files
from attnviz.models.tracing.measured import Measured
from attnviz.models.names import ModelName
from attnviz.trace import Trace


@dataclass(frozen=True)
class Judge:
    """Call it with a trace of the model: is the translation usual, unusual, or outside what the model has learnt?

    Some judges also need other translations of the model: `judge(trace, model.samples(text, judge.scale.samples))`.
    """

    scale: Scale
    known_words: TrainingWords

    @classmethod
    def load(cls, name: str, root: Path = checkpoint_files.ROOT) -> "Judge | None":
        """The judge of a checkpoint; None when its card has no thresholds or the words of its training are not there.

        Raises CheckpointError for a damaged file.
        """
        name = str(arguments.path("name", name))
        root = arguments.path("root", root)
        content = checkpoint_files.read_card(name, root).get("confidence", {}).get("scale")
        path = root / ModelName.parse(name).pair / FILE
        scale = read_scale(content)
        return cls(scale, TrainingWords.load(path)) if scale is not None and path.exists() else None

    def __call__(self, trace: Trace | Measured, samples: Sequence[str] = ()) -> Judgement:
        """ValueError for a trace that has no log-probabilities of pieces, and where samples are needed and missing."""
        return judgement(signs(trace, self.known_words, samples), self.scale)


def read_scale(content: object) -> Scale | None:
    """The scale on a card; None if the card has no valid scale."""
    try:
        weights = {str(name): float(weight) for name, weight in content["weights"].items()}
        rest = {name: float(content[name]) for name in ("intercept", "unusual", "outside", "usual")}
        return Scale(weights=weights, **rest)
    except (AttributeError, KeyError, TypeError, ValueError):
        return None
