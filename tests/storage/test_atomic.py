"""Files that are written whole: under a name that nobody can guess, and with the permissions that a person wants."""

import os
import stat

import pytest

from attnviz import storage


@pytest.mark.parametrize("umask, mode", [(0o077, 0o600), (0o022, 0o644), (0o027, 0o640)], ids=oct)
def test_a_new_file_has_the_permissions_of_the_umask(tmp_path, umask, mode):
    before = os.umask(umask)
    try:
        storage.replace(tmp_path / "file", lambda path: path.write_text("new"))
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == mode


def test_a_file_that_was_there_keeps_its_permissions(tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o640)
    storage.replace(path, lambda place: place.write_text("new"))
    assert stat.S_IMODE(path.stat().st_mode) == 0o640 and path.read_text() == "new"


def test_a_planted_link_is_not_followed(tmp_path, monkeypatch):
    """The name cannot be guessed; and if it were, nothing would be written through it."""
    other = tmp_path / "other"
    other.write_text("old")
    monkeypatch.setattr(storage.secrets, "token_hex", lambda count: "guessed")
    (tmp_path / "file.guessed.part").symlink_to(other)
    with pytest.raises(OSError):
        storage.replace(tmp_path / "file", lambda path: path.write_text("new"))
    assert other.read_text() == "old" and not (tmp_path / "file").exists()


def test_the_name_differs_each_time(tmp_path):
    names = []
    for _ in range(2):
        storage.replace(tmp_path / "file", lambda path: names.append(path.name) or path.write_text("new"))
    assert len(set(names)) == 2 and str(os.getpid()) not in names[0].split(".")
