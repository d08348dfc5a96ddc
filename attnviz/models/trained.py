"""What all trained models share: a checkpoint's model, tokenizer and card, and how a text is read for it."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self

from torch import nn

from attnviz.data.limits import LONGEST
from attnviz.data.tokenizer import Text, Tokens
from attnviz import mechanisms
from attnviz.data.tasks import Task
from attnviz.models import checkpoints
from attnviz.models.names import ModelName
from attnviz.networks import projections
from attnviz.networks.projections import Projection


_SURROGATE = re.compile("[\ud800-\udfff]")


class TextError(ValueError):
    """A text that no model can take; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Trained:
    """A checkpoint, ready to trace.

    name : `pair/mechanism`. text : the tokenizer of the pair. card : what the model was trained on and scored.
    """

    name: str
    mechanism: str
    model: nn.Module
    text: Text
    card: dict

    @classmethod
    def load(cls, name: str, root: Path | None = None, text: Text | None = None) -> Self:
        """Read a checkpoint below `root` (this project's own by default). Raises checkpoints.CheckpointError.

        text : the pair's tokenizer, when it is at hand already.
        """
        root = root or checkpoints.ROOT
        model, config = checkpoints.load_model(name, root)
        text = text or checkpoints.load_text(ModelName.parse(name).pair, root)
        if len(text) != config["vocabulary"]:
            raise checkpoints.CheckpointError(
                f"{name}: the model knows {config['vocabulary']} pieces and the tokenizer {len(text)}; "
                "they do not belong together"
            )
        return cls(name, config["mechanism"], model, text, checkpoints.verify(name, root))

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
        """What is known of its pair."""
        return ModelName.parse(self.name).task

    def read(self, text: str, what: str = "text") -> Tokens:
        """The pieces of a text; `what` is its name in errors. Raises TextError for an empty or too long one."""
        check(text, what)
        tokens = self.text.encode(text)
        if len(tokens.ids) == 1:
            raise TextError(f"the {what} holds no visible character; type a sentence")
        if len(tokens.ids) > LONGEST:
            raise TextError(
                f"the {what} is too long: {len(tokens.ids)} pieces with the end mark, and the models read at most "
                f"{LONGEST}; shorten it or split it into sentences"
            )
        return tokens

    def projections(self) -> list[Projection]:
        """Where its heads can be switched off."""
        return projections.own(self.model)

    def log_prob(self, text: str, target: str) -> float:
        """Natural log of the probability of `target`, as of `trace(text, target)`. Raises what that raises."""
        return self.trace(text, target).log_prob


def check(text: str, what: str) -> None:
    """TextError for a text that no tokenizer can read; `what` is its name there."""
    if not text.strip():
        raise TextError(f"the {what} is empty; type a sentence")
    if _SURROGATE.search(text):  # bytes of the command line that are not UTF-8
        raise TextError(f"the {what} holds bytes that are no characters; type it again, in UTF-8")


def describe(name: str, root: Path | None = None) -> dict:
    """A checkpoint's card and state without reading its weights: name, mechanism, title, problem (None when sound)."""
    root = root or checkpoints.ROOT
    try:
        config, card = checkpoints.check(name, root), checkpoints.verify(name, root)
    except checkpoints.CheckpointError as error:
        return {"name": name, "problem": str(error)}
    title = mechanisms.find(config.mechanism).title
    return card | {"name": name, "mechanism": config.mechanism, "title": title, "problem": None}
