"""How fast attention appears, and what looking costs: `python tests/bench/watch.py [MECHANISM ...]`, on one core.

Bars, in processor time: alignment error below .3 on reverse within 4 s for recurrent models and 12 s for the
Transformer; 99 % exact
within 60 s each; looking makes training at most 1.15 times as slow; a picture of the page takes at most 60 ms.
"""

import math
import sys
import time

from attnviz import figures
from attnviz.figures.learning import over_time
from attnviz.training import seen
from attnviz.training.race import Race, Rhythm, moments_of

BARS = {"luong-general": 4.0, "luong-dot": 4.0, "bahdanau": 4.0, "transformer": 12.0}  # s until the alignment is there
EXACT, WITHIN = 0.99, 60.0  # share of sequences, and s
SLOWER, PICTURE = 1.15, 60.0  # times, and ms


def learn(name: str) -> bool:
    """Processor seconds until the alignment is there, and until nearly all is exact; are the bars kept?"""
    aligned = exact = math.inf
    for moment in moments_of(Race("reverse", [name]), seconds=WITHIN):
        row = moment.of[name]
        aligned = min(aligned, row.seconds if row.alignment_error < seen.ALIGNED else math.inf)
        exact = min(exact, row.seconds if row.exact >= EXACT else math.inf)
        if exact < math.inf:
            break
    print(f"{name}: alignment error below .3 after {aligned:.1f} s, 99 % exact after {exact:.1f} s", flush=True)
    return aligned <= BARS[name] and exact <= WITHIN


def looks(names: tuple[str, ...], batches: int = 60) -> bool:
    """How much slower a race is with looks at their own rhythm, and how long a picture takes; are the bars kept?"""
    race, moments = Race("reverse", names), []
    rhythm, started = Rhythm(race), time.process_time()
    while race.batch < batches:
        race.advance()
        if rhythm.due():
            moments.append(rhythm.look())
    slower = (time.process_time() - started) / race.seconds
    print(f"{', '.join(names)}: {slower:.2f} times as slow with {len(moments)} looks")
    started = time.process_time()
    for number in range(seen.SHOWN):
        for (grid,) in seen.grids(moments[-1:], number).values():
            figures.heatmap(grid, texts=figures.cell_texts(grid), written=False).text()
    over_time(seen.courses(moments), marks=seen.marks(moments), at=moments[-1].batch).text()
    picture = 1000 * (time.process_time() - started)
    print(f"a picture of three sequences and the curves: {picture:.0f} ms", flush=True)
    return slower <= SLOWER and picture <= PICTURE


if __name__ == "__main__":
    kept = [looks(("bahdanau", "luong-general", "transformer")), *map(learn, sys.argv[1:] or BARS)]
    sys.exit(0 if all(kept) else 1)
