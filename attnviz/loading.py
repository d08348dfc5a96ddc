"""From a name to the model that traces with it: a checkpoint is a Translator or a Classifier, by its mechanism."""

import os
from pathlib import Path

from attnviz import arguments, mechanisms
from attnviz.models import checkpoints
from attnviz.models.classifier import Classifier
from attnviz.models.model import Model
from attnviz.models.names import CONFIG, HUGGING_FACE, is_hugging_face, without_prefix
from attnviz.models.trained import Trained
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer


def load(name: str, root: str | Path | None = None) -> Model:
    """The checkpoint `name` below `root` (this project's own by default), or after `hf:` a model for the transformers
    library.

    Raises checkpoints.CheckpointError, huggingface.errors.ModelError.
    """
    if not isinstance(name, str):
        raise checkpoints.CheckpointError(
            f"the name of a model must be text, such as 'en-fr/bahdanau'; got {arguments.shown(name)}"
        )
    if is_hugging_face(name):
        from attnviz.models.huggingface import load as huggingface

        return huggingface.load(without_prefix(name))
    return load_checkpoint(name, None if root is None else arguments.path("root", root))


def load_checkpoint(name: str, root: Path | None = None) -> Trained:
    """The checkpoint `name` below `root`. Raises checkpoints.CheckpointError."""
    root = root or checkpoints.ROOT
    return class_of(name, root).load(name, root)


def class_of(name: str, root: Path) -> type[Trained]:
    """The class that loads the checkpoint `name` below `root`. Raises checkpoints.CheckpointError."""
    if os.path.isfile(Path(name) / CONFIG) and name not in checkpoints.names(root):
        raise checkpoints.CheckpointError(
            f"no checkpoint {name!r:.80}, but a folder; a model for the transformers library is {HUGGING_FACE}{name}"
        )
    return model_class(checkpoints.read_config(name, root).mechanism)


def model_class(mechanism: str) -> type[Trained]:
    """The class of a mechanism's trained models."""
    kind = mechanisms.find(mechanism)
    return Classifier if kind.classifies else Writer if kind.writes else Translator
