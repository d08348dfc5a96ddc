"""The sources of traces for the page of heads: a trained model, a Hugging Face model, or a saved trace. All implement
`scene.Source`."""

from dataclasses import dataclass, field

import streamlit as st

from attnviz import mechanisms
from attnviz.data.tasks import Task
from attnviz.models.measured import Reduced
from attnviz.models.names import ModelName, without_prefix
from attnviz.service import Guest
from attnviz.trace import AttentionMap, Trace
from dashboard.choices import pairs
from dashboard.choices.options import Writing, limit, model_title
from dashboard.heads.scene import ordered
from dashboard.session import caches
from dashboard.shell import turns
from dashboard.shell.problems import Waiting, check_text, sentence

_NO_MODEL = (
    "A saved trace does not contain its model, so heads cannot be switched off here. "
    "In Python, use attnviz.ablation with the model."
)


_AROUND = 8  # tokens that a tokenizer adds around a text, at most
# To compute and reduce a weight: 88, 171 and 240 ns of a processor with 2,050, 4,100 and 8,190 tokens, because a long
# row leaves the caches.
_SECONDS, _LONG_ROW = 7e-8, 2500


@dataclass(frozen=True)
class _ModelSource:
    """A model, by its name."""

    name: str

    @property
    def key(self) -> tuple:
        return caches.key(self.name)

    def check(self, text: str) -> None:
        """Raises SceneError for a text that is not read."""
        raise NotImplementedError

    def trace(self, text: str, target: str | None = None) -> Trace:
        self.check(text)
        return caches.trace(self.name, text, target)

    def write(self, text: str, writing: Writing) -> Trace:
        """The text with what the model writes after it."""
        self.check(text)
        return caches.written(self.name, text, writing)


@dataclass(frozen=True)
class TrainedSource(_ModelSource):
    """A checkpoint, by its name (`pair/mechanism`)."""

    why_no_ablation = why_no_importance = ""
    begins_with = 20

    @property
    def title(self) -> str:
        return model_title(self.name)

    @property
    def mechanism(self) -> str:
        return ModelName.parse(self.name).mechanism

    @property
    def languages(self) -> Task:
        return pairs.task(ModelName.parse(self.name).pair)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ordered(mechanisms.find(self.mechanism).head_kinds)

    @property
    def writes(self) -> bool:
        return self.languages.translates

    def check(self, text: str) -> None:
        """Raises SceneError for a text that is not read."""
        check_text(text, most=limit(self.languages))

    def reduced(self, text: str) -> None:
        """The text is read whole."""

    def is_long(self, text: str) -> bool:
        return False

    @property
    def writes_on(self) -> bool:
        return self.languages.writes


@dataclass(frozen=True)
class HuggingFaceSource(_ModelSource):
    """A model for the transformers library, named by `catalogue.guest`. Loaded when it is made; raises ValueError."""

    mechanism = ""
    languages = pairs.ANY
    begins_with = 0  # such a model may be large, and a token may take it a while

    def __post_init__(self):
        _ = self.guest

    @property
    def guest(self) -> Guest:
        """What the model says of itself."""
        return caches.guest(self.name)

    @property
    def title(self) -> str:
        return without_prefix(self.name)

    @property
    def kinds(self) -> tuple[str, ...]:
        return ordered(self.guest.kinds)

    def is_long(self, text: str) -> bool:
        """Has it more tokens than a trace keeps? A token has at least a character, but for a few around the text."""
        if self.guest.context == self.guest.limit or len(text) + _AROUND <= self.guest.limit:
            return False
        return self._length(text) > self.guest.limit

    def _length(self, text: str) -> int:
        """The number of its tokens."""

        def read() -> int:
            return len(caches.work(self.name, ":read", text, most=self.guest.context).ids)

        return caches.keep(("length", self.key, text), read, lambda made: len(text))

    def seconds(self, text: str) -> float:
        """About how long it takes one processor to read a long text; 0 for any other."""
        if not text.strip() or not self.is_long(text):
            return 0
        count = self._length(text)
        return self.guest.heads * count**2 * _SECONDS * (1 + count / _LONG_ROW)

    def reduced(self, text: str) -> Reduced | None:
        """Read head by head, where a trace would be too large."""
        if not text.strip() or not self.is_long(text):
            return None

        def read() -> Reduced:
            with turns.long_turn([self.name]), st.spinner("Reading the long text …"):
                return caches.work(self.name, ":reduced", text, on_step=turns.end_if_superseded, steps="on_heads")

        return caches.keep(("reduced", self.key, text), read, lambda made: made.nbytes)

    def opened(self, text: str, layer: int, head: int) -> AttentionMap:
        """One head of a long text, computed again."""

        def read() -> AttentionMap:
            with turns.long_turn([self.name]), st.spinner("Reading the text again for this head …"):
                return caches.work(self.name, ":opened", text, layer, head)

        return caches.keep(("opened", self.key, text, layer, head), read, lambda made: made.weights.nbytes)

    @property
    def why_no_ablation(self) -> str:
        reason = self.guest.why_no_ablation
        return sentence(reason) if reason else ""

    @property
    def why_no_importance(self) -> str:
        return self.guest.why_no_importance

    @property
    def writes(self) -> bool:
        return "cross" in self.kinds

    @property
    def writes_on(self) -> bool:
        return self.guest.writes_on

    def check(self, text: str) -> None:
        """Raises Waiting if there is no text."""
        if not text.strip():
            raise Waiting("There is no text yet. Type one above.")


@dataclass(frozen=True)
class TraceSource:
    """A trace from a file. key : identifies it."""

    key: tuple
    file: str
    saved_trace: Trace = field(compare=False, repr=False)
    saved_reduced: Reduced | None = field(default=None, compare=False, repr=False)
    mechanism = ""
    languages = pairs.ANY
    why_no_ablation = why_no_importance = _NO_MODEL
    writes = writes_on = False
    begins_with = 0

    def __post_init__(self):
        if not self.saved_trace.maps and not self.saved_reduced:
            raise ValueError(f"the file {self.file} holds a trace without attention, so there are no heads to show")

    @property
    def name(self) -> str:
        return self.saved_trace.model

    @property
    def title(self) -> str:
        return self.file

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.saved_reduced.kind,) if self.saved_reduced else ordered({m.kind for m in self.saved_trace.maps})

    def is_long(self, text: str) -> bool:
        return self.saved_reduced is not None

    def reduced(self, text: str) -> Reduced | None:
        return self.saved_reduced

    def opened(self, text: str, layer: int, head: int) -> None:
        """The file lacks the full maps."""

    def trace(self, text: str, target: str | None = None) -> Trace:
        return self.saved_trace
