"""progress.py: where standard error is no terminal, a line now and then, and none of short work."""

import importlib
import io
import sys
import time

from attnviz import progress


def bar_text(monkeypatch, stream, seconds):
    monkeypatch.setattr(progress, "SECONDS", seconds)
    monkeypatch.setattr(sys, "stderr", stream)
    with progress.bar(total=3, unit="sentence") as bar:
        for _ in range(3):
            time.sleep(0.01)
            bar.update()
    return stream.getvalue()


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_a_file_gets_lines(monkeypatch):
    lines = bar_text(monkeypatch, io.StringIO(), 0.005).splitlines()
    assert len(lines) >= 3 and all("/3 [" in line and "sentence/s" in line for line in lines)
    assert not any("\r" in line for line in lines) and "3/3" in lines[-1]


def test_short_work_writes_nothing_to_a_file(monkeypatch):
    assert bar_text(monkeypatch, io.StringIO(), 30) == ""


def test_a_terminal_gets_a_bar(monkeypatch):
    assert "\r" in bar_text(monkeypatch, Terminal(), 30)


def test_without_standard_error(monkeypatch):
    monkeypatch.setattr(sys, "stderr", None)
    with progress.bar(total=3) as bar:
        bar.update()
    assert bar.disable


SLOW = """
import sys, time
end = time.monotonic() + 30
while "Loading" not in sys.stderr.getvalue() and time.monotonic() < end:
    time.sleep(0.01)
"""


def test_a_terminal_shows_which_library_takes_long_to_load(monkeypatch, tmp_path):
    """The second library is not loaded before the line is there."""
    for name, body in (("slow_library", SLOW), ("quick_library", "")):
        (tmp_path / f"{name}.py").write_text(body)
    monkeypatch.setattr(progress, "LARGE", {"slow_library": "SlowTorch", "quick_library": "QuickTorch"})
    monkeypatch.setattr(progress, "SOON", 60)
    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.syspath_prepend(tmp_path)
    finders = list(sys.meta_path)
    with progress.announced():
        importlib.import_module("quick_library")
        monkeypatch.setattr(progress, "SOON", 0)
        importlib.import_module("slow_library")
    assert sys.stderr.getvalue() == "Loading SlowTorch, which takes up to half a minute the first time …\n"
    assert sys.meta_path == finders
