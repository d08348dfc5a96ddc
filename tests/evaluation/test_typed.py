"""What a card says about sentences that visitors type."""

import pytest
import tiny

from attnviz.confidence import TrainingWords, read_scale
from attnviz.evaluation import typed
from attnviz.models.translator import Translator

WORDS = TrainingWords.learn(source for source, _ in tiny.sentences(50, 3))


@pytest.fixture(scope="module")
def translator(tmp_path_factory):
    return Translator.load("en-fr/bahdanau", tiny.write_models(tmp_path_factory.mktemp("models")))


def test_copied(translator):
    figures = typed.copied(translator)
    assert figures.keys() == {"beam_1", "beam_5"} and figures["beam_5"]["names"] == 83


def test_confidence(translator):
    calibration = typed.confidence(translator, tiny.sentences(100, 4), WORDS)
    assert 0 <= calibration.worst_tenth <= 1 and len(calibration.bins) == 10
    assert read_scale(calibration.to_dict()["scale"]) == calibration.scale


def test_confidence_with_translations_that_models_draw(translator, root):
    samplers = [translator, Translator.load("en-fr/luong-dot", root)]
    assert typed.confidence(translator, tiny.sentences(100, 4), WORDS, samplers).scale.sample_count
    assert not typed.confidence(translator, tiny.sentences(100, 4), WORDS).scale.sample_count


def test_sentences_that_no_model_reads_are_left_out(translator):
    pairs = [*tiny.sentences(100, 4), ("x " * 300, "x")]
    assert sum(count for *_, count in typed.confidence(translator, pairs, WORDS).bins) == 100
