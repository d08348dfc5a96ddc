"""What the page shows, worked out before anything is drawn. No Streamlit here."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from attnviz import alignment, gold, select, stats
from attnviz.data.tasks import Task
from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName
from attnviz.select import Grid
from attnviz.trace import Token, Trace
from dashboard.choices import pairs
from dashboard.choices.settings import FROM, LIMIT, OWN, TYPED, Settings, model, title

Tracer = Callable[[str, str, str | None, int], Trace]  # model, text, target, beam


class SceneError(ValueError):
    """Nothing can be drawn; the message says why and what to do."""


class Waiting(SceneError):
    """Nothing is wrong: what is to be shown has not been named yet."""


@dataclass(frozen=True, eq=False)
class Links:
    """Links set by hand, as cells of a map; the alignment error rate of that map on this sentence, and the diagonal's."""

    cells: alignment.Cells
    error: float
    diagonal: float


@dataclass(frozen=True, eq=False)
class Part:
    """One mechanism on the page: the trace as computed, the trace at the level shown (pieces or words), the tokens of its
    steps, its map and the map's statistics, neither where there is no attention; links, where there are any to lay over it."""

    mechanism: str
    trace: Trace
    shown: Trace
    queries: tuple[Token, ...]
    grid: Grid | None
    frame: pd.DataFrame | None
    links: Links | None = None

    @property
    def title(self) -> str:
        return title(self.mechanism)

    @property
    def languages(self) -> Task:
        """What its pair reads and writes."""
        return ModelName.parse(self.trace.model).task


@dataclass(frozen=True, eq=False)
class Scene:
    """All of the page. problems : mechanism -> why it is not shown."""

    settings: Settings
    parts: tuple[Part, ...]
    problems: dict[str, str]

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """Parts (by place) whose maps may be subtracted: one target for all, and the same kind of attention."""
        if self.settings.target == OWN:
            return []
        mapped = [i for i, part in enumerate(self.parts) if part.grid]
        return [
            (i, j) for i, j in itertools.permutations(mapped, 2) if self.parts[i].grid.kind == self.parts[j].grid.kind
        ]

    def difference_title(self, pair: tuple[int, int]) -> str:
        return " minus ".join(self.parts[i].title for i in pair)

    @property
    def mapped(self) -> list[Part]:
        """The parts that have attention."""
        return [part for part in self.parts if part.grid]

    @property
    def steps(self) -> int:
        """Steps of the longest part."""
        return max(len(part.queries) for part in self.parts)

    @property
    def keys(self) -> int | list[int] | None:
        """How many tokens every row on show may look at; a number a row when rows differ, as in a decoder, which sees only
        what came before; None when the maps differ, or no row sees any."""
        counts = [part.grid.visible.sum(axis=1).tolist() for part in self.mapped]
        longest = max(counts, key=len, default=[])
        if not any(longest) or any(count != longest[: len(count)] for count in counts):
            return None
        return longest[0] if len(set(longest)) == 1 else longest

    def frames(self) -> dict[str, pd.DataFrame]:
        return {part.title: part.frame for part in self.mapped}

    def summary(self) -> pd.DataFrame:
        """Mean and population standard deviation of each statistic over the rows on show; tidy."""
        frames = [frame.assign(mechanism=title) for title, frame in self.frames().items()]
        return stats.summarise(pd.concat(frames, ignore_index=True))


def compose(settings: Settings, tracer: Tracer) -> Scene:
    """Trace the sentence with every chosen mechanism. Raises SceneError when nothing can be drawn."""
    check_text(settings.text, bool(pairs.of(settings.pair).examples))
    if not settings.mechanisms:
        raise SceneError("Choose at least one mechanism on the left.")
    parts, problems = [], {}
    target = _target(settings, tracer)
    linked = _linked(settings, target)
    for mechanism in settings.mechanisms:
        try:
            trace = tracer(model(settings.pair, mechanism), settings.text, target, settings.beam)
            parts.append(_part(mechanism, trace, settings, linked))
        except ValueError as error:  # what attnviz raises for a text, a checkpoint or a choice that cannot be shown
            problems[mechanism] = sentence(str(error))
    if not parts:
        raise SceneError(" ".join(dict.fromkeys(problems.values())))
    return Scene(settings, tuple(parts), problems)


def check_text(text: str, examples: bool = True) -> None:
    """Raises SceneError when there is no sentence (Waiting), or far too much of it. examples : are there some to take?"""
    if not text.strip():
        raise Waiting(f"There is no sentence yet. Type one{', or take an example' if examples else ' above'}.")
    if len(text) > LIMIT:
        raise SceneError(
            f"The sentence has {len(text):,} characters and the models take at most {LIMIT}. "
            "Shorten it, or show one sentence at a time."
        )


def _target(settings: Settings, tracer: Tracer) -> str | None:
    if settings.target == OWN:
        return None
    if settings.target == TYPED:
        output = pairs.of(settings.pair).output
        if not settings.forced.strip():
            raise SceneError(
                f"Type the {output} that all models should produce, or choose another {output}, on the left."
            )
        if len(settings.forced) > LIMIT:
            raise SceneError(
                f"The {output} has {len(settings.forced):,} characters; the models take at most {LIMIT}. Shorten it."
            )
        return settings.forced
    giver = settings.target.removeprefix(FROM)
    try:
        return tracer(model(settings.pair, giver), settings.text, None, settings.beam).translation
    except ValueError as error:
        raise SceneError(f"{title(giver)} can give no text for all: {error}") from None


def _linked(settings: Settings, target: str | None) -> gold.LinkedPair | None:
    """The text and its target, when they are a pair with links set by hand and these are to be shown."""
    if target is None or not settings.links:
        return None
    return next(
        (pair for pair in pairs.linked(settings.pair) if (pair.source, pair.target) == (settings.text, target)), None
    )


def _part(mechanism: str, trace: Trace, settings: Settings, linked: gold.LinkedPair | None) -> Part:
    shown = select.words(trace) if settings.words else trace
    if not trace.maps:
        steps = tuple(token for token in shown.target if settings.special or not token.special)
        return Part(mechanism, trace, shown, steps, None, None)
    several = len(MECHANISMS[mechanism].kinds) > 1
    kind, layer, head = (settings.kind, settings.layer, settings.head) if several else ("cross", -1, None)
    grid = select.select(shown, kind, layer, head, special=settings.special)
    links = _links(trace, grid, linked) if linked and kind == "cross" else None
    return Part(mechanism, trace, shown, grid.queries, grid, stats.of_grid(grid), links)


def _links(trace: Trace, grid: Grid, pair: gold.LinkedPair) -> Links:
    weights = alignment.on_words(trace, pair)
    found = (
        weights[grid.layer, grid.head] if (grid.layer, grid.head) in weights else weights[grid.layer, 0]
    )  # one head: no mean
    straight = alignment.diagonal(*found.shape)
    error, diagonal = (alignment.count(links, pair).error_rate for links in (alignment.argmax(found), straight))
    return Links(alignment.cells(grid, pair), error, diagonal)


def sentence(text: str) -> str:
    """What a library says, as a sentence of the page."""
    return f"{text[0].upper()}{text[1:]}." if text else "Unknown problem."
