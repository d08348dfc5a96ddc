"""Ctrl-C, as a terminal sends it: to all processes of a run."""

import os
import signal
import subprocess
import sys
import time
from functools import partial

import processes
import pytest
import tiny
from corpora_files import same_files, write_lines

from attnviz import corpus

MODEL = "en-fr/transformer"
SENTENCES = [english for english, _ in tiny.sentences(22, 1)] * 130  # eight shards


def has_a_shard(folder, pid):
    return list(folder.glob("parts/*-sentences.arrow"))


def has_workers(folder, pid):
    """Two processes that import what they need, for a second or more."""
    return sum("spawn_main" in processes.command(child) for child in processes.family(pid)) == 2


@pytest.fixture(scope="module")
def lines(tmp_path_factory):
    return write_lines(tmp_path_factory.mktemp("lines") / "in.txt", SENTENCES)


@pytest.fixture(scope="module")
def whole(root, lines, tmp_path_factory):
    """What a run writes that nobody interrupts."""
    folder = tmp_path_factory.mktemp("whole")
    list(corpus.run(corpus.CorpusConfig((MODEL,), str(lines), root=str(root)), folder))
    return folder


@pytest.mark.xdist_group("interrupted")  # one process makes `whole`
@pytest.mark.parametrize("reached", [has_workers, has_a_shard])
def test_interrupted_by_the_keyboard_it_can_be_resumed(reached, root, lines, whole, tmp_path):
    folder = tmp_path / "out"
    options = ["--model", MODEL, "--input", str(lines), "--root", str(root)]
    running = subprocess.Popen(
        [sys.executable, "-m", "attnviz", "corpus", *options, "--out", str(folder), "--workers", "2"],
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # a shell's background job would ignore it
    )
    while running.poll() is None and not reached(folder, running.pid):
        time.sleep(0.1)
    time.sleep(0.3 if reached is has_workers else 0)  # so that Python runs in them
    os.killpg(running.pid, signal.SIGINT)
    _, said = running.communicate()
    assert running.returncode == 130
    assert said.splitlines()[-1] == "python -m attnviz corpus: interrupted; the same command with --resume continues"
    assert "Traceback" not in said
    assert list(folder.glob("parts/*.part")) == []
    settings = corpus.CorpusConfig((MODEL,), str(lines), root=str(root))
    first, *_, last = corpus.run(settings, folder, resume=True)
    assert first.done < last.done == len(SENTENCES)
    assert first.done > 0 or reached is has_workers
    same_files(folder, whole)
