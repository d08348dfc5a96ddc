"""A server for strangers, of tiny models, which hostile visitors come to."""

import pytest
import serving
import tiny


@pytest.fixture(scope="session")
def public(tmp_path_factory):
    """Its address, and the number of its process."""
    root = tmp_path_factory.mktemp("public") / "checkpoints"
    tiny.write_models(root)
    with serving.running(ATTNVIZ_CHECKPOINTS=str(root), ATTNVIZ_PUBLIC="1", ATTNVIZ_ALLOW="uploads") as running:
        yield running
