"""Folders for the time that this process needs them. What a killed process has left goes when the next one starts."""

import contextlib
import os
import shutil
import tempfile
import time
import weakref
from functools import cache
from pathlib import Path

PREFIX = "attnviz-"
YOUNG = 60.0  # s: a folder that was just made may not be locked yet


class Folder(tempfile.TemporaryDirectory):
    """As tempfile's, with a lock that ends with this process, however it ends."""

    def __init__(self) -> None:
        super().__init__(prefix=PREFIX)
        self._unlock = lambda: None
        with contextlib.suppress(OSError):  # a file system without locks; the folder is then only taken away in time
            self._unlock = weakref.finalize(self, os.close, _locked(Path(self.name)))

    def cleanup(self) -> None:
        """Take it away."""
        super().cleanup()
        self._unlock()


@cache
def remove_left(parent: Path | None = None) -> None:
    """Remove the folders that killed processes have left, once in the life of this one. parent : where they lie."""
    now = time.time()
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, of somebody else, or gone meanwhile
            if folder.is_symlink() or not folder.is_dir() or now - folder.stat().st_mtime < YOUNG:
                continue
            lock = _locked(folder)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _locked(folder: Path) -> int:
    """A descriptor that holds the folder. Raises OSError when another process has it, or where folders have no
    locks."""
    try:
        import fcntl
    except ImportError:
        raise OSError("this system has no such locks") from None
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
