"""Trained models that the tests of training share: of translations, and two classifiers that others learn from."""

from dataclasses import replace

import pytest
import runs
from taught_runs import config

from attnviz.data import corpora
from attnviz.training.train import train
from attnviz.training.train import train as train_model


@pytest.fixture(scope="session")
def corpus(data):
    """Tiny English-French sentences, without tests, which only the card would score."""
    return replace(corpora.load("en-fr", data), tests={})


@pytest.fixture(scope="session")
def finished(tmp_path_factory, corpus):
    """mechanism -> the folder of a model whose run nothing interrupted, trained once, not to be changed."""
    root, folders = tmp_path_factory.mktemp("finished"), {}

    def folder(mechanism="bahdanau"):
        if mechanism not in folders:
            folders[mechanism] = train(runs.config(mechanism), corpus, root, runs.PAIR)
        return folders[mechanism]

    return folder


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
