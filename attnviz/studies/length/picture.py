"""The picture of the study of sentence length."""

import math

from attnviz.studies.length import buckets
from attnviz.studies.pictures import Panel, Series
from attnviz.studies.tables import grouped, mean, titles, values

_QUALITY = (
    ("BLEU by length", "bleu_lc", "BLEU, 13a lower-cased"),
    ("Loss of the reference by length", "loss", "nats a token"),
)


def panels(results: dict) -> list[Panel]:
    """BLEU and loss by length, and entropy by the logarithm of length where there is attention."""
    groups = grouped(results["rows"], "mechanism")
    if not groups:
        return []
    widest = max(values(results["rows"], "words"), default=0)
    ticks = tuple(tick for tick in range(10, 101, 10) if tick <= widest + 5)
    quality = []
    for title, key, unit in _QUALITY:
        series = tuple(_points(name, rows, "words", key) for name, rows in groups.items())
        quality.append(Panel(title, series, "words of the source (mean of the bucket)", unit, ticks=ticks))
    return [*quality, _entropy_panel(results, groups)] if results["fits"] else quality


def _entropy_panel(results: dict, groups: dict) -> Panel:
    """Entropy by bucket, the least-squares lines, and the entropy of uniform attention."""
    fits = grouped(results["fits"], "mechanism")
    series = [_points(name, groups[name], "pieces", "entropy_nats", line=False) for name in fits]
    ends = min(row["from"] for row in results["fits"]), max(row["to"] for row in results["fits"])
    for name, group in fits.items():
        if (slope := mean(group, "slope")) is not None:
            y = tuple(mean(group, "intercept") + slope * math.log(x) for x in ends)
            series.append(Series(titles([name]), ends, y, marks=False))
    return Panel(
        "Entropy by log-length",
        tuple(series),
        "pieces of the source (log scale)",
        "entropy (nats)",
        ticks=(5, 10, 20, 50, 100, 200),
        log=True,
        reference=("uniform attention, ln(pieces)", ends, tuple(map(math.log, ends))),
    )


def _points(mechanism: str, rows: list[dict], x: str, y: str, line: bool = True) -> Series:
    """A point for each bucket in the picture: the mean over seeds, with a bar from the smallest to the largest
    value."""
    cells = [bucket.of(rows) for bucket in buckets.BUCKETS if bucket.drawn]
    cells = [cell for cell in cells if values(cell, x) and values(cell, y)]
    several = any(len(values(cell, y)) > 1 for cell in cells)
    low, high = (tuple(end(values(cell, y)) for cell in cells) if several else () for end in (min, max))
    means = [tuple(mean(cell, key) for cell in cells) for key in (x, y)]
    return Series(titles([mechanism]), *means, low, high, line=line)
