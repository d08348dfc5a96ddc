"""Progress of long work on standard error: a bar on a terminal, elsewhere an occasional line. Also what is loaded."""

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:
    from tqdm import tqdm

SECONDS = 30  # between two lines where standard error is a file or a pipe; nothing is written of shorter work
SOON = 2  # s until a terminal shows what is being loaded
LARGE = {"torch": "PyTorch", "transformers": "the transformers library"}  # modules that take long to import


class _Lines:
    """A stream on which tqdm's redrawn bars are lines of their own."""

    def __init__(self, stream: TextIO):
        self._stream = stream

    def write(self, text: str) -> None:
        if text := text.strip("\r\n "):
            self._stream.write(f"{text}\n")

    def flush(self) -> None:
        self._stream.flush()


def bar(*iterable: Any, **options: Any) -> "tqdm":
    """`tqdm(*iterable, **options)`, as standard error can show it."""
    from tqdm import tqdm  # here: every command imports this file, and few show a bar

    if sys.stderr is None or options.get("disable"):
        return tqdm(*iterable, **options | {"disable": True})
    if sys.stderr.isatty():
        return tqdm(*iterable, **options)
    lines = {"file": _Lines(sys.stderr), "mininterval": SECONDS, "delay": SECONDS, "ascii": True, "ncols": 100}
    return tqdm(*iterable, **options | lines)


@contextmanager
def loading(module: str = "torch") -> Iterator[None]:
    """During the block, which imports a module of LARGE: a line on standard error if that takes long."""
    if sys.stderr is None:
        yield
        return
    line = f"Loading {LARGE[module]}, which takes up to half a minute the first time …"
    wait = SOON if sys.stderr.isatty() else SECONDS
    timer = threading.Timer(wait, print, [line], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@contextmanager
def announced() -> Iterator[None]:
    """During the block, every import of a module of LARGE is one of `loading`."""
    finder = _Finder()
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Finder(MetaPathFinder):
    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        spec = PathFinder.find_spec(name, path, target) if name in LARGE else None
        if spec is not None and spec.loader is not None:
            execute = spec.loader.exec_module

            def exec_module(module: ModuleType) -> None:
                with loading(name):
                    execute(module)

            spec.loader.exec_module = exec_module  # type: ignore[method-assign]
        return spec
