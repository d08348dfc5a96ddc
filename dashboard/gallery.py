"""What the page of heads shows, worked out before anything is drawn. No Streamlit here."""

from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from attnviz import heads, select
from attnviz.figures.charts import name_of
from attnviz.heads import Head
from attnviz.mechanisms import CLASSIFIERS, MECHANISMS
from attnviz.patterns import PATTERNS
from attnviz.select import Grid
from attnviz.trace import Trace
from dashboard import pairs
from dashboard.scene import SceneError, check_text, sentence

Reader = Callable[[str, str], Trace]  # model, text
Measurer = Callable[["Choice", Trace], pd.DataFrame]  # the trace at the level shown -> `heads.table` of the kind
COLUMNS = {name: name_of(name) for name in heads.COLUMNS if name != "argmax"}
COLUMNS |= {pattern.name: pattern.title for pattern in PATTERNS.values()}  # column of `heads.table` -> its name on the page
MOST = 4  # heads beside each other


@dataclass(frozen=True)
class Choice:
    """What was chosen for the whole page; each panel has controls of its own beside it.

    order, color : columns of `heads.table`, or "" for none. root : shades follow the square root of weights.
    """

    text: str
    model: str
    kind: str = "encoder"
    order: str = ""
    color: str = ""
    root: bool = False
    words: bool = False
    special: bool = True  # in the maps of single heads and their means; all else is as computed
    tables: bool = False

    @property
    def mechanism(self) -> str:
        return self.model.partition("/")[2]

    @property
    def languages(self) -> pairs.Pair:
        return pairs.of(self.model.partition("/")[0])


@dataclass(frozen=True, eq=False)
class Gallery:
    """All heads of one kind on one text. trace : of pieces, as computed. shown : at the level shown. table : of the heads."""

    choice: Choice
    trace: Trace
    shown: Trace
    table: pd.DataFrame

    @property
    def heads(self) -> list[Head]:
        kind = self.choice.kind
        return [Head(kind, layer, head) for layer, head in zip(self.table["layer"].tolist(), self.table["head"].tolist())]

    @property
    def every(self) -> list[Head]:
        """The heads of all kinds, which are those that can be switched off."""
        kinds_ = kinds(self.choice.model)
        maps = sorted((m for m in self.trace.maps if m.kind in kinds_), key=lambda m: (kinds_.index(m.kind), m.layer))
        return [Head(m.kind, m.layer, head) for m in maps for head in range(len(m.weights))]

    @property
    def layers(self) -> int:
        return 1 + max(head.layer for head in self.heads)

    def beside(self, layer: int) -> int:
        """How many heads a layer has."""
        return sum(head.layer == layer for head in self.heads)

    def grid(self, layer: int, head: int | None) -> Grid:
        """The map of a head; None for the mean of its layer's."""
        return select.select(self.shown, self.choice.kind, layer, head, special=self.choice.special)

    def mean(self, chosen: list[Head]) -> Grid:
        """The mean of chosen heads."""
        return select.mean(self.shown, self.choice.kind, [(head.layer, head.head) for head in chosen], special=self.choice.special)


def compose(choice: Choice, reader: Reader, measurer: Measurer) -> Gallery:
    """Trace the text and measure its heads. Raises SceneError, in a sentence, when nothing can be shown."""
    check_text(choice.text)
    try:
        trace = reader(choice.model, choice.text)
        shown = select.words(trace) if choice.words else trace
        select.select(shown, choice.kind, special=choice.special)  # says which kinds there are, and when nothing is left to show
        return Gallery(choice, trace, shown, measurer(choice, shown))
    except ValueError as error:  # what attnviz raises for a text, a checkpoint or a choice that cannot be shown
        raise SceneError(sentence(str(error))) from None


def measure(choice: Choice, shown: Trace) -> pd.DataFrame:
    """Statistics and pattern scores of every head of the kind."""
    return heads.table(shown, choice.kind)


def kinds(model: str) -> tuple[str, ...]:
    """The kinds of attention of which a model has several heads, self-attention first."""
    mechanism = model.partition("/")[2]
    return ("encoder",) if mechanism in CLASSIFIERS else tuple(sorted(MECHANISMS[mechanism].kinds, key=("encoder", "decoder", "cross").index))


def model_title(model: str) -> str:
    pair, _, mechanism = model.partition("/")
    return f"{pairs.of(pair).title} · {(MECHANISMS | CLASSIFIERS)[mechanism].title.partition(' · ')[0]}"


def head_name(head: Head, kind: bool = False) -> str:
    """`layer 1, head 3`, counted from 1; kind : with its kind before it."""
    return f"{head.kind + ' ' if kind else ''}layer {head.layer + 1}, head {head.head + 1}"
