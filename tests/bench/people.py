"""Many people at one server: `python tests/bench/people.py --load NAME [--address URL]`. A load generator.

Each person is a WebSocket client that does what the browser does: it opens the page, then sends a new sentence again
and again and reads every message of the answer. An answer is there when Streamlit says that the run of the fragment is
finished and the heatmaps of that run have come; only the drawing is left out. The clock starts when all have the page.

    p50, p95      milliseconds from Enter to the answer
    late          answers that took longer than the time between two sentences; the next one is then sent at once
    time-outs     no answer in 60 s
    errors        an error on the page, a lost connection, an answer to another sentence
    MB            of the server and its processes: at the beginning and at the end; of a load of more than five minutes
                  also after five minutes, and the least and the most since. Of such a load each look is printed to
                  stderr, every 20 s: what the page's process takes, and what the models' process takes
    machine       milliseconds of processor time of a fixed loop, just before: how fast this machine is
    reached       is the bar reached? Of `class`, and of a second `one`, by the row of `one` before it

The last line says which bars are reached. The exit status is 1 when there is an error or a bar is missed.

With --neighbour each load is measured twice: alone, then with a process beside it that takes a core.
With --sut FOLDER the server is that of another checkout, so that two commits can take turns on the same machine.
"""

import argparse
import asyncio
import contextlib
import itertools
import json
import random
import statistics
import subprocess
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path

HELPERS = Path(__file__).resolve().parents[1] / "helpers"
sys.path[:0] = [str(HELPERS), str(HELPERS / "protocol"), str(HELPERS.parents[1])]
import processes  # noqa: E402
import serving  # noqa: E402
from bars import SETTLED, memory_of, reached, verdict  # noqa: E402
from client import Client, Lost  # noqa: E402

TIMEOUT = 60  # s
LOOP = 5_000_000  # rounds of the loop that says how fast the machine is
EVERY = 20  # s between two looks at memory
WORDS = (
    ("A", "The", "One", "Another"),
    ("young", "old", "tall", "small", "happy"),
    ("man", "woman", "boy", "girl", "dog", "child"),
    ("in a red shirt", "in a blue hat", "with a green ball", "near the water", "with a big bag"),
    ("is sitting", "is standing", "is running", "is waiting", "is playing"),
    ("on a bench.", "in the snow.", "on the street.", "near a house.", "in the park.", "on the beach."),
)


@dataclass(frozen=True)
class Load:
    """people, and every how many seconds each sends a sentence; for how long. bar : what is to be reached."""

    people: int
    every: float
    seconds: float
    bar: str


LOADS = {
    "one": Load(1, 2, 60, "no slower than before"),
    "class": Load(30, 10, 60, "p95 <= 3 times one person's"),
    "hurried": Load(30, 3, 60, "p95 <= 1000 ms, none late"),
    "lecture": Load(100, 10, 60, "p95 <= 2000 ms, no time-out"),
    "long": Load(30, 10, 1800, "memory within 5 % after the first five minutes, no error"),
    "overload": Load(300, 10, 60, "the queue is shown, no error but time-outs, and afterwards as before"),
}


@dataclass
class Answers:
    """What came back."""

    ms: list[float] = field(default_factory=list)
    late: int = 0
    timeouts: int = 0
    queued: int = 0  # answers before which the page showed a place in the queue
    bytes: list[int] = field(default_factory=list)  # of an answer
    errors: list[str] = field(default_factory=list)


def sentence(generator: random.Random) -> str:
    """One of 36,000, so that few are asked for twice."""
    return " ".join(generator.choice(words) for words in WORDS)


class Start:
    """The moment at which all people have opened the page, or given up: the clock starts then."""

    def __init__(self, people: int):
        self._left, self.now = people, asyncio.Event()

    def ready(self) -> None:
        self._left -= 1
        if not self._left:
            self.now.set()


async def person(address: str, number: int, load: Load, seconds: float, start: Start, answers: Answers) -> None:
    """One person: opens the page, then types until the end."""
    generator, opened = random.Random(number), False
    try:
        async with Client(address) as client:
            await asyncio.wait_for(client.open(), 2 * TIMEOUT)
            opened = True
            start.ready()
            await start.now.wait()
            end = time.monotonic() + seconds
            due = time.monotonic() + generator.uniform(0, load.every)
            while (now := max(due, time.monotonic())) < end:
                await asyncio.sleep(now - time.monotonic())
                await type_once(client, sentence(generator), load, answers)
                due += load.every * generator.uniform(0.8, 1.2)
    except (Lost, OSError, TimeoutError) as error:
        answers.errors.append(f"{type(error).__name__}: {error}")
    finally:
        if not opened:
            start.ready()


async def type_once(client: Client, text: str, load: Load, answers: Answers) -> None:
    started = time.monotonic()
    try:
        answer = await asyncio.wait_for(client.type(text), TIMEOUT)
    except TimeoutError:
        answers.timeouts += 1
        return
    taken = time.monotonic() - started
    answers.ms.append(1e3 * taken)
    answers.late += taken > load.every
    answers.queued += answer.queued
    answers.bytes.append(answer.bytes)
    answers.errors += answer.problems


async def run(address: str, load: Load, seconds: float) -> Answers:
    """All people of a load at once."""
    answers, start = Answers(), Start(load.people)
    await asyncio.gather(*(person(address, number, load, seconds, start, answers) for number in range(load.people)))
    return answers


def percentile(values: list[float], share: float) -> float:
    return sorted(values)[min(len(values) - 1, int(share * len(values)))] if values else float("nan")


def measured(address: str, pid: int | None, name: str, seconds: float | None) -> dict:
    """One load, as a row."""
    load, memory = LOADS[name], []
    seconds = seconds or load.seconds
    answers = asyncio.run(watched(run(address, load, seconds), pid, memory, aloud=seconds > SETTLED))
    row = (
        {
            "load": name,
            "people": load.people,
            "answers": len(answers.ms),
            "p50": round(percentile(answers.ms, 0.5)),
            "p95": round(percentile(answers.ms, 0.95)),
            "late": answers.late,
            "queued": answers.queued,
            "timeouts": answers.timeouts,
            "errors": len(answers.errors),
            "kB": round(statistics.median(answers.bytes) / 1e3) if answers.bytes else None,
            "bar": load.bar,
        }
        if answers.ms
        else {"load": name, "answers": 0, "timeouts": answers.timeouts, "errors": len(answers.errors)}
    )
    if pid:
        row |= memory_of([(second, sum(parts)) for second, *parts in memory])
    for error in sorted(set(answers.errors))[:5]:
        print(f"  {error[:200]}", file=sys.stderr)
    return row


async def watched(load, pid: int | None, memory: list[tuple[float, int, int]], aloud: bool) -> Answers:
    """The answers of a load; meanwhile memory gets (seconds, MB of the page's process, MB of all others) now and then.

    aloud : print each of them.
    """
    begun, task = time.monotonic(), asyncio.create_task(load)
    while True:
        if pid:
            page, *others = await asyncio.to_thread(processes.memories, pid)
            memory.append((time.monotonic() - begun, page, sum(others)))
            if aloud:
                print("  {:5.0f} s  page {} MB  models {} MB".format(*memory[-1]), file=sys.stderr, flush=True)
        if task.done():
            return await task
        await asyncio.wait([task], timeout=EVERY)


def machine_ms() -> float:
    """Processor time of a fixed loop, the least of three. A busy machine does not change it much, a slow one does."""
    return 1e3 * min(map(_loop, range(3)))


def _loop(_) -> float:
    begun = time.process_time()
    for _ in range(LOOP):
        pass
    return time.process_time() - begun


@contextlib.contextmanager
def neighbour():
    """A process that always has something to do, and takes a core."""
    process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    try:
        yield process
    finally:
        process.kill()
        process.wait()


@contextlib.contextmanager
def under_test(options):
    """Address and process of the server: one that runs, or one started here."""
    if options.address:
        urllib.request.urlopen(f"{options.address}/_stcore/health", timeout=10).close()
        yield options.address, None
    else:
        root = (options.sut or serving.ROOT).resolve()
        with serving.running(root / "dashboard" / "app.py", root) as server:
            yield server


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--load", nargs="+", choices=LOADS, default=["one", "class"])
    parser.add_argument("--seconds", type=float, help="of each load, instead of its own")
    parser.add_argument("--address", help="of a server that runs; by default one is started")
    parser.add_argument("--sut", type=Path, help="another checkout whose server is started")
    parser.add_argument("--neighbour", action="store_true", help="measure each load also beside a busy process")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    rows, alone = [], {}  # alone : the row of one person, by whether there was a neighbour
    with under_test(options) as (address, pid):
        asyncio.run(run(address, Load(1, 0.5, 3, ""), 3))  # once before the clock starts
        for name, beside in itertools.product(options.load, (False, True) if options.neighbour else (False,)):
            machine = round(machine_ms())
            with neighbour() if beside else contextlib.nullcontext():
                row = measured(address, pid, name, options.seconds) | {"machine": machine, "neighbour": beside}
            row["reached"] = reached(row, alone.get(beside))
            rows.append(row)
            if name == "one":
                alone.setdefault(beside, row)
            line = json.dumps(row) if options.json else "  ".join(f"{key} {value}" for key, value in row.items())
            print(line, flush=True)
    print(verdict(rows), file=sys.stderr if options.json else sys.stdout)
    return int(any(row["reached"] is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
