"""How fast attention appears, and what watching costs: `python tests/bench/watch.py [MECHANISM ...]`, on one core.

Bars, in processor time: alignment error below .3 on reverse within 4 s for recurrent models and 12 s for the
Transformer; 99 % exact within 60 s each; looking makes training at most 1.15 times as slow; a picture of the page takes
at most 60 ms.

With --page on a real server: while three mechanisms train, the browser's thread takes at most 60 ms of its own time for
a picture; the sentence of somebody else is then no slower than beside a process that takes a core (at most
1.1 times), and an edit at a moment of *Trained for* costs at most 1.5 of an edit.
"""

import argparse
import asyncio
import contextlib
import math
import random
import signal
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from people import Client, neighbour, processes, sentence, serving

from attnviz import figures
from attnviz.figures.learning import over_time
from attnviz.training import seen
from attnviz.training.race import Race, Rhythm, moments_of

BARS = {"luong-general": 4.0, "luong-dot": 4.0, "bahdanau": 4.0, "transformer": 12.0}  # s until the alignment is there
RACE = ("bahdanau", "luong-general", "transformer")  # those that the page begins with
EXACT, WITHIN = 0.99, 60.0  # share of sequences, and s
SLOWER, PICTURE = 1.15, 60.0  # times, and ms
MOMENT, CORE = 1.5, 1.1  # times an edit, and an edit beside a process that takes a core
EDITS, TURNS = 25, 4
TRAINED = "trained=moment+6"


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
    race = Race("reverse", names)
    rhythm = Rhythm(race)
    moments, started = [rhythm.look()], time.process_time()
    while race.batch < batches:
        race.advance()
        if rhythm.due():
            moments.append(rhythm.look())
    slower = (time.process_time() - started) / race.seconds
    print(f"{', '.join(names)}: {slower:.2f} times as slow, {(len(moments) - 1) / race.seconds:.1f} looks a second")
    started = time.process_time()
    for number in range(seen.SHOWN):
        for (grid,) in seen.grids(moments[-1:], number).values():
            figures.heatmap(grid, texts=figures.cell_texts(grid), written=False).text()
    over_time(seen.courses(moments), marks=seen.marks(moments), at=moments[-1].batch).text()
    picture = 1000 * (time.process_time() - started)
    print(f"a picture of three sequences and the curves: {picture:.0f} ms", flush=True)
    return slower <= SLOWER and picture <= PICTURE


def on_the_page() -> bool:
    """The bars of --page: are they kept?"""
    with serving.running() as (address, pid), serving.browser() as chrome:
        alone, moments = by_turns(address, ["", TRAINED], lambda: sum(map(processes.seconds, processes.family(pid))))
        words = f"an edit {alone:.0f} ms of processor time, at a moment {moments:.0f} ms: {moments / alone:.2f} times"
        print(words, flush=True)
        page = chrome.new_page(viewport=serving.SCREEN)
        with neighbour() as busy, training(page, address):
            busy.send_signal(signal.SIGSTOP)
            drawn = pictures(page)
            ratio = beside(address, page, busy)
    return moments / alone <= MOMENT and ratio <= CORE and drawn <= PICTURE


def beside(address: str, page, busy) -> float:
    """How many times as slow an edit is beside a training on the page as beside a process that takes a core.

    The two take turns, so that whatever else the machine does falls on both alike."""
    measured = {"a busy process": [], "a training": []}
    command = {name: page.get_by_role("button", name=name, exact=True) for name in ("Pause", "Go on")}
    for _ in range(TURNS):
        command["Pause"].click()
        page.wait_for_timeout(3000)  # the charts are drawn, which is at the visitor's
        busy.send_signal(signal.SIGCONT)
        measured["a busy process"] += by_turns(address, [""])
        busy.send_signal(signal.SIGSTOP)
        command["Go on"].click()
        page.wait_for_timeout(3000)
        measured["a training"] += by_turns(address, [""])
    medians = {name: statistics.median(times) for name, times in measured.items()}
    first, second = medians.values()
    words = " ".join(f"beside {name} {median:.0f} ms," for name, median in medians.items())
    print(f"an edit {words} {second / first:.2f} times ({TURNS} turns: {measured})", flush=True)
    return second / first


def by_turns(address: str, queries: list[str], clock: Callable[[], float] | None = None) -> list[float]:
    """`edits`, in a thread of its own: the browser has this one's event loop."""
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(lambda: asyncio.run(edits(address, queries, clock))).result()


async def edits(address: str, queries: list[str], clock: Callable[[], float] | None) -> list[float]:
    """Milliseconds of an edit for visitors of these addresses by turns: the median, or by `clock`, which is coarse, the
    mean."""
    middle, clock = statistics.mean if clock else statistics.median, clock or time.perf_counter
    generator, times = random.Random(7), [[] for _ in queries]
    async with contextlib.AsyncExitStack() as stack:
        clients = [await stack.enter_async_context(Client(address, query)) for query in queries]
        for client in clients:
            await client.open()
        for number in range(-3, EDITS):
            text = sentence(generator)
            for place in range(len(queries))[:: 1 if number % 2 else -1]:
                begun = clock()
                answer = await clients[place].type(text)
                if answer.problems:
                    raise RuntimeError(f"{queries[place]}: {answer.problems[0]:.200}")
                if number >= 0:
                    times[place].append(1e3 * (clock() - begun))
    return [middle(measured) for measured in times]


@contextlib.contextmanager
def training(page, address: str):
    """Three mechanisms train on a page, and have shown something."""
    page.goto(f"{address}/train", timeout=90_000)
    page.get_by_role("button", name="Start", exact=True).click(timeout=90_000)
    page.locator(".st-key-chart-learning-curves .main-svg").first.wait_for(timeout=90_000)
    yield
    page.goto("about:blank")


def pictures(page) -> float:
    """Milliseconds of its thread that a browser spends on a picture, Streamlit's part included."""
    browser = page.context.new_cdp_session(page)
    browser.send("Performance.enable", {"timeDomain": "threadTicks"})

    def spent() -> dict[str, float]:
        return {row["name"]: row["value"] for row in browser.send("Performance.getMetrics")["metrics"]}

    before = spent()
    shown = page.locator(".moments input")
    first = int(shown.get_attribute("max"))
    page.wait_for_timeout(20_000)
    after, count = spent(), int(shown.get_attribute("max")) - first
    parts = {key: 1e3 * (after[key] - before[key]) / count for key in ("TaskDuration", "ScriptDuration")}
    words = f"{parts['TaskDuration']:.0f} ms of its thread, scripts {parts['ScriptDuration']:.0f}"
    print(f"the browser takes {words} for a picture ({count} pictures in 20 s)", flush=True)
    return parts["TaskDuration"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mechanisms", nargs="*", metavar="MECHANISM", help="default: " + ", ".join(BARS))
    parser.add_argument("--page", action="store_true", help="measure a real server in its place")
    options = parser.parse_args()
    passed = [on_the_page()] if options.page else [looks(RACE), *map(learn, options.mechanisms or BARS)]
    return 0 if all(passed) else 1


if __name__ == "__main__":
    sys.exit(main())
