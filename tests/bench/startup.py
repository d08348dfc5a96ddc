"""From starting the process to the first chart drawn: `python tests/bench/startup.py [--runs 5]`.

Beside it, in the same run, what importing torch, streamlit and plotly costs in a fresh interpreter. Bar: at most 1.7x
that. The browser is open before the clock starts and asks for the page as soon as the server answers. Exit status 1:
bar missed.
"""

import argparse
import statistics
import subprocess
import sys
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "helpers")]
from serving import browser, server  # noqa: E402

BAR = 1.7
DRAWN = "document.querySelector('.plot .heatmaplayer')?.getBoundingClientRect().width > 0"  # asked for each frame
IMPORTS = "import torch, streamlit, plotly.graph_objects"


def imports() -> float:
    """Seconds to import in a new interpreter, start of the interpreter included."""
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], check=True)
    return time.perf_counter() - started


def first_chart(chrome) -> float:
    """Seconds from starting the server to a heatmap on the page."""
    page = chrome.new_page()
    started = time.perf_counter()
    with server() as address:
        page.goto(address)
        page.wait_for_function(DRAWN, timeout=120_000)
        taken = time.perf_counter() - started
        page.close()
    return taken


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    with browser() as chrome:
        imports(), first_chart(chrome)  # warm the disk cache
        pairs = [(imports(), first_chart(chrome)) for _ in range(runs)]
    floor, taken = (statistics.median(column) for column in zip(*pairs))
    ratio = f"ratio {taken / floor:.2f} (at most {BAR})"
    print(f"imports {floor:.2f} s, first chart {taken:.2f} s, medians of {runs}; {ratio}")
    return int(taken > BAR * floor)


if __name__ == "__main__":
    sys.exit(main())
