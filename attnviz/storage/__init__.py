"""Files. Files from others are read only if they are ordinary files; errors describe the problem in one sentence.
`replace` writes a file whole or not at all, so that readers see either the old or the new content.

A read from a pipe could wait for ever, and a device may be endless. Text must be UTF-8, with or without a byte-order
mark, without NUL bytes: other encodings would silently decode to wrong characters, so they are refused by name.
`folders` locks folders.
"""

import codecs
import contextlib
import errno
import hashlib
import json
import math
import os
import re
import secrets
import stat
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

_KINDS = (
    (stat.S_ISDIR, "a folder"),
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)
# UTF-32 first: its little-endian mark begins with that of UTF-16.
_MARKS = (
    (codecs.BOM_UTF32_LE, "UTF-32"),
    (codecs.BOM_UTF32_BE, "UTF-32"),
    (codecs.BOM_UTF16_LE, "UTF-16"),
    (codecs.BOM_UTF16_BE, "UTF-16"),
)
LONGEST_MARK = 4  # bytes
# What each column of a TSV file may be called in a first line that names them.
_COLUMNS = {
    "id": "id number",
    "source": "source src sentence text input original english eng en",
    "target": "target tgt translation translated output reference label french fr fra german de deu japanese ja jpn",
}
_REFUSED = (errno.EACCES, errno.EPERM, errno.EROFS)
_ENGLISH = ("english", "eng", "en")  # a short word beside it is the code of another language
_FILLERS = {"sentence", "text"}  # of `source_text` and `English sentence`
_ORDERS = (["source"], ["source", "target"], ["id", "source", "target"])


class NotRegularError(OSError):
    """A path that is not an ordinary file, or a file that is too large; `strerror` says which."""


def check_file(path: str | Path, limit: float = math.inf) -> int:
    """The size in bytes of an ordinary file. NotRegularError for anything else or above `limit`, OSError without a
    file."""
    return _size(os.stat(path), path, limit)


def read(path: str | Path, limit: int) -> bytes:
    """The content of an ordinary file of at most `limit` bytes. Raises NotRegularError, OSError."""
    check_file(path, limit)  # it says what else is there; opening a socket fails with words of its own
    # Without O_NONBLOCK the mere opening of a pipe waits until somebody writes to it.
    descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0))
    with os.fdopen(descriptor, "rb") as file:
        _size(os.fstat(descriptor), path, limit)
        content = file.read(limit + 1)
    if len(content) > limit:  # a file of /proc has no size, and an end that depends
        raise NotRegularError(0, f"more than {limit:,} bytes", str(path))
    return content


def _size(status: os.stat_result, path: str | Path, limit: float) -> int:
    if not stat.S_ISREG(status.st_mode):
        kind = next((name for is_kind, name in _KINDS if is_kind(status.st_mode)), "something else")
        raise NotRegularError(0, f"not a file but {kind}", str(path))
    if status.st_size > limit:
        raise NotRegularError(0, f"{status.st_size:,} bytes, and at most {limit:,} are read", str(path))
    return status.st_size


def sha256(path: str | Path) -> str:
    """Hex digest of an ordinary file. Raises NotRegularError, OSError."""
    check_file(path)
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def stamp(*paths: str | Path) -> tuple:
    """A value that changes when one of the files changes, as a cache key for their contents.

    One entry for each path: (bytes, times and place on the disk); None where there is no ordinary file.
    """
    return tuple(map(_stamp, paths))


def _stamp(path: str | Path) -> tuple | None:
    try:
        status = os.stat(path)
    except (OSError, ValueError):  # ValueError: a path with a NUL
        return None
    place = status.st_mtime_ns, status.st_ctime_ns, status.st_dev, status.st_ino
    return (status.st_size, *place) if stat.S_ISREG(status.st_mode) else None


def check_mark(start: bytes, name: str | Path) -> None:
    """ValueError if a file begins with the byte-order mark of another encoding than UTF-8. start : its first bytes."""
    for mark, encoding in _MARKS:
        if start.startswith(mark):
            raise ValueError(f"{name} must be UTF-8 text; its first bytes say {encoding}: save it as UTF-8")


def check_line(line: bytes, number: int, name: str | Path) -> None:
    """ValueError for a line that holds a NUL byte. number : of the line, from 1."""
    if b"\0" in line:
        raise ValueError(
            f"{name} must be UTF-8 text; line {number:,} holds a NUL byte, as UTF-16 text and files that are no text do"
        )


def decode(content: bytes, name: str | Path) -> str:
    """The text of a whole file. name : for errors. ValueError when it is not UTF-8, or holds a NUL."""
    check_mark(content[:LONGEST_MARK], name)
    if (place := content.find(b"\0")) >= 0:
        check_line(b"\0", content.count(b"\n", 0, place) + 1, name)
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(
            f"{name} must be UTF-8 text; got byte {error.object[error.start]:#04x} at {error.start}"
        ) from None


def is_header(line: str, name: str | Path) -> bool:
    """Does the first line of a TSV file name its columns? ValueError if their order is not supported."""
    fields = [_column(field) for field in line.split("\t")]
    roles = [next((role for role, names in _COLUMNS.items() if field in names.split()), None) for field in fields]
    if len(fields) == 2 and fields[0] in _ENGLISH and re.fullmatch("[a-z]{2,3}", fields[1]):
        roles[1] = roles[1] or "target"
    if None in roles or (len(fields) == 1 and not re.fullmatch("source|sentence", fields[0])):
        return False
    if roles not in _ORDERS:
        raise ValueError(
            f"{name} must have the columns source; source, target; or id, source, target; its first line says "
            f"{', '.join(fields)}"
        )
    return True


def _column(field: str) -> str:
    """The normalised name of a column: `"Source_text"` and `# source` become `source`, `fr-FR` becomes `fr`. Text with
    sentence punctuation is unchanged."""
    plain = re.sub(r"^#\s*|[\s\"']+$|^[\s\"']+", "", field).casefold()
    words = re.split(r"[ _-]+", re.sub(r"^([a-z]{2})[-_][a-z]{2}$", r"\1", plain))
    return " ".join([word for word in words if word not in _FILLERS] or words[:1])


def parse_json(text: str | bytes):
    """JSON -> its value. Raises ValueError with a reason that completes "it cannot be read: …".

    text : bytes are UTF-8, with or without a byte order mark.
    """
    try:
        return json.loads(text.decode("utf-8-sig") if isinstance(text, bytes) else text)
    except UnicodeDecodeError as error:
        raise ValueError(f"it is not text in UTF-8 (byte {error.start:,})") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"it is not JSON: {error.msg} in line {error.lineno:,}, column {error.colno:,}") from None
    except ValueError:  # Python converts no longer number, which would take long
        raise ValueError(f"it has a number of more than {sys.get_int_max_str_digits():,} digits") from None
    except RecursionError:
        raise ValueError("its lists or objects are nested too deeply") from None


def check_writable(path: Path) -> None:
    """OSError if a file or a folder cannot be written at `path` because the folder is read-only. It names that folder.
    Long work asks before it starts."""
    place = Path(os.path.realpath(path))
    if place.exists() and not (place.is_file() or place.is_dir()):
        return  # a pipe or a device
    folder = next(folder for folder in (place, *place.parents) if folder.is_dir())
    if not os.access(folder, os.W_OK):
        raise PermissionError(errno.EACCES, f"the folder {folder} is read-only; choose another one", str(path))


def make_folder(folder: Path) -> None:
    """Create a folder, with those above it that are missing. OSError if this fails."""
    if not folder.exists():
        check_writable(folder)
    folder.mkdir(parents=True, exist_ok=True)


def replace(path: Path, write: Callable[[Path], object]) -> None:
    """Call `write` with a temporary path in the same folder, then rename that file to `path`.

    An existing file keeps its permissions. A symbolic link is kept, and its target is replaced. A pipe or a device,
    such as /dev/stdout, is written to directly. OSError, with the name of `path`, if this fails.
    """
    make_folder(path.parent)
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
        if error.errno in _REFUSED:
            check_writable(path)
        raise
    finally:
        with contextlib.suppress(OSError):  # on a read-only file system there is none
            temporary.unlink()  # left over when `write` failed


def unfinished(folder: Path) -> list[Path]:
    """Temporary files of `replace` in a folder and below it, left by killed processes."""
    return [path for path in sorted(folder.rglob("*.part")) if re.search(r"\.[0-9a-f]{16}\.part$", path.name)]


def _new_file(path: Path) -> int:
    """Create a file at a free path (not even a link may exist) -> its permissions according to the umask."""
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
    """OSError for a pipe without a reader, because opening it would block for ever."""
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
