"""Download the public corpora. A file is kept only when it is complete and its hash is right.

The hash is of the unpacked text, because a host may compress it again. The hashes come from local copies of the
corpora, not from a download: the names and dates in the gzip headers of Multi30K are those of its authors, and the
numbers of lines and characters of the Tanaka sentences agree with the published ones. The everyday sentences of Tatoeba
(everyday.py) have no public address with the same bytes; a task without them is trained on its own corpus alone.
"""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from attnviz.data import tasks
from attnviz.data.readers import find_file, unpack
from attnviz.data.task import Download
from attnviz.storage import atomic


def fetch(name: str, data: Path, report: Callable[[str], object] = lambda line: None) -> None:
    """Put the corpora of a task into the folder `data`; a file that is already there is checked and kept.

    report : is called with one line for each file. Raises ValueError for a task without public corpora, and for a file,
    here or there, whose hash is wrong; OSError when the host cannot be reached.
    """
    task = tasks.find(name)
    if task.generated:
        raise ValueError(f"{name} is generated; there is nothing to fetch")
    if not task.downloads:
        offered = [other.name for other in tasks.TASKS.values() if other.downloads]
        raise ValueError(f"there are no public corpora for {name}; choose one of {', '.join(offered)}")
    for file in task.downloads:
        path = Path(data) / file.name
        present = find_file(path.parent, path.name.removesuffix(".gz"))
        if present is None:
            _download(file, path)
        elif (digest := _digest(unpack(present.read_bytes(), present))) != file.sha256:
            raise ValueError(
                f"{present} is not the file of that name in the corpus: the SHA-256 of its text is {digest}, and "
                f"should be {file.sha256}; move it away"
            )
        report(f"{present or path}: {'already there' if present else 'fetched'}, hash correct")


def _download(file: Download, path: Path) -> None:
    import pooch  # only a download needs it

    pooch.get_logger().setLevel("WARNING")
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=path.parent) as folder:
        parts = []
        for number, url in enumerate(file.urls):
            try:
                parts.append(Path(pooch.retrieve(url, known_hash=None, fname=str(number), path=folder)).read_bytes())
            except OSError as error:  # those of `requests` are
                raise OSError(f"cannot fetch {url}: {error}") from None
    text = b"".join(map(unpack, parts, file.urls))
    if file.lines is not None:
        text = b"\n".join(text.split(b"\n")[: file.lines]) + b"\n"
    if (digest := _digest(text)) != file.sha256:
        raise ValueError(
            f"{' '.join(file.urls)} has changed: the SHA-256 of its text is {digest}, and should be "
            f"{file.sha256}; nothing is kept"
        )
    content = parts[0] if len(parts) == 1 else text
    atomic.replace(path, lambda temporary: temporary.write_bytes(content))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()
