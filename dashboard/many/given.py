"""The visitor's sentences, read and checked. No Streamlit here."""

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from attnviz import storage
from attnviz.data import records
from attnviz.data.records import Record, Unreadable
from dashboard.choices import pairs
from dashboard.choices.options import LIMIT, most_megabytes, most_sentences
from dashboard.choices.settings import is_elsewhere
from dashboard.shell.problems import SceneError, Waiting

UNPACKED = 8  # times as large a packed file may be, unpacked


@dataclass(frozen=True, eq=False)
class Given:
    """name : for readers. records : the sentences. problems : lines that cannot be read. cut : were sentences left out
    because of the limit?"""

    name: str
    records: tuple[Record, ...]
    problems: tuple[Unreadable, ...] = ()
    cut: bool = False

    @property
    def digest(self) -> str:
        """A hash that identifies the sentences."""
        rows = [(record.number, record.id, record.source, record.target) for record in self.records]
        return hashlib.sha256(json.dumps(rows).encode("ascii")).hexdigest()

    @property
    def has_targets(self) -> bool:
        return any(record.target for record in self.records)


def of_project(pair: str) -> Given:
    """The sentences with links set by hand; for a pair without them, its examples. SceneError without either."""
    linked = pairs.linked(pair)
    if linked:
        made = [
            Record(number, str(number), translation.source, translation.target)
            for number, translation in enumerate(linked, start=1)
        ]
        return gathered(f"the {len(made)} sentences linked by hand", made)
    examples = pairs.task(pair).examples
    if not examples:
        raise SceneError("This project has no sentences for this language pair. Paste some, or choose a file.")
    made = [Record(number, str(number), text) for number, text in enumerate(examples, start=1)]
    return gathered("the examples of the first page", made)


def of_text(text: str) -> Given:
    """Pasted sentences, one per line, or sentence, tab, translation."""
    if not text.strip():
        raise Waiting("There are no sentences yet. Paste some, one per line.")
    content = "\n".join(text.splitlines()).encode("utf-8", "replace")
    name = "the pasted sentences"
    return _checked(name, lambda: records.unpack(content, ".tsv", len(content), "the text"), name.capitalize())


def of_content(content: bytes, name: str) -> Given:
    """The sentences of an uploaded file."""
    return _checked(name, lambda: records.unpack(content, name, UNPACKED * most_megabytes() * 2**20))


def of_path(typed: str) -> Given:
    r"""The sentences of a file of this machine, by its path. A path like \\server\share, which would contact another
    machine, is refused."""
    if is_elsewhere(typed):
        raise SceneError("Only files on this machine are read.")
    path = Path(os.path.expanduser(typed))  # as it is where there is no such user
    try:
        storage.check_file(path)
    except OSError as error:
        raise SceneError(f"The file {typed[:80]} cannot be read: {error.strerror or 'no such file'}.") from None
    except ValueError:  # a name with a zero byte
        raise SceneError("Type the name of a file above.") from None
    return _checked(path.name, lambda: records.read(path))


def _checked(name: str, read: Callable[[], Iterable[Record | Unreadable]], subject: str = "This file") -> Given:
    """subject : of the error sentence."""
    try:
        return gathered(name, read())
    except (ValueError, OSError) as error:
        if isinstance(error, SceneError):
            raise
        reason = error.strerror if isinstance(error, OSError) and error.strerror else error
        raise SceneError(f"{subject} cannot be read: {reason}.") from None


def gathered(name: str, given: Iterable[Record | Unreadable]) -> Given:
    """At most as many sentences as this server accepts. SceneError if there are none."""
    most = most_sentences()
    taken = list(islice(_without_long(given), most + 1))
    read = tuple(record for record in taken[:most] if isinstance(record, Record))
    problems = tuple(record for record in taken[:most] if isinstance(record, Unreadable))
    if not read:
        reason = f" Line {problems[0].number}: {problems[0].reason}." if problems else ""
        raise SceneError(f"No sentence of {name[:80]} can be read.{reason}")
    return Given(name, read, problems, len(taken) > most)


def _without_long(given: Iterable[Record | Unreadable]) -> Iterator[Record | Unreadable]:
    """The records; too long texts, and translations without a sentence, become Unreadable; empty lines are left out."""
    for record in given:
        if not isinstance(record, Record):
            yield record
        elif len(record.source) > LIMIT or len(record.target or "") > LIMIT:
            yield Unreadable(record.number, f"it must have at most {LIMIT} characters; got more")
        elif record.source.strip():
            yield record._replace(target=(record.target or "").strip() or None, linked=None)
        elif (record.target or "").strip():
            yield Unreadable(record.number, "it has a translation and no sentence")
