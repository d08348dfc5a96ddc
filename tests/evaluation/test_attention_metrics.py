"""Attention metrics over batches, by hand."""

import numpy as np
import pytest
import tiny
import torch

from attnviz.data import batching
from attnviz.data.tokenizer import EOS, PAD
from attnviz.evaluation.attention_metrics import AntiDiagonal, MeanEntropy, attention_sums
from attnviz.models.translator import Translator
from attnviz.networks import decode

A, B = 5, 6  # any pieces


def unrolled(tokens, *layers):
    """Steps with given tokens (B, T) and cross weights (B, H, T, S) of each layer."""
    return decode.Unrolled(torch.tensor(tokens), None, [torch.tensor(layer) for layer in layers], [], [])


def sharp(*keys):
    return np.eye(4)[list(keys)].tolist()


def test_attention_sums_by_hand():
    # one layer, one head; the first sentence has 2 rows, the second 1 row and one padded key
    cross = torch.tensor([[[[0.5, 0.5], [1.0, 0.0]]], [[[1.0, 0.0], [0.3, 0.7]]]])
    assert attention_sums([cross], [2, 1]).tolist() == pytest.approx([np.log(2), 0.5 + 1 + 1, 3])


def test_mean_entropy_is_the_mean_over_all_rows_of_all_batches():
    metric = MeanEntropy()
    assert metric.result() == {"entropy_nats": None, "max_weight": None}
    metric.add(unrolled([[A, EOS]], [[[[0.5, 0.5], [1.0, 0.0]]]]), [2], [2])
    metric.add(unrolled([[EOS]], [[[[0.75, 0.25]]]]), [1], [2])
    entropy = np.log(2) - 0.75 * np.log(0.75) - 0.25 * np.log(0.25)
    assert metric.result() == pytest.approx({"entropy_nats": entropy / 3, "max_weight": (0.5 + 1 + 0.75) / 3})


def test_padding_adds_nothing(root):
    for name in tiny.WIDTHS:
        model = Translator.load(f"en-fr/{name}", root)
        ids = model.tokenizer.batch_ids(["The dog runs.", "The black white dog sleeps."])
        source = batching.pad(ids)
        together = attention_sums(decode.greedy(model.model, source, source != PAD).cross, [5, 5])
        alone = [decode.greedy(model.model, torch.tensor([row])).cross for row in ids]
        assert together.tolist() == pytest.approx(sum(attention_sums(cross, [5]) for cross in alone).tolist(), abs=1e-4)


def test_the_antidiagonal_by_hand():
    """Two sentences, of 3 and 2 pieces and <eos>. The first looks at 2 1 1 and <eos>: 2 of 3 right; the second, which
    goes on too long, at 1 0 0: 2 of 3. A second head looks at 0 everywhere: right at the last step of each."""
    metric = AntiDiagonal()
    first, second, still = sharp(2, 1, 1, 3), sharp(1, 0, 0, 2), sharp(0, 0, 0, 0)
    tokens = [[A, B, A, EOS], [A, A, B, EOS]]
    metric.add(unrolled(tokens, [[first, still], [second, still]]), [4, 4], [4, 3])
    assert metric.result() == {"antidiagonal": 66.67, "antidiagonal_heads": [[66.67, 33.33]]}
    metric.add(unrolled([[B]], [[sharp(0), sharp(1)]]), [1], [2])  # cut short: a step without <eos>
    assert metric.result() == {"antidiagonal": 71.43, "antidiagonal_heads": [[71.43, 28.57]]}


def test_steps_after_the_end_do_not_count():
    metric = AntiDiagonal()
    metric.add(unrolled([[A, EOS, B, B]], [[sharp(0, 1, 0, 0)]]), [2], [2])
    assert metric.result()["antidiagonal"] == 100


def test_the_antidiagonal_of_no_attention_and_of_no_step():
    metric = AntiDiagonal()
    metric.add(unrolled([[A, EOS]]), [2], [2])
    assert metric.result() == {"antidiagonal": None, "antidiagonal_heads": None}
    metric.add(unrolled([[EOS]], [[sharp(0)]]), [1], [2])
    assert metric.result() == {"antidiagonal": None, "antidiagonal_heads": None}
