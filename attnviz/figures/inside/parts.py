"""One score as the sum it is: its largest terms, and all others together."""

from __future__ import annotations

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, palette

_ROW, _TITLE = 24, 30  # px a term, of a title


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
    above = _TITLE if title else 0
    height = _ROW * len(rows) + 44 + above
    frame = layout(dark, height, (150, 40, 8 + above, 36), title and labels.escape(title), describe_parts(opened, key))
    frame |= dict(
        xaxis=dict(
            range=_span([value for value in values if value is not None]),
            gridcolor=colors.grid,
            zeroline=True,
            zerolinecolor=colors.muted,
            fixedrange=True,
            nticks=6,
            tickfont=dict(size=11, color=colors.muted),
        ),
        yaxis=dict(
            range=[len(rows) - 0.5, -0.5],
            tickvals=list(range(len(rows))),
            ticktext=names,
            fixedrange=True,
            showgrid=False,
            zeroline=False,
        ),
    )
    return build([_bars(values, colors)], frame)


def describe_parts(opened, key: int) -> str:
    """What the terms sum to, and the largest three. Plain text, not escaped."""
    listed = ", ".join(
        f"{opened.parts.unit} {number + 1} {value:+.3f}" for number, value in opened.parts.largest(key, 3)
    )
    return (
        f"The score of {labels.quoted(opened.keys[key])} at step {opened.step + 1} is {opened.scores[key]:.3f}, a sum "
        "over "
        f"{opened.parts.terms.shape[1]} {opened.parts.unit}s; the largest terms: {listed}."
    )


def _span(values: list[float]) -> list[float]:
    """The axis, with room for the numbers at the ends of the longest bars."""
    least, most = min(0.0, *values), max(0.0, *values)
    span = (most - least) or 1.0
    return [least - 0.45 * span * (least < 0), most + 0.3 * span]


def _bars(values: list[float | None], colors) -> dict:
    return dict(
        type="bar",
        orientation="h",
        x=values,
        y=list(range(len(values))),
        width=0.78,
        marker=dict(color=[colors.diverging[-1 if (value or 0) >= 0 else 0] for value in values], line=dict(width=0)),
        text=["" if value is None else f"{value:+.3f}" for value in values],
        textposition="outside",
        cliponaxis=False,
        textfont=dict(size=11),
        hoverinfo="skip",
    )


def _rows(opened, key: int, count: int) -> list[tuple[str, float | None]]:
    """Names and values of the bars; the others have their sum in their name, as a bar of it would dwarf the terms."""
    shown = opened.parts.largest(key, count)
    rows = [(f"{opened.parts.unit} {number + 1}", value) for number, value in shown]
    terms = opened.parts.terms[key]
    rest = len(terms) - len(shown)
    if rest:
        others = float(terms.sum(dtype=float)) - sum(value for _, value in shown)
        rows.append((f"{rest} others: {others:+.3f}", None))
    if opened.window:
        rows.append(("ln of the Gaussian", float(opened.scores[key]) - float(terms.sum(dtype=float))))
    return rows
