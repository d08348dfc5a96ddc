"""From a name to the object that traces with it: a checkpoint's is a Translator or a Classifier, by its mechanism."""

from pathlib import Path

from attnviz.mechanisms import CLASSIFIERS, MECHANISMS
from attnviz.models import checkpoints
from attnviz.models.classifier import Classifier
from attnviz.models.huggingface.models import Pretrained
from attnviz.models.trained import Trained
from attnviz.models.translator import Translator

PREFIX = "hf:"
READERS: dict[str, type[Trained]] = dict.fromkeys(MECHANISMS, Translator) | dict.fromkeys(CLASSIFIERS, Classifier)


def load(name: str, root: Path | None = None) -> Trained | Pretrained:
    """The checkpoint `name` below `root` (this project's own by default), or after `hf:` a model for the transformers library.

    Raises checkpoints.CheckpointError, hf.ModelError.
    """
    if name.startswith(PREFIX):
        from attnviz.models.huggingface import load as hf

        return hf.load(name.removeprefix(PREFIX))
    root = root or checkpoints.ROOT
    if (Path(name) / "config.json").is_file() and name not in checkpoints.names(root):
        raise checkpoints.CheckpointError(
            f"no checkpoint {name!r}, but a folder; a model for the transformers library is {PREFIX}{name}"
        )
    return READERS[checkpoints.read_config(name, root).mechanism].load(name, root)
