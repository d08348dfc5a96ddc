"""How many threads torch computes with in this process."""

import torch

from attnviz import arguments

# By measurement (tests/bench/threads.py, docs/benchmarks.md): the matrices of these models are so small that threads
# wait for each other longer than they compute, above all beside other programs.
DEFAULT = 1


def use(threads: int | None) -> None:
    """Compute with so many threads from now on; None leaves what is set. ValueError for a number below 1."""
    if threads is None:
        return
    arguments.check("threads", threads, int)
    if threads < 1:
        raise ValueError(f"threads must be at least 1; got {threads}")
    torch.set_num_threads(threads)
