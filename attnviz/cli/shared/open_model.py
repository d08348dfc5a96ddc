"""The model of --model."""

import sys
from argparse import Namespace
from pathlib import Path

from attnviz import loading
from attnviz.cli.shared import arguments
from attnviz.models import checkpoint_files
from attnviz.models.model import Model
from attnviz.models.names import CONFIG, is_hugging_face


_OTHERS = (
    "of a Hugging Face model `trace` shows one text, `write` writes on after it where it is causal, and `corpus` reads "
    "many: translations, log-probabilities, statistics of attention and, where the input has links between words, "
    "alignment error rates"
)


def open_model(args: Namespace, huggingface: bool = False) -> Model:
    """Load the model of --model. huggingface : may it be `hf:NAME`? ValueError when there is no such checkpoint."""
    if huggingface and is_hugging_face(args.model):
        return loading.load(args.model, threads=args.threads)
    if is_hugging_face(args.model):
        raise ValueError(f"{args.command} reads checkpoints of this project, not {args.model!r:.80}; {_OTHERS}")
    root = arguments.given_root(args)
    if args.model not in checkpoint_files.names(root) and not (Path(args.model) / CONFIG).is_file():
        raise checkpoint_files.missing(args.model, root)
    model = loading.load(args.model, root, args.threads)
    if state := checkpoint_files.unfinished(model.card):
        print(f"{args.model} is {state}; the same `train` command continues it", file=sys.stderr)
    return model
