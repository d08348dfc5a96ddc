"""Training, validation and going on with a run on another device than the CPU: the same numbers, and nothing is left behind."""

import sys
from dataclasses import replace

import pytest
import runs
import tiny
import torch
from elsewhere import Elsewhere, There

from attnviz.data import corpora
from attnviz.mechanisms import Config
from attnviz.models.classifier import Classifier
from attnviz.networks.registry import build
from attnviz.training import recipes, train
from attnviz.training.classifier_trainer import LabelRun
from attnviz.training.distillation import TaughtRun
from attnviz.training.trainer import Run

PAIRS = tiny.sentences(24, 1)
REVIEWS = [(sentence, ("negative", "positive")[label == "1"]) for sentence, label in tiny.reviews(24, 1)]
CLASSIFIER = recipes.Settings(
    "self-attention", batch_tokens=100, warmup=5, consistency=2.0, options={**tiny.CLASSIFIER, "dropout": 0.1}
)


@pytest.fixture(autouse=True)
def unfused(monkeypatch):
    """The fused optimizer asks whether it knows the device."""
    monkeypatch.setattr(
        sys.modules[torch.optim.Adam.__module__], "_device_dtype_check_for_fused", lambda *args, **kwargs: None
    )


def learn(make, device, folder=None):
    """Two updates and a validation, after which the run is saved, taken up by another and makes one more update -> the losses."""
    run = make(device)
    text, pairs, labelled = tiny.vocabulary(), list(run.pairs)[:6], isinstance(run, LabelRun)
    corpus = corpora.Corpus(pairs, pairs, {}, {}, metric="accuracy" if labelled else "bleu_lc", labelled=labelled)
    found = [run.learn(batch).item() for batch in run.order(0)[:2]]
    found.append(train.validate(run, text, corpus)["val_loss"])
    run.save(folder)
    again = make(device)
    again.restore(folder)
    found.append(again.learn(again.order(0)[-1]).item())
    return again, found


def both(make, tmp_path):
    here = learn(make, "cpu", tmp_path / "here")[1]
    with Elsewhere() as device:
        run, there = learn(make, device, tmp_path / "there")
        assert all(isinstance(parameter.data, There) for parameter in run.master.parameters())
    return here, there


@pytest.mark.parametrize("mechanism", tiny.WIDTHS)
def test_a_mechanism_learns_the_same_there(mechanism, tmp_path):
    plan = runs.plan(mechanism)
    here, there = both(lambda device: Run(plan, tiny.vocabulary(), PAIRS, device, compile=False), tmp_path)
    assert there == pytest.approx(here, rel=1e-3)  # in bfloat16, and the CPU's GRU is made of one piece


def test_a_classifier_learns_the_same_there(tmp_path):
    here, there = both(lambda device: LabelRun(CLASSIFIER, tiny.vocabulary(), REVIEWS, device, compile=False), tmp_path)
    assert there == pytest.approx(here, rel=1e-3)


def test_a_taught_classifier_learns_the_same_there(tmp_path):
    """Its teachers speak on the CPU."""
    text, plan = tiny.vocabulary(), replace(CLASSIFIER, consistency=0.0, ngrams=2)
    torch.manual_seed(1)
    model = build(Config("self-attention", len(text), tiny.CLASSIFIER)).eval()
    teacher = Classifier("sst2/self-attention", "self-attention", model, text, {})
    here, there = both(
        lambda device: TaughtRun(plan, text, REVIEWS, device, compile=False, teachers=[teacher]), tmp_path
    )
    assert there == pytest.approx(here, rel=1e-3)


def test_what_is_left_on_the_cpu_is_refused():
    with Elsewhere() as device:
        assert (torch.ones(2, device=device) + 1).cpu().tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="two devices"):
            torch.ones(2, device=device) + torch.ones(2)
