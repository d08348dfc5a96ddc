"""From a checkpoint's name to the object that traces with it: a Translator or a Classifier, by its mechanism."""

from pathlib import Path

from attnviz import checkpoints
from attnviz.classify import Classifier
from attnviz.mechanisms import CLASSIFIERS, MECHANISMS
from attnviz.trained import Trained
from attnviz.translator import Translator

READERS: dict[str, type[Trained]] = dict.fromkeys(MECHANISMS, Translator) | dict.fromkeys(CLASSIFIERS, Classifier)


def load(name: str, root: Path | None = None) -> Translator | Classifier:
    """The checkpoint `name` below `root` (this project's own by default). Raises checkpoints.CheckpointError."""
    root = root or checkpoints.ROOT
    return READERS[checkpoints.read_config(name, root).mechanism].load(name, root)
