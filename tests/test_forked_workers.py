"""The processes that share the tests are forks only where every file can be imported: else nobody would tell."""

import os
import tempfile
import weakref

import forked
import forked_workers
import offline_server
import pytest
from streamlit.testing.v1 import app_test


@pytest.mark.parametrize(
    "code, imported",
    [
        ("def test(): pass", True),
        ("import nothing_of_this_name", False),
        ("def test(:", False),
        ("import pytest\npytest.skip('not here', allow_module_level=True)", False),
        ("import pytest\npytest.fail('not here')", False),
    ],
)
def test_a_file_that_cannot_be_imported_is_left_to_the_process_that_collects_it(
    code, imported, request, tmp_path, monkeypatch
):
    (tmp_path / "test_written.py").write_text(code)
    monkeypatch.setattr(request.config, "args", [str(tmp_path)])
    assert forked_workers._read(request.session) is imported


def test_a_fork_deletes_nothing_of_the_first_process_and_writes_scripts_of_pages_into_its_own_folder(monkeypatch):
    monkeypatch.setattr(weakref.finalize, "_registry", {})
    first = tempfile.TemporaryDirectory()
    monkeypatch.setattr(app_test, "TMP_DIR", first)
    forked_workers._have_own_folders()
    assert not first._finalizer.atexit and app_test.TMP_DIR.name != first.name
    first.cleanup()
    app_test.TMP_DIR.cleanup()


def test_a_fork_runs_first_what_its_environment_names_and_gives_its_status(tmp_path):
    """Else a server that tells strangers where it is would go unseen."""
    if forked.alive() is None:
        pytest.skip("processes that tests start are no forks here")
    leaves = ["-m", "timeit", "-n1", "-r1", "import socket; socket.create_connection(('192.0.2.1', 9))"]
    environment = os.environ | {"PYTHONPATH": str(offline_server.HOOK), "LEFT_LOOPBACK": str(tmp_path / "left.log")}
    with open(os.devnull, "r+") as nothing:
        assert forked.Forked(leaves, environment, (nothing.fileno(),) * 3).wait(60) == 1
        assert forked.Forked(["-m", "timeit", "-n1", "-r1"], environment, (nothing.fileno(),) * 3).wait(60) == 0
    [left] = (tmp_path / "left.log").read_text().splitlines()
    assert "'192.0.2.1' by " in left
