"""Training, validation and resuming on another device than the CPU: the same numbers, and nothing is left behind."""

import sys
from dataclasses import replace

import pytest
import runs
import tiny
import torch
from elsewhere import Elsewhere, There

from attnviz.data import corpora
from attnviz.data.tasks import LABELS
from attnviz.mechanisms import Config
from attnviz.models.classifier import Classifier
from attnviz.networks.registry import build
from attnviz.training import saved_run
from attnviz.training.classifiers import ClassifierTrainer, DistillationTrainer
from attnviz.training.recipes import TrainingConfig
from attnviz.training.trainer import Trainer
from attnviz.training.validation import validate

PAIRS = tiny.sentences(24, 1)
REVIEWS = [(sentence, ("negative", "positive")[label == "1"]) for sentence, label in tiny.reviews(24, 1)]
CLASSIFIER = TrainingConfig(
    "self-attention", batch_tokens=100, warmup=5, consistency=2.0, options={**tiny.CLASSIFIER, "dropout": 0.1}
)


@pytest.fixture(autouse=True)
def unfused(monkeypatch):
    """The fused optimizer asks whether it knows the device."""
    monkeypatch.setattr(
        sys.modules[torch.optim.Adam.__module__], "_device_dtype_check_for_fused", lambda *args, **kwargs: None
    )


def learn(make, device, folder=None):
    """Two updates and a validation; another trainer resumes and makes one more update -> it, and the losses."""
    trainer = make(device)
    text, pairs, labelled = tiny.vocabulary(), list(trainer.batches.pairs)[:6], isinstance(trainer, ClassifierTrainer)
    corpus = corpora.Corpus(pairs, pairs, {}, {}, metric="accuracy" if labelled else "bleu_lc", labelled=labelled)
    losses = [trainer.update(batch).item() for batch in trainer.batches.order(0)[:2]]
    losses.append(validate(trainer, text, corpus)["val_loss"])
    saved_run.save(trainer, folder)
    again = make(device)
    saved_run.restore(again, folder)
    losses.append(again.update(again.batches.order(0)[-1]).item())
    return again, losses


def learn_on_both(make, tmp_path):
    on_cpu = learn(make, "cpu", tmp_path / "here")[1]
    with Elsewhere() as device:
        trainer, on_device = learn(make, device, tmp_path / "there")
        assert all(isinstance(parameter.data, There) for parameter in trainer.optimizer.master.parameters())
    return on_cpu, on_device


@pytest.mark.parametrize("mechanism", ["fixed-context", "bahdanau", "luong-local", "transformer"])
def test_a_mechanism_learns_the_same_there(mechanism, tmp_path):
    """One of each decoder, and the one that makes positions of its own."""
    config = runs.config(mechanism)
    on_cpu, on_device = learn_on_both(lambda device: Trainer(config, tiny.vocabulary(), PAIRS, device), tmp_path)
    assert on_device == pytest.approx(on_cpu, rel=1e-3)  # in bfloat16, and the CPU's GRU is made of one piece


def test_a_classifier_learns_the_same_there(tmp_path):
    on_cpu, on_device = learn_on_both(
        lambda device: ClassifierTrainer(CLASSIFIER, tiny.vocabulary(), REVIEWS, device, labels=LABELS), tmp_path
    )
    assert on_device == pytest.approx(on_cpu, rel=1e-3)


def test_a_taught_classifier_learns_the_same_there(tmp_path):
    """Its teachers speak on the CPU."""
    text, config = tiny.vocabulary(), replace(CLASSIFIER, consistency=0.0, ngrams=2)
    torch.manual_seed(1)
    model = build(Config("self-attention", len(text), tiny.CLASSIFIER)).eval()
    teacher = Classifier("sst2/self-attention", "self-attention", model, text, {})
    on_cpu, on_device = learn_on_both(
        lambda device: DistillationTrainer(config, text, REVIEWS, device, labels=LABELS, teachers=[teacher]), tmp_path
    )
    assert on_device == pytest.approx(on_cpu, rel=1e-3)


def test_what_is_left_on_the_cpu_is_refused():
    with Elsewhere() as device:
        assert (torch.ones(2, device=device) + 1).cpu().tolist() == [2, 2]
        with pytest.raises(RuntimeError, match="two devices"):
            torch.ones(2, device=device) + torch.ones(2)
