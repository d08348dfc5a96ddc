"""Files of sentences, one record at a time: text lines, TSV, JSONL and Parquet, each also gzipped.

    .tsv      source, or source and target, or id, source and target; a first line that names them is no record
    .jsonl    objects with `source`, and `id`, `target` and `links` where there are any
    .parquet  the same four as columns
    others    one source per line

A file is unpacked if its first bytes are those of gzip, whatever its name. A record that cannot be read is yielded as
an Unreadable.
"""

import gzip
import io
import math
import zlib
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import IO, Any, NamedTuple

import pyarrow as pa
from pyarrow import parquet

from attnviz import gold, storage
from attnviz.arguments import listed
from attnviz.gold import LinkedPair

ROWS = 1024  # of a Parquet file that are read at a time
UNPACKED = 2**30  # bytes of a gzipped Parquet file, which is unpacked in memory
LINE = 2**16  # bytes of the longest line that is read
FIELDS = ("id", "source", "target", "links")


class Record(NamedTuple):
    """A sentence. number : of its line or row in the file, from 1. target : the text to force, or None.

    linked : source and target with the links between their words, if the file has links.
    """

    number: int
    id: str
    source: str
    target: str | None = None
    linked: LinkedPair | None = None


class Unreadable(NamedTuple):
    """A line that cannot be read as a record, and why."""

    number: int
    reason: str


def read(path: Path) -> Iterator[Record | Unreadable]:
    """The records of a file, in order. ValueError if the content does not have the format that the name implies,
    OSError if there is no such file."""
    storage.check_file(path)
    if path.name.lower().removesuffix(".gz").endswith(".parquet"):
        yield from _parquet(path)
        return
    with _open(path) as file:
        yield from _of_lines(file, path.name, str(path))


def unpack(content: bytes, name: str, most: int, shown: str = "") -> Iterator[Record | Unreadable]:
    """The records of an uploaded file. name : of the file; its ending gives the format. Parquet is not supported. shown
    : another name for errors.

    ValueError as in `read`, and for more than `most` bytes, unpacked.
    """
    if name.lower().removesuffix(".gz").endswith(".parquet"):
        raise ValueError(f"{name} must be lines of text, TSV or JSONL; Parquet files are for the command line")
    file = io.BytesIO(content)
    with _unpacked(file, name) as lines:
        yield from _of_lines(lines, name, shown or name, most)


def _of_lines(file: IO[bytes], name: str, shown: str, most: float = math.inf) -> Iterator[Record | Unreadable]:
    """The records of an open file. shown : its name in errors."""
    ending = name.lower().removesuffix(".gz")
    parse = _tsv if ending.endswith(".tsv") else _json if ending.endswith((".jsonl", ".ndjson")) else _line
    try:
        for number, line in enumerate(_lines(file, shown, most), start=1):
            if number == 1 and parse is _tsv and storage.is_header(line.decode("utf-8-sig", "replace"), shown):
                yield Unreadable(number, "it names the columns, so it is no sentence")
                continue
            try:
                if len(line) > LINE:
                    raise ValueError(f"it must have at most {LINE:,} bytes; got more")
                text = line.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
                yield parse(number, text)
            except UnicodeDecodeError as error:
                yield Unreadable(number, _not_utf8(error))
            except ValueError as error:
                yield Unreadable(number, str(error))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{shown} is a damaged gzip file: {error}") from None


def _lines(file: IO[bytes], shown: str, most: float) -> Iterator[bytes]:
    """The lines of a file; a line longer than LINE is cut to LINE + 1 bytes. Raises ValueError after `most`
    bytes, for NUL bytes, and for the mark of another encoding than UTF-8."""
    taken = number = 0
    while line := file.readline(LINE + 1):
        if not number:
            storage.check_mark(line[: storage.LONGEST_MARK], shown)
        rest, taken, number = line, taken + len(line), number + 1
        storage.check_line(line, number, shown)
        while len(rest) > LINE and not rest.endswith(b"\n"):
            rest = file.readline(LINE + 1)
            taken += len(rest)
            storage.check_line(rest, number, shown)
            if taken > most:
                break
        if taken > most:
            raise ValueError(f"{shown} must hold at most {most:,} bytes, unpacked; got more")
        yield line


def count(path: Path) -> int:
    """The number of records in a file, readable or not. Raises what `read` raises."""
    storage.check_file(path)  # it is read several times, so a pipe will not do
    if path.name.lower().removesuffix(".gz").endswith(".parquet"):
        return _table(path).metadata.num_rows
    try:
        with _open(path) as file:
            return sum(1 for _ in _lines(file, str(path), math.inf))
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is a damaged gzip file: {error}") from None


@contextmanager
def _open(path: Path) -> Iterator[IO[bytes]]:
    with path.open("rb") as file, _unpacked(file, path.name) as content:
        yield content


def _unpacked(file: IO[bytes], name: str) -> AbstractContextManager[Any]:
    """An open file, or the unpacked content of a gzip file, recognised by its first bytes or its name."""
    packed = file.read(2) == b"\x1f\x8b" or name.lower().endswith(".gz")
    file.seek(0)
    return gzip.open(file) if packed else nullcontext(file)


def _not_utf8(error: UnicodeDecodeError) -> str:
    return f"it must be UTF-8 text; got byte {error.object[error.start]:#04x}"


def _line(number: int, text: str) -> Record:
    return Record(number, str(number), text)


def _tsv(number: int, text: str) -> Record:
    fields = text.split("\t")
    if len(fields) > 3:
        raise ValueError(f"it must have 1 to 3 columns (id, source, target); got {len(fields)}")
    identity = fields.pop(0) if len(fields) == 3 else str(number)
    return Record(number, identity, fields[0], _given(fields[1]) if len(fields) > 1 else None)


def _given(target: str | None) -> str | None:
    """The target; None if it is empty, so that the sentence is translated."""
    return target if target and target.strip() else None


def _json(number: int, text: str) -> Record:
    try:
        values = storage.parse_json(text)
    except ValueError as error:
        raise ValueError(f"it must be a JSON object; {error}") from None
    if not isinstance(values, dict):
        raise ValueError(f"it must be a JSON object; got {text!r:.60}")
    return _record(number, values)


def _record(number: int, values: dict) -> Record:
    source, target, identity = (values.get(name) for name in ("source", "target", "id"))
    if not isinstance(source, str):
        raise ValueError(f"source must be a string; got {source!r:.60}")
    if not isinstance(target, str | None):
        raise ValueError(f"target must be a string or none; got {target!r:.60}")
    name = str(number) if identity is None else str(identity)
    for field, text in zip(FIELDS, (name, source, target or "")):
        if any("\ud800" <= character <= "\udfff" for character in text):  # JSON can say so, and nothing can write it
            raise ValueError(f"{field} must have whole characters; got half of one in {text!r:.60}")
        if "\0" in text:
            raise ValueError(f"{field} must have no NUL character; got {text!r:.60}")
    if values.get("links") is None:
        return Record(number, name, source, _given(target))
    pair = _linked(source, target, values["links"])
    return Record(number, name, pair.source, pair.target, pair)


def _linked(source: str, target: str | None, links) -> LinkedPair:
    """As in a file of gold links (attnviz/gold/README.md): words stand between spaces and bars."""
    if not isinstance(links, str) or target is None:
        raise ValueError(f"links must be a string, such as 0-0 1-2?, beside a target; got {links!r:.60}")
    return gold.pair(source, target, links)


def _parquet(path: Path) -> Iterator[Record | Unreadable]:
    table, number = _table(path), 0
    names = [name for name in FIELDS if name in table.schema_arrow.names]
    if "source" not in names:
        raise ValueError(f"{path} must have a column `source`; got {listed(table.schema_arrow.names[:20])}")
    for batch in _batches(table, path, names):
        for place in range(len(batch)):
            number += 1
            try:
                yield _record(number, {name: batch.column(name)[place].as_py() for name in names})
            except UnicodeDecodeError as error:
                yield Unreadable(number, _not_utf8(error))
            except ValueError as error:
                yield Unreadable(number, str(error))


def _batches(table: parquet.ParquetFile, path: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        yield from table.iter_batches(batch_size=ROWS, columns=names)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{path} is a damaged Parquet file: {error}") from None


def _table(path: Path) -> parquet.ParquetFile:
    """A gzipped file is unpacked in memory: Parquet is read from its end."""
    try:
        if not path.name.lower().endswith(".gz"):
            return parquet.ParquetFile(path)
        with _open(path) as file:
            content = file.read(UNPACKED + 1)
        if len(content) > UNPACKED:
            raise ValueError(f"{path} unpacks to more than {UNPACKED // 2**20:,} MiB; unpack it yourself")
        return parquet.ParquetFile(io.BytesIO(content))
    except (pa.ArrowInvalid, gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise ValueError(f"{path} is no Parquet file: {error}") from None
