"""Signs of a translation, the level that they make, and the reasons that a reader is told."""

import math
from dataclasses import replace

import numpy as np
import pytest

from attnviz import calibration, confidence
from attnviz.confidence import Scale, Signs, signs, verdict
from attnviz.familiar import Familiar, Word
from attnviz.loops import Loop
from attnviz.trace import Token, Trace

SURE = Signs((-0.1, -0.1), "b", (), 4, 5, (), None, "", True)
SCALE = Scale(-3.0, {"mean": 2.0}, unusual=0.3, outside=0.8, usual=-0.2)
NARITA = Word("Narita", 0, 6, 4)


def trace(source, target, log_probs, **more):
    tokens = lambda words: tuple(Token(w, i, i + len(w), word=n) for n, (w, i) in enumerate(zip(words, starts(words))))  # noqa: E731
    return Trace(model="en-fr/x", mechanism="x", text="".join(source), translation="".join(target), forced=False, source=tokens(source),
                 target=tokens(target), log_probs=log_probs, alternatives=(), maps=(), **more)  # fmt: skip


def starts(words):
    return [sum(map(len, words[:number])) for number in range(len(words))]


def test_signs_of_a_trace():
    found = signs(trace(["Na", "ri", "ta", "."], ["ti"] * 8, (-1.0,) * 7 + (-2.0,)), Familiar({"run": 1}, 1))
    assert found.new == (Word("Narita", 0, 6, 3),) and found.words == 1 and found.read == 4 and found.least == "ti"
    assert found.loop == Loop(0, 1, 8) and found.looping == "ti" and found.complete


def test_a_trace_without_log_probabilities():
    with pytest.raises(ValueError, match="must be of pieces and have their log-probabilities; got en-fr/x at the level of pieces"):
        signs(trace(["a"], ["b"], ()), Familiar({}, 0))


@pytest.mark.parametrize("found, level", [
    (SURE, "usual"), (replace(SURE, log_probs=(-1.2,)), "unusual"), (replace(SURE, log_probs=(-3.0,)), "outside"),
    (replace(SURE, new=(NARITA,)), "usual"), (replace(SURE, new=(NARITA, NARITA)), "outside"), (replace(SURE, unknown=("☃",)), "outside"),
    (replace(SURE, loop=Loop(0, 1, 8)), "outside"), (replace(SURE, complete=False), "outside"),
])  # fmt: skip
def test_levels(found, level):
    assert verdict(found, SCALE).level == level


def test_risk_by_hand():
    assert SCALE.risk(replace(SURE, log_probs=(-1.0, -2.0))) == pytest.approx(1 / (1 + math.exp(3.0 - 2.0 * 1.5)))


def test_reasons():
    assert verdict(SURE, SCALE).reasons == ()
    found = replace(SURE, log_probs=(-0.5, -5.0), new=(NARITA, Word("Xq", 7, 9, 1)), loop=Loop(0, 1, 9), looping="ti")
    assert verdict(found, SCALE).reasons == (
        "The translation went in circles: “ti” 9 times in a row. It was ended there.",
        "“Narita” is in no training sentence and was cut into 4 pieces.", "“Xq” is in no training sentence and was cut into 1 piece.",
        "The model gave its pieces a probability of 6 % on average; 82 % is usual.", "It was least sure of “b”: under 1 %.",
    )  # fmt: skip


def test_a_scale_refuses_strange_weights_and_thresholds():
    with pytest.raises(ValueError, match="weights must be of the features mean, .*; got colour"):
        Scale(0.0, {"colour": 1.0})
    with pytest.raises(ValueError, match="thresholds must be 0 <= unusual <= outside <= 1; got 0.9 and 0.5"):
        Scale(0.0, {}, 0.9, 0.5)


def made(count=600, seed=1):
    """Signs whose mean log-probability goes with the score, and the scores."""
    chance = np.random.default_rng(seed)
    doubt = chance.gamma(2.0, 0.4, count)
    found = [replace(SURE, log_probs=tuple(-one * chance.uniform(0.5, 1.5, 8))) for one in doubt]
    return found, 90 - 40 * doubt + chance.normal(0, 8, count)


def test_calibration_finds_what_goes_with_poor_translations():
    found, scores = made()
    result = calibration.calibrate(found, scores)
    assert result.worst_tenth > 0.8 and result.best_half <= 0.05
    assert all(abs(risk - share) < 0.15 for risk, share, _ in result.bins) and sum(count for *_, count in result.bins) == 600
    assert result == calibration.calibrate(found, scores) and Scale(**result.to_dict()["scale"]) == result.scale
    others, other_scores = made(seed=2)
    flagged = np.array([verdict(one, result.scale).level != "usual" for one in others])
    assert flagged[other_scores <= np.quantile(other_scores, 0.1)].mean() > 0.7
    assert flagged[other_scores >= np.median(other_scores)].mean() < 0.1


def test_fit_by_hand():
    """Two groups with shares of 1/4 and 3/4: with little penalty the log-odds are those of the shares."""
    features, poor = np.array([[0.0]] * 4000 + [[1.0]] * 4000), np.array(([True] + [False] * 3) * 1000 + ([True] * 3 + [False]) * 1000)
    weights, intercept = calibration.fit(features, poor)
    assert intercept == pytest.approx(-math.log(3), abs=0.01) and weights[0] == pytest.approx(2 * math.log(3), abs=0.01)


def test_too_few_sentences():
    with pytest.raises(ValueError, match="at least 100 sentences"):
        calibration.calibrate([SURE] * 5, [1.0] * 5)


def test_every_feature_is_a_number():
    assert all(math.isfinite(of(SURE)) for of in confidence.FEATURES.values())
