"""Hostile and broken input in numbers: `python -m tests.hostile --cases 20000 [--seed 1] [--jobs 2] [--kinds texts …]`.

Every case is made by the strategies of this folder and runs in a child process that may take 30 seconds a case and
4 GB of memory, and from which nothing may leave loopback. Printed are the cases of each kind, and every failure with
its case: a traceback, a hang, a process that died or grew, a file that was lost. The exit status is 1 if there is any.
"""

import argparse
import contextlib
import functools
import json
import os
import queue
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

HERE = Path(__file__).resolve().parent
HELPERS = HERE.parent / "helpers"
sys.path[:0] = [str(HELPERS), *(str(HELPERS / name) for name in ("models", "protocol")), str(HERE.parents[1])]

from tests.hostile import cases  # noqa: E402

SECONDS = {"stopped": 120, "visitors": 90, "runs": 150}  # of a case, where it is not 30: others are at the server too
LOADING = 300  # of what a batch imports and writes before its first case
MEMORY = 4 * 2**30  # bytes of address space, which is never less than what is used
BATCH = 1000  # cases of a process


@dataclass
class Tally:
    """What came of a run. peak : KiB of the largest process."""

    done: Counter = field(default_factory=Counter)
    seconds: Counter = field(default_factory=Counter)  # by kind, of all its processes
    failed: list[str] = field(default_factory=list)
    slowest: float = 0.0
    peak: int = 0

    def fail(self, what: str) -> None:
        """Kept for the end, and said at once."""
        self.failed.append(what)
        print(f"FAILED {what[:1500]}", flush=True)


def run_batch(kind: str, seed: int, count: int) -> None:
    """In the child: `count` cases; a line of JSON before each, and one at the end."""
    import resource

    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)

    def say(**what) -> None:
        out.write(json.dumps(what) + "\n")
        out.flush()

    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        limit = functools.partial(resource.setrlimit, resource.RLIMIT_AS, (MEMORY, MEMORY))
        cases.run(kind, seed, count, Path(folder), say, limit)
    say(end=True, peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def _end_with(parent: int) -> None:
    """In the child: ends with the process that started it, and so does all that it has started."""
    while os.getppid() == parent:
        time.sleep(2)
    os.killpg(0, signal.SIGKILL)


def watch_batch(kind: str, seed: int, count: int, tally: Tally) -> None:
    """Run a batch in a child process, ended when a case takes too long; what is left of the batch goes to another."""
    started = time.monotonic()
    while count > 0:
        done = _watch(kind, seed, count, tally)
        count, seed = count - max(done, 1), seed + 1_000_003
    tally.seconds[kind] += time.monotonic() - started
    print(f"{kind:12} {tally.done[kind]:6} cases {tally.seconds[kind]:6.0f} s", flush=True)


def _watch(kind: str, seed: int, count: int, tally: Tally) -> int:
    """One process -> the cases that it began."""
    seconds = SECONDS.get(kind, 30)
    command = [sys.executable, "-m", "tests.hostile", "--batch", kind, "--seed", str(seed), "--cases", str(count)]
    with tempfile.TemporaryDirectory(prefix="hostile-") as folder:
        log, err = Path(folder) / "left.log", Path(folder) / "err"
        environment = os.environ | {"PYTHONPATH": str(HELPERS / "offline"), "LEFT_LOOPBACK": str(log)}
        environment["OMP_NUM_THREADS"] = "1"  # processes beside each other: threads would wait for threads
        with err.open("wb") as errors:
            process = subprocess.Popen(
                command,
                stdout=subprocess.PIPE,
                stderr=errors,
                env=environment,
                cwd=HERE.parents[1],
                start_new_session=True,  # with the servers and browsers that it starts
            )
        began, last, started = 0, "before the first case", time.monotonic()
        for line in _lines(process, seconds, LOADING):
            tally.slowest = max(tally.slowest, time.monotonic() - started if began else 0)
            if line is None:
                tally.fail(f"{kind}: more than {seconds} s: {last}")
                break
            if "case" in line:
                began, last, started = began + 1, line["case"], time.monotonic()
            if "failed" in line:
                tally.fail(f"{kind}: {line['failed']} in {last}")
            if "end" in line:
                tally.peak = max(tally.peak, line["peak"])
                break
        else:
            last_words = err.read_text("utf-8", "replace")[-300:]
            tally.fail(f"{kind}: the process ended with status {process.wait()}: {last}: {last_words}")
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        tally.done[kind] += began
        if log.exists():
            tally.fail(f"{kind}: left loopback: {log.read_text()[:500]}")
    return began


def _lines(process: subprocess.Popen, seconds: int, first: int) -> Iterator[dict | None]:
    """The lines of a child; None when it is silent for too long."""
    waiting: queue.Queue = queue.Queue()

    def read() -> None:
        for line in process.stdout:
            waiting.put(line)
        waiting.put(b"")

    threading.Thread(target=read, daemon=True).start()
    patience = first
    while True:
        try:
            line = _wait(waiting, patience)
        except queue.Empty:
            yield None
            return
        if not line:
            return
        patience = seconds
        yield json.loads(line)


def _wait(waiting: queue.Queue, seconds: int) -> bytes:
    """The next line. Raises queue.Empty after so many seconds; those in which the whole machine slept do not count."""
    for _ in range(seconds):
        try:
            return waiting.get(timeout=1)
        except queue.Empty:
            continue
    raise queue.Empty


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2, help="processes at once")
    parser.add_argument("--kinds", nargs="+", choices=cases.KINDS, default=list(cases.KINDS))
    parser.add_argument("--batch", choices=cases.KINDS, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.batch:
        run_batch(args.batch, args.seed, args.cases)
        return 0
    tally, started = Tally(), time.monotonic()
    batches = list(_batches(args.cases, args.kinds, args.seed))
    with ThreadPoolExecutor(args.jobs) as pool:
        for waiting in [pool.submit(watch_batch, *batch, tally) for batch in batches]:
            waiting.result()
    total = sum(tally.done.values())
    print(
        f"{total} cases, {len(tally.failed)} failures, {time.monotonic() - started:.0f} s; the slowest case took "
        f"{tally.slowest:.1f} s, the largest process {tally.peak / 2**20:.2f} GB"
    )
    return 1 if tally.failed else 0


def _batches(total: int, kinds: list[str], seed: int) -> Iterator[tuple[str, int, int]]:
    """(kind, seed, cases) of each process; the kinds share the cases as `KINDS` says."""
    shares = sum(cases.SHARES[kind] for kind in kinds)
    left = total
    for position, kind in enumerate(kinds):
        wanted = left if position == len(kinds) - 1 else total * cases.SHARES[kind] // shares
        left -= wanted
        for number, first in enumerate(range(0, wanted, BATCH)):
            yield kind, seed * 1000 + number, min(BATCH, wanted - first)


if __name__ == "__main__":
    sys.exit(main())
