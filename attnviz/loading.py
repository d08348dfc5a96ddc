"""From a name to the model that traces with it: a checkpoint is a Translator or a Classifier, by its mechanism."""

import os
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from attnviz import arguments, mechanisms, moments
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.classifier import Classifier
from attnviz.models.machine import THREADS
from attnviz.models.machine import use_threads as set_threads
from attnviz.models.model import Model, Trained
from attnviz.models.names import CONFIG, HUGGING_FACE, ModelName, is_hugging_face, without_prefix
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer


def load(name: str, root: str | Path | None = None, threads: int | None = None) -> Model:
    """The checkpoint `name` below `root` (by default see `checkpoint_files.roots`), or after `hf:` a model for the
    transformers library.

    threads : that torch computes with in this process from now on; None: 1 for a checkpoint (see `models.machine`),
    unchanged for `hf:`. Raises CheckpointError, huggingface.ModelError.
    """
    if not isinstance(name, str):
        raise checkpoint_files.CheckpointError(
            f"the name of a model must be text, such as 'en-fr/bahdanau'; got {arguments.shown(name)}"
        )
    if is_hugging_face(name):
        from attnviz.models.huggingface import load as huggingface

        set_threads(threads)
        return huggingface.load(without_prefix(name))
    chosen = THREADS if threads is None else threads
    return load_checkpoint(name, None if root is None else arguments.path("root", root), chosen)


def load_from(place: str, name: str) -> Model:
    """The model of the transformers library in a folder, or of this name on the hub, with another name, which alone its
    errors and traces have. Raises huggingface.ModelError."""
    from attnviz.models.huggingface import ModelError

    try:
        return replace(load(f"{HUGGING_FACE}{place}"), name=name)
    except ModelError as error:
        message = str(error).replace(f"{HUGGING_FACE}{place}", name).replace(f"{HUGGING_FACE}{place:.80}", name)
        raise ModelError(message.replace(os.path.expanduser(place), without_prefix(name))) from None


def load_checkpoint(name: str, root: Path | None = None, threads: int | None = None) -> Trained:
    """The checkpoint `name` below `root`, or in one of `checkpoint_files.roots`. Raises CheckpointError.

    threads : as of `load`, but None leaves what is set.
    """
    set_threads(threads)
    if "@" in name and (moment := _moment(name)):
        return _at_moment(moment, checkpoint_files.root_of(name, root))
    return class_of(name, root).load(name, root)


def _moment(name: str) -> ModelName | None:
    """The parsed name if it names a moment of a model, else None."""
    with suppress(ValueError):
        named = ModelName.parse(name)
        return named if named.moment >= 0 and not {".", ".."} & {named.pair, named.mechanism} else None
    return None


def _at_moment(name: ModelName, root: Path) -> Trained:
    """A model as it was at a packed moment of its training; it has no card. Raises CheckpointError."""
    listed = moments.moments(name.trained, root)
    if name.moment >= len(listed):
        words = f"it has moments 0 to {len(listed) - 1}" if listed else "no moments of its training are packed"
        raise checkpoint_files.CheckpointError(f"no {name}: {words}")
    network, tokenizer = moments.restore(name.trained, name.moment, root), checkpoints.load_tokenizer(name.pair, root)
    return model_class(name.mechanism)(str(name), name.mechanism, network, tokenizer, {})


def load_translator(name: str, root: Path | None = None) -> Translator:
    """`load_checkpoint` of a model that translates. Raises CheckpointError, also for a model that does not
    translate."""
    model = load_checkpoint(name, root)
    if not isinstance(model, Translator):
        raise checkpoint_files.CheckpointError(f"{name} must be a model that translates")
    return model


def class_of(name: str, root: Path | None = None) -> type[Trained]:
    """The class that loads the checkpoint `name` below `root`. Raises CheckpointError."""
    if os.path.isfile(Path(name) / CONFIG) and name not in checkpoint_files.names(root):
        raise checkpoint_files.CheckpointError(
            f"no checkpoint {name!r:.80}, but a folder; a model for the transformers library is {HUGGING_FACE}{name}"
        )
    folder = checkpoint_files.root_of(name, root)
    if not os.path.isdir(folder / name):
        raise checkpoint_files.missing(name, root)
    return model_class(checkpoint_files.read_config(name, folder).mechanism)


def model_class(mechanism: str) -> type[Trained]:
    """The class of a mechanism's trained models."""
    kind = mechanisms.find(mechanism)
    return Classifier if kind.classifies else Writer if kind.writes else Translator
