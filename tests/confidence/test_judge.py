"""The judge of a checkpoint: from the card and the words of training to a judgement."""

import pytest
import tiny

from attnviz import confidence, loading
from attnviz.confidence.judge import read_scale
from attnviz.models import checkpoint_files

NAME = "en-fr/bahdanau"
SCALE = {"intercept": -3.0, "weights": {"mean": 2.0}, "unusual": 0.3, "outside": 0.8, "usual": -0.2}


@pytest.fixture
def root(tmp_path):
    return tiny.write_models(tmp_path / "models")


def write_scale(root, scale):
    path = root / NAME / "card.json"
    checkpoint_files.write_json(path, checkpoint_files.read_json(path) | {"confidence": {"scale": scale}})


def test_a_card_with_thresholds(root):
    words = confidence.TrainingWords.learn(["The dog runs."])
    words.save(root / "en-fr" / "words.txt.gz")
    write_scale(root, SCALE)
    judge = confidence.Judge.load(NAME, root)
    assert judge.known_words == words and judge.scale == confidence.Scale(**SCALE)
    trace = loading.load(NAME, root).trace("The Narita runs.")
    assert judge(trace) == confidence.judgement(confidence.signs(trace, words), judge.scale)
    assert any(reason.startswith("“Narita” is in no training sentence") for reason in judge(trace).reasons)


def test_no_thresholds_or_no_words(root):
    assert confidence.Judge.load(NAME, root) is None
    write_scale(root, SCALE)
    assert confidence.Judge.load(NAME, root) is None  # the words are missing


@pytest.mark.parametrize(
    "content",
    [
        None,
        {},
        [1],
        "no",
        SCALE | {"weights": None},
        SCALE | {"weights": {"colour": 1.0}},
        SCALE | {"weights": {"mean": "much"}},
        SCALE | {"unusual": 0.9},
        SCALE | {"outside": None},
        SCALE | {"intercept": float("nan")},
        {name: value for name, value in SCALE.items() if name != "usual"},
    ],
)
def test_what_is_no_scale(content):
    assert read_scale(content) is None
