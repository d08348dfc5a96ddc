"""The losses, by hand and by scipy; and what the consistency loss does to a model."""

import pytest
import runs
import tiny
import torch
from scipy.stats import entropy

from attnviz.data import batching
from attnviz.training.trainers.losses import consistency_loss, token_loss
from attnviz.training.trainers.trainer import Trainer


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
