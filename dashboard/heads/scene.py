"""The contents of the page of heads, computed before drawing. No Streamlit here."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import pandas as pd

from attnviz import heads, select
from attnviz.data.tasks import Task
from attnviz.export import heading
from attnviz.figures.small_maps import block, pool
from attnviz.figures.wording import statistic_title
from attnviz.heads import Head
from attnviz.models.measured import Reduced
from attnviz.patterns import PATTERNS
from attnviz.select import Grid
from attnviz.trace import AttentionMap, Token, Trace
from dashboard.choices.options import Writing
from dashboard.session.memory import Held, sizes
from dashboard.shell.problems import SceneError, sentence

Measurer = Callable[["HeadsChoices", Trace], pd.DataFrame]  # the trace at the level shown -> `heads.table` of the kind
# column of `heads.table` -> its name on the page
COLUMNS = {name: statistic_title(name) for name in (*heads.COLUMNS, *PATTERNS) if name != "argmax"}
MOST = 4  # heads side by side
ORDER = ("encoder", "decoder", "cross")


class Source(Protocol):
    """The source of traces: see sources.py.

    name : of the model. title : for readers. key : identifies it and the version of its files. mechanism : its name in
        the tables of mechanisms; "" for a model without one. kinds : the kinds whose heads are shown, in ORDER.
    writes : can it be forced to produce a text? writes_on : does it continue a text? begins_with : the number of tokens
        that it then writes by default.
    why_no_ablation : why no head can be switched off. why_no_importance : why head importance cannot be
        measured. Sentences, or "".
    """

    name: str
    title: str
    key: tuple
    mechanism: str
    languages: Task
    kinds: tuple[str, ...]
    writes: bool
    writes_on: bool
    begins_with: int
    why_no_ablation: str
    why_no_importance: str

    def trace(self, text: str, target: str | None = None) -> Trace:
        """The trace of its output, or of the forced `target`. Raises ValueError for a text that cannot be shown."""

    def is_long(self, text: str) -> bool:
        """Has it more tokens than a trace keeps? Raises ValueError."""

    def reduced(self, text: str) -> Reduced | None:
        """Of a text too long to keep all its weights; None for any other. Raises ValueError."""

    def opened(self, text: str, layer: int, head: int) -> AttentionMap | None:
        """One head of such a text in full; None without the model."""


@dataclass(frozen=True)
class HeadsChoices:
    """The visitor's choices for the whole page; panels have their own controls.

    output : a text that the model is forced to produce; "" for its own.
    order, color : columns of `heads.table`, or "" for none. root : shades follow the square root of weights.
    """

    text: str
    source: Source
    kind: str = "encoder"
    output: str = ""
    order: str = ""
    color: str = ""
    root: bool = False
    words: bool = False
    special: bool = True  # in the maps of single heads and their means; all else is as computed
    tables: bool = False
    writing: Writing | None = None  # of a model that writes on after the text

    @property
    def mechanism(self) -> str:
        return self.source.mechanism

    @property
    def languages(self) -> Task:
        return self.source.languages


@dataclass(frozen=True, eq=False)
class HeadsScene:
    """All heads of one kind on one text. trace : of pieces, as computed. shown : at the level shown.

    table : of the heads.
    """

    choices: HeadsChoices
    trace: Trace
    shown: Trace
    table: pd.DataFrame

    warnings = ()

    @property
    def name(self) -> str:
        return self.choices.source.title

    @property
    def text(self) -> str:
        return self.choices.text

    @property
    def held(self) -> list[Held]:
        return sizes([self.trace, self.shown])

    @property
    def heading(self) -> list[str]:
        return [self.choices.source.name, *heading.texts(self.shown)]

    @property
    def heads(self) -> list[Head]:
        kind = self.choices.kind
        return [
            Head(kind, layer, head) for layer, head in zip(self.table["layer"].tolist(), self.table["head"].tolist())
        ]

    @property
    def all_heads(self) -> list[Head]:
        """The heads of all kinds; all of them can be switched off."""
        kinds = self.choices.source.kinds
        maps = sorted((m for m in self.trace.maps if m.kind in kinds), key=lambda m: (kinds.index(m.kind), m.layer))
        return [Head(m.kind, m.layer, head) for m in maps for head in range(len(m.weights))]

    @property
    def target(self) -> str | None:
        """The model's own output; None for a model that only reads or that continues the text."""
        return self.trace.translation if self.trace.target and self.choices.writing is None else None

    @property
    def input(self) -> str:
        """The text that the model reads; for a model that continues the text, including the continuation."""
        return self.trace.text if self.choices.writing is None else self.trace.translation or self.trace.text

    @property
    def written_row(self) -> int | None:
        """The row of the token just written; None if there is none."""
        wrote = self.choices.writing and self.choices.writing.steps and self.shown is self.trace
        return len(self.trace.target) - 1 if wrote else None

    @property
    def layers(self) -> list[int]:
        """The available layers; a trace from elsewhere may lack some."""
        return sorted(set(self.table["layer"].tolist()))

    def head_count(self, layer: int) -> int:
        """How many heads a layer has."""
        return sum(head.layer == layer for head in self.heads)

    def is_mean(self, layer: int) -> bool:
        """Is the only head of the layer the mean of all heads? This occurs in arrays from elsewhere."""
        return self.shown.map(self.choices.kind, layer).averaged

    def group(self, layer: int, head: int) -> str:
        """The heads, counted from 1, that share keys and values with this one: `3–4`; "" if it has its own."""
        shared = self.shown.map(self.choices.kind, layer).shared
        first = head // shared * shared + 1
        return f"{first}–{first + shared - 1}" if shared > 1 else ""

    def head_title(self, head: Head) -> str:
        """`layer 1, head 3`, counted from 1, or `layer 1, mean of heads`. Also of a head that this trace lacks, which
        the controls may still hold."""
        mean = head.head == 0 and head.layer in self.layers and self.is_mean(head.layer)
        return select.map_title(head.layer, None if mean else head.head)

    def grid(self, layer: int, head: int | None) -> Grid:
        """The map of a head; head None: the mean of the layer."""
        return select.select(self.shown, self.choices.kind, layer, head, special=self.choices.special)

    def mean(self, chosen: list[Head]) -> Grid:
        """The mean of chosen heads."""
        return select.mean(
            self.shown, self.choices.kind, [(head.layer, head.head) for head in chosen], special=self.choices.special
        )


@dataclass(frozen=True, eq=False)
class LongScene(HeadsScene):
    """All heads of a text of which not all weights are kept. trace, shown : without maps."""

    reduced: Reduced

    @property
    def held(self) -> list[Held]:
        return [(self.reduced, self.reduced.nbytes)]

    @property
    def tokens(self) -> tuple[Token, ...]:
        return self.trace.source

    def is_mean(self, layer: int) -> bool:
        return False

    def group(self, layer: int, head: int) -> str:
        return ""

    def whole(self, opened: AttentionMap) -> Grid:
        """A whole head, pooled; its rows and columns are blocks of tokens, named by their numbers from 1."""
        (rows, columns), visible = opened.weights.shape[1:], self.trace.visible(opened)
        sides = (_blocks(count, every) for count, every in zip((rows, columns), block(rows, columns)))
        return self._grid(opened, *sides, pool(opened.weights)[0], pool(visible[None])[0])

    def window(self, opened: AttentionMap, row: int, column: int, side: int) -> Grid:
        """The weights of `side` rows and columns from these on, from 0."""
        rows, columns = slice(row, row + side), slice(column, column + side)
        seen = self.trace.visible(opened)[rows, columns]
        return self._grid(
            opened, self.tokens[rows], self.trace.keys(opened)[columns], opened.weights[0, rows, columns], seen
        )

    def _grid(self, opened: AttentionMap, queries, keys, weights: np.ndarray, seen: np.ndarray) -> Grid:
        about = (self.trace.model, self.trace.mechanism, opened.kind, opened.layer, None)
        return Grid(*about, queries, keys, weights, np.zeros(len(weights)), seen, self.trace.sides(opened))


def _blocks(count: int, every: int) -> tuple[Token, ...]:
    """Blocks of tokens, by their numbers from 1: `1–32`."""
    ends = ((first + 1, min(first + every, count)) for first in range(0, count, every))
    return tuple(Token(f"{first}–{last}" if first < last else str(first), 0, 0) for first, last in ends)


def compose(choices: HeadsChoices, measurer: Measurer) -> HeadsScene:
    """Trace the text and measure its heads. Raises SceneError, with a sentence, if nothing can be shown."""
    try:
        if (reduced := choices.source.reduced(choices.text)) is not None:
            return LongScene(choices, reduced.trace, reduced.trace, reduced.table, reduced)
        trace = (
            choices.source.write(choices.text, choices.writing)
            if choices.writing
            else choices.source.trace(choices.text, choices.output.strip() or None)
        )
        shown = select.words(trace) if choices.words else trace
        # says which kinds there are, and when nothing is left to show
        select.select(shown, choices.kind, special=choices.special)
        return HeadsScene(choices, trace, shown, measurer(choices, shown))
    except SceneError:
        raise
    except ValueError as error:  # what attnviz raises for a text, a checkpoint or a choice that cannot be shown
        raise SceneError(sentence(str(error))) from None


def ordered(kinds: Iterable[str]) -> tuple[str, ...]:
    """Kinds of attention, self-attention first."""
    return tuple(sorted(kinds, key=ORDER.index))
