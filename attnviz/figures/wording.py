"""What a picture of attention says, in plain sentences: for screen readers, captions and the text beside a chart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.patterns import PATTERNS
from attnviz.select import Grid

BLANK = "all its weight is on special tokens, which are hidden"
TITLES = {
    "entropy_nats": "Entropy (nats)",
    "entropy_bits": "Entropy (bits)",
    "normalised_entropy": "Normalised entropy",
    "max_weight": "Maximum weight",
    "effective_threshold": "Weights above threshold",
    "effective_entropy": "Effective positions",
    "effective_inverse": "Effective positions, 1/Σα²",
    "gini": "Gini coefficient",
    "expected_position": "Expected position",
    "special_mass": "Weight on special tokens",
    "removed_mass": "Weight on hidden tokens",
    "distance": "Distance (tokens)",
    "change": "Change in log-probability (nats)",
    "jensen_shannon": "Jensen–Shannon distance",
}


@checked
def describe(grid: Grid, step: int | None = None) -> str:
    """The size of the map, its strongest weight, and the row of `step` if one is chosen. Plain text, not escaped."""
    rows, columns = (
        f"{len(tokens)} {side} token{'s' if len(tokens) != 1 else ''}"
        for tokens, side in zip((grid.queries, grid.keys), grid.sides, strict=True)
    )
    text = f"{rows} by {columns}"
    best = strongest(grid)
    if best is not None:
        query, key = divmod(best, len(grid.keys))
        text += f"; strongest: {labels.quoted(grid.queries, query)} looks at {labels.quoted(grid.keys, key)}, "
        text += f"{grid.weights[query, key]:.2f}"
    return f"{text}." if step is None else f"{text}. {row_sentence(grid, step)}"


def row_name(grid) -> str:
    """What a row of the map is called: "step" where it produces a target token, else "row"."""
    return "step" if grid.sides[0] == "target" else "row"


def row_sentence(grid, step: int) -> str:
    """Where one query looks."""
    return row_sentences(grid, [step])[0]


def row_sentences(grid, steps: Sequence[int], top: int = 3) -> list[str]:
    """Where each of these queries looks, its `top` keys in order."""
    weights = np.nan_to_num(grid.masked[steps], nan=-1)
    order = np.argsort(-weights, axis=-1, kind="stable")[:, :top]
    largest = np.take_along_axis(weights, order, -1)
    names = labels.named(grid.queries), labels.named(grid.keys)
    rows = zip(steps, order.tolist(), largest.tolist())
    return [_row_sentence(grid, *names, step, keys, shares) for step, keys, shares in rows]


def _row_sentence(grid, queries: list[str], names: list[str], step: int, keys: list[int], weights: list[float]) -> str:
    row = f"{row_name(grid).capitalize()} {step + 1}, {queries[step]}: "
    if not keys or weights[0] < 0:
        return f"{row}{BLANK}."
    seen = ", ".join(f"{names[key]} {weight:.2f}" for key, weight in zip(keys, weights) if weight >= 0.005)
    removed = float(grid.removed[step])
    hidden = f" {removed:.2f} of its weight was on special tokens, which are hidden."
    return f"{row}looks at {seen or 'no token with 0.005 or more'}.{hidden if removed >= 0.005 else ''}"


def links_sentence(grid, links) -> str:
    """Which cells are outlined as links (`alignment.Cells`), sure ones first, as query with key."""
    parts, (queries, keys) = [], map(labels.named, (grid.queries, grid.keys))
    for name, look, cells in (("Sure", "solid", links.sure), ("Possible", "dashed", links.possible - links.sure)):
        listed = [f"{queries[query]} with {keys[key]}" for query, key in sorted(cells)]
        if listed:
            parts.append(f"{name} links, in {look} outline: {', '.join(listed)}.")
    return " ".join(parts) or "No links."


def windows_sentence(windows: Sequence[tuple[float, float]]) -> str:
    """The predicted places of local attention, (centre, reach) of each row, counted from 1."""
    places = ", ".join(f"{centre + 1:.1f}" for centre, _ in windows)
    return f"Predicted places, row by row, with {windows[0][1]:g} tokens to either side: {places}."


def strongest(grid, step: int | None = None) -> int | None:
    """Flat position of the largest visible weight in the map, or in the row of `step`; None if there is none."""
    place = slice(None) if step is None else step
    weights = grid.masked[place]
    return int(np.nanargmax(weights)) if np.isfinite(weights).any() else None


def weight_words(weight: float) -> str:
    """A weight to two digits; never `0.00` for one that is above 0."""
    return "under 0.01" if 0 < weight < 0.005 else f"{weight:.2f}"


def difference_words(value: float, first: str, second: str) -> str:
    """A difference of two weights: in which of the two maps the weight is larger, and by how much."""
    if abs(value) < 0.005:
        return f"the same in {first} and {second}"
    more, less = (first, second) if value > 0 else (second, first)
    return f"{abs(value):.2f} more in {more} than in {less}"


def lines_words(grids: Sequence, least: float) -> str:
    """Which weights have lines in `token_lines`, and how to read the picture."""
    if not any((np.nan_to_num(grid.masked) >= least).any() for grid in grids):
        return f"No weight reaches {least:g}, so there are no lines: attention is spread almost evenly"
    return (
        f"Lines show weights of at least {least:g}. Point at a token on the left for its row, on the right for its "
        "column"
    )


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def signed(value: float, digits: int = 3) -> str:
    """A number with its sign, as print writes it: `+0.170`, `−0.170`, and `0.000` for what is as good as 0."""
    near = round(value, digits)
    return number(near, f"+.{digits}f") if near else f"{0:.{digits}f}"


def number(value: float, form: str) -> str:
    """A number in the format `form`, with a minus sign and not a hyphen: `−0.17`. Never `−0.00`."""
    text = format(value, form)
    return (text if float(text) else format(0.0, form)).replace("-", "−")


def statistic_title(name: str, threshold: float = 0.1) -> str:
    """The title of a statistic or of a pattern's score. threshold : the one that `stats` was given."""
    if name in PATTERNS:
        return PATTERNS[name].title
    return f"Weights above {threshold:g}" if name == "effective_threshold" else TITLES.get(name, name)
