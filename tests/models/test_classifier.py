"""The classifier of `sst2`: it learns what the words say, and its traces are those of any model."""

import math
import re
import shutil

import numpy as np
import pytest
import torch
from small_classifier import NAME

import attnviz
from attnviz import evaluation, figures, select, stats
from attnviz.data import readers
from attnviz.data.tasks import LABELS
from attnviz.models import checkpoint_files
from attnviz.models import classifier as classify
from attnviz.models.model import TextError
from attnviz.trace import Trace

SENTENCE = "The film isn't dull, it's LOVELY!"


@pytest.fixture(scope="module")
def classifier(taught):
    return attnviz.load(NAME, taught)


def test_it_learns_what_the_words_say_and_the_best_epoch_ships(taught):
    card = checkpoint_files.read_card(NAME, taught)
    best = max(entry["val_accuracy"] for entry in card["history"])
    assert (
        best >= 90
        and card["best"]["val_accuracy"] == best
        and card["scores"]["dev"]["accuracy"] == pytest.approx(best, abs=2.5)
    )
    assert card["weights_sha256"] == checkpoint_files.fingerprint(NAME, taught) and card["training_pairs"] == 150
    assert card["data"].keys() == {"sst2/train.tsv.gz", "sst2/dev.tsv"} and "chosen on dev" in card["remark"]
    assert card["command"].startswith(
        "python -m attnviz train --pair sst2 --mechanism self-attention --data DIR --epochs 12 "
    )
    for key in (
        "seed",
        "settings",
        "tokenizer_sha256",
        "parameters",
        "epochs",
        "versions",
        "device",
        "ms_per_sentence",
    ):
        assert card[key], key


def test_a_trace_says_the_label_and_everything_that_was_looked_at(classifier):
    trace = classifier.trace(SENTENCE)
    ids = torch.tensor([classifier.tokenizer.ids(SENTENCE)])
    verdict = classifier.model(ids)
    chances = verdict.logits.softmax(-1)[0]
    assert trace.translation == LABELS[int(chances.argmax())] == trace.target[0].text and len(trace.target) == 1
    assert math.exp(trace.log_prob) == pytest.approx(float(chances.max()), abs=1e-5)
    assert {choice.text for choice in trace.alternatives[0]} == set(LABELS)
    assert sum(choice.probability for choice in trace.alternatives[0]) == pytest.approx(1)
    np.testing.assert_allclose(trace.map("cross").weights[0], verdict.pooling[0], atol=1e-6)
    for layer, weights in enumerate(verdict.maps):
        np.testing.assert_allclose(trace.map("encoder", layer).weights, weights[0], atol=1e-6)
    assert [token.text for token in trace.source if token.text in ("isn't", "LOVELY", "!")] and trace.source[-1].special


def test_a_label_can_be_given(classifier):
    own = classifier.trace(SENTENCE)
    for choice in own.alternatives[0]:
        given = classifier.trace(SENTENCE, choice.text)
        assert (
            given.forced
            and given.translation == choice.text
            and math.exp(given.log_prob) == pytest.approx(choice.probability)
        )
        assert classifier.log_prob(SENTENCE, choice.text) == given.log_prob and given.maps == own.maps
    with pytest.raises(ValueError, match="^target must be one of negative, positive; got 'good'$"):
        classifier.trace(SENTENCE, "good")


def test_a_trace_goes_wherever_traces_go(classifier):
    trace = classifier.trace(SENTENCE)
    assert Trace.from_json(trace.to_json()) == trace
    grid = select.select(trace, "encoder", words=True, special=False)
    assert figures.heatmap(grid).data[0].z.shape == grid.weights.shape
    assert [token.text for token in grid.queries][-2:] == ["LOVELY", "!"]
    frame = stats.steps(trace)
    assert len(frame[frame.kind == "cross"]) == 1 and len(frame[frame.kind == "encoder"]) == 4 * len(trace.source)


@pytest.mark.parametrize(
    "text, message",
    [
        (" ", "the text is empty; type a sentence"),
        ("...", "the text has no visible character; type a sentence"),
        ("dull " * 250, "the text is too long: 251 pieces with <eos>, and the models read at most 200"),
    ],
)
def test_texts_that_no_model_can_take(classifier, text, message):
    with pytest.raises(TextError, match=f"^{re.escape(message)}"):
        classifier.trace(text)


def test_scores_by_hand(classifier, reviews):
    pairs = readers.read_labelled(reviews / "sst2" / "dev.tsv", LABELS)
    labels = [classifier.trace(sentence).translation for sentence, _ in pairs]  # alone, not in batches
    scores = evaluation.score_classifier(classifier, *zip(*pairs))
    assert scores["accuracy"] == pytest.approx(100 * np.mean([a == b for a, (_, b) in zip(labels, pairs)]), abs=0.01)
    for true in LABELS:
        for given in LABELS:
            assert scores["confusion"][true][given] == sum(a == given and b == true for a, (_, b) in zip(labels, pairs))
    sentences = [sentence for sentence, _ in pairs]
    assert classify.predict(classifier.model, classifier.tokenizer, classifier.labels, sentences) == labels


def test_a_classifier_of_a_task_without_its_labels_is_refused(taught, tmp_path):
    other = tmp_path / "en-xx"
    shutil.copytree(taught / "sst2", other)
    with pytest.raises(checkpoint_files.CheckpointError) as error:
        attnviz.load("en-xx/self-attention", tmp_path)
    assert str(error.value) == (
        "en-xx/self-attention: the model chooses from 2 labels and the task en-xx has 0; they do not belong together"
    )
