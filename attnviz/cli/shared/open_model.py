"""The model of --model."""

from argparse import Namespace
from pathlib import Path

from attnviz import loading
from attnviz.cli.shared import arguments
from attnviz.models import checkpoint_files
from attnviz.models.model import Model
from attnviz.models.names import CONFIG, is_hugging_face


def open_model(args: Namespace, huggingface: bool = False) -> Model:
    """Load the model of --model. huggingface : may it be `hf:NAME`? ValueError when there is no such checkpoint."""
    if huggingface and is_hugging_face(args.model):
        return loading.load(args.model)
    root = arguments.root_folder(args)
    names = checkpoint_files.names(root)
    if args.model not in names and not (Path(args.model) / CONFIG).is_file():
        raise ValueError(f"no checkpoint {args.model!r:.80}; available: {', '.join(names) or 'none'}")
    return loading.load(args.model, root)
