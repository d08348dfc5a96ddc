"""`-` in place of a file: what is read from standard input."""

import contextlib
import shutil
import sys
import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

# Arguments that name a file to read. Some are read several times, so that a copy is read.
FILES = ("input", "source", "reference", "gold", "tsv", "source_file", "target_file")


@contextlib.contextmanager
def read(args: Namespace) -> Iterator[None]:
    """Where an argument says `-`, the rest of the block reads a copy of standard input. ValueError where two do."""
    names = [name for name in FILES if getattr(args, name, None) == "-"]
    if not names:
        yield
        return
    if len(names) > 1:
        options = " and ".join(f"--{name.replace('_', '-')}" for name in names)
        raise ValueError(f"standard input can be read once; got - for {options}")
    with tempfile.TemporaryDirectory(prefix="attnviz-") as folder:
        copy = Path(folder) / "standard-input"
        with copy.open("wb") as file:
            shutil.copyfileobj(stream(), file)
        setattr(args, names[0], str(copy))
        yield


def stream():
    """Standard input, in bytes. ValueError where there is none."""
    if sys.stdin is None:
        raise ValueError("- is standard input, and it is closed")
    return sys.stdin.buffer
