"""Preserved share, permutations, comprehensiveness and sufficiency, on tiny and on shipped models."""

import numpy as np
import pandas as pd
import pytest

import attnviz
from attnviz import faithfulness, intervene
from attnviz.faithfulness.effects import erasures
from attnviz.mechanisms import MECHANISMS
from attnviz.models.model import TextError

ATTENDING = [name for name in MECHANISMS if MECHANISMS[name].kinds]
TEXT, TARGET = "The black dog runs.", "Le chien noir court."
SENTENCE = "The black dog is running."


@pytest.fixture(scope="module")
def subjects(root):
    return {name: faithfulness.subject(attnviz.load(f"en-fr/{name}", root), TEXT) for name in ATTENDING}


@pytest.fixture(scope="module")
def trained():
    return faithfulness.subject(attnviz.load("en-fr/bahdanau"), SENTENCE)


@pytest.fixture(scope="module")
def label():
    return faithfulness.subject(attnviz.load("sst2/self-attention"), "A moving film that is never dull.")


@pytest.mark.parametrize("name", ATTENDING)
def test_identity_preserves_all(subjects, name):
    frame = faithfulness.preserved(subjects[name], [intervene.Identity()])
    first_choice = [token != "<eos>" for token in frame["token"]]  # decoding ended a loop of these models
    assert len(frame) > 5 and frame["preserved"].tolist() == first_choice and frame["total_variation"].max() < 1e-6


def test_what_is_preserved_is_still_said(trained):
    """Each row is what a translation says at that step when only that step is changed."""
    frame = faithfulness.preserved(trained, [intervene.LastOnly()])
    assert frame["kind"].tolist()[:3] == ["function", "content", "content"] and frame["kind"].tolist()[-1] == "other"
    for row in frame.itertuples():
        scope = intervene.Scope(steps=(row.step,))
        outcome = intervene.run(trained.model, SENTENCE, intervene.LastOnly(), scope)
        best = outcome.forced.alternatives[row.step][0].text
        assert row.preserved == (best == outcome.before.alternatives[row.step][0].text)
        assert row.total_variation == pytest.approx(outcome.total_variation[row.step], abs=1e-5)
    assert 0 < frame["preserved"].mean() < 1


def test_permutations_of_a_trained_model(trained):
    frame = faithfulness.variation(trained, count=40, seed=2)
    assert ((frame["low"] <= frame["median"]) & (frame["median"] <= frame["high"])).all()
    assert frame["high"].max() <= 1 and frame["low"].min() >= 0
    np.testing.assert_allclose(frame["max_weight"], trained.attention.max(-1))
    assert frame.equals(faithfulness.variation(trained, count=40, seed=2))
    even = faithfulness.preserved(trained, [intervene.Uniform()])
    np.testing.assert_allclose(frame["uniform"], even["total_variation"], atol=1e-6)


def test_a_label_has_one_step(label):
    assert len(faithfulness.variation(label, count=10)) == 1
    frame = faithfulness.preserved(label)
    assert frame["kind"].tolist() == ["other"] * len(faithfulness.CHANGES)
    unchanged = faithfulness.preserved(label, [intervene.Identity()])
    assert unchanged["preserved"].all() and not unchanged["total_variation"].any()


def test_a_toy_task_has_no_kinds_of_words():
    subject = faithfulness.subject(attnviz.load("reverse/bahdanau"), "a b c d")
    assert set(faithfulness.preserved(subject)["kind"]) == {"other"}


def test_erasure_by_hand(trained):
    """The most important token out, and in alone; all of them out leaves <eos>, all of them in leaves nothing to
    lose."""
    frame = faithfulness.erasure(trained, trained.attention, (0.01, 1.0)).set_index(["step", "share"])
    chances = trained.log_probs([trained.source])[0].exp().numpy()
    size = len(trained.source) - 1
    for step in (1, 3):
        top = int(trained.attention[step, :size].argmax())
        without = trained.source[:top] + trained.source[top + 1 :]
        alone = (trained.source[top], trained.source[-1])
        for name, source in (("comprehensiveness", without), ("sufficiency", alone)):
            wanted = chances[step] - float(trained.log_probs([source])[0, step].exp())
            assert frame.loc[(step, 0.01), name] == pytest.approx(wanted, abs=1e-5)
        assert frame.loc[(step, 1.0), "sufficiency"] == pytest.approx(0, abs=1e-5)
    assert set(frame["count"]) == {1, size}


def test_attention_beats_chance_on_a_trained_model(trained):
    """Where the model looks is needed more than what chance picks: comprehensiveness over the shares."""
    means = [
        faithfulness.erasure(trained, importance)["comprehensiveness"].mean()
        for importance in (trained.attention, faithfulness.random_importance(trained, 1))
    ]
    assert means[0] > means[1]


@pytest.mark.parametrize(
    "shape, shares, message",
    [
        ((1, 2), (0.5,), r"^importance must have shape \(\d+, \d+\); got \(1, 2\)$"),
        (None, (0, 0.5), r"^shares must be above 0 and at most 1; got \(0, 0.5\)$"),
    ],
)
def test_refusals(trained, shape, shares, message):
    importance = trained.attention if shape is None else np.zeros(shape)
    with pytest.raises(ValueError, match=message):
        faithfulness.erasure(trained, importance, shares)


@pytest.mark.parametrize("name", ATTENDING)
def test_changes_in_one_batch_are_what_they_are_alone(subjects, name):
    together = faithfulness.preserved(subjects[name])
    alone = [faithfulness.preserved(subjects[name], [change]) for change in faithfulness.CHANGES]
    pd.testing.assert_frame_equal(together, pd.concat(alone, ignore_index=True), atol=1e-5)


@pytest.mark.parametrize("name", ATTENDING)
def test_several_texts_in_one_batch_are_what_they_are_alone(subjects, name):
    """Of one length; the second target is shorter. Only a permutation depends on the place in the batch."""
    model = subjects[name].model
    pair = [faithfulness.subject(model, TEXT, target) for target in (TARGET, "Le chien.")]
    changes = [change for change in faithfulness.CHANGES if change.name != "permuted"]
    for together, alone in zip(faithfulness.preserved_together(pair, changes), pair):
        pd.testing.assert_frame_equal(together, faithfulness.preserved(alone, changes), atol=1e-5)


def test_texts_of_different_lengths_are_refused(trained):
    pair = [trained, faithfulness.subject(trained.model, "A dog.")]
    with pytest.raises(ValueError, match="^the sources must have one length; group the subjects by it$"):
        faithfulness.preserved_together(pair)


def test_several_orders_erase_what_each_erases_alone(trained):
    orders = {"attention": trained.attention, "random": faithfulness.random_importance(trained)}
    for name, frame in erasures(trained, orders).items():
        pd.testing.assert_frame_equal(frame, faithfulness.erasure(trained, orders[name]), atol=1e-5)


@pytest.mark.parametrize("name", ["en-fr/bahdanau", "en-fr/transformer", "sst2/self-attention"])
def test_subjects_in_a_batch_are_those_of_one_text(name):
    texts = [SENTENCE, "", "A dog."]
    model = attnviz.load(name)
    first, refused, last = faithfulness.subjects(model, texts)
    assert isinstance(refused, TextError)
    for subject, text in ((first, SENTENCE), (last, "A dog.")):
        alone = faithfulness.subject(model, text)
        assert (subject.source, subject.target) == (alone.source, alone.target)
        np.testing.assert_allclose(subject.attention, alone.attention, atol=1e-5)
