"""Signs of translations; and tiny models of which one, en-fr/bahdanau, has thresholds on its card that call every
translation outside."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import tiny

from attnviz.confidence import Signs, TrainingWords
from attnviz.models import checkpoint_files

NAME = "en-fr/bahdanau"
SCALE = {"intercept": 9.0, "weights": {}, "unusual": 0.3, "outside": 0.8, "usual": -0.2}
SURE = Signs((-0.1, -0.1), "b", (), 4, 5, (), (), 4, (), None, "", True)


def signs_and_scores(count=600, seed=1):
    """Signs whose mean log-probability goes with the score, and the scores."""
    generator = np.random.default_rng(seed)
    doubt = generator.gamma(2.0, 0.4, count)
    read = [replace(SURE, log_probs=tuple(-mean * generator.uniform(0.5, 1.5, 8))) for mean in doubt]
    return read, 90 - 40 * doubt + generator.normal(0, 8, count)


def write_models(root: Path, scale: dict = SCALE, samplers: tuple[str, ...] = ()) -> Path:
    """samplers : models that draw translations for the one with thresholds."""
    tiny.write_models(root)
    path = root / NAME / "card.json"
    checkpoint_files.write_json(
        path,
        checkpoint_files.read_json(path)
        | {
            "confidence": {
                "scale": scale,
                "samplers": {name: checkpoint_files.fingerprint(name, root) for name in samplers},
            }
        },
    )
    TrainingWords.learn(["The black dog is running."]).save(root / "en-fr" / "words.txt.gz")
    return root
