"""Where hostile cases do their damage: folders that are put back, and the rule that an error is one sentence."""

import contextlib
import os
import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import tiny
import tiny_writer

LONG = 1_500  # characters of a message


class Failure(AssertionError):
    """The product did not hold."""


@dataclass(frozen=True)
class Workplace:
    """Folders that a batch of cases may damage; made by `prepare`. root : checkpoints."""

    folder: Path

    @property
    def root(self) -> Path:
        return self.folder / "checkpoints"

    def put_back(self, name: str) -> None:
        """A folder as it was."""
        shutil.rmtree(self.folder / name, ignore_errors=True)
        shutil.copytree(self.folder / "whole" / name, self.folder / name)


def prepare(folder: Path, kind: str) -> Workplace:
    """What a kind of cases needs, in an empty folder."""
    place = Workplace(folder)
    tiny.write_models(folder / "whole" / "checkpoints")
    tiny_writer.write_models(folder / "whole" / "checkpoints")
    place.put_back("checkpoints")
    os.environ["ATTNVIZ_CHECKPOINTS"] = str(place.root)
    if kind == "foreign":
        import families

        for family in ("bert", "gpt2", "t5"):
            families.write(folder / "whole" / family, family)
    return place


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
