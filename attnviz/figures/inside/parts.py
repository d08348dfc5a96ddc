"""One score beside a reference: the part that all tokens share, and the largest differences, term by term."""

from __future__ import annotations

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, palette
from attnviz.figures.wording import signed

_ROW, _TITLE, _NAMES = 24, 30, 160  # px a term, of a title, of the names with their numbers


def score_parts(
    opened, key: int, count: int = 10, title: str | None = None, *, reference: str = "mean", dark: bool = False
) -> Chart:
    """opened : an `inside.Step`. A bar for the constant part of one key's score, then bars for the `count` terms that
    differ most from the reference, then the rest. The axis fits the differences: the bar of the constant part is cut at
    its edge where it is longer, and says so. reference : as of `Step.compared`.

    ValueError for a key or a reference that is not there.
    """
    rows = _rows(opened, opened.compared(key, reference), count)
    colors = palette(dark)
    names, values = [name for name, _ in rows], [value if value is None else round(value, 4) for _, value in rows]
    drawn = [value for value in values[1:] if value is not None]
    span, above = _span(drawn), _TITLE if title else 0
    if not span[0] <= rows[0][1] <= span[1]:  # of the size of the score; at its scale no difference could be seen
        names[0] += " (bar cut)"
    height = _ROW * len(rows) + 44 + above
    frame = layout(
        dark,
        height,
        (_NAMES, 12, 8 + above, 36),
        title and labels.escape(title),
        describe_parts(opened, key, reference),
    )
    frame |= _axes(names, span, colors)
    return build([_bars(values, colors)], frame)


def _axes(names: list[str], span: list[float], colors) -> dict:
    return dict(
        xaxis=dict(
            range=span,
            gridcolor=colors.grid,
            zeroline=True,
            zerolinecolor=colors.muted,
            fixedrange=True,
            nticks=4,
            tickangle=0,
            tickfont=dict(size=11, color=colors.muted),
        ),
        yaxis=dict(
            range=[len(names) - 0.5, -0.5],
            tickvals=list(range(len(names))),
            ticktext=names,  # beside a bar a number would lie on the names where the picture is narrow
            fixedrange=True,
            showgrid=False,
            zeroline=False,
        ),
    )


def describe_parts(opened, key: int, reference: str = "mean") -> str:
    """The score, the constant part, and the largest three differences. Plain text, not escaped."""
    compared = opened.compared(key, reference)
    listed = ", ".join(f"{opened.parts.unit} {number + 1} {signed(value)}" for number, value in compared.largest(3))
    return (
        f"The score of {labels.quoted(opened.keys[key])} at step {opened.step + 1} is {opened.scores[key]:.3f}: "
        f"{signed(compared.constant)} as {reference_words(opened, compared)}, and the differences from it of "
        f"{opened.parts.terms.shape[1]} {opened.parts.unit}s; the largest: {listed}."
    )


def reference_words(opened, compared) -> str:
    """What the differences are from: `the mean of all tokens`, `‘dog’ (3)`; not escaped."""
    if compared.other is None:
        return "the mean of all tokens" if opened.mask.all() else "the mean of the tokens in the window"
    return f"{labels.quoted(opened.keys[compared.other])} ({compared.other + 1})"


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
        marker=dict(
            color=[colors.muted, *(colors.diverging[-1 if (value or 0) >= 0 else 0] for value in values[1:])],
            line=dict(width=0),
        ),
        hoverinfo="skip",
    )


def _rows(opened, compared, count: int) -> list[tuple[str, float | None]]:
    """Names with their numbers, and values of the bars; the others have no bar, as theirs would dwarf the terms."""
    shown = compared.largest(count)
    rows: list[tuple[str, float | None]] = [(f"constant part: {signed(compared.constant)}", compared.constant)]
    rows += [(f"{opened.parts.unit} {number + 1}: {signed(value)}", value) for number, value in shown]
    differences = compared.differences.terms[0]
    rest = len(differences) - len(shown)
    if rest:
        others = float(differences.sum()) - sum(value for _, value in shown)
        rows.append((f"{rest} others: {signed(others)}", None))
    if opened.window:
        rows.append((f"ln of the Gaussian: {signed(compared.gaussian)}", compared.gaussian))
    return rows
