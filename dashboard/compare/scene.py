"""The contents of the page that compares mechanisms, computed before drawing. No Streamlit here."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable
from dataclasses import asdict, dataclass

from attnviz import alignment, gold, select, stats
from attnviz import lazy_pandas as pd
from attnviz.export import heading
from attnviz.select import Grid
from attnviz.trace import Token, Trace
from dashboard.choices import options, pairs
from dashboard.session.memory import Held, sizes
from dashboard.shell import side_by_side
from dashboard.shell.side_by_side import ModelColumn, SideBySide, Tracer, forced_text

Windows = Callable[[Trace], tuple[tuple[float, float], ...]]  # of local attention: (centre, reach) of each step


@dataclass(frozen=True)
class CompareChoices:
    """The visitor's choices, except the step and the difference, whose controls are beside their charts."""

    text: str
    mechanisms: tuple[str, ...]
    pair: str = pairs.DEFAULT
    target: str = options.OWN  # OWN, TYPED or FROM + mechanism
    forced: str = ""  # the typed target
    beam: int = 1
    words: bool = False
    special: bool = True
    kind: str = "cross"  # kind, layer and head apply to models that have several
    layer: int = -1  # from 0; -1: the last
    head: int | None = None  # from 0; None: the mean of heads
    tables: bool = False  # the numbers of each chart below it
    gold: str = ""  # the sentence with gold links that was chosen
    present: bool = False  # in large type, without the sidebar
    sentences: tuple[str, ...] = ()  # of the long text that `text` is a sentence of
    listed: bool = False  # the translations that the beam ends with, listed
    links: bool = True  # gold links over the maps, where text and target are those of such a sentence
    moment: int = -1  # of the training, from 0; -1: the models that ship
    courses: tuple[str, ...] = ()  # mechanisms with such moments; the others are shown as they ship
    shift: int = 0  # with gold links: rows are read so many steps on
    guess: bool = False  # maps are hidden until where they look has been guessed
    guest: str = ""  # a model of a person's own among the mechanisms, as it was typed

    def to_dict(self) -> dict:
        return asdict(self)

    def model(self, mechanism: str) -> str:
        """The name of the model shown for a mechanism."""
        return options.model(self.pair, mechanism, self.moment if mechanism in self.courses else -1)

    def query(self) -> dict[str, str | list[str]]:
        """The URL parameters that reopen this view: Streamlit writes options there in the words of the page."""
        chosen = {
            "pair": pairs.task(self.pair).title,
            "text": self.text,
            "show": [options.title(name) for name in self.mechanisms],
            "target": options.target_title(self.target),
            "force": self.forced,
            "beam": options.BEAMS[self.beam],
            "units": "words" if self.words else "pieces",
            "special": str(self.special).lower(),
            "kind": options.KINDS[self.kind],
            "head": options.head_title(self.head),
            "tables": str(self.tables).lower(),
            "links": str(self.links).lower(),
            "listed": str(self.listed).lower(),
        }
        some = {"layer": options.place_title(self.layer)} if self.layer >= 0 else {}
        some |= {"trained": options.trained_title(self.moment)} if self.moment >= 0 else {}
        some |= {"shift": options.SHIFTS[self.shift]} if self.shift else {}
        some |= {"guess": "true"} if self.guess else {}
        some |= {"guest": self.guest} if self.guest else {}
        return chosen | some | ({"gold": self.gold} if self.gold else {})


@dataclass(frozen=True, eq=False)
class Links:
    """Links set by hand, as cells of a map; the alignment error rate of that map on this sentence, and the
    diagonal's."""

    cells: alignment.Cells
    error: float
    diagonal: float
    shift: int = 0


@dataclass(frozen=True, eq=False)
class Column(ModelColumn):
    """One mechanism on the page.

    shown : the trace at the level shown, pieces or words. queries : the tokens of the steps. grid : the map; None
    without attention. links : gold links of the map, if any. windows : of local attention, (centre, reach) of each row
    in keys from 0, if the keys are pieces.
    """

    shown: Trace
    queries: tuple[Token, ...]
    grid: Grid | None
    links: Links | None = None
    windows: tuple[tuple[float, float], ...] = ()

    @functools.cached_property
    def frame(self) -> pd.DataFrame | None:
        """The statistics of the map; None without a map. Computed on first use, because a table needs pandas."""
        return self.grid and stats.of_grid(self.grid)

    @functools.cached_property
    def statistics(self) -> dict | None:
        """The same as plain columns, for pictures and small tables, which do not need pandas."""
        return self.grid and stats.columns_of_grid(self.grid)

    @property
    def held(self) -> list[Held]:
        return sizes([self.trace, self.shown])


@dataclass(frozen=True, eq=False)
class CompareScene(SideBySide[Column]):
    """All of the page."""

    choices: CompareChoices

    name = "the picture"

    @property
    def heading(self) -> list[str]:
        return heading.of_statistics({column.title: column.shown for column in self.columns})[1:]

    @functools.cached_property
    def differences(self) -> list[tuple[int, int]]:
        """Columns (by place) whose maps may be subtracted: they have the same kind of attention and the same tokens,
        because one text was forced or because the models write the same."""
        mapped = [i for i, column in enumerate(self.columns) if column.grid]
        return [
            (i, j) for i, j in itertools.permutations(mapped, 2) if alike(self.columns[i].grid, self.columns[j].grid)
        ]

    def difference_title(self, pair: tuple[int, int]) -> str:
        return " minus ".join(self.columns[i].title for i in pair)

    @functools.cached_property
    def mapped(self) -> list[Column]:
        """The columns that have attention."""
        return [column for column in self.columns if column.grid]

    @property
    def queries(self) -> dict[str, tuple[Token, ...]]:
        """The tokens of the rows of each map."""
        return {column.title: column.grid.queries for column in self.mapped}

    @property
    def steps(self) -> int:
        """Steps of the longest column."""
        return max(len(column.queries) for column in self.columns)

    @functools.cached_property
    def keys(self) -> int | list[int] | None:
        """The number of visible keys of the shown rows; one number per row if rows differ, as in a causal decoder; None
        if the maps differ, or no row sees a key."""
        counts = [column.grid.visible.sum(axis=1).tolist() for column in self.mapped]
        longest = max(counts, key=len, default=[])
        if not any(longest) or any(count != longest[: len(count)] for count in counts):
            return None
        return longest[0] if len(set(longest)) == 1 else longest

    def frames(self) -> dict[str, pd.DataFrame]:
        return {column.title: column.frame for column in self.mapped}

    def means(self) -> dict[str, dict[str, tuple[float, float]]]:
        """title of a column -> statistic -> the two numbers of `summary`."""
        names = (*stats.STATISTICS, "special_mass", "removed_mass")
        result = {}
        for column in self.mapped:
            numbers = stats.means_and_stds({name: column.statistics[name] for name in names})
            mean, std = numbers["expected_position"]
            result[column.title] = numbers | {"expected_position": (mean + 1, std)}
        return result

    def summary(self) -> pd.DataFrame:
        """Mean and population standard deviation of each statistic over the shown rows; tidy. Positions count from
        1."""
        frames = [frame.assign(mechanism=title) for title, frame in self.frames().items()]
        summary = stats.summarise(pd.concat(frames, ignore_index=True))
        summary.loc[summary["statistic"] == "expected_position", "mean"] += 1
        return summary


def alike(a: Grid, b: Grid) -> bool:
    """Do two maps have the same rows and columns?"""
    return a.kind == b.kind and all(
        [(token.text, token.start) for token in first] == [(token.text, token.start) for token in second]
        for first, second in ((a.queries, b.queries), (a.keys, b.keys))
    )


def compose(choices: CompareChoices, tracer: Tracer, windows: Windows = lambda trace: ()) -> CompareScene:
    """Trace the sentence with every chosen mechanism. windows : trace -> the windows of local attention.

    Raises SceneError if nothing can be drawn.
    """
    side_by_side.check(choices)
    target = forced_text(choices, tracer)
    linked = _linked(choices, target)

    def column(mechanism: str) -> Column:
        trace = tracer(choices.model(mechanism), choices.text, target, choices.beam)
        return _column(mechanism, trace, choices, linked, windows)

    return CompareScene(choices, *side_by_side.columns_of(choices.mechanisms, column))


def _linked(choices: CompareChoices, target: str | None) -> gold.LinkedPair | None:
    """The text and its target, if they are a pair with links set by hand and links are to be shown."""
    if target is None or not choices.links:
        return None
    return next(
        (pair for pair in pairs.linked(choices.pair) if (pair.source, pair.target) == (choices.text, target)), None
    )


def _column(
    mechanism: str, trace: Trace, choices: CompareChoices, linked: gold.LinkedPair | None, windows: Windows
) -> Column:
    shown = select.words(trace) if choices.words else trace
    if not trace.maps:
        steps = tuple(token for token in shown.target if choices.special or not token.special)
        return Column(trace, shown, steps, None)
    several = len(options.facts(mechanism).kinds) > 1
    kind, layer, head = (choices.kind, choices.layer, choices.head) if several else ("cross", -1, None)
    shift = choices.shift if linked and kind == "cross" else 0
    layer, head = side_by_side.fitting(trace, kind, layer, head)
    grid = select.select(trace if shift else shown, kind, layer, head, choices.words, choices.special, shift)
    links = _links(trace, grid, linked, shift) if linked and kind == "cross" else None
    places = () if choices.words else windows(trace)[: len(grid.queries)]  # <eos> is last, and may be hidden
    return Column(trace, shown, grid.queries, grid, links, places)


def _links(trace: Trace, grid: Grid, pair: gold.LinkedPair, shift: int) -> Links:
    weights = alignment.on_words(trace, pair, shift)
    head = grid.head if (grid.layer, grid.head) in weights else 0  # one head has no mean of heads
    aligned = alignment.argmax(weights[grid.layer, head])
    straight = alignment.diagonal(*weights[grid.layer, head].shape)
    error, diagonal = (alignment.count(links, pair).error_rate for links in (aligned, straight))
    return Links(alignment.cells(grid, pair), error, diagonal, shift)
