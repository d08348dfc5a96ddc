"""The processes that share the tests (pytest-xdist) are forks of the first, which imports the tests once for all."""

import atexit
import contextlib
import gc
import importlib
import os
import signal
import sys
import tempfile
import threading
import types
import weakref
from pathlib import Path

import forked
import pytest
from execnet import gateway_io

_START = gateway_io.Popen2IOMaster


class _Worker(gateway_io.Popen2IO):
    """What execnet uses of the process that it starts elsewhere: this one waits for its first line."""

    def __init__(self, execmodel, pid: int, reader: int, writer: int):
        super().__init__(os.fdopen(writer, "wb"), os.fdopen(reader, "rb"), execmodel)
        self._pid, self._status = pid, None

    def wait(self) -> int:
        if self._status is None:
            self._status = os.waitstatus_to_exitcode(os.waitpid(self._pid, 0)[1])
        return self._status

    def kill(self) -> None:
        if self._status is None:
            os.kill(self._pid, signal.SIGKILL)


def begin(session: pytest.Session) -> None:
    """Import what is to be tested, and fork as many processes as are wanted. Where a file cannot be imported, or is
    skipped, they start as anywhere: each imports it and tells."""
    if not _read(session):
        return
    if "families" in sys.modules and not session.config.option.markexpr:  # `not slow` has no such models
        with contextlib.suppress(ImportError):
            importlib.import_module("transformers.modeling_utils")  # 2.5 s in each process that needs it
    if threading.active_count() > 1:  # the threads that libraries have stand a fork
        return
    gc.freeze()
    forked.prepare()
    waiting = []
    for _ in session.config.option.tx:
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        if (pid := os.fork()) == 0:
            _work(theirs_in, theirs_out)
        os.close(theirs_in)
        os.close(theirs_out)
        waiting.insert(0, (pid, ours_out, ours_in))
    gateway_io.Popen2IOMaster = lambda args, execmodel: (
        _Worker(execmodel, *waiting.pop()) if waiting else _START(args, execmodel)  # in place of one that has ended
    )


def _read(session: pytest.Session) -> bool:
    """Import the files that the command line names, and those of its folders. Has that raised nothing?"""
    try:
        for place in session.config.args:
            path = Path(place.partition("::")[0]).resolve()
            for file in sorted(path.rglob("test_*.py")) if path.is_dir() else [path]:
                assert pytest.Module.from_parent(session, path=file).obj
    except (Exception, pytest.skip.Exception, pytest.fail.Exception):
        return False
    return True


def _work(reader: int, writer: int) -> None:
    """Do as `python -c` does with the code of execnet, which comes as the first line, and end."""
    status = 1
    try:
        for end in map(int, os.listdir("/proc/self/fd")):
            if end > 2 and end not in (reader, writer, forked.alive()):
                with contextlib.suppress(OSError):  # of the list itself
                    os.close(end)  # as in a process that is started: the first one alone holds them
        for place, end in enumerate((reader, writer)):
            os.dup2(end, place)
            os.close(end)
        _have_own_folders()
        sys.stdin, sys.stdout, sys.argv = os.fdopen(0), os.fdopen(1, "w"), ["-c"]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        if line := sys.stdin.readline():
            exec(eval(line), vars(main))
        threading._shutdown()
        status = 0
    finally:
        atexit._run_exitfuncs()
        os._exit(status)


def _have_own_folders() -> None:
    """What the first process has made until now is its own to delete. Streamlit's test driver writes the script of a
    page into a folder that it makes when it is imported: in one for all, a page would read what another one writes."""
    for finalizer in list(weakref.finalize._registry):
        finalizer.atexit = False
    if driver := sys.modules.get("streamlit.testing.v1.app_test"):
        driver.TMP_DIR = tempfile.TemporaryDirectory()
