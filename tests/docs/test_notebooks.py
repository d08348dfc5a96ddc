"""The notebooks run from their first cell to their last, and show pictures."""

import nbformat
import pytest
from nbclient import NotebookClient
from pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))
pytestmark = pytest.mark.xdist_group("hf")  # one after the other


def pictures(notebook) -> int:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return sum("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_keeps(path, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    notebook = nbformat.read(path, 4)
    kept = pictures(notebook)
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert pictures(notebook) == kept > 0


def test_there_are_four_and_they_are_small():
    assert [path.stem for path in NOTEBOOKS] == ["corpus", "hugging-face", "one-weight", "textbook"]
    assert all(path.stat().st_size < 150_000 for path in NOTEBOOKS)
