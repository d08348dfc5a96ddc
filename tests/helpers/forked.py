"""Processes that tests start and that begin with everything imported: forks of a fork of the first process of the
tests, which waits for who wants one.

To import torch, pandas or Streamlit is most of what such a process costs in a test. A test that is about the start puts
`connection.AS_ANYWHERE` back, starts a command itself, or a server with `as_people=True`."""

import contextlib
import gc
import importlib.abc
import importlib.machinery
import itertools
import logging
import os
import runpy
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
import types
import warnings
from collections.abc import Mapping
from multiprocessing import connection as waiting
from multiprocessing import context, forkserver, reduction, util
from pathlib import Path
from typing import IO

import serving

from attnviz.service import connection, process

AS_ANYWHERE = connection.started
ROOT = Path(__file__).resolve().parents[2]
OURS = ("attnviz", "dashboard")
IMPORTED = ("attnviz.service.batch", "attnviz.own.trained", "attnviz.loading")
_parent = forkserver._forkserver  # the product's too: hand-ins, and workers, which elsewhere begin as new processes


def prepare() -> None:
    """Fork the process that will be forked, while no other thread runs: it holds what this one has imported."""
    listener, (theirs, ours) = socket.socket(socket.AF_UNIX), os.pipe()
    listener.bind(f"\0attnviz-tests-{os.getpid()}")
    listener.listen()
    _parent._forkserver_address, _parent._forkserver_alive_fd = listener.getsockname(), ours
    _parent.ensure_running = lambda: None
    if os.fork() == 0:
        os.close(ours)
        _wait_to_be_forked(listener, theirs)
    listener.close()
    os.close(theirs)


def alive() -> int | None:
    """The end of a pipe that all who may ask for a fork hold, once there is who forks."""
    return _parent._forkserver_alive_fd


def _wait_to_be_forked(listener: socket.socket, theirs: int) -> None:
    """Until all who know of it have ended."""
    try:
        if listener in select.select([listener, theirs], [], [])[0]:
            if "torch" not in sys.modules:
                process.import_torch()
            for module in IMPORTED:  # where few tests run, not all of it is there
                importlib.import_module(module)
            gc.freeze()
            os.register_at_fork(after_in_child=gc.enable)
            forkserver.main(listener.detach(), theirs, [])
    finally:
        os._exit(0)


def begin() -> None:
    """From now on."""
    if alive() is None:
        if threading.active_count() > 1:
            return
        prepare()
    connection.started, serving.popen = started, popen
    context.SpawnProcess._Popen = staticmethod(context.ForkServerProcess._Popen)


def started(module: str) -> "Forked":
    """As `connection.started`."""
    (theirs_in, ours_in), (ours_out, theirs_out) = os.pipe(), os.pipe()
    try:
        forked = Forked(["-m", module], dict(os.environ) | {"OMP_NUM_THREADS": "1"}, (theirs_in, theirs_out, 2))
    finally:
        os.close(theirs_in)
        os.close(theirs_out)
    forked.stdin, forked.stdout = os.fdopen(ours_in, "wb"), os.fdopen(ours_out, "rb")
    return forked


def popen(
    command: list[str], stdout: int | IO, stderr: int | IO, cwd: str | Path, env: Mapping[str, str], **more
) -> "Forked":
    """As subprocess.Popen, of a command of Python."""
    with open(os.devnull, "r+") as nothing:
        out, error = (nothing if end == subprocess.DEVNULL else end for end in (stdout, stderr))
        return Forked(command[1:], dict(env), (nothing.fileno(), out.fileno(), error.fileno()), cwd)


def run(*words: str, folder: Path = ROOT, **environment: str) -> subprocess.CompletedProcess:
    """`python -m` with these words, or `python` with `-c`, as subprocess.run: its status, output and errors."""
    start = subprocess.Popen if alive() is None else popen
    with tempfile.TemporaryFile("w+", encoding="utf-8") as out, tempfile.TemporaryFile("w+", encoding="utf-8") as error:
        ended = start(
            [sys.executable, *(words if words[0] == "-c" else ("-m", *words))],
            stdout=out,
            stderr=error,
            cwd=folder,
            env=os.environ | environment,
        )
        status = ended.wait()
        for file in (out, error):
            file.seek(0)
        return subprocess.CompletedProcess(words, status, out.read(), error.read())


def _of_a_server(module: str) -> "Forked | connection.ModelProcess":
    """What a fork starts: a training is its child, as elsewhere, and is looked for by its command."""
    return (started if module == process.__name__ else AS_ANYWHERE)(module)


class Forked:
    """What is used of a subprocess.Popen of Python. words : what follows the name of the interpreter."""

    def __init__(
        self,
        words: list[str],
        environment: dict[str, str],
        ends: tuple[int, int, int],
        folder: str | Path | None = None,
        leads: bool = False,
    ):
        """leads : has a session of its own, and the workers that it starts are its descendants."""
        self._status, data = _parent.connect_to_new_process([*ends])
        self.args, self.returncode, self._asking = words, None, threading.Lock()
        with os.fdopen(data, "wb") as file:
            reduction.dump({"sys_path": sys.path}, file)
            reduction.dump(_Child(words, environment, str(folder or os.getcwd()), leads), file)
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
    """Runs a module as Python does. The product's own modules are read again, in the environment of the
    caller."""

    def __init__(self, words: list[str], environment: dict[str, str], folder: str, leads: bool):
        self.words, self.environment, self.folder, self.leads = words, environment, folder, leads

    def _bootstrap(self, parent_sentinel: int) -> int:
        for place, descriptor in enumerate(forkserver.get_inherited_fds()):
            os.dup2(descriptor, place)
            os.close(descriptor)
        sys.stdin, sys.stdout, sys.stderr = os.fdopen(0), os.fdopen(1, "w"), os.fdopen(2, "w", buffering=1)
        os.environ.clear()
        os.environ |= self.environment
        os.chdir(self.folder)
        if self.leads:
            self._lead()
        _forget_the_tests()
        for place in reversed(self.environment.get("PYTHONPATH", "").split(os.pathsep)):
            if place not in ("", *sys.path):
                sys.path.insert(0, place)
        sys.modules.pop("sitecustomize", None)
        with contextlib.suppress(ModuleNotFoundError):
            importlib.import_module("sitecustomize")  # as Python does when it starts
        try:
            self._run()
            threading._shutdown()
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else int(end.code is not None)
        except BaseException:
            traceback.print_exc()
            return 1
        finally:
            sys.stdout.flush()
            if self.leads:
                util._exit_function()  # the semaphores of its workers are removed, as when Python ends
        return 0

    def _lead(self) -> None:
        os.setsid()
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job would ignore it
        util._finalizer_registry.clear()  # what the tests have made is not its own to remove
        prepare()
        context.SpawnProcess._Popen = staticmethod(context.ForkServerProcess._Popen)

    def _run(self) -> None:
        option, module, *arguments = self.words
        if module == process.__name__:
            sys.meta_path.insert(0, _There(sys.modules.get(process.UNUSED)))
        else:
            importlib.import_module(process.UNUSED)  # as `import torch` does elsewhere
            importlib.import_module(connection.__name__).started = _of_a_server
        sys.argv = [module, *arguments]
        if option == "-c":
            main = sys.modules["__main__"] = types.ModuleType("__main__")
            exec(compile(module, "<string>", "exec"), vars(main))
            return
        runpy.run_module(module, run_name="__main__", alter_sys=True)


class _There(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the part of torch that the process of the models leaves out, which cannot be imported twice."""

    def __init__(self, module: types.ModuleType | None):
        self._module = module

    def find_spec(self, name: str, *where) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name == process.UNUSED and self._module else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return self._module

    def exec_module(self, module: types.ModuleType) -> None:
        pass


def _forget_the_tests() -> None:
    """What pytest has put into this process, and the modules of the product."""
    for name in [name for name in sys.modules if name.partition(".")[0] in OURS]:
        del sys.modules[name]
    sys.meta_path[:] = [finder for finder in sys.meta_path if "pytest" not in type(finder).__module__]
    sys.path[:] = [str(ROOT), *itertools.filterfalse(_is_ours, sys.path)]
    logging.root.handlers.clear()
    warnings.resetwarnings()
    for unseen in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
        warnings.simplefilter("ignore", unseen)  # as Python has it


def _is_ours(place: str) -> bool:
    """Is it a folder of the repository? The environment with the libraries may lie there too."""
    path = Path(place)
    return path.is_relative_to(ROOT) and not path.is_relative_to(sys.prefix)
