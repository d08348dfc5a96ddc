"""The list of families in docs/families.md is what comes out of new runs."""

import re
from pathlib import Path

import family_table
import pytest
import transformers

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
DOCUMENT = Path(__file__).parents[3] / "docs" / "families.md"
LINES = {line.split(" | ")[0].lstrip("| "): line for line in DOCUMENT.read_text(encoding="utf-8").splitlines()}


@pytest.mark.parametrize("family", ["bloom", "deberta", "fnet", "granitemoehybrid", "led", "pegasus"])
def test_a_row_is_what_a_new_run_gives(family):
    version = re.search(r"transformers library (\S+) that", DOCUMENT.read_text(encoding="utf-8"))[1]
    if transformers.__version__ != version:
        pytest.skip(f"the list was made with transformers {version}")
    assert family_table.row(family).line().strip() == LINES[family].strip()


def test_the_list_names_every_family_of_its_version_and_no_fault():
    assert len(LINES.keys() & family_table.listed().keys()) > 300
    assert not [line for line in LINES.values() if "FAULT" in line]
