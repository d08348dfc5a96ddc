"""`python -m attnviz transplant`: a trained model with another vocabulary, to start training with."""

from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.cli import arguments
from attnviz.models.names import CONFIG

HELP = "give a trained model another vocabulary, to start training with (train --start)"


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--start",
        **arguments.FOLDER,
        required=True,
        help="folder of the checkpoint, such as checkpoints/en-fr/bahdanau",
    )
    parser.add_argument("--tokenizer", **arguments.FILE, required=True, help="the tokenizer.json of the new vocabulary")
    parser.add_argument("--out", **arguments.FOLDER, required=True, help="folder of checkpoints to write to")
    parser.add_argument(
        "--pair", type=arguments.pair, help="language pair of the tokenizer (default: that of the checkpoint)"
    )


def run(args: Namespace) -> None:
    """Write the checkpoint with the new vocabulary."""
    from attnviz.training.initial import transplant

    if not (Path(args.start) / CONFIG).is_file():
        raise ValueError(
            f"--start must be the folder of a checkpoint, such as checkpoints/en-fr/bahdanau; got {args.start}"
        )
    if not Path(args.tokenizer).is_file():
        raise ValueError(f"--tokenizer must be a tokenizer.json; got {args.tokenizer}")
    print(f"{transplant(Path(args.start), Path(args.tokenizer), Path(args.out), args.pair)} is ready")
