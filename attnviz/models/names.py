"""The name of a trained model, PAIR/MECHANISM, such as en-fr/bahdanau. No torch here."""

from dataclasses import dataclass
from typing import Self

from attnviz.data import tasks
from attnviz.data.tasks import Task


@dataclass(frozen=True, order=True)
class ModelName:
    """A language pair or another task, and a mechanism: what a checkpoint's folder is called. `str` gives PAIR/MECHANISM."""

    pair: str
    mechanism: str

    def __post_init__(self):
        if not self.pair or not self.mechanism or "/" in self.pair + self.mechanism:
            raise ValueError(f"a model name must be PAIR/MECHANISM, such as en-fr/bahdanau; got {str(self)!r}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`en-fr/bahdanau` as a ModelName. ValueError for any other form."""
        pair, _, mechanism = text.partition("/")
        return cls(pair, mechanism)

    def __str__(self) -> str:
        return f"{self.pair}/{self.mechanism}"

    @property
    def task(self) -> Task:
        return tasks.find(self.pair)
