"""Arguments that several commands share: what their values must look like, and the model or the file that they name."""

import argparse
import contextlib
import os
import re
import shutil
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from attnviz.data.tasks import TASKS
from attnviz.models import checkpoint_files
from attnviz.models.names import CONFIG, PREFIX, is_hugging_face
from attnviz.storage import folders

MODEL_HELP = "a name from `models`, such as en-fr/bahdanau"
TRAINED = Path("trained")  # where commands train when the folder of this project must stay as it is
_OTHERS = (
    "of a Hugging Face model `trace` shows one text, `write` writes on after it where it is causal, and `corpus` reads "
    "many: translations, log-probabilities, statistics of attention and, where the input has links between words, "
    "alignment error rates"
)
# Arguments that name a file to read. Some are read several times, so that a copy is read.
_FILES = ("input", "source", "reference", "gold", "tsv", "source_file", "target_file")


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


# What `add_argument` is given for an option of this kind.
FILE: dict[str, Any] = {"metavar": "FILE", "type": place}
FOLDER: dict[str, Any] = {"metavar": "DIR", "type": place}
COUNT: dict[str, Any] = {"metavar": "N", "type": count}


def add_root(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--root",
        **FOLDER,
        help=f"folder of checkpoints (default: {checkpoint_files.SETTING}, or those of this project)",
    )


def add_prefix(parser: ArgumentParser) -> None:
    parser.add_argument(
        "--prefix",
        metavar="TEXT",
        help="what hf: models read before every text, such as 'translate English to German:' for T5; it has no part "
        "in alignments",
    )


def with_prefix(args: Namespace, name: str) -> str:
    """The name of a model with --prefix behind it. ValueError for a trained model, which takes none."""
    if args.prefix is None:
        return name
    if not is_hugging_face(name):
        raise ValueError(f"--prefix is for hf: models that want one, such as T5; {name} takes none")
    if not args.prefix.strip():
        raise ValueError("--prefix must be a text; got an empty one")
    return f"{name}#{PREFIX}{args.prefix.strip()}"


def add_data(parser) -> None:
    """parser : a parser or a group of it."""
    parser.add_argument("--data", **FOLDER, help="folder of the corpora (default: environment variable ATTNVIZ_DATA)")


def add_set(parser) -> None:
    """The arguments that the class of a person's own module is built with."""
    options: dict[str, Any] = {"type": setting, "metavar": "NAME=VALUE", "dest": "settings"}
    parser.add_argument(
        "--set", action="append", default=[], help="an argument of the class; may be given again", **options
    )


def add_threads(parser, hf: bool = False) -> None:
    """parser : a parser or a group of it. hf : the command takes models of the transformers library too."""
    others = "; for hf: models torch's own choice" if hf else ""
    why = f"CPU threads (default 1, the fastest for matrices this small{others})"
    parser.add_argument("--threads", type=threads, metavar="N", help=why)


def threads(text: str) -> int:
    """The type of --threads."""
    number, most = count(text), max(64, os.cpu_count() or 1)
    if number > most:
        raise argparse.ArgumentTypeError(f"must be at most {most}; got {number}")
    return number


def given_root(args: Namespace) -> Path | None:
    """The folder of --root; None if not given. ValueError if it, or an entry of ATTNVIZ_CHECKPOINTS, is not a
    folder."""
    folders = ((args.root, "--root"),) if args.root else ((root, checkpoint_files.SETTING) for root in default_roots())
    for folder, option in folders:
        if not os.path.isdir(folder):
            raise ValueError(f"there is no folder {folder}; {option} must be a folder of checkpoints")
    return Path(args.root) if args.root else None


def default_roots() -> tuple[Path, ...]:
    """The folders of ATTNVIZ_CHECKPOINTS; () without it."""
    return checkpoint_files.roots() if os.environ.get(checkpoint_files.SETTING) else ()


def root_folder(args: Namespace) -> Path:
    """The folder to write to: --root, or the first folder of checkpoints. Raises as `given_root`."""
    return given_root(args) or checkpoint_files.roots()[0]


def root_of(args: Namespace, name: str) -> Path:
    """The folder of checkpoints that contains the model `name`. Raises as `given_root`."""
    return checkpoint_files.root_of(name, given_root(args))


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


def whole(text: str) -> int:
    """The type of an option that is 0 or more."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be a whole number of at least 0; got {text!r:.80}")
    return int(text)


def seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value <= 86_400:
        raise argparse.ArgumentTypeError(f"must be a number of seconds, at most a day; got {text!r:.80}")
    return value


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


def open_model(args: Namespace, name: str | None = None, huggingface: bool = False):
    """Load the model `name`, else that of --model. huggingface : may it be `hf:NAME`? ValueError when there is no such
    checkpoint."""
    from attnviz import loading

    name = name or args.model
    if huggingface and is_hugging_face(name):
        return loading.load(name, threads=args.threads)
    if is_hugging_face(name):
        raise ValueError(f"{args.command} reads checkpoints of this project, not {name!r:.80}; {_OTHERS}")
    root = given_root(args)
    if name not in checkpoint_files.names(root) and not (Path(name) / CONFIG).is_file():
        raise checkpoint_files.missing(name, root)
    model: Any = loading.load(name, root, args.threads)  # a checkpoint, which has a card
    if state := checkpoint_files.unfinished(model.card):
        print(f"{name} is {state}; the same `train` command continues it", file=sys.stderr)
    return model


@contextlib.contextmanager
def with_standard_input(args: Namespace) -> Iterator[None]:
    """In the block, an argument `-` is replaced by a copy of standard input; errors call it standard input. ValueError
    if two arguments are `-`."""
    names = [name for name in _FILES if getattr(args, name, None) == "-"]
    if not names:
        yield
        return
    if len(names) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        raise ValueError(f"standard input can be read once; got - for {options}")
    with folders.TemporaryFolder() as folder:  # locked: a server that starts removes what killed processes have left
        copy = Path(folder) / "standard-input"
        with copy.open("wb") as file:
            shutil.copyfileobj(standard_input(), file)
        setattr(args, names[0], str(copy))
        try:
            yield
        except ValueError as error:
            if str(copy) not in str(error):
                raise
            raise ValueError(str(error).replace(str(copy), "standard input")) from None


def standard_input():
    """The bytes of standard input. ValueError if it is closed."""
    if sys.stdin is None:
        raise ValueError("- is standard input, and it is closed")
    return sys.stdin.buffer
