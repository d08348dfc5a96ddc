"""Two small classifiers that others learn from."""

import pytest
from taught_runs import config

from attnviz.data import corpora
from attnviz.training.train import train as train_model


@pytest.fixture(scope="session")
def teachers(tmp_path_factory, reviews):
    """The folders of two classifiers that have learnt something, of vocabularies of their own."""
    folders = []
    for seed, vocabulary in ((1, 120), (2, 90)):
        settings = config(epochs=4, seed=seed, vocabulary=vocabulary)
        folders.append(
            train_model(settings, corpora.load("sst2", reviews), tmp_path_factory.mktemp(f"teacher-{seed}"), "sst2")
        )
    return folders
