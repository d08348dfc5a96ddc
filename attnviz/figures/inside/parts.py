"""One score as the sum it is: its largest terms, and all others together."""

from __future__ import annotations

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, palette
from attnviz.figures.wording import signed

_ROW, _TITLE, _NAMES = 24, 30, 160  # px a term, of a title, of the names with their numbers


def score_parts(opened, key: int, count: int = 10, title: str | None = None, *, dark: bool = False) -> Chart:
    """opened : an `inside.Step`. The `count` terms of one key's score that are furthest from 0, the largest first; then
    the rest.

    ValueError for a key that is not there.
    """
    if not 0 <= key < len(opened.keys):
        raise ValueError(f"key must be from 0 to {len(opened.keys) - 1}; got {key}")
    rows = _rows(opened, key, count)
    colors = palette(dark)
    names, values = [name for name, _ in rows], [value if value is None else round(value, 4) for _, value in rows]
    drawn = [value for value in values if value is not None]
    above = _TITLE if title else 0
    height = _ROW * len(rows) + 44 + above
    frame = layout(
        dark, height, (_NAMES, 12, 8 + above, 36), title and labels.escape(title), describe_parts(opened, key)
    )
    frame |= dict(
        xaxis=dict(
            range=_span(drawn),
            gridcolor=colors.grid,
            zeroline=True,
            zerolinecolor=colors.muted,
            fixedrange=True,
            nticks=4,
            tickangle=0,
            tickfont=dict(size=11, color=colors.muted),
        ),
        yaxis=dict(
            range=[len(rows) - 0.5, -0.5],
            tickvals=list(range(len(rows))),
            ticktext=names,  # beside a bar a number would lie on the names where the picture is narrow
            fixedrange=True,
            showgrid=False,
            zeroline=False,
        ),
    )
    return build([_bars(values, colors)], frame)


def describe_parts(opened, key: int) -> str:
    """What the terms sum to, and the largest three. Plain text, not escaped."""
    listed = ", ".join(
        f"{opened.parts.unit} {number + 1} {signed(value)}" for number, value in opened.parts.largest(key, 3)
    )
    return (
        f"The score of {labels.quoted(opened.keys[key])} at step {opened.step + 1} is {opened.scores[key]:.3f}, a sum "
        "over "
        f"{opened.parts.terms.shape[1]} {opened.parts.unit}s; the largest terms: {listed}."
    )


def _span(values: list[float]) -> list[float]:
    """The axis, a little wider than the longest bars."""
    least, most = min(0.0, *values), max(0.0, *values)
    room = 0.05 * ((most - least) or 1.0)
    return [least - room * (least < 0), most + room]


def _bars(values: list[float | None], colors) -> dict:
    return dict(
        type="bar",
        orientation="h",
        x=values,
        y=list(range(len(values))),
        width=0.78,
        marker=dict(color=[colors.diverging[-1 if (value or 0) >= 0 else 0] for value in values], line=dict(width=0)),
        hoverinfo="skip",
    )


def _rows(opened, key: int, count: int) -> list[tuple[str, float | None]]:
    """Names with their numbers, and values of the bars; the others have no bar, as theirs would dwarf the terms."""
    shown = opened.parts.largest(key, count)
    rows = [(f"{opened.parts.unit} {number + 1}: {signed(value)}", value) for number, value in shown]
    terms = opened.parts.terms[key]
    rest = len(terms) - len(shown)
    if rest:
        others = float(terms.sum(dtype=float)) - sum(value for _, value in shown)
        rows.append((f"{rest} others: {signed(others)}", None))
    if opened.window:
        log = float(opened.scores[key]) - float(terms.sum(dtype=float))
        rows.append((f"ln of the Gaussian: {signed(log)}", log))
    return rows
