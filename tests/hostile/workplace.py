"""Where hostile cases do their damage: folders that are put back, and the rule that an error is one sentence."""

import contextlib
import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import tiny
import tiny_writer

LONG = 1_500  # characters of a message


class Failure(AssertionError):
    """The product did not hold."""


@dataclass
class Workplace:
    """Folders that a batch of cases may damage; made by `prepared`. root : checkpoints. around : what the kind needs
    besides, such as a running server."""

    folder: Path
    around: Any = None

    @property
    def root(self) -> Path:
        return self.folder / "checkpoints"

    def put_back(self, name: str) -> None:
        """A folder as it was."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.folder / "whole" / name, self.folder / name)


@contextlib.contextmanager
def prepared(folder: Path, kind) -> Iterator[Workplace]:
    """What the cases of a kind need, in an empty folder. kind : its module."""
    place = Workplace(folder)
    tiny.write_models(folder / "whole" / "checkpoints")
    tiny_writer.write_models(folder / "whole" / "checkpoints")
    place.put_back("checkpoints")
    os.environ["ATTNVIZ_CHECKPOINTS"] = str(place.root)
    with getattr(kind, "around", _no_preparation)(place) as place.around:
        yield place


@contextlib.contextmanager
def _no_preparation(place: Workplace) -> Iterator[None]:
    yield


@contextlib.contextmanager
def sentence(*also: type[Exception]):
    """An error must be one sentence."""
    try:
        yield
    except (ValueError, OSError, *also) as error:
        if len(str(error)) > LONG or "\n" in str(error).strip() or "Traceback" in str(error):
            raise Failure(f"{type(error).__name__} is no sentence: {str(error)[:300]!r}") from error


@cache
def model(root: Path, name: str):
    import attnviz

    return attnviz.load(name, root)
