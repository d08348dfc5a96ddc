"""Folders reserved for one process: only it writes there, or they exist only while it needs them.

Two processes that write into one folder would overwrite each other's files. A lock belongs to the open file, so the
system releases it when the process dies.
"""

import contextlib
import os
import shutil
import sys
import tempfile
import time
import weakref
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from attnviz.storage import make_folder

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl
PREFIX = "attnviz-"
YOUNG = 60.0  # s: a folder that was just made may not be locked yet


def lock_name(task: str) -> str:
    """The name of the lock file in the folder, which holds the number of the process at work."""
    return f"{task}.lock"


@contextlib.contextmanager
def locked(folder: Path, task: str) -> Iterator[None]:
    """Keep other processes from the same work in the folder while the block runs. The folder is created if necessary.

    task : the work, such as `training`. Raises ValueError if another process holds the lock.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    make_folder(folder)
    path = folder / lock_name(task)
    while True:
        file = path.open("a+", encoding="ascii", errors="replace")
        if not _lock(file):
            file.seek(0)
            who = file.read(20).strip()
            file.close()
            raise ValueError(
                f"another {task} is at work in {folder}{f' (process {who})' if who else ''}; wait until it ends, or "
                "choose another --out"
            )
        if not _is_ours(file):
            file.close()
            raise ValueError(f"{path} was not written by this program; choose another --out")
        if _is_there(path, file.fileno()):
            break
        file.close()  # the other has ended meanwhile and taken its file away
    try:
        file.truncate(0)
        file.write(f"{os.getpid()}\n")
        file.flush()
        yield
    finally:
        with contextlib.suppress(OSError):  # Windows keeps open files
            path.unlink()
        file.close()
        with contextlib.suppress(OSError):  # a run that was refused leaves no folder either
            for place in made:
                place.rmdir()


def _is_ours(file) -> bool:
    """Is it a lock file: empty, or with the number of a process?"""
    file.seek(0)
    text = file.read(20).strip()
    return not text or text.isdigit()


def _lock(file) -> bool:
    try:
        if sys.platform == "win32":
            file.seek(2**20)  # past what is written, which others may then read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (BlockingIOError, PermissionError):  # another has it
        return False
    except OSError:  # a file system without locks, as on some networks: no process can hold one
        return True
    return True


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False


class TemporaryFolder(tempfile.TemporaryDirectory):
    """Like tempfile.TemporaryDirectory, with a lock that is released when this process ends in any way."""

    def __init__(self) -> None:
        super().__init__(prefix=PREFIX)
        self._unlock = lambda: None
        with contextlib.suppress(OSError):  # a file system without locks; the folder is then only taken away in time
            self._unlock = weakref.finalize(self, os.close, _held(Path(self.name)))

    def cleanup(self) -> None:
        """Remove the folder."""
        super().cleanup()
        self._unlock()


@cache
def remove_left(parent: Path | None = None) -> None:
    """Remove the folders left by killed processes; runs once per process. parent : the folder that contains them."""
    now = time.time()
    for folder in (parent or Path(tempfile.gettempdir())).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):  # in use, of another user, or gone meanwhile
            if folder.is_symlink() or not folder.is_dir() or now - folder.stat().st_mtime < YOUNG:
                continue
            lock = _held(folder)
            try:
                shutil.rmtree(folder, ignore_errors=True)
            finally:
                os.close(lock)


def _held(folder: Path) -> int:
    """A file descriptor that locks the folder. Raises OSError if another process has the lock, or if folders cannot be
    locked."""
    if sys.platform == "win32":
        raise OSError("this system has no such locks")
    descriptor = os.open(folder, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
