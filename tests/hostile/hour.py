"""An hour of hostile visitors at a real server: `python -m tests.hostile.hour --minutes 60 [--visitors 3] [--seed 1]`.

The visitors are cases of the kinds `visitors` and `stopped`. Beside them somebody types a new sentence every two
seconds. First the caches are filled. Then, and again when all have left at the end, three things are counted: the
processes of the server, its open files, and the memory that its processes have made (PSS without files, MB). A line
every minute goes to standard error. The exit status is 1 when one of the three is more than 10 % above the start, when
a case failed, or when a sentence was not answered.
"""

import argparse
import asyncio
import contextlib
import os
import random
import sys
import tempfile
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

HELPERS = Path(__file__).resolve().parents[1] / "helpers"
sys.path[:0] = [str(HELPERS), *(str(HELPERS / name) for name in ("models", "protocol")), str(HELPERS.parents[1])]

import hypothesis  # noqa: E402
import processes  # noqa: E402
from client import Client, Lost  # noqa: E402

from tests.hostile.kinds import stopped, visitors  # noqa: E402
from tests.hostile.workplace import Failure, Workplace, prepared  # noqa: E402

BAR = 1.1  # times the start
FILLING = 450  # sentences of three models each: more than the entries of the cache
EVERY, STOP_EVERY = 2.0, 300.0  # s between two sentences; between two stops of the process of the models
LEFT = 40  # s after which everything of visitors who have left is gone, and so is a second process of the models
WORDS = (
    ("A", "The", "One", "Another"),
    ("young", "old", "tall", "small", "happy", "black", "white", "red"),
    ("man", "woman", "boy", "girl", "dog", "child", "cat", "horse"),
    ("near the water", "in a blue hat", "with a green ball", "on the beach", "in the park"),
    ("is sitting.", "is standing.", "is running.", "is waiting.", "is playing."),
)


@dataclass
class Tally:
    """What came of the hour."""

    cases: int = 0
    sentences: int = 0
    stops: int = 0
    failed: list[str] = field(default_factory=list)

    def fail(self, what: str) -> None:
        self.failed.append(what)
        print(f"FAILED {what[:800]}", file=sys.stderr, flush=True)


@dataclass(frozen=True)
class State:
    """Of a server: processes, open files of all of them, and MB."""

    processes: int
    files: int
    memory: int

    @classmethod
    def of(cls, pid: int) -> "State":
        """Counted again when one of its processes ends while they are counted."""
        for _ in range(10):
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):
                return cls._counted(pid)
        return cls._counted(pid)

    @classmethod
    def _counted(cls, pid: int) -> "State":
        members = processes.family(pid)
        files = sum(len(os.listdir(f"/proc/{member}/fd")) for member in members)
        return cls(len(members), files, processes.own_megabytes(pid))


def cases(place: Workplace, seed: int, end: float, tally: Tally) -> None:
    """Cases of one hostile visitor until the end."""

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=500,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(visitors.strategy())
    def check(case) -> None:
        if time.monotonic() > end:
            return
        tally.cases += 1
        try:
            visitors.visit(place.around, case)
        except (Failure, Lost, OSError, TimeoutError) as error:
            tally.fail(f"{type(error).__name__}: {error} in {case!r:.400}")

    check()


def hostile(place: Workplace, seed: int, end: float, tally: Tally) -> None:
    while time.monotonic() < end:
        seed += 1_000
        cases(place, seed, end, tally)


def stops(place: Workplace, seed: int, end: float, tally: Tally) -> None:
    """The process of the models is stopped or killed now and then, while somebody waits."""
    generator = random.Random(seed)
    while time.monotonic() + STOP_EVERY < end:
        time.sleep(STOP_EVERY)
        tally.stops += 1
        try:
            asyncio.run(stopped.stop(place.around, generator.choice(stopped.SIGNALS), 2, generator.random() / 3))
        except (Failure, Lost, OSError, TimeoutError) as error:
            tally.fail(f"a stop of the models: {type(error).__name__}: {error}")


async def sentences(address: str, generator: random.Random, end: float, count: int, tally: Tally, every: float) -> None:
    """Somebody types until the end, or so many sentences."""
    async with Client(address) as client:
        await client.open()
        while time.monotonic() < end and count:
            text, count = " ".join(generator.choice(words) for words in WORDS), count - 1
            answer = await asyncio.wait_for(client.type(text), 90)
            tally.sentences += 1
            if answer.problems:
                tally.fail(f"a visitor who types reads {answer.problems[0]!r:.300}")
            await asyncio.sleep(every)


def typing(place: Workplace, seed: int, end: float, tally: Tally) -> None:
    """Again from the beginning when the page is lost."""
    while time.monotonic() < end:
        try:
            asyncio.run(sentences(place.around.address, random.Random(seed), end, -1, tally, EVERY))
        except (Lost, OSError, TimeoutError) as error:
            tally.fail(f"a visitor who types lost the page: {type(error).__name__}: {error}")


def watch(pid: int, begun: float, end: float, tally: Tally) -> None:
    while time.monotonic() < end:
        print(f"{time.monotonic() - begun:5.0f} s  {tally.cases} cases  {State.of(pid)}", file=sys.stderr, flush=True)
        time.sleep(min(60, max(0, end - time.monotonic())))


def run(options: argparse.Namespace, place: Workplace) -> int:
    tally, server, forever = Tally(), place.around, time.monotonic() + 3600
    asyncio.run(sentences(server.address, random.Random(0), forever, FILLING, tally, 0))
    warm = time.monotonic() + options.warm
    workers = [(hostile, options.seed + number) for number in range(options.visitors)]
    run_together(place, workers, warm, tally)
    time.sleep(LEFT)
    before, tally.cases = State.of(server.pid), 0
    print(f"start  {before}", flush=True)
    begun = time.monotonic()
    end = begun + 60 * options.minutes
    watching = threading.Thread(target=watch, args=(server.pid, begun, end, tally), daemon=True)
    watching.start()
    run_together(place, [*workers, (stops, options.seed), (typing, options.seed)], end, tally)
    time.sleep(LEFT)
    after = State.of(server.pid)
    print(f"end    {after}")
    print(
        f"{options.minutes:g} minutes, {tally.cases} cases, {tally.stops} stops of the models, {tally.sentences} "
        f"sentences, {len(tally.failed)} failures"
    )
    grown = [name for name in vars(before) if getattr(after, name) > BAR * getattr(before, name)]
    print(f"more than 10 % above the start: {', '.join(grown)}" if grown else "all within 10 % of the start")
    return int(bool(grown or tally.failed))


def run_together(place: Workplace, workers: list, end: float, tally: Tally) -> None:
    threads = [threading.Thread(target=work, args=(place, seed, end, tally)) for work, seed in workers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.hour", description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--visitors", type=int, default=3, help="hostile ones at once")
    parser.add_argument(
        "--warm", type=float, default=120, help="seconds of hostile visitors before the start is counted"
    )
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder, prepared(Path(folder), visitors) as place:
        return run(options, place)


if __name__ == "__main__":
    sys.exit(main())
