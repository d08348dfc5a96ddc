"""Tiny models for all tests of the page of one step."""

import pytest
import tiny


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("one-step"))


@pytest.fixture
def models_served(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))
