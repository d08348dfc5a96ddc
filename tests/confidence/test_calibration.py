"""The scale is fitted so that what it flags is poor."""

import math
from dataclasses import replace

import numpy as np
import pytest
from judged import SURE, signs_and_scores

from attnviz.confidence import Scale, judgement
from attnviz.confidence.calibration import calibrate, fit
from attnviz.confidence.lexicon import Unsaid


def test_calibration_finds_what_goes_with_poor_translations():
    read, scores = signs_and_scores()
    result = calibrate(read, scores)
    assert result.worst_tenth > 0.8 and result.best_half <= 0.05
    assert (
        all(abs(risk - share) < 0.15 for risk, share, _ in result.bins)
        and sum(count for *_, count in result.bins) == 600
    )
    assert result == calibrate(read, scores) and Scale(**result.to_dict()["scale"]) == result.scale
    others, other_scores = signs_and_scores(seed=2)
    flagged = np.array([judgement(signs, result.scale).level != "usual" for signs in others])
    assert flagged[other_scores <= np.quantile(other_scores, 0.1)].mean() > 0.7
    assert flagged[other_scores >= np.median(other_scores)].mean() < 0.1


@pytest.mark.parametrize("count", [100, 507, 1014])
def test_of_the_best_half_no_more_than_a_twentieth_is_flagged(count):
    """Also where a twentieth of the sentences is not a whole number."""
    assert 0 < calibrate(*signs_and_scores(count, seed=3)).best_half <= 0.05


def test_what_a_rule_calls_outside_counts_as_flagged():
    """The shares are those of the page: a text that was cut off is outside whatever its risk."""
    read, scores = signs_and_scores()
    order = np.argsort(scores)
    for place in (*order[:60], *order[-10:]):
        read[place] = replace(read[place], complete=False)
    result = calibrate(read, scores)
    assert result.sentences == 600 and result.worst_tenth == 1.0 and 10 / 300 <= result.best_half <= 0.05


def test_words_left_out_are_flagged_of_a_small_share_of_the_better_half():
    """Whatever their probabilities; with what else is flagged, it is a twentieth."""
    read, scores = signs_and_scores()
    read = [replace(signs, unsaid=(Unsaid("dog", ("chien",), number / 100),)) for number, signs in enumerate(read)]
    result = calibrate(read, scores)
    best = [signs for signs, score in zip(read, scores) if score >= np.median(scores)]
    assert sum(signs.surprise > result.scale.unsaid for signs in best) in (2, 3, 4) and 0 < result.best_half <= 0.05


def test_fewer_words_left_out_are_flagged_where_they_would_leave_nothing_to_the_risk():
    """Texts that were cut off use 27 of the 30 of the better half that may be flagged."""
    read, scores = signs_and_scores(1200)
    order = np.argsort(scores)
    for place in order[-27:]:
        read[place] = replace(read[place], complete=False)
    for number, place in enumerate(order[600:640]):
        read[place] = replace(read[place], unsaid=(Unsaid("dog", ("chien",), 1 + number / 10),))
    result = calibrate(read, scores)
    assert result.worst_tenth > 0.9 and 27 / 600 <= result.best_half <= 0.05
    assert sum(read[place].surprise > result.scale.unsaid for place in order[600:640]) in (1, 2, 3)


def test_fit_by_hand():
    """Two groups with shares of 1/4 and 3/4: with little penalty the log-odds are those of the shares."""
    features, poor = (
        np.array([[0.0]] * 4000 + [[1.0]] * 4000),
        np.array(([True] + [False] * 3) * 1000 + ([True] * 3 + [False]) * 1000),
    )
    weights, intercept = fit(features, poor)
    assert intercept == pytest.approx(-math.log(3), abs=0.01) and weights[0] == pytest.approx(2 * math.log(3), abs=0.01)


def test_weights_that_are_learnt_from_clear_rows_give_the_risk_of_all():
    """What is neither poor nor good is left out; then one factor and the intercept are those of all rows."""
    generator = np.random.default_rng(5)
    poor, clear = np.arange(3000) < 600, (np.arange(3000) < 600) | (np.arange(3000) >= 1500)
    features = np.column_stack([poor + generator.normal(size=3000), poor - 2.0 * clear + generator.normal(size=3000)])
    weights, intercept = fit(features, poor, clear)
    of_clear, of_all = fit(features[clear], poor[clear])[0], fit(features, poor)[0]
    assert weights[1] / weights[0] == pytest.approx(of_clear[1] / of_clear[0]) and of_all[1] < 0.3 < of_clear[1]
    assert (1 / (1 + np.exp(-(features @ weights + intercept)))).mean() == pytest.approx(poor.mean(), abs=0.01)


def test_too_few_sentences():
    with pytest.raises(ValueError, match="at least 100 sentences"):
        calibrate([SURE] * 5, [1.0] * 5)
