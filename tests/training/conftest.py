"""Trained models that the tests of training share."""

from dataclasses import replace

import pytest
import runs

from attnviz.data import corpora
from attnviz.training.train import train


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
