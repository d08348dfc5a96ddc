"""One thread or several, alone and beside busy neighbours: `python tests/bench/threads.py [--threads 1 2]`.

Wall-clock time of training batches and of batches of traces, with each number of threads in turn, so that all meet the
same machine. A neighbour is a process that only computes; there is one for each core, as with other users' programs.
It trains an untrained Transformer of the shipped size on made-up sentences, and traces with the shipped one.
"""

import argparse
import contextlib
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))
from attnviz import loading
from attnviz.mechanisms import Config
from attnviz.models import machine
from attnviz.networks.registry import build

OPTIONS = {"width": 192, "hidden": 768, "layers": 3, "heads": 4}
PIECES, BATCH, VOCABULARY = 16, 20, 6000  # 320 pieces a batch on each side
SENTENCE = "A man in a blue shirt is standing on a ladder outside."
BUSY = "while True: sum(range(10000))"


@contextlib.contextmanager
def neighbours(count: int):
    """So many processes that only compute."""
    busy = [subprocess.Popen([sys.executable, "-c", BUSY]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def training_batch():
    """A function that makes one update of a Transformer."""
    model = build(Config("transformer", VOCABULARY, OPTIONS)).train()
    optimizer = torch.optim.Adam(model.parameters())
    source, target = (torch.randint(4, VOCABULARY, (BATCH, PIECES)) for _ in range(2))

    def update():
        optimizer.zero_grad()
        logits = model(source, target)[0]
        torch.nn.functional.cross_entropy(logits.flatten(0, 1), target.flatten()).backward()
        optimizer.step()

    return update


def traces_batch():
    """A function that traces a batch of 32 sentences."""
    model = loading.load("en-fr/transformer")
    return lambda: list(model.traces([SENTENCE] * 32))


def medians(work, counts: list[int], rounds: int) -> list[float]:
    """ms of `work` with each number of threads, which take turns."""
    times = {count: [] for count in counts}
    for _ in range(rounds + 1):
        for count in counts:
            machine.use_threads(count)
            started = time.perf_counter()
            work()
            times[count].append((time.perf_counter() - started) * 1000)
    return [statistics.median(times[count][1:]) for count in counts]  # without the first, which fills caches


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    cores = len(os.sched_getaffinity(0))
    print(f"{cores} cores; median ms of {options.rounds} rounds with {', '.join(map(str, options.threads))} threads")
    for name, work in (("train, one update", training_batch()), ("traces, 32 sentences", traces_batch())):
        for busy in (0, cores):
            with neighbours(busy):
                results = medians(work, options.threads, options.rounds)
            ratios = ", ".join(f"{result:.0f} ms ({result / results[0]:.2f})" for result in results)
            print(f"{name}, {busy} busy neighbours: {ratios}", flush=True)


if __name__ == "__main__":
    main()
