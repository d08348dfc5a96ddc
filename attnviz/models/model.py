"""What every model has in common, whether it is trained here or comes from the transformers library."""

import re
from typing import Protocol

from attnviz.arguments import shown
from attnviz.data.tokenizer_rules import CHARACTERS
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

    name: str
    mechanism: str

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

    def check_beam(self, beam: int) -> None:
        """ValueError for a beam (number of hypotheses) that this model does not take."""

    def log_prob(self, text: str, target: str | None) -> float:
        """Natural log of the probability of `target`. Raises what `trace` raises."""

    def projections(self) -> list[Projection]:
        """The output projections of attention, at which heads are switched off.

        ValueError, with the reason, when heads of this model cannot be switched off.
        """

    @property
    def why_no_log_prob(self) -> str:
        """Why `log_prob` cannot be measured, in a sentence; "" when it can."""


def check_text(text: str, what: str) -> None:
    """TextError for a text that no tokenizer can read; `what` is its name in the message."""
    if not isinstance(text, str):
        raise TextError(f"the {what} must be a string; got {shown(text)}")
    if not text.strip():
        raise TextError(f"the {what} is empty; type a sentence")
    if len(text) > CHARACTERS:
        raise TextError(
            f"the {what} is too long: {len(text):,} characters, and at most {CHARACTERS:,} are read; shorten it"
        )
    if _SURROGATE.search(text):  # bytes of the command line that are not UTF-8
        raise TextError(f"the {what} has bytes that are not valid characters; type it again, in UTF-8")
