"""The widget of a notebook: what it sends, and that it lives in a real JupyterLab."""

import gzip
import json
import os
import subprocess
import sys
from base64 import b64decode
from pathlib import Path

import numpy as np
import pytest
import serving
import synthetic
import traitlets
from ipywidgets.embed import dependency_state

import attnviz
from attnviz import select
from attnviz.export import widget

TRACE = synthetic.trace("The dog <eos>", "Le chien noir", kinds=("cross", "decoder"), heads=2, layers=2)
SECOND = synthetic.trace("The dog <eos>", "Le chien", model="second", heads=1, layers=1)
DRAWN = "document.querySelector('.attnviz-view')?.dataset.drawn"
MARIMO = """
import marimo

app = marimo.App()


@app.cell
def _():
    import attnviz, synthetic
    import marimo as mo
    view = mo.ui.anywidget(attnviz.view(synthetic.trace(heads=2), synthetic.trace(seed=1)))
    view
    return mo, view


@app.cell
def _(mo, view):
    mo.md(f"Python has {view.step} {view.head}")


@app.cell
def _(mo, view):
    mo.ui.button(label="First step", on_click=lambda _: setattr(view.widget, "step", 0))
"""
FORMAT = {"version_major": 2, "version_minor": 0}  # of widgets in a notebook


def picture(view, *choice) -> list[dict]:
    """What is drawn for a choice, and its "weights": the map and the bars of all steps are made from them in the
    browser."""
    packed = view._pictures[json.dumps(choice, separators=(",", ":"))].split()
    text, cells = (gzip.decompress(b64decode(part)) for part in packed)
    shown, cells = json.loads(text), np.frombuffer(cells, "<u2")
    for part in shown:
        size = len(part["steps"]) * part["columns"]
        part["weights"], cells = cells[:size].reshape(-1, part["columns"]), cells[size:]
    assert not cells.size
    return shown


def test_a_small_view_brings_every_layer_head_and_level_so_that_a_saved_notebook_stays_alive():
    view = attnviz.view(TRACE, SECOND, step=1)
    assert (view.step, view.layer, view.head, view.words, view.special) == (1, 1, None, False, True)
    assert len(view._pictures) == 2 * 3 * 2 * 2
    first, second = picture(view, 0, 1, False, True)
    for shown, grid in ((first, select.select(TRACE, "cross", 0, 1)), (second, select.select(SECOND))):
        assert shown["weights"] / 10_000 == pytest.approx(
            grid.weights, abs=1e-4
        )  # the second has one layer and one head
    assert (
        "head 2 of 2" in first["name"]
        and first["steps"][1] == "Step 2 of 4: ‘chien’"
        and first["text"] == TRACE.translation
    )
    whole, without = (picture(view, 1, None, False, special)[0]["steps"] for special in (True, False))
    assert len(whole) == len(without) + 1
    saved = dependency_state([view], drop_defaults=False)[view.model_id][
        "state"
    ]  # what a saved notebook and nbconvert hold
    assert saved["_pictures"] == view._pictures and "export default" in saved["_esm"]


def test_a_large_view_sends_what_is_asked_for(monkeypatch):
    monkeypatch.setattr(widget, "CELLS", 1)
    view = TRACE.show(layer=1, head=0)
    assert list(view._pictures) == ["[1,0,false,true]"]
    view.words, view.layer = True, 0
    assert list(view._pictures)[1:] == ["[1,0,true,true]", "[0,0,true,true]"]


@pytest.mark.parametrize(
    "name, value, message",
    [
        ("step", 4, "step must be 0 to 3; got 4"),
        ("step", -1, "step must be 0 to 3; got -1"),
        ("head", 2, "head must be 0 to 1; got 2"),
        ("layer", 2, "layer must be 0 to 1; got 2"),
        ("theme", "blue", "expected any of"),
        ("step", None, "expected an int"),
    ],
)
def test_what_no_trace_has_is_refused(name, value, message):
    view = attnviz.view(TRACE)
    before = getattr(view, name)
    with pytest.raises(traitlets.TraitError, match=message):
        setattr(view, name, value)
    assert getattr(view, name) == before


def test_without_traces_or_attention_there_is_no_view():
    for traces in ((), (synthetic.trace(kinds=()),)):
        with pytest.raises(ValueError, match="there must be a trace or more, each with attention"):
            attnviz.view(*traces)


def test_without_anywidget_a_sentence_says_what_to_install():
    code = "import sys; sys.modules['anywidget'] = None\nfrom attnviz import *\ntry: view()\n"
    code += "except ImportError as error: print(error)"
    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=serving.ROOT).stdout
    assert printed == "the view of a notebook needs anywidget; install it with: pip install anywidget\n"


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    """A JupyterLab of this machine -> its address, and the folder of its notebooks."""
    port, folder = serving.free_port(), tmp_path_factory.mktemp("lab")
    options = [
        f"--port={port}",
        "--no-browser",
        "--allow-root",
        "--IdentityProvider.token=",
        f"--notebook-dir={folder}",
    ]
    options += ["--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate", "--LabApp.news_url=None"]
    places = {name: str(folder / name) for name in ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "IPYTHONDIR")}
    for place in places.values():
        Path(place).mkdir()
    paths = os.pathsep.join([str(serving.ROOT), str(serving.ROOT / "tests/helpers/traces")])
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options], env=os.environ | places | {"PYTHONPATH": paths}, **quiet
    )
    try:
        serving.wait(f"http://localhost:{port}", server, path="/api/status")
        yield f"http://localhost:{port}/lab", folder
    finally:
        server.terminate()
        server.wait(30)


@pytest.fixture
def page(chrome):
    page = chrome.new_page(viewport={"width": 1366, "height": 900})
    page.set_default_timeout(60_000)
    yield page
    page.close()


def write_notebook(cells: list, path: Path, **metadata) -> None:
    """A notebook at a path, which trusts its output as its author would. cells : the code of each and its outputs."""
    import nbformat  # takes two seconds, which a process that collects tests need not spend
    from nbformat.sign import NotebookNotary

    cells = [nbformat.v4.new_code_cell(code, outputs=[*map(nbformat.from_dict, outputs)]) for code, outputs in cells]
    kernel = {"name": "python3", "display_name": "Python 3"}  # else JupyterLab asks which
    book = nbformat.v4.new_notebook(metadata={"kernelspec": kernel} | metadata, cells=cells)
    NotebookNotary(data_dir=str(path.parent / "JUPYTER_DATA_DIR")).sign(book)
    nbformat.write(book, path)


def run(page, number: int) -> None:
    """Run a cell of the notebook; again where JupyterLab, which is still starting, has lost the key."""
    cell = page.locator(".jp-CodeCell").nth(number)
    for _ in range(20):
        cell.locator(".cm-content").click()
        page.keyboard.press("Control+Enter")
        page.wait_for_timeout(500)
        if cell.locator(".jp-InputPrompt").inner_text() != "[ ]:":
            return
    raise TimeoutError(f"JupyterLab did not run cell {number}")


def widths(page) -> list[int]:
    """Of the four plots and their columns, px."""
    plots = page.locator(".attnviz-view .js-plotly-plot")
    return sum(
        plots.evaluate_all("plots => plots.map((plot) => [plot.clientWidth, Math.floor(plot._fullLayout.width)])"), []
    )


def choose_the_second_head_and_step(page, drawn: bool = True) -> None:
    """With the controls of the view that a page has, once it has drawn two traces. drawn : wait for it in the document,
    where a shadow does not hide it."""
    view = page.locator(".attnviz-view")
    view.locator("section:nth-child(2) .js-plotly-plot .barlayer path").first.wait_for()
    assert len(set(widths(page))) == 1
    assert view.locator(".js-plotly-plot").count() == 4 and view.locator("section .heatmaplayer image").count() == 2
    view.get_by_role("combobox", name="Head").select_option(label="2")
    view.get_by_role("slider", name="Step").press("x")  # elsewhere in a notebook it cuts the cell
    view.get_by_role("slider", name="Step").press("ArrowRight")
    if drawn:
        page.wait_for_function(f"{DRAWN}?.endsWith(',1,false,true] 1 light')")
    view.locator("output").get_by_text("2 of 4").wait_for()
    assert "head 2 of 2" in view.locator("h4").first.inner_text() and view.locator("output").inner_text() == "2 of 4"


def saved_view(*traces) -> tuple:
    """A view, the outputs of a cell that shows it, and its state as a notebook saves it."""
    view, shown = attnviz.view(*(traces or (synthetic.trace(heads=2), synthetic.trace(seed=1)))), []
    with pytest.MonkeyPatch.context() as patch:  # this process has no cell to show it below
        patch.setattr("IPython.display.display", lambda data, raw: shown.append(data))
        view._ipython_display_()
    outputs = [{"output_type": "display_data", "metadata": {}, "data": data} for data in shown]
    state = {"state": dependency_state([view], drop_defaults=False)} | FORMAT
    return view, outputs, {"application/vnd.jupyter.widget-state+json": state}


@pytest.mark.xdist_group("browser-others")
def test_a_saved_notebook_is_alive_and_in_jupyterlab_python_and_the_browser_read_and_set_the_same_values(page, lab):
    cells = ["import attnviz, synthetic\nview = attnviz.view(synthetic.trace(heads=2), synthetic.trace(seed=1))\nview"]
    cells += ["print('Python has', view.step, view.head)\nview.step = 0"]
    (address, folder), (view, outputs, widgets) = lab, saved_view()
    write_notebook([(cells[0], outputs), (cells[1], [])], folder / "alive.ipynb", widgets=widgets)
    page.goto(f"{address}/workspaces/alive/tree/alive.ipynb")
    choose_the_second_head_and_step(page)  # before a cell is run
    assert (view.step, view.head) == (0, None)  # this Python has no part in it
    run(page, 0)
    page.locator(".attnviz-view output").get_by_text("1 of 4").wait_for()  # of the view that this cell makes
    choose_the_second_head_and_step(page)
    run(page, 1)
    page.wait_for_function(f"{DRAWN}?.endsWith(',1,false,true] 0 light')")  # Python has moved the step back
    page.get_by_text("Python has 1 1").wait_for()
    page.evaluate("document.body.dataset.jpThemeLight = 'false'")  # what JupyterLab says of a dark theme
    page.wait_for_function(f"{DRAWN}?.endsWith('0 dark')")
    outlines = page.locator(".attnviz-view .shapelayer path").evaluate_all(
        "paths => paths.map(path => path.style.stroke)"
    )
    assert "rgb(255, 107, 139)" in outlines  # of the row of the step
    page.evaluate("window.Plotly = undefined; document.body.dataset.jpThemeLight = 'true'")
    page.get_by_text("The maps cannot be drawn").wait_for()


@pytest.mark.xdist_group("browser-others")
def test_a_page_of_nbconvert_draws_the_view_without_a_network(chrome, tmp_path):
    def check(page):
        choose_the_second_head_and_step(page)
        page.locator(".attnviz-view").evaluate("view => { view.style.width = '760px'; }")  # as when a side bar opens
        page.wait_for_function(
            "[...document.querySelectorAll('.js-plotly-plot')].every((plot) => plot._fullLayout?.width < 400)"
        )
        assert len(set(widths(page))) == 1

    draw_saved(chrome, tmp_path, check)


@pytest.mark.xdist_group("browser-others")
def test_a_map_with_too_many_cells_for_a_text_each_is_drawn(chrome, tmp_path):
    text = " ".join(f"t{number}" for number in range(512))
    large = synthetic.trace(text, text, kinds=("cross",), heads=1)
    draw_saved(chrome, tmp_path, lambda page: read_a_large_map(page, large.maps[0].weights[0]), large)


def read_a_large_map(page, weights: np.ndarray) -> None:
    """The pointer reads the number of a cell, a click on it chooses its row, and a saved picture has all cells."""
    page.wait_for_function(f"{DRAWN}?.endsWith(' 0 light')")
    assert page.locator(".imagelayer image").count() == 1  # a heatmap takes twice as long
    plot, cells = page.locator(".js-plotly-plot").first, page.locator(".nsewdrag").first
    plot.scroll_into_view_if_needed()
    box, (row, column) = cells.bounding_box(), np.unravel_index(weights[:300].argmax(), weights[:300].shape)
    spot = {
        "x": round((column + 0.5) * box["width"] / weights.shape[1]),
        "y": round((row + 0.5) * box["height"] / len(weights)),
    }
    cells.hover(position=spot)
    hover_text = f"query {row}, key {column}, counted from 0: {weights[row, column]:.2f}"
    page.locator(".hoverlayer").get_by_text(hover_text).wait_for()
    cells.click(position=spot)
    page.wait_for_function(f"{DRAWN}?.endsWith(' {row} light')")
    with page.expect_download() as download:
        plot.locator("[data-title='Save as SVG']").dispatch_event("click")
    saved = download.value.path().read_text(encoding="utf-8")
    assert "<image" not in saved and saved.count('shape-rendering="crispEdges"') == 1


def draw_saved(chrome, tmp_path, check, *traces) -> None:
    """A page of nbconvert with a view, opened without a network."""
    from nbconvert import HTMLExporter  # takes a second, which a process that collects tests need not spend

    _, outputs, widgets = saved_view(*traces)
    (tmp_path / "JUPYTER_DATA_DIR").mkdir()
    write_notebook([("view", outputs)], tmp_path / "saved.ipynb", widgets=widgets)
    (tmp_path / "saved.html").write_text(HTMLExporter().from_filename(tmp_path / "saved.ipynb")[0], encoding="utf-8")
    context = chrome.new_context(offline=True)
    page = context.new_page()
    page.goto((tmp_path / "saved.html").as_uri())
    check(page)
    context.close()


@pytest.mark.xdist_group("browser-others")
def test_in_marimo_python_and_the_browser_read_and_set_the_same_values(page, tmp_path):
    (tmp_path / "notebook.py").write_text(MARIMO, encoding="utf-8")
    port, paths = serving.free_port(), os.pathsep.join([str(serving.ROOT), str(serving.ROOT / "tests/helpers/traces")])
    command = [sys.executable, "-m", "marimo", "run", "notebook.py", "--headless", "--no-token", f"--port={port}"]
    places = {"PYTHONPATH": paths, "HOME": str(tmp_path), "MARIMO_SKIP_UPDATE_CHECK": "1"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen([*command, "--host=127.0.0.1"], env=os.environ | places, cwd=tmp_path, **quiet)
    try:
        serving.wait(f"http://127.0.0.1:{port}", server, path="/health")
        page.goto(f"http://127.0.0.1:{port}")
        choose_the_second_head_and_step(page, drawn=False)
        page.get_by_text("Python has 1 1").wait_for()
        page.get_by_role("button", name="First step").click()
        page.locator(".attnviz-view output").get_by_text("1 of 4").wait_for()  # Python has moved the step back
    finally:
        server.terminate()
        server.wait(30)
