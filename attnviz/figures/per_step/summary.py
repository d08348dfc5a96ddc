"""A table of means with standard deviations, a column for each mechanism."""

from __future__ import annotations

from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.checks import require
from attnviz.figures.theme import CLEAR, build, layout, palette
from attnviz.figures.titles import statistic_title
from attnviz.figures.wording import listed

_ROW, _TITLE = 30, 30  # px of a table row, of a title


@checked
def comparison(frame: pd.DataFrame, title: str | None = None, *, threshold: float = 0.1, dark: bool = False) -> Chart:
    """A table of mean ± standard deviation; frame has mechanism, statistic, mean, std. One column per mechanism.

    threshold : the one that `stats` was given.
    """
    require(frame, ("mechanism", "statistic", "mean", "std"), "frame")
    cells = {
        (row.statistic, row.mechanism): "–" if pd.isna(row.mean) else f"{row.mean:.2f} ± {row.std:.2f}"
        for row in frame[["mechanism", "statistic", "mean", "std"]].itertuples(index=False)
    }
    mechanisms, statistics = (list(dict.fromkeys(frame[column])) for column in ("mechanism", "statistic"))
    colors = palette(dark)
    columns = [[labels.escape(statistic_title(name, threshold)) for name in statistics]]
    columns += [[cells.get((statistic, mechanism), "–") for statistic in statistics] for mechanism in mechanisms]
    align = ["left", *["right"] * len(mechanisms)]
    look = dict(align=align, height=_ROW, line=dict(color=colors.grid, width=1))
    head = [
        "",
        *(f"<b>{labels.escape(labels.plain(name))}</b>" for name in mechanisms),
    ]  # a table shows no other markup
    table = dict(
        type="table",
        columnwidth=[1.7, *[1] * len(mechanisms)],
        header=dict(values=head, fill=dict(color=colors.panel), font=dict(color=colors.text, size=13), **look),
        cells=dict(values=columns, fill=dict(color=CLEAR), font=dict(color=colors.text, size=13), **look),
    )
    description = f"Mean ± standard deviation over the steps of {len(statistics)} statistics for {listed(mechanisms)}."
    above = _TITLE if title else 0
    margin, height = (1, 34, 2 + above, 2), _ROW * (len(statistics) + 1) + 24 + above
    return build([table], layout(dark, height, margin, title and labels.escape(title), description))
