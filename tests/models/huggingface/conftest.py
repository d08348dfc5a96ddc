"""A model to be damaged."""

import families
import pytest


@pytest.fixture
def bert(tmp_path):
    """A folder of a BERT, to be damaged."""
    return families.write(tmp_path / "bert", "bert")
