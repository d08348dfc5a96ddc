"""All tests of one sentence, and its place among the sentences of a study."""

import numpy as np
import pytest
import tiny_writer
import torch

import attnviz
from attnviz import faithfulness, intervene
from attnviz.data.tokenizer import BOS
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


def test_what_a_model_wrote_is_tested_by_its_prompt(tmp_path):
    """Log-probabilities of other prompts are those of the model that reads them; only rows that were written change."""
    model = attnviz.load("en/writer", tiny_writer.write_models(tmp_path))
    trace = model.write("The dog runs. The", 4, 0.0)
    subject = faithfulness.subject(model, trace.text, trace)
    given, source = trace.given, subject.source
    shorter = (*source[:1], *source[2:])
    own, other = subject.log_probs([source, shorter]).numpy()
    np.testing.assert_allclose(own, trace.log_probs[given:], atol=1e-4)
    with torch.inference_mode():
        logits = model.model.logits(model.model.readouts(torch.tensor([[BOS, *shorter, *subject.target[:-1]]])))[0]
    expected = logits.log_softmax(-1)[given - 1 :].gather(1, torch.tensor(subject.target)[:, None])[:, 0]
    np.testing.assert_allclose(other, expected, atol=1e-4)
    np.testing.assert_allclose(subject.attention.sum(1), [m.sum() for m in rows_of_the_prompt(trace)], rtol=1e-5)
    changed = faithfulness.preserved(subject, [intervene.Uniform()])
    alone = faithfulness.written(model, trace, [intervene.Uniform()])
    assert changed["total_variation"].tolist() == pytest.approx(alone["total_variation"][given:].tolist(), abs=1e-5)
    assert sentences.results(subject).sums["tau gradient"][1] == 4


def rows_of_the_prompt(trace):
    mean = np.concatenate([attention.weights for attention in trace.maps]).mean(0)
    return mean[trace.given :, 1 : trace.given + 1]
