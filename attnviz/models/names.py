"""Names of models: PAIR/MECHANISM of a trained one, such as en-fr/bahdanau, PAIR/MECHANISM@3 of a packed moment of its
training, and hf:NAME of a Hugging Face model. No torch here."""

import os.path
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from attnviz.data import tasks
from attnviz.data.tasks import Task

# The files of a checkpoint, in its folder; the tokenizer is in the folder of the pair.
WEIGHTS, CONFIG, CARD = "model.safetensors", "config.json", "card.json"
TOKENIZER = "tokenizer.json"
RUN = "training.safetensors"  # a training run: stopped, if there is no card
MOMENTS = "moments"  # the folder of packed moments, beside those of pairs


@dataclass(frozen=True, order=True)
class ModelName:
    """A language pair or another task, and a mechanism: the name of a checkpoint's folder. `str` gives PAIR/MECHANISM,
    followed by @ and a number (from 0) for a moment of the training (`attnviz.moments`)."""

    pair: str
    mechanism: str
    moment: int = -1

    def __post_init__(self):
        if not self.pair or not self.mechanism or "/" in self.pair + self.mechanism:
            raise ValueError(f"a model name must be PAIR/MECHANISM, such as en-fr/bahdanau; got {str(self)!r:.80}")

    @classmethod
    def parse(cls, text: str) -> Self:
        """`en-fr/bahdanau` as a ModelName. ValueError for any other form."""
        pair, _, mechanism = text.partition("/")
        if match := re.fullmatch(r"([^@]+)@(\d{1,3})", mechanism):
            return cls(pair, match[1], int(match[2]))
        return cls(pair, mechanism)

    def __str__(self) -> str:
        return f"{self.trained}@{self.moment}" if self.moment >= 0 else self.trained

    @property
    def trained(self) -> str:
        """The name of the trained model."""
        return f"{self.pair}/{self.mechanism}"

    @property
    def task(self) -> Task:
        return tasks.find(self.pair)

    def files(self, root: Path) -> list[Path]:
        """The files that the model is read from, below the folder of checkpoints."""
        folder = Path(root) / self.pair / self.mechanism
        if self.moment >= 0:
            return [Path(root) / MOMENTS / f"{self.trained}.moments", folder.parent / TOKENIZER]
        return [folder / WEIGHTS, folder / CONFIG, folder.parent / TOKENIZER]


def moments_file(name: str, root: Path) -> Path:
    """The file with the measurements of a model's packed moments; the moments are beside it, in a file `.moments`."""
    return Path(root) / MOMENTS / f"{name}.json"


ENDINGS = "json", "safetensors", "txt", "model", "spm", "jinja"  # files of a Hugging Face model: no code, no pickles
PREFIX = "prefix="  # behind the `#` of such a name
HUGGING_FACE = "hf:"  # before the name of a model for the transformers library


def is_hugging_face(text: str) -> bool:
    """Does a text begin like the name of a model for the transformers library?"""
    return text.startswith(HUGGING_FACE)


def without_prefix(text: str) -> str:
    """`hf:bert` as `bert`, and any other text as it is."""
    return text.removeprefix(HUGGING_FACE)


@dataclass(frozen=True)
class HuggingFaceName:
    """A model for the transformers library. path : its folder, or its name on the Hugging Face hub; for a multilingual
    model followed by `#` and two language codes: facebook/nllb-200#eng_Latn:fra_Latn; or by `#prefix=` and what it
    reads before every text. `str` gives hf:PATH."""

    path: str

    def __str__(self) -> str:
        return f"{HUGGING_FACE}{self.path}"

    @property
    def place(self) -> str:
        """The folder, or the name on the hub."""
        return self._parts[0]

    @property
    def languages(self) -> tuple[str, str]:
        """The codes of the source and the target language; "" if not named."""
        source, _, target = ("" if self.prefix else self._parts[1]).partition(":")
        return source, target

    @property
    def prefix(self) -> str:
        """What the model reads before every text; "" if nothing."""
        return self._parts[1].removeprefix(PREFIX) if self._parts[1].startswith(PREFIX) else ""

    @property
    def suffix(self) -> str:
        """What follows the place: `#` and the languages or the prefix, or nothing."""
        return self.path.removeprefix(self.place)

    @property
    def _parts(self) -> tuple[str, str]:
        place, mark, languages = self.path.rpartition("#")
        return (place, languages) if mark and not os.path.isdir(os.path.expanduser(self.path)) else (self.path, "")

    def files(self, root: Path) -> list[Path]:
        """The files that the model is read from, if it is a folder on this machine."""
        folder = Path(os.path.expanduser(self.place))
        if not os.path.isdir(folder):  # Path.is_dir() raises for a name that no file can have
            return []
        return sorted(path for ending in ENDINGS for path in folder.glob(f"*.{ending}"))


def parse(name: str) -> ModelName | HuggingFaceName:
    """The name of any model. ValueError for any other form."""
    if is_hugging_face(name):
        return HuggingFaceName(without_prefix(name))
    return ModelName.parse(name)
