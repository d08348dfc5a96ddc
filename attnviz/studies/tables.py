"""Rows of figures -> text for readers: tables in Markdown, means with their spread, and how many seeds they come from."""

import math
import statistics
from collections.abc import Iterable, Sequence

from attnviz.mechanisms import MECHANISMS

Row = dict  # name -> figure; has a mechanism and a seed


def grouped(rows: Iterable[Row], *keys: str) -> dict:
    """Rows by the values of some keys, in the order in which these come; a key alone is not in a tuple."""
    found: dict = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        found.setdefault(values[0] if len(keys) == 1 else values, []).append(row)
    return found


def values(rows: Iterable[Row], key: str) -> list[float]:
    """The numbers that rows have under `key`, those without one left out."""
    found = (row.get(key) for row in rows)
    return [float(value) for value in found if value is not None and not math.isnan(value)]


def mean(rows: Iterable[Row], key: str) -> float | None:
    return statistics.fmean(found) if (found := values(rows, key)) else None


def spread(rows: Iterable[Row], key: str, digits: int = 2, scale: float = 1) -> str:
    """`55.60`, or over several rows `55.60 ± 0.31`, their mean and sample standard deviation; a dash without a number."""
    found = [scale * value for value in values(rows, key)]
    if not found:
        return "–"
    off = f" ± {statistics.stdev(found):,.{digits}f}" if len(found) > 1 else ""
    return f"{statistics.fmean(found):,.{digits}f}{off}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; what is not in the first column is at the right."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def titles(mechanisms: Iterable[str]) -> str:
    """`Bahdanau · additive, Luong · dot and Transformer · multi-head`."""
    return listed([MECHANISMS[name].title for name in mechanisms])


def listed(words: Sequence[str]) -> str:
    return " and ".join([part for part in (", ".join(words[:-1]), *words[-1:]) if part])


def seeds(rows: Iterable[Row]) -> str:
    """How many training runs the figures come from, and what is therefore known of their spread."""
    runs = {name: len({row["seed"] for row in group}) for name, group in grouped(rows, "mechanism").items()}
    if not runs:
        return "No model was measured."
    if set(runs.values()) == {1}:
        return (
            "One seed: each row is a single training run, so how far another run would be from it is not known, and small "
            "differences between rows may be chance."
        )
    many = "; ".join(f"{MECHANISMS[name].title}: {count}" for name, count in runs.items())
    count = f"{min(runs.values())} seeds each" if len(set(runs.values())) == 1 else f"Seeds: {many}"
    return f"{count}; figures are means over them, ± the sample standard deviation, and bars in the picture go from the least to the most."
