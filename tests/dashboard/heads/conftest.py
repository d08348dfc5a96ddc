"""Small models with several heads."""

import pytest
import tiny
import torch

from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.networks.registry import build


@pytest.fixture(scope="session")
def models(tmp_path_factory):
    """A Transformer and a classifier, untrained, of 2 layers with 2 heads."""
    root = tiny.write_models(tmp_path_factory.mktemp("many-headed"))
    text, folder = tiny.vocabulary(), root / "sst2"
    folder.mkdir()
    text.save(folder / "tokenizer.json")
    config = Config("self-attention", len(text), tiny.CLASSIFIER)
    torch.manual_seed(5)
    checkpoints.save_model(folder / "self-attention", config, build(config).state_dict())
    checkpoint_files.write_json(folder / "self-attention" / "card.json", {"pair": "sst2"})
    return root


@pytest.fixture
def models_served(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))


@pytest.fixture
def families_served(root, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
