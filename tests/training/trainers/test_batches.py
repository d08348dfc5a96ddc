"""The data order: dropout on pieces and on words, and every sentence once an epoch."""

import math

import pytest
import runs
import tiny
import torch

from attnviz.data import batching
from attnviz.data.tokenizer import EOS, PAD, UNK
from attnviz.training.trainers.batches import Batches, drop_words
from attnviz.training.trainers.trainer import Trainer

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
