"""One process at a time writes into a folder, and one that died holds nothing."""

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.storage import lock

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("task", ["training", "run"])
def test_two_at_work_in_a_folder(task, tmp_path):
    folder = tmp_path / "en-fr" / "bahdanau"
    with lock.locked(folder, task):
        with pytest.raises(ValueError) as error, lock.locked(folder, task):
            pass
        assert str(error.value) == (
            f"another {task} is at work in {folder} (process {os.getpid()}); wait until it ends, or choose another "
            "--out"
        )
    assert not folder.exists()  # nothing was written there
    with lock.locked(folder, task):
        pass


def test_a_file_system_without_locks_refuses_nobody(tmp_path, monkeypatch):
    def none(*request):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(lock.fcntl, "flock", none)
    with lock.locked(tmp_path, "run"), lock.locked(tmp_path, "run"):
        assert [path.name for path in tmp_path.iterdir()] == ["run.lock"]


def test_a_file_of_somebody_else_with_that_name_stays(tmp_path):
    mine = tmp_path / "run.lock"
    mine.write_bytes(b"my notes \xff")
    with pytest.raises(ValueError, match="run.lock was not written by this program"), lock.locked(tmp_path, "run"):
        pass
    assert mine.read_bytes() == b"my notes \xff"


def test_a_dead_process_holds_nothing(tmp_path):
    code = "import sys, time; from pathlib import Path; from attnviz.storage import lock\n"
    code += "with lock.locked(Path(sys.argv[1]), 'training'): print('held', flush=True); time.sleep(100)"
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT)
    other.stdout.readline()
    with pytest.raises(ValueError, match=f"at work .*process {other.pid}"), lock.locked(tmp_path, "training"):
        pass
    other.kill()
    other.wait()
    with lock.locked(tmp_path, "training"):
        assert (tmp_path / lock.name("training")).read_text() == f"{os.getpid()}\n"
