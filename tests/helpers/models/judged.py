"""Tiny models of which one, en-fr/bahdanau, has thresholds on its card that call every translation outside."""

from pathlib import Path

import tiny

from attnviz.confidence import TrainingWords
from attnviz.models import checkpoints

NAME = "en-fr/bahdanau"
SCALE = {"intercept": 9.0, "weights": {}, "unusual": 0.3, "outside": 0.8, "usual": -0.2}


def write_models(root: Path) -> Path:
    tiny.write_models(root)
    path = root / NAME / "card.json"
    checkpoints.write_json(path, checkpoints.read_json(path) | {"confidence": {"scale": SCALE}})
    TrainingWords.learn(["The black dog is running."]).save(root / "en-fr" / "words.txt.gz")
    return root
