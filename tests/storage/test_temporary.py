"""Temporary folders: gone when they are no longer needed, also those of a process that was killed."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from attnviz.storage import temporary

CODE = """import time
from attnviz.storage import temporary

folder = temporary.Folder()
print(folder.name, flush=True)
time.sleep(99)
"""


def test_what_a_killed_process_leaves_is_removed_and_what_is_in_use_stays(tmp_path, monkeypatch):
    monkeypatch.setattr(temporary, "YOUNG", -1.0)
    monkeypatch.setattr(temporary.tempfile, "tempdir", str(tmp_path))
    ours, foreign = temporary.Folder(), tmp_path / "another"
    foreign.mkdir()
    (tmp_path / "attnviz-link").symlink_to(foreign)
    environment = os.environ | {"TMPDIR": str(tmp_path)}
    process = subprocess.Popen([sys.executable, "-c", CODE], stdout=subprocess.PIPE, text=True, env=environment)
    left = Path(process.stdout.readline().strip())
    temporary.remove_left.__wrapped__(tmp_path)
    assert left.is_dir()
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    temporary.remove_left.__wrapped__(tmp_path)
    assert not left.exists() and Path(ours.name).is_dir() and foreign.is_dir()
    ours.cleanup()
    assert not Path(ours.name).exists()


def test_a_folder_that_was_just_made_is_left_alone(tmp_path):
    (tmp_path / "attnviz-new").mkdir()
    temporary.remove_left.__wrapped__(tmp_path)
    assert (tmp_path / "attnviz-new").is_dir()
