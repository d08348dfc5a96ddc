"""A translation that repeats itself without end ("…titititi…"): where the loop begins, so that decoding can end it."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

# How many times in a row a unit of so many pieces stands in a loop. People repeat words too ("very, very, very"), and
# long numbers have many zeros, so short units may stand more often.
TIMES = {1: 8, 2: 5, 3: 4, 4: 4, 5: 3, 6: 3, 7: 3, 8: 3}


@dataclass(frozen=True)
class Loop:
    """pieces[start : start + length] stands `times` times in a row, to the end of the pieces."""

    start: int
    length: int
    times: int


def at_end(pieces: Sequence[Hashable]) -> Loop | None:
    """The loop that the pieces end in, the one of the shortest unit; None when they end in none."""
    for length, least in TIMES.items():
        times = _repeats(pieces, length)
        if times >= least:
            return Loop(len(pieces) - length * times, length, times)
    return None


def _repeats(pieces: Sequence[Hashable], length: int) -> int:
    """How many times in a row the last `length` pieces stand at the end; 0 when there are fewer pieces."""
    count, end = 0, len(pieces)
    unit = pieces[end - length :] if length <= end else None
    while unit is not None and end >= length and pieces[end - length : end] == unit:
        count, end = count + 1, end - length
    return count
