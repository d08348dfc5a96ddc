"""Every block of Python in README.md and docs/ runs alone, with the shipped models."""

import re

import pages
import pytest
from pages import FILES, name_of

from attnviz.figures import Chart

# Names on the Hugging Face hub and folders of the reader, and the small model that stands in for each.
STAND_INS = {"hf:openai-community/gpt2": "gpt2", "hf:./my-bart": "bart"}
BLOCKS = [
    pytest.param(code, before, id=f"{name_of(path)}:{line}")
    for path in FILES
    for line, code, before in pages.blocks(path, "python")
]


def test_there_are_blocks():
    assert len(BLOCKS) >= 8


@pytest.mark.parametrize("code, before", BLOCKS)
def test_blocks_run_alone(code, before, folder, tmp_path, monkeypatch):
    """A block with `<!-- not run: reason -->` on the line before is an example that is not run."""
    if reason := re.search(r"<!-- not run: (.+) -->", before):
        pytest.skip(reason[1])
    for name, family in STAND_INS.items():
        if name in code:
            code = code.replace(name, f"hf:{folder(family)}")
    shown = []
    monkeypatch.setattr(Chart, "show", lambda figure: shown.append(figure))  # the real one opens a browser
    monkeypatch.chdir(tmp_path)
    exec(compile(code, "block", "exec"), {"__name__": "block"})
    assert len(shown) == code.count(".show()") and all(figure.data for figure in shown)
