"""The resources of this process: memory for training, and threads of torch."""

import contextlib
import os
import re
from pathlib import Path

import torch

from attnviz import arguments
from attnviz.arguments import shown
from attnviz.mechanisms import Config
from attnviz.networks.registry import Unfilled, build
from attnviz.python_file import text_of

# float32 numbers for each weight while a model is trained: itself, its gradient, Adam's two means, the moving average.
NUMBERS = 5
_TOO_LARGE = re.compile("allocate|out of memory|[Oo]verflow|index-sized|Maximum allowed dimension")  # torch's, NumPy's
_GROUPS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
# By measurement (tests/bench/threads.py, docs/benchmarks.md): the matrices of these models are so small that threads
# wait for each other longer than they compute, above all beside other programs.
THREADS = 1


def memory() -> tuple[int, str]:
    """Bytes of memory, and whose in words: of the GPU that trains, or of the machine, or of its container if that has
    less."""
    if torch.cuda.is_available():
        return torch.cuda.get_device_properties(0).total_memory, torch.cuda.get_device_name(0)
    limits = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")] if hasattr(os, "sysconf") else []
    for path in map(Path, _GROUPS):
        with contextlib.suppress(OSError, ValueError):  # there is no such group, or it says `max`
            limits.append(int(path.read_text()))
    return min(limits, default=2**63), "this machine"


def memory_in_words() -> str:
    """Such as `this machine has 24 GB`."""
    size, owner = memory()
    return f"{owner} has {size / 2**30:,.0f} GB"


def too_large(error: BaseException) -> str:
    """The available memory in words, if the error is about a size too large for memory; "" for any other error. The
    libraries' own messages are about their allocators."""
    if not isinstance(error, MemoryError | OverflowError) and not _TOO_LARGE.search(text_of(error)):
        return ""
    return f"it needs more memory than there is; {memory_in_words()}"


def check_trainable(config: Config) -> None:
    """ValueError for a model that is too large to be trained here."""
    with torch.device("meta"), Unfilled():  # shapes without numbers
        check_parameters(sum(parameter.numel() for parameter in build(config).parameters()))


def check_parameters(parameters: int) -> None:
    """ValueError if there are too many parameters to train here."""
    needed = 4 * NUMBERS * parameters
    if needed > memory()[0]:
        raise ValueError(
            f"it has {parameters:,} parameters, and training them needs at least {needed / 2**30:,.0f} GB; "
            f"{memory_in_words()}"
        )


def check_batch(pieces: int, vocabulary: int) -> None:
    """ValueError for a batch whose logits (`vocabulary` per piece) and their gradient do not fit into memory."""
    needed = 4 * 2 * pieces * vocabulary
    if needed > memory()[0]:
        raise ValueError(
            f"batch_tokens={shown(pieces)} needs at least {shown(needed // 2**30)} GB for the scores of one batch; "
            f"{memory_in_words()}"
        )


def use_threads(threads: int | None) -> None:
    """Use this number of threads from now on; None changes nothing. ValueError for a number below 1."""
    if threads is None:
        return
    arguments.check("threads", threads, int)
    if threads < 1:
        raise ValueError(f"threads must be at least 1; got {threads}")
    torch.set_num_threads(threads)
