"""A TSV of a person's own to train on: refused in a sentence, or trained on and drawn as the page does."""

import re

from hypothesis import strategies as st

from tests.hostile import strategies
from tests.hostile.workplace import Failure, Workplace, sentence

PLAIN = "".join(f"{a} {b}\t{b} {a}\n" for a in "abcde" for b in "uvwxyz")
WARM = PLAIN.encode()
_RUNS = re.compile("<script|<img|[\x1b\u2028\u2029\u202a-\u202e\u2066\u2067]", re.IGNORECASE)


def strategy():
    rows = st.lists(st.lists(strategies.texts, min_size=1, max_size=4).map("\t".join), min_size=1, max_size=8)
    lines = rows.map(lambda made: ("\n".join(made) + "\n" + PLAIN).encode("utf-8", "surrogatepass"))
    every = strategies.texts.map(lambda text: "".join(f"{text} {i}\t{i} {text}\n" for i in range(25)))
    return st.one_of(lines, every.map(lambda text: text.encode("utf-8", "replace")), strategies.damaged(WARM))


def check(place: Workplace, case) -> None:
    from attnviz.training.race import Race
    from attnviz.training.seen import Settings
    from dashboard.train import sidebar, view

    with sentence():
        pairs, left_out = sidebar.pairs_of(case, "=mine<script>.tsv")
        race = Race(pairs, ["luong-dot"], Settings(width=16))
        race.advance()
        moment = race.look()
        cells = [view.cell(moment, *of_map, dark=False) for of_map in view.maps(moment)]
        shown = "".join(cell.words + cell.figure.text() for cell in cells) + view.numbers(moment, [moment]) + left_out
        if ran := _RUNS.search(shown):
            raise Failure(f"{ran[0]!r} reached the page")
