"""The order of the training data, the losses, and a loss that is no number."""

import math
import shutil

import pytest
import runs
import tiny
import torch
from runs import PAIR, config
from scipy.stats import entropy

from attnviz.data import batching
from attnviz.data.tokenizer import EOS, PAD, UNK
from attnviz.mechanisms import Config
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.translator import Translator
from attnviz.training import validation
from attnviz.training.train import train
from attnviz.training.trainer import Batches, Diverged, Trainer, consistency_loss, drop_words, token_loss

PAIRS = tiny.sentences(60, 1)
TEXT = tiny.vocabulary()


def test_each_epoch_reads_every_sentence_once_in_its_own_order():
    batches, again = (Batches(runs.config(), TEXT, PAIRS, batching.encode) for _ in range(2))
    orders = [batches.order(epoch) for epoch in range(3)]
    assert all(sorted(sum(order, [])) == list(range(60)) for order in orders) and orders[0] != orders[1]
    assert orders[2] == again.order(2) and batches.total == sum(map(len, orders))
    assert Batches(runs.config(seed=2), TEXT, PAIRS, batching.encode).order(0) != orders[0]
    assert batches.digest == again.digest != Batches(runs.config(), TEXT, PAIRS[1:], batching.encode).digest


def test_piece_dropout_reads_the_same_sentences_anew_in_each_epoch():
    dropping, plain = (Trainer(runs.config(epochs=5, piece_dropout=share), TEXT, PAIRS, "cpu") for share in (0.3, 0.0))
    batches, whole = dropping.batches, plain.batches.examples
    read = [batches.examples for epoch in range(5) if batches.order(epoch)]
    assert read[0] != read[1] != read[3] != whole and batches.digest == plain.batches.digest
    assert read[4] == whole and batches.total > plain.batches.total  # the last fifth is without dropout
    for again in read:
        assert [TEXT.decode(target) for _, target in again] == [TEXT.decode(target) for _, target in whole]
    assert batches.order(4) == plain.batches.order(4)
    assert math.isfinite(dropping.update(batches.order(2)[0]))


def test_dropped_words_are_unknown_and_special_tokens_stay():
    source = torch.tensor([[7, 8, 9, EOS, PAD]]).repeat(2000, 1)
    torch.manual_seed(0)
    dropped = drop_words(source, 0.3)
    assert set(dropped[:, 3].tolist()) == {EOS} and set(dropped[:, 4].tolist()) == {PAD}
    changed = dropped[:, :3] != source[:, :3]
    assert float(changed.float().mean()) == pytest.approx(0.3, abs=0.03)
    assert set(dropped[:, :3][changed].tolist()) == {UNK}
    before = torch.get_rng_state()
    assert drop_words(source, 0.0) is source and torch.equal(torch.get_rng_state(), before)


def test_token_loss_by_hand():
    torch.manual_seed(0)
    logits, target = torch.randn(2, 3, 9), torch.tensor([[4, 5, 2], [6, 2, 0]])
    by_hand = -torch.log_softmax(logits, -1).gather(2, target.unsqueeze(2)).squeeze(2)[target != 0].mean()
    assert float(token_loss(logits, target, 0.0)) == pytest.approx(float(by_hand), abs=1e-6)


def test_consistency_loss_by_scipy():
    logits = torch.randn(4, 3, 5, generator=torch.Generator().manual_seed(1))
    target = torch.tensor([[4, 2, 0], [4, 4, 2]])
    p, q = (half.softmax(-1)[target != 0].numpy() for half in logits.chunk(2))
    expected = ((entropy(p, q, axis=1) + entropy(q, p, axis=1)) / 2).mean()
    assert float(consistency_loss(logits, target)) == pytest.approx(expected, rel=1e-5)
    assert float(consistency_loss(logits[:2].repeat(2, 1, 1), target)) == 0


def test_two_passes_agree_more_with_the_consistency_loss(corpus):
    """The same run with and without R-Drop: its two passes under dropout come to differ less."""
    losses = {}
    for consistency in (0.0, 5.0):
        options = {**tiny.WIDTHS["transformer"], "dropout": 0.3}
        config = runs.config("transformer", consistency=consistency, options=options)
        trainer = Trainer(config, tiny.vocabulary(), corpus.train, "cpu")
        for indices in trainer.batches.order(0) + trainer.batches.order(1):
            trainer.update(indices)
        source, target = (
            batching.pad([trainer.batches.examples[i][side] for i in range(20)]).repeat(2, 1) for side in (0, 1)
        )
        with torch.no_grad():
            logits = trainer.logits(trainer.optimizer.working, source, target)
            losses[consistency] = float(consistency_loss(logits, target[:20]))
    assert losses[5.0] < 0.5 * losses[0.0]


NAME = f"{PAIR}/bahdanau"


@pytest.fixture
def trained_copy(tmp_path, finished):
    """A copy of a folder with a trained model, and the hash of its weights."""
    root = shutil.copytree(finished().parent, tmp_path / PAIR).parent
    return root, checkpoint_files.fingerprint(NAME, root)


def diverge(root, corpus, **changes):
    with pytest.raises(Diverged) as caught:
        train(config(**changes), corpus, root, PAIR, restart=True)
    return str(caught.value)


def not_finite(trainer, logits, target):
    """Stands for a loss that is not finite."""
    return float("nan") * logits.sum()


def test_a_loss_that_is_no_number_ends_the_run_before_anything_is_written(trained_copy, corpus, monkeypatch):
    root, weights = trained_copy
    monkeypatch.setattr(Trainer, "_smoothed_loss", not_finite)
    assert diverge(root, corpus) == (
        "training diverged in epoch 1: the gradient of the loss is not finite; use a lower learning_rate and --restart"
    )
    assert (
        checkpoint_files.fingerprint(NAME, root) == weights
        and Translator.load(NAME, root).trace("The black dog runs.").complete
    )
    assert not (root / NAME / "training.safetensors").exists()  # no state to go on with


def test_a_rate_that_is_far_too_high_says_so_and_leaves_the_model(trained_copy, corpus):
    root, weights = trained_copy
    assert diverge(root, corpus, learning_rate=1e30).startswith("training diverged in epoch 1: ")
    assert checkpoint_files.fingerprint(NAME, root) == weights


def test_a_validation_loss_that_is_no_number(trained_copy, corpus, monkeypatch):
    root, weights = trained_copy
    monkeypatch.setattr(validation, "mean_loss", lambda *_, **__: float("inf"))
    assert diverge(root, corpus).startswith("training diverged in epoch 1: the loss on validation is inf; ")
    assert checkpoint_files.fingerprint(NAME, root) == weights


@pytest.mark.parametrize("value", [70_000.0, float("inf"), float("nan")])
def test_weights_that_fp16_cannot_hold_are_not_saved(tmp_path, value):
    with pytest.raises(checkpoint_files.CheckpointError) as caught:
        checkpoints.save_model(
            tmp_path / NAME, Config("bahdanau", 9), {"fine": torch.zeros(2), "start.bias": torch.tensor([1.0, value])}
        )
    assert str(caught.value) == (
        "weights must be numbers below 65,504, which fp16 can hold; those of start.bias are not, so the model is not "
        "saved: "
        "train it again with a lower learning_rate"
    )
    assert not (tmp_path / NAME).exists()
