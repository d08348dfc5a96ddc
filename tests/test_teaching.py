"""Knowledge distillation: what teachers say of each token, the loss against it, and a run that learns from it."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from runs import begin_and_kill, finish, history, plan, same

from attnviz import checkpoints, corpora, teaching, training
from attnviz.run import Run, token_loss
from attnviz.teaching import TaughtRun, lesson_loss, lessons
from attnviz.text import Text, train_vocabulary

MECHANISMS = ("bahdanau", "transformer")


@pytest.fixture(scope="module")
def corpus(data):
    return corpora.load("en-fr", data)


@pytest.fixture(scope="module")
def finished(tmp_path_factory, corpus):
    return finish(tmp_path_factory.mktemp("finished"), corpus, MECHANISMS)


@pytest.fixture(scope="module")
def teachers(finished):
    return [checkpoints.load_model(f"en-fr/{mechanism}", finished)[0].eval() for mechanism in MECHANISMS]


@pytest.fixture(scope="module")
def text(finished):
    return Text.load(finished / "en-fr" / "tokenizer.json")


def folders(finished):
    return [finished / "en-fr" / mechanism for mechanism in MECHANISMS]


def test_a_lesson_is_the_mean_of_what_each_teacher_says(teachers, corpus, text, monkeypatch):
    """Each pair read by itself, with nothing padded; fewer batches than pairs, in another order than the data's."""
    monkeypatch.setattr(teaching, "BATCH", 7)
    data = Run.encode(corpus.train[:20], text)
    found = lessons(teachers, data, "cpu")
    for (source, target), (pieces, shares) in zip(data, found, strict=True):
        with torch.no_grad():
            logits = [Run.logits(teacher, torch.tensor([source]), torch.tensor([target]))[0].numpy() for teacher in teachers]
        said = [np.exp(x) / np.exp(x).sum(-1, keepdims=True) for x in logits]
        mean = (said[0] + said[1]) / 2
        assert pieces.shape == shares.shape == (len(target), teaching.KEPT)
        kept = np.take_along_axis(mean, pieces.numpy(), -1)
        assert np.allclose(kept.min(-1), np.sort(mean, -1)[:, -teaching.KEPT], atol=1e-6)  # the most probable ones
        assert np.allclose(shares.numpy(), kept / kept.sum(-1, keepdims=True), atol=1e-3)


def test_the_loss_by_hand():
    logits = torch.randn(2, 3, 7, generator=torch.Generator().manual_seed(1))
    pieces = torch.tensor([[[6, 0], [1, 2], [3, 4]], [[5, 1], [0, 0], [0, 0]]])
    shares = torch.tensor([[[0.75, 0.25], [1.0, 0.0], [0.5, 0.5]], [[0.9, 0.1], [0.0, 0.0], [0.0, 0.0]]])  # two of padding
    log = np.log(np.exp(logits.numpy()) / np.exp(logits.numpy()).sum(-1, keepdims=True))
    terms = [0.75 * log[0, 0, 6] + 0.25 * log[0, 0, 0], log[0, 1, 1], (log[0, 2, 3] + log[0, 2, 4]) / 2, 0.9 * log[1, 0, 5] + 0.1 * log[1, 0, 1]]
    assert float(lesson_loss(logits, pieces, shares)) == pytest.approx(-sum(terms) / 4, rel=1e-6)


def test_the_loss_of_a_run_is_its_share(teachers, corpus, text):
    """Teaching 0 is the loss without a teacher, 1 is the lessons' alone, a half lies between."""
    options = {**plan("transformer").options, "dropout": 0.0}
    found = {}
    for share in (0.0, 0.5, 1.0):
        run = TaughtRun(plan("transformer", teaching=share, options=options), text, corpus.train, "cpu", compile=False, teachers=teachers)
        run.working.eval()
        found[share] = float(run.objective([3, 1, 2]).detach())
    source, target = run.tensors([3, 1, 2])
    assert found[0.0] == pytest.approx(float(token_loss(run._logits(source, target), target, run.plan.label_smoothing)), rel=1e-6)
    assert found[0.5] == pytest.approx((found[0.0] + found[1.0]) / 2, rel=1e-5) and found[0.0] != found[1.0]


def test_a_pupil_comes_nearer_to_its_teachers(teachers, corpus, text):
    apart = {}
    for share in (0.0, 1.0):
        run = TaughtRun(plan("transformer", teaching=share), text, corpus.train, "cpu", compile=False, teachers=teachers)
        for epoch in range(3):
            for batch in run.order(epoch):
                run.learn(batch)
        run.plan, run.working = replace(run.plan, teaching=1.0), run.averaged()
        run.working.to(getattr(torch, run.precision))
        with torch.no_grad():
            apart[share] = np.mean([float(run.objective(batch)) for batch in run.order(0)])
    assert apart[1.0] < apart[0.0]


def test_killed_and_resumed_is_as_if_never_killed(finished, corpus, tmp_path, monkeypatch):
    whole, broken = tmp_path / "whole", tmp_path / "broken"
    folder = training.train(plan(), corpus, whole, "en-fr", compile=False, teachers=folders(finished))
    begin_and_kill(monkeypatch, broken, corpus, teachers=folders(finished))
    resumed = training.train(plan(), corpus, broken, "en-fr", compile=False, teachers=folders(finished))
    assert same(folder, resumed, "model.safetensors") and history(folder) == history(resumed)
    assert not same(folder, finished / "en-fr" / "bahdanau", "model.safetensors")
    with pytest.raises(ValueError, match=r"run with other settings \(teachers [0-9a-f]{64} [0-9a-f]{64}, now \)"):
        training.train(plan(), corpus, broken, "en-fr", compile=False)


@pytest.mark.parametrize("changed", [{"piece_dropout": 0.1}, {"consistency": 1.0}])
def test_what_changes_the_text_or_the_loss_is_refused(finished, corpus, tmp_path, changed):
    with pytest.raises(ValueError, match="^piece_dropout and consistency must be 0 with a teacher; leave them out$"):
        training.train(plan(**changed), corpus, tmp_path, "en-fr", compile=False, teachers=folders(finished))


def test_a_teacher_of_other_pieces_is_refused(finished, corpus, tmp_path):
    path = tmp_path / "en-fr" / "tokenizer.json"
    path.parent.mkdir()
    train_vocabulary(["x y"], 40).save(path)
    with pytest.raises(ValueError, match="is not the tokenizer of .*, the teacher; choose another --out, or another teacher"):
        training.train(plan(), corpus, tmp_path, "en-fr", compile=False, teachers=folders(finished)[:1])


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(ValueError, match="^teaching must be from 0 to 1; got "):
        plan(teaching=share)
