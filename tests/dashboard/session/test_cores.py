"""The processors of a container are fewer than the machine's."""

import os

import pytest

from dashboard.session.cores import cores


@pytest.mark.parametrize(
    ("written", "wanted"), [("100000 100000\n", 1), ("50000 100000\n", 1), ("350000 100000\n", 3), ("max 100000\n", 4)]
)
def test_a_quota_counts(written, wanted, tmp_path, monkeypatch):
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: {0, 1, 2, 3}, raising=False)
    (tmp_path / "cpu.max").write_text(written)
    assert cores(tmp_path / "cpu.max") == wanted


def test_without_a_control_group_it_is_what_the_process_may_run_on(tmp_path):
    assert 1 <= cores(tmp_path / "none") <= (os.cpu_count() or 1)
