"""Arguments of the functions that notebooks call: an answer, or a ValueError of one sentence."""

import contextlib
import functools
from collections.abc import Iterator
from pathlib import Path

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Workplace, model, sentence

WARM = (0, 0, 0, None)


def strategy():
    import public_functions

    listed = st.integers(0, len(public_functions.WRONG) - 1)  # some of them cannot even be written down
    return st.tuples(st.integers(0, 999), st.integers(0, 9), st.one_of(listed, st.none()), strategies.json_values)


def check(place: Workplace, case) -> None:
    """One function with one wrong argument. case : which function, which argument, which wrong value, or None and
    JSON."""
    import public_functions

    number, position, listed, value = case
    every = _functions(place.root)
    function, given = every[number % len(every)]
    position %= len(given)
    wrong = value if listed is None else public_functions.WRONG[listed]
    with contextlib.chdir(place.folder), sentence():
        answer = function(*given[:position], wrong, *given[position + 1 :])
        if isinstance(answer, Iterator):
            list(answer)


@functools.cache
def _functions(root: Path) -> list[tuple]:
    import public_functions

    return list(public_functions.every(model(root, "en-fr/transformer")).items())
