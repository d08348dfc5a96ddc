"""Loops in what a model writes (“…titititi…”), at which decoding can stop. Without torch: the page reads them too."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

# How many times in a row a unit of so many pieces stands in a loop. People repeat words too ("very, very, very"), and
# long numbers have many zeros, so short units may stand more often.
LOOP_TIMES = {1: 8, 2: 5, 3: 4, 4: 4, 5: 3, 6: 3, 7: 3, 8: 3}


@dataclass(frozen=True)
class Loop:
    """A loop at the end of a text (“…titititi…”), at which decoding can stop: pieces[start : start + length] stands
    `times` times in a row, to the end of the pieces."""

    start: int
    length: int
    times: int


def loop_at_end(pieces: Sequence[Hashable]) -> Loop | None:
    """The loop at the end of the pieces, with the shortest unit; None if there is no loop."""
    for length, least in LOOP_TIMES.items():
        if len(pieces) <= length or pieces[-1] != pieces[-1 - length]:
            continue
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
