"""What a card says of sentences that visitors type."""

import pytest
import tiny

from attnviz import typed
from attnviz.familiar import Familiar
from attnviz.translator import Translator


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    root = tmp_path_factory.mktemp("models")
    tiny.write_models(root)
    return Translator.load("en-fr/bahdanau", root)


def test_figures(translator):
    found = typed.figures(translator, tiny.sentences(100, 4), Familiar.learn(a for a, _ in tiny.sentences(50, 3)))
    assert found["copied"].keys() == {"beam_1", "beam_5"} and found["copied"]["beam_5"]["names"] == 83
    assert found["confidence"]["scale"].keys() >= {"weights", "intercept", "unusual", "outside", "usual"}
    assert 0 <= found["confidence"]["worst_tenth"] <= 1 and len(found["confidence"]["bins"]) == 10
