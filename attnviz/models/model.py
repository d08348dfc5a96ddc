"""The interface of all models (`Model`), and the base of those trained here (`Trained`): a checkpoint's network,
tokenizer and card, and how it reads a text."""

import re
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Protocol, Self

from attnviz import mechanisms
from attnviz.arguments import shown
from attnviz.data import MOST_PIECES, sentences
from attnviz.data.tasks import Task
from attnviz.data.tokenizer import SubwordTokenizer, Tokens
from attnviz.data.tokenizer_rules import CHARACTERS, TokenizerError, contained
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.measured import TraceStatistics
from attnviz.models.names import ModelName
from attnviz.networks import projections
from attnviz.networks.projections import Projection
from attnviz.trace import Trace

_SURROGATE = re.compile("[\ud800-\udfff]")


class TextError(ValueError):
    """A text that the model cannot read; the message says why and what to do."""


class Model(Protocol):
    """A model with its tokenizer: text in, Trace out.

    name : as `attnviz.load` takes it. title : for readers. mechanism : the mechanism, or the family of a Hugging Face
        model.
    head_kinds : kinds of attention that have heads to show, in the order of the model. limit : tokens of the longest
        text.
    labels : those that a classifier chooses from; () for a model that writes or only reads text.
    """

    __dataclass_fields__: ClassVar[dict[str, Any]]  # a model is one, so `dataclasses.replace` takes it

    @property
    def name(self) -> str: ...

    @property
    def mechanism(self) -> str: ...

    @property
    def model(self) -> Any:
        """Its network."""

    @property
    def title(self) -> str: ...

    @property
    def head_kinds(self) -> tuple[str, ...]: ...

    @property
    def limit(self) -> int: ...

    @property
    def labels(self) -> tuple[str, ...]: ...

    def trace(self, text: str, target: str | None = None) -> Trace:
        """The output for a text with all attention weights; or for `target`, which the model is forced to produce.

        Raises TextError for a text that cannot be read, ValueError for a target that does not apply.
        """

    def traces(
        self,
        texts: Iterable[str],
        targets: Iterable[str | None] | None = None,
        *,
        batch_size: int = ...,
        beam: int = 1,
        keep: Collection[str] = ("maps",),
    ) -> Iterator[Trace | TraceStatistics | TextError]:
        """`trace` of each text, in the order given; a TextError in the place of a text that cannot be read. keep :
        "maps" of `Trace`, "statistics" of `TraceStatistics`, or both. Raises ValueError."""

    def check_beam(self, beam: int) -> None:
        """ValueError for a beam (number of hypotheses) that this model does not take."""

    def log_prob(self, text: str, target: str | None = None) -> float:
        """Natural log of the probability of `target`, or of a text that the model only reads. Raises what `trace`
        raises."""

    def projections(self) -> list[Projection]:
        """The output projections of attention, at which heads are switched off.

        ValueError, with the reason, when heads of this model cannot be switched off.
        """

    @property
    def why_no_log_prob(self) -> str:
        """Why `log_prob` cannot be measured, in a sentence; "" when it can."""


def check_text(text: str, what: str, most: int = CHARACTERS) -> None:
    """TextError for a text that no tokenizer can read, or of more than `most` characters; `what` names the text in the
    message."""
    if not isinstance(text, str):
        raise TextError(f"the {what} must be a string; got {shown(text)}")
    if not text.strip():
        raise TextError(f"the {what} is empty; type a sentence")
    if len(text) > most:
        raise TextError(f"the {what} is too long: {len(text):,} characters, and at most {most:,} are read; shorten it")
    if _SURROGATE.search(text):  # bytes of the command line that are not UTF-8
        raise TextError(f"the {what} has bytes that are not valid characters; type it again, in UTF-8")


@dataclass(frozen=True, eq=False)
class Trained(ABC):
    """A checkpoint, ready to trace. It implements the protocol `Model`.

    name : `pair/mechanism`. model : the network of its mechanism; subclasses declare what they need of it. card : its
    training data, settings and scores.
    """

    name: str
    mechanism: str
    model: Any
    tokenizer: SubwordTokenizer
    card: dict

    why_no_log_prob = ""

    @classmethod
    def load(cls, name: str, root: Path | None = None, tokenizer: SubwordTokenizer | None = None) -> Self:
        """Read a checkpoint below `root` (by default see `checkpoint_files.roots`). Raises CheckpointError.

        tokenizer : the pair's, when it is already loaded.
        """
        root = checkpoint_files.root_of(name, root)
        model, config = checkpoints.load_model(name, root)
        tokenizer = tokenizer or checkpoints.load_tokenizer(ModelName.parse(name).pair, root)
        if len(tokenizer) != config["vocabulary"]:
            raise checkpoint_files.CheckpointError(
                f"{name}: the model knows {config['vocabulary']} pieces and the tokenizer {len(tokenizer)}; "
                "they do not belong together"
            )
        return cls(name, config["mechanism"], model, tokenizer, checkpoints.verify(name, root))

    @abstractmethod
    def trace(self, text: str, target: str | None = None) -> Trace:
        """As of `Model`."""

    @abstractmethod
    def traces(
        self,
        texts: Iterable[str],
        targets: Iterable[str | None] | None = None,
        *,
        batch_size: int = ...,
        beam: int = 1,
        keep: Collection[str] = ("maps",),
    ) -> Iterator[Trace | TraceStatistics | TextError]:
        """As of `Model`."""

    @abstractmethod
    def check_beam(self, beam: int) -> None:
        """As of `Model`."""

    def __repr__(self) -> str:
        """One line: which model, and how large."""
        parameters = sum(parameter.numel() for parameter in self.model.parameters())
        return f"{type(self).__name__}({self.name}: {self.title}, {parameters:,} parameters)"

    @property
    def limit(self) -> int:
        """Pieces of the longest text."""
        return MOST_PIECES

    @property
    def title(self) -> str:
        """The mechanism's name for readers."""
        return mechanisms.find(self.mechanism).title

    @property
    def pair(self) -> str:
        """The language pair, or the other task, that it was trained for."""
        return ModelName.parse(self.name).pair

    @property
    def task(self) -> Task:
        return ModelName.parse(self.name).task

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels that it chooses from; () of a model that translates."""
        return self.task.labels

    def output(self, number: int) -> str:
        """The piece or the label of an output index of the network."""
        return self.labels[number] if self.labels else self.tokenizer.choice(number)

    @property
    def head_kinds(self) -> tuple[str, ...]:
        """Kinds of attention that have heads to show."""
        return mechanisms.find(self.mechanism).head_kinds

    def read(self, text: str, what: str = "text") -> Tokens:
        """The pieces of a text; `what` is its name in errors. Raises TextError for an empty or too long one.

        Text in capitals is read as a normal sentence (`sentences.read`); a target is read as given.
        """
        tokens = self._divided(text, what)
        if len(tokens.ids) == 1:
            raise TextError(f"the {what} has no visible character; type a sentence")
        if len(tokens.ids) > MOST_PIECES:
            raise TextError(
                f"the {what} is too long: {len(tokens.ids)} pieces with <eos>, and the models read at most "
                f"{MOST_PIECES}; shorten it or split it into sentences"
            )
        return tokens

    def _divided(self, text: str, what: str) -> Tokens:
        """The pieces of a text of any length. Raises TextError for a text that no tokenizer can read."""
        check_text(text, what)
        try:
            with contained():
                return sentences.read(text, self.tokenizer) if what == "text" else self.tokenizer.encode(text)
        except TokenizerError as error:
            raise TextError(f"{self.name} cannot read the {what}: {error}") from None

    @property
    def longest(self) -> int:
        """The largest number of pieces (<eos> included) of its training texts, except one in a thousand; 0 if
        unknown."""
        longest = self.card.get("longest")
        return longest if type(longest) is int and longest > 0 else 0

    def projections(self) -> list[Projection]:
        """Where its heads can be switched off."""
        return projections.own(self.model)

    def log_prob(self, text: str, target: str | None = None) -> float:
        """Natural log of the probability of `target`, as in `trace(text, target)`. Raises what `trace` raises."""
        return sum(self.trace(text, target).log_probs)


def describe(name: str, root: Path | None = None) -> dict:
    """A checkpoint's card and state without reading its weights: name, mechanism, title, problem (None if sound), and
    to_fetch: are its weights downloaded at first use?"""
    root = checkpoint_files.root_of(name, root)
    try:
        config, card = checkpoints.check(name, root), checkpoints.verify(name, root)
    except checkpoint_files.CheckpointError as error:
        return {"name": name, "problem": str(error)}
    title = mechanisms.find(config.mechanism).title
    state = {"problem": None, "to_fetch": checkpoint_files.is_to_fetch(name, root)}
    return card | {"name": name, "mechanism": config.mechanism, "title": title} | state
