"""The lines above a picture: wrapped, then smaller, and at last cut with “…”, to leave room for the picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from matplotlib.figure import Figure

from attnviz.export import heading
from attnviz.export.printed.letters import clean, cut, width

LEADING = 1.4  # from line to line, in sizes of the type
_SMALLER = 0.92  # of the type, in one try
_LONGEST = 2000  # letters of a line on any sheet
_BEFORE, _AFTER = 0.3, 0.1  # lines above the first and below the last


@dataclass(frozen=True)
class Head:
    """lines : each a part of a line with whether it is bold. size : points. whole : nothing was cut."""

    lines: tuple[tuple[str, bool], ...]
    size: float
    whole: bool = True

    @property
    def height(self) -> float:
        """Points."""
        return (len(self.lines) + _BEFORE + _AFTER) * LEADING * self.size if self.lines else 0.0

    def draw(self, figure: Figure, left: float, top: float, color: str) -> None:
        """left, top : of the first line, in points from the upper left corner of the sheet."""
        wide, high = (72 * side for side in figure.get_size_inches())
        for place, (text, bold) in enumerate(self.lines):
            y = 1 - (top + (_BEFORE + place) * LEADING * self.size) / high
            look = dict(size=self.size, va="top", weight="bold" if bold else "normal", parse_math=False)
            figure.text(left / wide, y, text, color=color, **look)


def fitted(lines: Sequence[str], size: float, least: float, room: float, most: float) -> Head:
    """A head of these lines, the first bold, at most `room` points wide and `most` high. size, least : points of the
    type, and of the smallest. Call it with the settings of the sheet."""
    lines = [" ".join(clean(line.replace("\t", " ")).split("\n")) for line in lines]
    wide = [width(line, 1, "normal" if place else "bold") for place, line in enumerate(lines)]
    while size > least and LEADING * size * sum(max(each * size / room, 1) for each in wide) > most:
        size = max(least, size * _SMALLER)
    while True:
        folded = [_wrapped(line, room, size, not place) for place, line in enumerate(lines)]
        head = Head(tuple((part, not place) for place, parts in enumerate(folded) for part in parts), size)
        if head.height <= most:
            return head
        if size <= least:
            return _cut(folded, size, room, most)
        size = max(least, size * _SMALLER)


def _cut(folded: list[list[str]], size: float, room: float, most: float) -> Head:
    """As many lines as there is room for: the longest texts lose theirs first."""
    count = max(int(most / (LEADING * size) - _BEFORE - _AFTER), 1)
    counts = [len(parts) for parts in folded[:count]]
    while sum(counts) > count:
        counts[counts.index(max(counts))] -= 1
    lines = []
    for place, (parts, number) in enumerate(zip(folded, counts)):
        shown = parts[:number]
        if number < len(parts):
            weight = "normal" if place else "bold"
            shown[-1] = cut(" ".join(parts[number - 1 :])[:_LONGEST], room, size, weight=weight)
        lines += [(part, not place) for part in shown]
    return Head(tuple(lines), size, whole=False)


def _wrapped(line: str, room: float, size: float, bold: bool) -> list[str]:
    """The line in parts that are no wider than `room` points."""
    weight = "bold" if bold else "normal"
    if width(line, size, weight) <= room:
        return [line]
    parts, used = [""], 0.0
    for unit in heading.units(line):
        for piece in [unit] if width(unit.rstrip(), size, weight) <= room else unit:
            wide = width(piece, size, weight)
            if parts[-1] and used + width(piece.rstrip(), size, weight) > room:
                parts.append("")
                used = 0.0
            parts[-1] += piece
            used += wide
    return [part.rstrip() for part in parts]
