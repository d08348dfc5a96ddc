"""Files of the person's own: whole or untouched, whatever happens while they are written."""

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from attnviz import storage
from attnviz.__main__ import main

ROOT = Path(__file__).resolve().parents[3]
ARGUMENTS = ["trace", "the dog runs", "--model", "en-fr/bahdanau"]


@pytest.fixture
def run(root, capsys, monkeypatch, tmp_path):
    """arguments -> status and the last line of standard error, in a folder of its own."""
    monkeypatch.chdir(tmp_path)

    def status(*arguments):
        try:
            code = main([*ARGUMENTS, "--root", str(root), *arguments])
        except SystemExit as end:
            code = end.code
        err = capsys.readouterr().err
        assert "Traceback" not in err
        return code, err.strip().rpartition("\n")[2]

    return status


def full_disk(monkeypatch):
    """Every file takes 100 bytes, and then the disk is full."""

    def write_bytes(path, content):
        with open(path, "wb") as file:
            file.write(content[:100])
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", write_bytes)


@pytest.mark.parametrize("option, file", [("--json", "mine.json"), ("--html", "mine.html"), ("--save", "mine.json")])
def test_a_full_disk_leaves_what_was_there(run, tmp_path, monkeypatch, option, file):
    (tmp_path / file).write_text("mine")
    full_disk(monkeypatch)
    status, message = run(option, file)
    assert status == 2 and "No space left on device" in message and file in message
    assert (tmp_path / file).read_text() == "mine" and os.listdir(tmp_path) == [file]


@pytest.mark.parametrize("option", ["--json", "--html", "--save", "--root"])
def test_an_empty_name_is_an_error(run, option, tmp_path):
    status, message = run(option, "")
    assert status == 2 and f"argument {option}: must name a file or a folder; got ''" in message
    assert os.listdir(tmp_path) == []


def test_what_is_written_is_whole_and_keeps_its_permissions(run, tmp_path):
    path = tmp_path / "mine.json"
    path.write_text("mine")
    path.chmod(0o600)
    (tmp_path / "link.json").symlink_to(path)
    assert run("--json", "link.json")[0] == 0
    assert json.loads(path.read_text())["text"] == "the dog runs" and path.stat().st_mode & 0o777 == 0o600
    assert (tmp_path / "link.json").is_symlink()


def test_a_folder_and_a_device_are_not_replaced(run, tmp_path):
    (tmp_path / "folder").mkdir()
    status, message = run("--json", "folder")
    assert status == 2 and message.endswith("cannot write folder: Is a directory")
    assert run("--json", "/dev/zero")[0] == 0
    assert not Path("/dev/zero").is_file()
    status, message = run("--json", "/dev/full")
    assert status == 2 and "No space left on device" in message


WATCH = ("watch", "luong-dot", "--batches", "1", "--keep", "mine")
TRY = ("try", "nowhere.py:Attention", "--out", "mine")


@pytest.mark.parametrize("words", [("check", "nowhere.py:Attention", "--csv", "mine"), WATCH, TRY])
def test_a_read_only_folder_is_named_before_the_work(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    assert main(list(words)) == 2
    shown = capsys.readouterr()
    assert "mine" in shown.err and f"the folder {tmp_path} is read-only; choose another one" in shown.err
    assert not shown.out


def test_a_read_only_folder_is_named(tmp_path, monkeypatch):
    def refuse(path, content):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "write_bytes", refuse)
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with pytest.raises(OSError) as error:
        storage.replace(tmp_path / "mine", lambda path: path.write_bytes(b""))
    assert error.value.strerror == f"the folder {tmp_path} is read-only; choose another one"
    assert error.value.filename == str(tmp_path / "mine")


def test_an_error_quotes_little(run):
    status, message = run("--beam", "x" * 5000)
    assert status == 2 and "x" * 79 + "…" in message and len(message) < 400
    status, message = run("--root", "y" * 5000)
    assert status == 2 and len(message) < 500


@pytest.mark.parametrize("closed", [">&-", ">&- 2>&-", "> /dev/full"])
def test_output_that_is_closed_or_full(closed, root):
    command = f"{sys.executable} -m attnviz models --root {root} {closed}"
    ended = subprocess.run(["bash", "-c", command], cwd=ROOT, stderr=subprocess.PIPE, text=True, timeout=100)
    assert ended.returncode in (0, 2, 141)
    assert "Traceback" not in ended.stderr and "Exception ignored" not in ended.stderr
