"""The page of one step in a real browser: `python tests/bench/inside.py [--runs 15]`.

Two figures, in one run, and their ratio (only this says something about another machine):
    edit     Enter to every chart drawn, three models, no intervention
    change   another permutation of attention: the key press to the changed maps and bars drawn; bar: change / edit <= 2
The two take turns. The exit status is 1 when the bar is missed.
"""

import argparse
import statistics
import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "helpers"), str(Path(__file__).resolve().parent)]
from page import DRAWN, MARK, SENTENCES, enter, opened  # noqa: E402
from serving import browser, server  # noqa: E402

BAR = 2.0
PICTURES, CHANGED = 9, 9  # charts of the step; maps before and after, and bars, of three models
REDRAWN = 6  # of these: the maps as they were stay
PERMUTED = "/inside?change=permuted&seed=1"


def change(page) -> float:
    """Milliseconds from the arrow key on the seed to the charts of another permutation."""
    page.locator(".st-key-seed input").press("ArrowUp")
    selector = ".st-key-chart-changed .js-plotly-plot"
    return page.evaluate(DRAWN, {"selector": selector, "count": REDRAWN, "quiet": 200})


def measure(runs: int) -> dict[str, list[float]]:
    times: dict[str, list[float]] = {"edit": [], "change": []}
    with browser() as chrome, server() as address:
        edited = opened(chrome, f"{address}/inside", PICTURES)
        permuted = opened(chrome, f"{address}{PERMUTED}", PICTURES + CHANGED)
        permuted.evaluate(MARK, "ArrowUp")
        for run in range(runs + 2):
            edited.bring_to_front()
            edit = enter(edited, SENTENCES[run % len(SENTENCES)], PICTURES)
            permuted.bring_to_front()
            permutation = change(permuted)
            if run > 1:  # the first two warm up
                times["edit"].append(edit)
                times["change"].append(permutation)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=15)
    times = measure(parser.parse_args().runs)
    medians = {name: statistics.median(values) for name, values in times.items()}
    for name, value in medians.items():
        print(f"{name:7} median {value:6.0f} ms   ({min(times[name]):.0f} to {max(times[name]):.0f})")
    ratio = medians["change"] / medians["edit"]
    print(f"change / edit: {ratio:.2f} (at most {BAR})")
    return int(ratio > BAR)


if __name__ == "__main__":
    sys.exit(main())
