"""How fast attention appears and what looking costs: `python tests/bench/watch.py`, processor seconds on one core.

Bars: alignment error below .3 on reverse within 4 s for recurrent models and 12 s for the Transformer; 99 % exact
within 60 s each; looking makes training at most 1.15 times as slow; a picture of the page takes at most 60 ms.
"""

import sys
import time

from attnviz.figures.learning import maps_over_time, over_time
from attnviz.training import seen
from attnviz.training.race import Race, Rhythm, moments_of

NAMES = ("luong-general", "luong-dot", "bahdanau", "transformer")
EXACT = 0.99


def learn(name: str, most: float) -> None:
    """Processor seconds until the alignment is there, and until nearly all is exact."""
    moments = []
    for moment in moments_of(Race("reverse", [name]), seconds=most):
        moments.append(moment)
        row = moment.of[name]
        if row.exact >= EXACT and (row.alignment_error or 0) < seen.ALIGNED:
            break
    at = [row.seconds for m in moments if (row := m.of[name]).alignment_error < seen.ALIGNED]
    exact = [row.seconds for m in moments if (row := m.of[name]).exact >= EXACT]
    first = [f"{min(times):.1f} s" if times else f"not within {most:.0f} s" for times in (at, exact)]
    print(f"{name}: alignment error below .3 after {first[0]}, 99 % exact after {first[1]}", flush=True)


def slower(names: tuple[str, ...], batches: int = 60) -> None:
    """How much slower a race is with looks at their own rhythm, and how long a picture takes."""
    race, moments = Race("reverse", names), []
    rhythm, started = Rhythm(race), time.process_time()
    while race.batch < batches:
        race.advance()
        if rhythm.due():
            moments.append(rhythm.look())
    whole = time.process_time() - started
    print(f"{', '.join(names)}: {whole / race.seconds:.2f} times as slow with {len(moments)} looks")
    started = time.process_time()
    for number in range(seen.SHOWN):
        maps_over_time(seen.grids(moments[-1:], number), ["now"]).text()
    over_time(seen.courses(moments), marks=seen.marks(moments), at=moments[-1].batch).text()
    print(f"a picture of three sequences and the curves: {1000 * (time.process_time() - started):.0f} ms")


if __name__ == "__main__":
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 60.0
    slower(("bahdanau", "luong-general", "transformer"))
    for mechanism in NAMES:
        learn(mechanism, seconds)
