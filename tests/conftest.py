"""What several test files share."""

import pytest


@pytest.fixture(scope="session")
def data(tmp_path_factory):
    """A tiny data folder."""
    import tiny

    return tiny.write_data(tmp_path_factory.mktemp("data"))


@pytest.fixture(scope="session")
def root(tmp_path_factory):
    """A folder of tiny untrained checkpoints, not to be changed."""
    import tiny

    return tiny.write_models(tmp_path_factory.mktemp("checkpoints"))
