"""The processes that share the tests are forks only where every file can be imported: else nobody would tell."""

import tempfile
import weakref

import forked_workers
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
