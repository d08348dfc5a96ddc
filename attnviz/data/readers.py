"""Text files to pairs of sentences: line-aligned files, tab-separated files, and sentences with a label."""

import gzip
import io
import zlib
from collections.abc import Sequence
from pathlib import Path

from attnviz import storage

# a gzip file may unpack to so many times its size, and to as many bytes whatever its size
DENSEST, SMALL = 100, 64 * 2**20
LARGEST = 4 * 2**30  # bytes of a file
SentencePair = tuple[str, str]  # source and target; of a classification task the sentence and its label
Pairs = list[SentencePair]


def read_lines(path: Path) -> list[str]:
    """Lines of a UTF-8 text, with or without a byte-order mark, plain or gzipped (by its first bytes, not its name).

    ValueError when it is neither, or holds a NUL byte.
    """
    try:
        content = storage.read(path, LARGEST)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror}") from None
    return lines_of(unpack(content, path), path)


def lines_of(content: bytes, name: str | Path) -> list[str]:
    """`read_lines` for a text that is already in memory. name : for errors."""
    text = storage.decode(content, name)
    end = "\n" if "\n" in text else "\r"  # the line ends of old Macs
    return text.removesuffix(end).split(end) if text else []


def unpack(content: bytes, name: str | Path) -> bytes:
    """The content of a gzip file; any other content unchanged.

    ValueError, which names `name`, if it is damaged, or unpacks to far more than any text would."""
    if content[:2] != b"\x1f\x8b":
        return content
    limit = max(SMALL, DENSEST * len(content))
    try:
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            unpacked = file.read(limit + 1)
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{name} is a damaged gzip file: {error}") from None
    if len(unpacked) > limit:
        raise ValueError(
            f"{name} unpacks to more than {limit // 2**20:,} MiB, too much for a file of its size; unpack it yourself"
        )
    return unpacked


def find_file(folder: Path, name: str) -> Path | None:
    """The file `name` or `name`.gz in a folder; None when there is neither."""
    return next((path for path in (folder / name, folder / f"{name}.gz") if path.is_file()), None)


def parallel_rows(source: Path, target: Path) -> Pairs:
    """The lines of two files side by side. ValueError when one has more."""
    sources, targets = read_lines(source), read_lines(target)
    if len(sources) != len(targets):
        raise ValueError(f"{source} has {len(sources)} lines and {target} has {len(targets)}; they must be aligned")
    return [(a.strip(), b.strip()) for a, b in zip(sources, targets)]


def read_parallel(source: Path, target: Path) -> Pairs:
    """Line-aligned files as pairs; pairs with an empty side are left out."""
    return drop_incomplete(parallel_rows(source, target))


def tsv_rows(path: Path) -> Pairs:
    """The first two columns of every line; "" where there is none, and in a first line that names the columns."""
    return rows_of(read_lines(path), path)


def rows_of(lines: list[str], name: str | Path) -> Pairs:
    """`tsv_rows` for lines that are already read. name : for errors."""
    lines = list(lines)
    if lines and storage.is_header(lines[0], name):
        lines[0] = ""
    rows = ([field.strip() for field in line.split("\t")] for line in lines)
    return [(row[0], row[1] if len(row) > 1 else "") for row in rows]


def read_tsv(path: Path) -> Pairs:
    """Pairs from the first two columns of a tab-separated file; lines without both are left out."""
    return drop_incomplete(tsv_rows(path))


def drop_incomplete(rows: Pairs) -> Pairs:
    """The rows with text on both sides."""
    return [row for row in rows if all(row)]


def read_labelled(path: Path, labels: Sequence[str]) -> Pairs:
    """Sentences with one of `labels`, from lines of sentence<TAB>number of the label. Empty lines are left out.

    ValueError, which names file and line, for a line without a label or with an unknown one.
    """
    pairs = []
    for number, line in enumerate(read_lines(path), start=1):
        sentence, _, label = (field.strip() for field in line.partition("\t"))
        if not (sentence or label):
            continue
        if not sentence or label not in map(str, range(len(labels))):
            wanted = " or ".join(f"{i} ({name})" for i, name in enumerate(labels))
            raise ValueError(
                f"{path} line {number} must be a sentence, a tab, and its label, {wanted}; got {line!r:.80}"
            )
        pairs.append((sentence, labels[int(label)]))
    return pairs


class DataFolder:
    """A folder below the data folder. files : name -> SHA-256 of every file read so far."""

    def __init__(self, data: Path, name: str):
        self.path, self.files = Path(data) / name, {}

    def parallel(self, name: str, source: str, target: str) -> Pairs:
        """The pairs of `name`.SOURCE and `name`.TARGET."""
        return read_parallel(self._find(f"{name}.{source}"), self._find(f"{name}.{target}"))

    def tsv(self, name: str) -> Pairs:
        return read_tsv(self._find(name))

    def lines(self, name: str) -> list[str]:
        return read_lines(self._find(name))

    def labelled(self, name: str, labels: Sequence[str]) -> Pairs:
        return read_labelled(self._find(name), labels)

    def _find(self, name: str) -> Path:
        path = find_file(self.path, name)
        if path is None:
            raise FileNotFoundError(
                f"no {name} or {name}.gz in {self.path}; point --data at the folder that holds the corpora, "
                "or fetch them: python -m attnviz download"
            )
        self.files[f"{self.path.name}/{path.name}"] = storage.sha256(path)
        return path
