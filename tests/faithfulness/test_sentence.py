"""All tests of one sentence, and its place among the sentences of a study."""

import numpy as np
import pytest

import attnviz
from attnviz import faithfulness
from attnviz.faithfulness import sentence as sentences
from attnviz.faithfulness.sentence import QUANTILES, percentile


def test_the_sums_are_those_of_the_frames(root):
    subject = faithfulness.subject(attnviz.load("en-fr/bahdanau", root), "The black dog runs.", "Le chien noir court.")
    sentence = sentences.results(subject)
    total, count = sentence.sums["variation median"]
    assert count == len(subject.target) and total == pytest.approx(sentence.variation["median"].sum())
    total, count = sentence.sums["comprehensiveness attention"]
    assert total / count == pytest.approx(sentence.erased["attention"]["comprehensiveness"].mean())
    assert {f"tau {method}" for method in sentence.attributions} <= set(sentence.sums)


def test_a_value_between_quantiles():
    """Quantiles 0, 0.05 … 1 of themselves: a value is its own share."""
    assert percentile(QUANTILES, 0.5) == pytest.approx(50)
    assert percentile(QUANTILES, 0.525) == pytest.approx(52.5)
    assert percentile(QUANTILES, -1) == 0 and percentile(QUANTILES, 2) == 100


def test_many_equal_sentences_share_the_middle_of_their_places():
    quantiles = [0.0] * 11 + np.linspace(0.1, 1, 10).tolist()
    assert percentile(quantiles, 0) == pytest.approx(25)


def test_without_a_study_there_is_no_percentile():
    assert percentile((), 0.3) is None
