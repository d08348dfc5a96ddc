"""The notebooks run from their first cell to their last, and show pictures."""

import pytest
from pages import ROOT

NOTEBOOKS = sorted((ROOT / "docs/notebooks").glob("*.ipynb"))


def pictures(notebook) -> int:
    outputs = [output for cell in notebook.cells for output in cell.get("outputs", ())]
    return sum("image/png" in output.get("data", {}) for output in outputs)


@pytest.fixture(scope="module")
def kernel():
    """One process for all notebooks, each of which begins without names: most take less time than to import torch."""
    from jupyter_client import KernelManager

    manager = KernelManager(client_class="jupyter_client.asynchronous.AsyncKernelClient")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(ROOT))
        manager.start_kernel()
    yield manager
    manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_and_shows_what_it_keeps(path, kernel, tmp_path):
    import nbformat  # takes two seconds, which a process that collects tests need not spend
    from nbclient import NotebookClient

    notebook = nbformat.read(path, 4)
    picture_count = pictures(notebook)
    for cell in notebook.cells:
        cell.pop("outputs", None)
        if cell.cell_type == "code":
            cell.outputs = []
    notebook.cells.insert(0, nbformat.v4.new_code_cell(f"%reset -f\n%cd -q {tmp_path}"))
    NotebookClient(notebook, kernel, timeout=600).execute()
    assert pictures(notebook) == picture_count > 0


def test_there_are_four_and_they_are_small():
    assert [path.stem for path in NOTEBOOKS] == ["corpus", "hugging-face", "one-weight", "textbook"]
    assert all(path.stat().st_size < 150_000 for path in NOTEBOOKS)
