"""Write a file so that readers see the old content or the new, never a part."""

import contextlib
import errno
import os
import secrets
import stat
from collections.abc import Callable, Iterator
from pathlib import Path

_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path in the same folder, then rename that file to `path`.

    An existing file keeps its permissions. A link still leads to its file, which is replaced. A pipe or a device, such
    as /dev/stdout, cannot be replaced, so it is written to. OSError, with the name of `path`, when this fails.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    place = Path(os.path.realpath(path))
    mode = _mode(place)
    if mode is not None and not stat.S_ISREG(mode):
        _write_directly(path, write)
        return
    temporary = place.with_name(f"{place.name[:200]}.{secrets.token_hex(8)}.part")
    try:
        permitted = _new_file(temporary)
        write(temporary)
        temporary.chmod(permitted if mode is None else stat.S_IMODE(mode))  # safetensors: the owner only
        os.replace(temporary, place)
    except OSError as error:
        error.filename = str(path)  # the name that the user knows; a full disk gives none
        if error.errno in _REFUSED and not os.access(place.parent, os.W_OK):
            error.strerror = f"the folder {place.parent} is read-only"
        raise
    finally:
        with contextlib.suppress(OSError):  # on a read-only file system there is none
            temporary.unlink()  # left over when `write` failed


def _new_file(path: Path) -> int:
    """Make a file, where nothing is, not even a link -> the permissions that the person's umask gives it."""
    descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0), 0o666)
    try:
        return stat.S_IMODE(os.fstat(descriptor).st_mode)
    finally:
        os.close(descriptor)


def _mode(path: Path) -> int | None:
    try:
        return os.stat(path).st_mode
    except OSError:
        return None


def _write_directly(path: Path, write: Callable[[Path], object]) -> None:
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    try:
        with _read_by_somebody(path):
            write(path)
    except OSError as error:
        error.filename = str(path)
        raise


@contextlib.contextmanager
def _read_by_somebody(path: Path) -> Iterator[None]:
    """Who opens a pipe that nobody reads from waits for ever, so that is an OSError."""
    if not path.is_fifo():
        yield
        return
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            error.strerror = "it is a pipe, and nobody reads from it"
        raise
    try:
        yield
    finally:
        os.close(descriptor)
