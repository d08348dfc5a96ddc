"""Progress of long work on standard error: a bar on a terminal, elsewhere an occasional line."""

import sys
from typing import Any, TextIO

from tqdm import tqdm

SECONDS = 30  # between two lines where standard error is a file or a pipe; nothing is written of shorter work


class _Lines:
    """A stream on which tqdm's redrawn bars are lines of their own."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> None:
        if text := text.strip("\r\n "):
            self._stream.write(f"{text}\n")

    def flush(self) -> None:
        self._stream.flush()


def bar(*iterable: Any, **options: Any) -> tqdm:
    """`tqdm(*iterable, **options)`, as standard error can show it."""
    if sys.stderr is None or options.get("disable"):
        return tqdm(*iterable, **options | {"disable": True})
    if sys.stderr.isatty():
        return tqdm(*iterable, **options)
    lines = {"file": _Lines(sys.stderr), "mininterval": SECONDS, "delay": SECONDS, "ascii": True, "ncols": 100}
    return tqdm(*iterable, **options | lines)
