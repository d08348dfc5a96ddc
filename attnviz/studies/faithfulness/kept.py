"""What has been measured so far, in a file for each model: one line per sentence and part, so that a stopped run goes
on where it was."""

import hashlib
import json
from pathlib import Path

from attnviz import __version__
from attnviz.faithfulness.sentence import Sums


class Kept:
    """The measured sentences of a model, one part of the study after the other.

    sums : (part, text) -> what was measured, None of a text that has no output. The file is of these weights and of
    this version: other ones have another file.
    """

    def __init__(self, folder: Path, name: str, sha256: str):
        version = hashlib.sha256(f"{__version__} {sha256}".encode()).hexdigest()[:12]
        self.path = folder / f"{name.replace('/', '-')}-{version}.jsonl"
        self.sums: dict[tuple[str, str], Sums | None] = {}
        if self.path.exists():
            self._read()

    def _read(self) -> None:
        """A last line that was cut short is taken out of the file."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        if whole != content:
            self.path.write_bytes(whole)
        for line in whole.decode("utf-8").splitlines():
            row = json.loads(line)
            sums = row["sums"]
            self.sums[row["part"], row["text"]] = sums and {name: tuple(pair) for name, pair in sums.items()}

    def add(self, part: str, text: str, sums: Sums | None) -> None:
        self.sums[part, text] = sums
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"part": part, "text": text, "sums": sums}, ensure_ascii=False) + "\n")
