"""Write a file so that readers see the old content or the new, never a part."""

import os
from collections.abc import Callable
from pathlib import Path


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path in the same folder, then rename that file to `path`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        write(temporary)
        temporary.chmod(0o644)  # safetensors makes files that only their owner can read
        os.replace(temporary, path)
    except OSError as error:
        error.filename = str(path)  # the name that the user knows; a full disk gives none
        raise
    finally:
        temporary.unlink(missing_ok=True)  # left over when `write` failed
