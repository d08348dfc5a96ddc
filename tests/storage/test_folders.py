"""storage/folders.py: one process at a time writes into a folder, and what a killed process has left goes."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz.storage import folders

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("task", ["training", "run"])
def test_two_at_work_in_a_folder(task, tmp_path):
    folder = tmp_path / "en-fr" / "bahdanau"
    with folders.locked(folder, task):
        with pytest.raises(ValueError) as error, folders.locked(folder, task):
            pass
        assert str(error.value) == (
            f"another {task} is at work in {folder} (process {os.getpid()}); wait until it ends, or choose another "
            "--out"
        )
    assert not folder.exists()  # nothing was written there
    with folders.locked(folder, task):
        pass


def test_a_file_system_without_locks_refuses_nobody(tmp_path, monkeypatch):
    def none(*request):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(folders.fcntl, "flock", none)
    with folders.locked(tmp_path, "run"), folders.locked(tmp_path, "run"):
        assert [path.name for path in tmp_path.iterdir()] == ["run.lock"]


def test_a_file_of_somebody_else_with_that_name_stays(tmp_path):
    mine = tmp_path / "run.lock"
    mine.write_bytes(b"my notes \xff")
    with pytest.raises(ValueError, match="run.lock was not written by this program"), folders.locked(tmp_path, "run"):
        pass
    assert mine.read_bytes() == b"my notes \xff"


def test_a_dead_process_holds_nothing(tmp_path):
    code = "import sys, time; from pathlib import Path; from attnviz.storage import folders\n"
    code += "with folders.locked(Path(sys.argv[1]), 'training'): print('held', flush=True); time.sleep(100)"
    other = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, cwd=ROOT)
    other.stdout.readline()
    with pytest.raises(ValueError, match=f"at work .*process {other.pid}"), folders.locked(tmp_path, "training"):
        pass
    other.kill()
    other.wait()
    with folders.locked(tmp_path, "training"):
        assert (tmp_path / folders.lock_name("training")).read_text() == f"{os.getpid()}\n"


CODE = """import time
from attnviz.storage import folders

folder = folders.TemporaryFolder()
print(folder.name, flush=True)
time.sleep(99)
"""


def test_what_a_killed_process_leaves_is_removed_and_what_is_in_use_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(folders, "YOUNG", -1.0)
    monkeypatch.setattr(folders.tempfile, "tempdir", str(tmp_path))
    ours, foreign = folders.TemporaryFolder(), tmp_path / "another"
    foreign.mkdir()
    (tmp_path / "attnviz-link").symlink_to(foreign)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True, env=environment)
    left = Path(process.stdout.readline().strip())
    folders.remove_left.__wrapped__(tmp_path)
    assert left.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    folders.remove_left.__wrapped__(tmp_path)
    assert not left.exists() and Path(ours.name).is_dir() and foreign.is_dir()
    ours.cleanup()
    assert not Path(ours.name).exists()


def test_a_folder_that_was_just_made_is_left_alone(tmp_path):
    (tmp_path / "attnviz-new").mkdir()
    folders.remove_left.__wrapped__(tmp_path)
    assert (tmp_path / "attnviz-new").is_dir()
