"""`show` in a script: a file that a browser is asked to open, and no waiting for it."""

import os
import subprocess
import sys
import threading
import webbrowser
from pathlib import Path

import plotly.io as pio
import pytest
import synthetic

from attnviz import figures, select
from attnviz.figures import chart

CHART = figures.heatmap(select.select(synthetic.trace("The black dog", "Le chien noir")))
SCRIPT = """
import sys
sys.path[:0] = sys.argv[1:]
import synthetic
from attnviz import figures, select
figures.heatmap(select.select(synthetic.trace())).show()
"""


def test_a_script_ends_though_no_browser_comes(tmp_path):
    """Plotly's own way waits for the browser's request: with `true` for a browser, for ever."""
    environment = os.environ | {"BROWSER": "true", "TMPDIR": str(tmp_path), "PLOTLY_RENDERER": "browser"}
    ran = subprocess.run(
        [sys.executable, "-c", SCRIPT, *sys.path], env=environment, capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    file = Path(ran.stdout.strip().removeprefix("the figure is in "))
    assert file.parent == tmp_path and "chien" in file.read_text(encoding="utf-8")


@pytest.fixture
def script(monkeypatch, tmp_path):
    """As in a script: Plotly has chosen the browser."""
    monkeypatch.setattr(pio.renderers, "default", "browser")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    yield tmp_path
    pio.renderers.default = "browser"


def test_a_browser_that_does_not_return_is_not_waited_for(script, monkeypatch, capsys):
    opened, release = [], threading.Event()
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address) or release.wait(600))
    monkeypatch.setattr(chart, "PATIENCE", 0.01)
    CHART.show()
    assert not release.is_set()
    release.set()
    [file] = script.glob("attnviz-*.html")
    assert opened == [file.as_uri()] and capsys.readouterr().out == f"the figure is in {file}\n"


def test_another_renderer_is_plotlys_own(script, monkeypatch):
    shown = []
    monkeypatch.setattr(pio, "show", lambda figure, *args, **options: shown.append((figure, args, options)))
    CHART.show("json")
    assert [figure for figure, _, _ in shown] == [CHART] and not list(script.iterdir())


def test_a_notebook_keeps_a_chart_that_draws_itself(monkeypatch, chrome, tmp_path):
    """What Jupyter stores: Plotly's JSON, and for the page that `nbconvert` makes a part that needs nothing else."""
    monkeypatch.setattr(pio.renderers, "default", "plotly_mimetype")
    bars = figures.step_bars(select.select(synthetic.trace("The black dog", "Le chien noir")), 0)
    bundles = [chart._repr_mimebundle_() for chart in (CHART, CHART, bars)]
    assert all(set(bundle) == {"application/vnd.plotly.v1+json", "text/html"} for bundle in bundles)
    file = tmp_path / "notebook.html"
    file.write_text("<!doctype html>" + "".join(bundle["text/html"] for bundle in bundles), encoding="utf-8")
    assert file.stat().st_size < 2_500_000
    page = chrome.new_context(offline=True).new_page()
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot .main-svg').length >= 3")
    assert page.locator(".ytick", has_text="chien").count() == 2 and page.locator(".barlayer .point").count()
    page.close()


def test_at_the_end_of_a_cell_a_chart_is_shown(monkeypatch):
    shown = []
    monkeypatch.setattr(type(CHART), "show", lambda figure: shown.append(figure))
    CHART._ipython_display_()
    assert shown == [CHART]
