"""What training asks of the process's heap. In a process of its own, whose page faults are counted."""

import platform
import subprocess
import sys

import pytest

from attnviz import checkpoints, heap

COUNT = """
import resource, sys, torch
from attnviz import heap
faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
assert sys.argv[1] == "given back" or heap.keep_freed()
for _ in range(20):  # some more than once, until the heap is large enough
    torch.ones(2**24)
before = faults()
for _ in range(20):
    torch.ones(2**24)
print(faults() - before)
"""


def faults(freed: str) -> int:
    found = subprocess.run([sys.executable, "-c", COUNT, freed], capture_output=True, text=True, cwd=checkpoints.ROOT.parent, check=True)
    return int(found.stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is glibc that is asked")
def test_freed_memory_is_used_again():
    assert faults("kept") < faults("given back") / 10  # where each tensor's pages are cleared anew


def test_another_system_is_left_alone(monkeypatch):
    monkeypatch.setattr("sys.platform", "win32")
    assert not heap.keep_freed()
