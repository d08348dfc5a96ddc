"""What a picture of attention says, in plain sentences: for screen readers, captions and the text beside a chart."""

from __future__ import annotations

import numpy as np

from attnviz.figures import labels

BLANK = "all its weight is on special tokens, which are hidden"


def describe(grid, step: int | None = None) -> str:
    """The size of the map, its strongest weight, and the row of `step` if one is chosen. Plain text, not escaped."""
    rows, columns = (f"{len(tokens)} {side} token{'s' if len(tokens) != 1 else ''}"
                     for tokens, side in zip((grid.queries, grid.keys), grid.sides, strict=True))  # fmt: skip
    text = f"{rows} by {columns}"
    best = strongest(grid)
    if best is not None:
        query, key = divmod(best, len(grid.keys))
        text += f"; strongest: {labels.quoted(grid.queries[query])} looks at {labels.quoted(grid.keys[key])}, "
        text += f"{grid.weights[query, key]:.2f}"
    return f"{text}." if step is None else f"{text}. {row_sentence(grid, step)}"


def row_sentence(grid, step: int, top: int = 3) -> str:
    """Where one query looks, its `top` keys in order."""
    query = labels.quoted(grid.queries[step])
    best = strongest(grid, step)
    if best is None:
        return f"Step {step + 1}, {query}: {BLANK}."
    weights = np.where(grid.visible[step], grid.weights[step], -1)
    order = [int(key) for key in np.argsort(-weights, kind="stable")[:top] if weights[key] >= 0.005]
    seen = ", ".join(f"{labels.quoted(grid.keys[key])} {weights[key]:.2f}" for key in order)
    text = f"Step {step + 1}, {query}: looks at {seen}."
    removed = float(grid.removed[step])
    return text if removed < 0.005 else f"{text} {removed:.2f} of its weight was on special tokens, which are hidden."


def links_sentence(grid, links) -> str:
    """Which cells are outlined as links (`alignment.Cells`), sure ones first, as query with key."""
    parts = []
    for name, look, cells in (("Sure", "solid", links.sure), ("Possible", "dashed", links.possible - links.sure)):
        listed = [f"{labels.quoted(grid.queries[query])} with {labels.quoted(grid.keys[key])}" for query, key in sorted(cells)]
        if listed:
            parts.append(f"{name} links, in {look} outline: {', '.join(listed)}.")
    return " ".join(parts) or "No links."


def strongest(grid, step: int | None = None) -> int | None:
    """Flat position of the largest visible weight in the map, or in the row of `step`; None if there is none."""
    weights = np.where(grid.visible, grid.weights, np.nan)
    weights = weights if step is None else weights[step]
    return int(np.nanargmax(weights)) if np.isfinite(weights).any() else None
