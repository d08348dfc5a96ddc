"""Processes of the models and of a watched training that begin with torch imported: forks of one that imports it once.

To import torch is most of what such a process costs in a test. Servers and commands that tests start begin theirs as
anywhere, as does a test that puts back `AS_ANYWHERE`."""

import contextlib
import importlib
import itertools
import os
import runpy
import signal
import subprocess
import sys
import threading
import traceback
from multiprocessing import connection as waiting
from multiprocessing import context, forkserver, reduction
from pathlib import Path

from attnviz.service import connection, process

AS_ANYWHERE = connection.started
ROOT = Path(__file__).resolve().parents[2]
OURS = ("attnviz", "dashboard")
HELD = str(Path(__file__).parent / "held")  # see its sitecustomize.py
IMPORTED = ["attnviz.own.trained", "attnviz.loading"]
_ENVIRONMENT = {"PYTHONPATH": os.pathsep.join(map(str, [ROOT, Path(__file__).parent]))}
_lock = threading.Lock()


class _Parent(forkserver.ForkServer):
    """The process that has imported torch; started with the first fork. Another than that of `multiprocessing`, which
    the product uses."""

    def ensure_running(self) -> None:
        with _lock:
            if self._forkserver_pid is not None:
                return super().ensure_running()
            before = {name: os.environ.get(name) for name in _ENVIRONMENT}
            os.environ |= _ENVIRONMENT  # else it would not find what it is to import
            try:
                super().ensure_running()
            finally:
                for name, value in before.items():
                    if value is None:
                        del os.environ[name]
                    else:
                        os.environ[name] = value


_parent = _Parent()
_parent.set_forkserver_preload(["forked_imports"])


def begin() -> None:
    """From now on. The process that multiprocessing forks for the product imports what it should from any folder, and
    once what hand-ins and workers need; from it come workers too, which elsewhere begin as new processes."""
    connection.started = started
    context.SpawnProcess._Popen = staticmethod(context.ForkServerProcess._Popen)
    start = forkserver._forkserver.ensure_running

    def ensure_running() -> None:
        forkserver._forkserver._preload_modules = IMPORTED
        with contextlib.chdir(ROOT):
            start()

    forkserver._forkserver.ensure_running = ensure_running


def started(module: str) -> "Forked | connection.ModelProcess":
    """As `connection.started`. Where PYTHONPATH is another than that of held work, Python is to start differently."""
    with _lock:  # nobody reads the environment while the process above starts
        if os.environ.get("PYTHONPATH", HELD) != HELD:
            return AS_ANYWHERE(module)
        environment = dict(os.environ)
    return Forked(module, environment)


class Forked:
    """What the product uses of a subprocess.Popen whose input and output are pipes."""

    def __init__(self, module: str, environment: dict[str, str]):
        (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
        try:
            self._status, data = _parent.connect_to_new_process([theirs_in, theirs_out, 2])
        finally:
            os.close(theirs_in)
            os.close(theirs_out)
        self.stdin, self.stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")
        self.args, self.returncode, self._asking = [module], None, threading.Lock()
        with os.fdopen(data, "wb") as file:
            reduction.dump({"sys_path": sys.path}, file)
            reduction.dump(_Child(module, environment | {"OMP_NUM_THREADS": "1"}, os.getcwd()), file)
        self.pid = forkserver.read_signed(self._status)

    def poll(self) -> int | None:
        with self._asking:
            if self.returncode is None and waiting.wait([self._status], 0):
                self._end()
            return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        if self.returncode is None and not waiting.wait([self._status], timeout):
            raise subprocess.TimeoutExpired(self.args, timeout)
        with self._asking:
            if self.returncode is None:
                self._end()
            return self.returncode

    def _end(self) -> None:
        self.returncode = forkserver.read_signed(self._status)
        os.close(self._status)

    def kill(self) -> None:
        self._send(signal.SIGKILL)

    def terminate(self) -> None:
        self._send(signal.SIGTERM)

    def _send(self, number: signal.Signals) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):  # it has just ended
                os.kill(self.pid, number)


class _Child:
    """Runs a module as `python -m` does. The product's own modules are read again, in the environment of the caller."""

    def __init__(self, module: str, environment: dict[str, str], folder: str):
        self.module, self.environment, self.folder = module, environment, folder

    def _bootstrap(self, parent_sentinel: int) -> int:
        for place, descriptor in enumerate(forkserver.get_inherited_fds()):
            os.dup2(descriptor, place)
            os.close(descriptor)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        os.environ.clear()
        os.environ |= self.environment
        os.chdir(self.folder)
        if self.module != process.__name__:  # as `import torch` is elsewhere
            importlib.import_module(process.UNUSED)
        for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
            del sys.modules[name]
        sys.path[:] = [str(ROOT), *itertools.filterfalse(_is_ours, sys.path)]
        if self.environment.get("PYTHONPATH"):
            sys.path.insert(0, HELD)
            sys.modules.pop("sitecustomize", None)
            importlib.import_module("sitecustomize")  # as Python does when it starts
        try:
            runpy.run_module(self.module, run_name="__main__", alter_sys=True)
            threading._shutdown()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
        return 0


def _is_ours(place: str) -> bool:
    """Is it a folder of the repository? The environment with the libraries may lie there too."""
    path = Path(place)
    return path.is_relative_to(ROOT) and not path.is_relative_to(sys.prefix)
