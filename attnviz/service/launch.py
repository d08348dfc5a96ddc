"""Starts the model process. It imports torch for a second, so a server may start it before anything else; what is
imported here is only the standard library's."""

import os
import subprocess
import sys
from pathlib import Path

_ready_made: list[subprocess.Popen] = []


def ahead() -> None:
    """Start now the process that the next call of `process` returns."""
    _ready_made.append(_popen())


def process() -> subprocess.Popen:
    """The model process, which finds this package where this process has found it."""
    return _ready_made.pop() if _ready_made else _popen()


def _popen() -> subprocess.Popen:
    here = str(Path(__file__).resolve().parents[2])
    path = os.pathsep.join(filter(None, [here, os.environ.get("PYTHONPATH")]))
    return subprocess.Popen(
        [sys.executable, "-m", "attnviz.service.process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": path, "OMP_NUM_THREADS": "1"},
    )
