"""Translation quality against the length of the source, one line per model."""

from __future__ import annotations

from attnviz import lazy_pandas as pd
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import build, layout, lines, palette

_HEIGHT, _TITLE = 300, 30  # px of the panel, of a title


def by_length(frame: pd.DataFrame, title: str | None = None, *, dark: bool = False) -> Chart:
    """frame : columns mechanism, words (mean length of the source), bleu; a row for each model and length."""
    require(frame, ("mechanism", "words", "bleu"), "frame of quality by length")
    colors, above = palette(dark), _TITLE if title else 0
    styles = lines(frame["mechanism"], dark)
    axis = dict(
        gridcolor=colors.grid,
        zeroline=False,
        fixedrange=True,
        rangemode="tozero",
        tickfont=dict(size=11, color=colors.muted),
    )
    figure = layout(dark, _HEIGHT + above, (48, 12, 44 + above, 48), title and labels.escape(title), _words(frame))
    figure |= dict(
        xaxis=axis | dict(title=dict(text="words of the source")),
        yaxis=axis | dict(title=dict(text="BLEU")),
        showlegend=True,
        legend=dict(orientation="h", x=0, y=1.02, yanchor="bottom", font=dict(size=12)),
    )
    data = [
        _line(name, rows.sort_values("words"), styles[name]) for name, rows in frame.groupby("mechanism", sort=False)
    ]
    return build(data, figure)


def _line(name: str, rows: pd.DataFrame, style) -> dict:
    return dict(
        type="scatter",
        mode="lines+markers",
        name=labels.escape(name),
        x=rows["words"].round(1).tolist(),
        y=rows["bleu"].round(2).tolist(),
        line=dict(color=style.color, dash=style.dash, width=2),
        marker=dict(symbol=style.marker, size=9),
        hovertemplate="%{y:.1f} BLEU at %{x:.0f} words<extra></extra>",
    )


def _words(frame: pd.DataFrame) -> str:
    parts = []
    for name, rows in frame.sort_values("words").groupby("mechanism", sort=False):
        first, last = rows.iloc[0], rows.iloc[-1]
        parts.append(
            f"{name}: {first['bleu']:.1f} at {first['words']:.0f} words, {last['bleu']:.1f} at {last['words']:.0f}"
        )
    return f"BLEU by length of the source. {'; '.join(parts)}."
