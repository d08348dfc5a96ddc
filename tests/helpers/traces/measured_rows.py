"""For tests of statistics: their names, and a matrix of weights to compare with."""

import numpy as np

KINDS = ("cross", "encoder", "decoder")
COLUMNS = [
    "entropy_nats",
    "entropy_bits",
    "normalised_entropy",
    "max_weight",
    "effective_threshold",
    "effective_entropy",
    "effective_inverse",
    "gini",
    "argmax",
    "expected_position",
]
REFERENCE = np.array(
    [
        [0.65, 0.10, 0.05, 0.05, 0.10, 0.03, 0.02],
        [0.10, 0.70, 0.05, 0.05, 0.05, 0.03, 0.02],
        [0.05, 0.05, 0.05, 0.05, 0.10, 0.68, 0.02],
        [0.05, 0.05, 0.10, 0.75, 0.02, 0.02, 0.01],
        [0.05, 0.10, 0.70, 0.05, 0.05, 0.03, 0.02],
        [0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.88],
    ]
)
