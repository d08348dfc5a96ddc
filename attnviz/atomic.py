"""A file on disk is replaced whole or not at all."""

import os
from collections.abc import Callable
from pathlib import Path


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Have `write` make a file beside `path`, and put it there in one move: whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        temporary.chmod(0o644)  # safetensors leaves its files to their owner alone
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)  # the one a reader knows; a full disc names none
        raise
    finally:
        temporary.unlink(missing_ok=True)  # what a failed write left
