"""Rows of numbers -> text: tables in Markdown, means with their standard deviation, and how many seeds there are."""

import math
import statistics
from collections.abc import Iterable, Sequence

from attnviz.mechanisms import MECHANISMS

Row = dict  # name -> number; has a mechanism and a seed


def grouped(rows: Iterable[Row], *keys: str) -> dict:
    """Rows by the values of some keys, in the order of their first row. With one key the group's name is no tuple."""
    groups: dict = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        groups.setdefault(values[0] if len(keys) == 1 else values, []).append(row)
    return groups


def values(rows: Iterable[Row], key: str) -> list[float]:
    """The numbers under `key`; rows without one are left out."""
    numbers = (row.get(key) for row in rows)
    return [float(number) for number in numbers if number is not None and not math.isnan(number)]


def mean(rows: Iterable[Row], key: str) -> float | None:
    return statistics.fmean(numbers) if (numbers := values(rows, key)) else None


def spread(rows: Iterable[Row], key: str, digits: int = 2, scale: float = 1) -> str:
    """`55.60` for one row, `55.60 ± 0.31` (mean and sample standard deviation) for several; a dash without a number."""
    numbers = [scale * value for value in values(rows, key)]
    if not numbers:
        return "–"
    deviation = f" ± {statistics.stdev(numbers):,.{digits}f}" if len(numbers) > 1 else ""
    return f"{statistics.fmean(numbers):,.{digits}f}{deviation}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; all columns but the first are right-aligned."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def titles(mechanisms: Iterable[str]) -> str:
    """`Bahdanau · additive, Luong · dot and Transformer · multi-head`."""
    return listed([MECHANISMS[name].title for name in mechanisms])


def listed(words: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join([part for part in (", ".join(words[:-1]), *words[-1:]) if part])


def seeds(rows: Iterable[Row]) -> str:
    """How many training runs the numbers come from, and what that says of their variation."""
    runs = {name: len({row["seed"] for row in group}) for name, group in grouped(rows, "mechanism").items()}
    if not runs:
        return "No model was measured."
    if set(runs.values()) == {1}:
        return (
            "One seed: each row is a single training run. The variation between runs is unknown, so small differences "
            "between rows may be chance."
        )
    by_mechanism = "; ".join(f"{MECHANISMS[name].title}: {count}" for name, count in runs.items())
    same = len(set(runs.values())) == 1
    count = f"{min(runs.values())} seeds each" if same else f"Seeds: {by_mechanism}"
    return (
        f"{count}; numbers are means over the seeds ± the sample standard deviation, and bars show the smallest and "
        "largest."
    )
