"""A server of every mechanism and every pair."""

import judged
import other_pairs
import pytest
import serving


@pytest.fixture(scope="session")
def untrained(tmp_path_factory):
    """Its address. Nothing is trained; en-fr/bahdanau has thresholds that call every translation outside."""
    root = other_pairs.write(judged.write_models(tmp_path_factory.mktemp("every-pair")))
    with serving.server(ATTNVIZ_CHECKPOINTS=str(root)) as address:
        yield address


@pytest.fixture
def page(look, untrained):
    with look(untrained) as dashboard:
        yield dashboard
