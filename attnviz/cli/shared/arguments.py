"""Arguments that several commands share, and what their values must look like."""

import argparse
import os
import re
from argparse import ArgumentParser, Namespace
from pathlib import Path

from attnviz.data.tasks import TASKS
from attnviz.models import checkpoint_files

MODEL_HELP = "a name from `models`, such as en-fr/bahdanau"
TRAINED = Path("trained")  # where commands train when the folder of this project must stay as it is


def add_root(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--root", metavar="DIR", type=place, help="folder of checkpoints (default: those of this project)"
    )


def add_data(parser) -> None:
    """parser : a parser or a group of it."""
    parser.add_argument(
        "--data", metavar="DIR", type=place, help="folder of the corpora (default: environment variable ATTNVIZ_DATA)"
    )


def root_folder(args: Namespace) -> Path:
    """The folder of checkpoints. ValueError when --root is not a folder."""
    root = Path(args.root) if args.root else checkpoint_files.ROOT
    if args.root and not root.is_dir():
        raise ValueError(f"there is no folder {root}; --root must be a folder of checkpoints")
    return root


def data_folder(args: Namespace) -> Path:
    """The folder of --data or of ATTNVIZ_DATA. ValueError when neither is given."""
    folder = args.data or os.environ.get("ATTNVIZ_DATA")
    if not folder:
        raise ValueError("there is no data folder; give it with --data DIR or set ATTNVIZ_DATA")
    return Path(folder)


def pair(text: str) -> str:
    """The type of --pair."""
    if text not in TASKS and not re.fullmatch(r"[a-z]{2,3}-[a-z]{2,3}", text):
        others = " or ".join(name for name in TASKS if "-" not in name)
        raise argparse.ArgumentTypeError(f"must be two languages, such as en-fr, or {others}; got {text!r:.80}")
    return text


def place(text: str) -> str:
    """The type of an option that names a file or a folder."""
    if not text.strip() or "\x00" in text:
        raise argparse.ArgumentTypeError(f"must name a file or a folder; got {text!r:.80}")
    return text


def count(text: str) -> int:
    """The type of an option that counts something."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 1; got {text!r:.80}")
    return int(text)


def setting(text: str) -> tuple[str, object]:
    """The type of --set, NAME=VALUE. The value is a number or a bool when it reads as one, otherwise a text."""
    name, equals, value = text.partition("=")
    if not (name.isidentifier() and equals and value):
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, such as attention_dropout=0.1; got {text!r:.80}")
    for convert in (int, float, {"true": True, "false": False}.__getitem__):
        try:
            return name, convert(value)
        except (ValueError, KeyError):
            continue
    return name, value
