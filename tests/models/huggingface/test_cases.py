"""The table in docs/cases.md is what comes out of new runs."""

from pathlib import Path

import cases_table
import pytest
import transformers

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
DOCUMENT = Path(__file__).parents[3] / "docs" / "cases.md"


def test_the_table_is_what_new_runs_give(tmp_path):
    transformers.utils.logging.set_verbosity_error()
    document = cases_table.document(tmp_path)
    assert document == DOCUMENT.read_text(encoding="utf-8")
    assert "refused: internal" not in document and document.count("shown: ") > document.count("refused: ")
