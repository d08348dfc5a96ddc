"""A run that is stopped from outside: its workers end with it, and it can be resumed."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import forked
import processes
import pytest
import tiny
from corpora_files import same_files, write_lines

from attnviz import corpus

MODEL = "en-fr/transformer"
SENTENCES = [english for english, _ in tiny.sentences(22, 1)] * 65  # eight shards


def has_a_shard(folder, pid):
    return list(folder.glob("parts/*-sentences.arrow"))


def has_workers(folder, pid):
    """Two processes that import what they need, for a second or more."""
    return len(workers_of(pid)) == 2


def workers_of(pid):
    return [child for child in processes.family(pid) if "spawn_main" in processes.command(child)]


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("lines") / "in.txt", SENTENCES)


@pytest.fixture(scope="module")
def finished_run(root, lines, tmp_path_factory):
    """What a run writes that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    list(corpus.run(corpus.CorpusConfig((MODEL,), str(lines), root=str(root)), folder))
    return folder


@pytest.fixture
def begin(root, lines, tmp_path):
    """begin(reached): the command with two workers, and their processes, once it has come so far."""
    started = []
    options = ["--model", MODEL, "--input", str(lines), "--root", str(root), "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "attnviz", "corpus", *options, "--workers", "2"]

    def of(reached):
        with open(tmp_path / "printed", "w") as printed:
            start = anew if reached is has_workers or forked.alive() is None else forked_anew
            running = start(command, printed)
        while running.poll() is None and not reached(tmp_path / "out", running.pid):
            time.sleep(0.02)  # a shard takes longer
        time.sleep(0.3 if reached is has_workers else 0)  # so that Python runs in them
        started.extend(processes.family(running.pid))
        return running, workers_of(running.pid) if start is anew else started[2:]

    yield of
    for process in started:
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def anew(command, printed):
    """As from a terminal, where each process imports what it needs."""
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)  # a shell's background job would ignore Ctrl-C
    return subprocess.Popen(command, stderr=printed, start_new_session=True, preexec_fn=heard)


def forked_anew(command, printed):
    """The same with everything imported. Its only child is a process of which its workers are forks."""
    with open(os.devnull, "r+") as nothing:
        ends = nothing.fileno(), nothing.fileno(), printed.fileno()
        return forked.Forked(command[1:], dict(os.environ), ends, leads=True)


def resumed(root, lines, folder):
    """The first and the last progress of the run that continues in the folder; they are one where little was left."""
    settings = corpus.CorpusConfig((MODEL,), str(lines), root=str(root))
    seen = [progress.done for progress in corpus.run(settings, folder, resume=True)]
    return seen[0], seen[-1]


@pytest.mark.xdist_group("interrupted")  # one process makes `whole`
@pytest.mark.parametrize("reached", [has_workers, has_a_shard])
def test_interrupted_by_the_keyboard_it_can_be_resumed(reached, begin, root, lines, finished_run, tmp_path):
    """Ctrl-C, as a terminal sends it: to all processes of a run."""
    folder = tmp_path / "out"
    running, _ = begin(reached)
    os.killpg(running.pid, signal.SIGINT)
    assert running.wait() == 130
    printed = (tmp_path / "printed").read_text()
    assert printed.splitlines()[-1] == "python -m attnviz corpus: interrupted; the same command with --resume continues"
    assert "Traceback" not in printed
    assert list(folder.glob("parts/*.part")) == []
    first, last = resumed(root, lines, folder)
    assert first <= last == len(SENTENCES)
    assert first > 0 or reached is has_workers
    same_files(folder, finished_run)


@pytest.mark.xdist_group("interrupted")
def test_workers_end_with_the_process_that_started_them(begin, root, lines, finished_run, tmp_path):
    running, workers = begin(has_a_shard)
    running.kill()  # this process alone: nobody tells its workers
    assert running.wait() == -signal.SIGKILL and len(workers) == 2
    assert ended(workers)
    _, last = resumed(root, lines, tmp_path / "out")
    assert last == len(SENTENCES)
    same_files(tmp_path / "out", finished_run)


@pytest.mark.xdist_group("interrupted")
def test_ctrl_c_again_ends_workers_that_do_not_finish(begin, tmp_path):
    running, workers = begin(has_a_shard)
    for worker in workers:
        os.kill(worker, signal.SIGSTOP)  # a shard without an end
    while running.poll() is None:
        os.kill(running.pid, signal.SIGINT)
        with contextlib.suppress(subprocess.TimeoutExpired):
            running.wait(timeout=3)
    printed = (tmp_path / "printed").read_text()
    assert running.returncode == 130 and "Traceback" not in printed
    assert "Ctrl-C again ends them at once" in printed
    assert len(workers) == 2 and ended(workers)
    assert not (tmp_path / "out" / "run.lock").exists()


def ended(members):
    """Have all these processes ended, within a minute?"""
    return any(not any(map(alive, members)) or time.sleep(0.1) for _ in range(600))


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False
