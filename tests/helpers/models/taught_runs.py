"""Settings of small runs of a classifier."""

import tiny

from attnviz.training.recipes import TrainingConfig


def config(**changes):
    return TrainingConfig(
        "self-attention",
        **{
            "epochs": 3,
            "batch_tokens": 100,
            "vocabulary": 120,
            "warmup": 5,
            "learning_rate": 2e-2,
            "options": {**tiny.CLASSIFIER, "dropout": 0.1},
            **changes,
        },
    )
