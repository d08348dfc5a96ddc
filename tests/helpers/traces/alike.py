"""Traces that say the same, and whose numbers are equal to rounding."""

from dataclasses import replace

import numpy as np


def alike(computed, wanted, tolerance=1e-5):
    """Everything but numbers is equal; weights, log-probabilities and probabilities differ by `tolerance` at most.

    Alternatives whose probabilities are as near as that may change places.
    """
    bare = {"maps": (), "log_probs": (), "alternatives": ()}
    assert replace(computed, **bare) == replace(wanted, **bare)
    np.testing.assert_allclose(computed.log_probs, wanted.log_probs, atol=10 * tolerance)
    assert [(m.kind, m.layer) for m in computed.maps] == [(m.kind, m.layer) for m in wanted.maps]
    for mine, yours in zip(computed.maps, wanted.maps):
        np.testing.assert_allclose(mine.weights, yours.weights, atol=tolerance, rtol=0)
    for mine, yours in zip(computed.alternatives, wanted.alternatives, strict=True):
        chances = [choice.probability for choice in mine], [choice.probability for choice in yours]
        np.testing.assert_allclose(*chances, atol=tolerance)
        clear = {choice.text for choice in mine if choice.probability > chances[1][-1] + tolerance}
        assert clear <= {choice.text for choice in yours}
