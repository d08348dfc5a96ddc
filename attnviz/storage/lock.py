"""One process at a time writes into a folder: two would write over each other's files."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None
    import msvcrt


def name(task: str) -> str:
    """The name of the file in the folder that says who is at work there."""
    return f"{task}.lock"


@contextlib.contextmanager
def locked(folder: Path, task: str) -> Iterator[None]:
    """Keep other processes from the same work in the folder while the block runs. The folder is made if need be.

    task : the work, such as `training`. Raises ValueError while another process is at it.

    The lock belongs to the open file, so the system takes it back from a process that died, however it did.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name(task)
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
    """Is the file empty, or does it hold the number of a process?"""
    file.seek(0)
    text = file.read(20).strip()
    return not text or text.isdigit()


def _lock(file) -> bool:
    try:
        if fcntl:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            file.seek(2**20)  # past what is written, which others may then read
            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except (BlockingIOError, PermissionError):  # another has it
        return False
    except OSError:  # a file system without locks, as some networks have: nobody can hold anything there
        return True
    return True


def _is_there(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except OSError:
        return False
