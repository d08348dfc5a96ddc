"""What the page shows, worked out before anything is drawn. No Streamlit here."""

import itertools
from collections.abc import Callable
from dataclasses import dataclass

import pandas as pd

from attnviz import select, stats
from attnviz.mechanisms import MECHANISMS
from attnviz.select import Grid
from attnviz.trace import Trace
from dashboard.settings import FROM, LIMIT, OWN, TYPED, Settings, title

Tracer = Callable[[str, str, str | None, int], Trace]  # mechanism, text, target, beam


class SceneError(ValueError):
    """Nothing can be drawn; the message says why and what to do."""


@dataclass(frozen=True, eq=False)
class Part:
    """One mechanism on the page: the trace as computed, the trace at the level shown (pieces or words), its map, its statistics."""

    mechanism: str
    trace: Trace
    shown: Trace
    grid: Grid
    frame: pd.DataFrame

    @property
    def title(self) -> str:
        return title(self.mechanism)


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
        return [(i, j) for i, j in itertools.permutations(range(len(self.parts)), 2)
                if self.parts[i].grid.kind == self.parts[j].grid.kind]  # fmt: skip

    def difference_title(self, pair: tuple[int, int]) -> str:
        return " minus ".join(self.parts[i].title for i in pair)

    @property
    def steps(self) -> int:
        """Rows of the longest map."""
        return max(len(part.grid.queries) for part in self.parts)

    @property
    def keys(self) -> int | list[int] | None:
        """How many tokens every row on show may look at; a number a row when rows differ, as in a decoder, which sees only
        what came before; None when the maps differ, or no row sees any."""
        counts = [part.grid.visible.sum(axis=1).tolist() for part in self.parts]
        longest = max(counts, key=len)
        if not any(longest) or any(count != longest[: len(count)] for count in counts):
            return None
        return longest[0] if len(set(longest)) == 1 else longest

    def frames(self) -> dict[str, pd.DataFrame]:
        return {part.title: part.frame for part in self.parts}

    def summary(self) -> pd.DataFrame:
        """Mean and population standard deviation of each statistic over the rows on show; tidy."""
        return stats.summarise(pd.concat([part.frame.assign(mechanism=part.title) for part in self.parts], ignore_index=True))


def compose(settings: Settings, tracer: Tracer) -> Scene:
    """Trace the sentence with every chosen mechanism. Raises SceneError when nothing can be drawn."""
    if not settings.text.strip():
        raise SceneError("There is no sentence yet. Type one, or take an example.")
    if len(settings.text) > LIMIT:
        raise SceneError(
            f"The sentence has {len(settings.text):,} characters and the models take at most {LIMIT}. "
            "Shorten it, or show one sentence at a time."
        )
    if not settings.mechanisms:
        raise SceneError("Choose at least one mechanism on the left.")
    parts, problems = [], {}
    target = _target(settings, tracer)
    for mechanism in settings.mechanisms:
        try:
            parts.append(_part(mechanism, tracer(mechanism, settings.text, target, settings.beam), settings))
        except ValueError as error:  # what attnviz raises for a text, a checkpoint or a choice that cannot be shown
            problems[mechanism] = _sentence(str(error))
    if not parts:
        raise SceneError(" ".join(dict.fromkeys(problems.values())))
    return Scene(settings, tuple(parts), problems)


def _target(settings: Settings, tracer: Tracer) -> str | None:
    if settings.target == OWN:
        return None
    if settings.target == TYPED:
        if not settings.forced.strip():
            raise SceneError("Type the French text that all models should produce, or choose another French text, on the left.")
        if len(settings.forced) > LIMIT:
            raise SceneError(f"The French text has {len(settings.forced):,} characters; the models take at most {LIMIT}. Shorten it.")
        return settings.forced
    giver = settings.target.removeprefix(FROM)
    try:
        return tracer(giver, settings.text, None, settings.beam).translation
    except ValueError as error:
        raise SceneError(f"{title(giver)} can give no text for all: {error}") from None


def _part(mechanism: str, trace: Trace, settings: Settings) -> Part:
    several = len(MECHANISMS[mechanism].kinds) > 1
    kind, layer, head = (settings.kind, settings.layer, settings.head) if several else ("cross", -1, None)
    shown = select.words(trace) if settings.words else trace
    grid = select.select(shown, kind, layer, head, special=settings.special)
    return Part(mechanism, trace, shown, grid, stats.of_grid(grid))


def _sentence(text: str) -> str:
    return f"{text[0].upper()}{text[1:]}." if text else "Unknown problem."
