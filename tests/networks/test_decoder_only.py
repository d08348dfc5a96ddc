"""decoder_only.py: against the papers' equations in NumPy; kept keys and values; the future; its two paths."""

import numpy as np
import pytest
import torch
from writer_by_hand import LAYERS, LONGEST, H, V, ids, random_writer, read

from attnviz.networks.decoder_only import DecoderOnly


def test_it_is_what_the_papers_say():
    network, tokens = random_writer(), ids(1, 9)
    logits, maps = network(tokens)
    wanted, weights = read(network, tokens[0].numpy())
    np.testing.assert_allclose(logits[0], wanted, atol=1e-5, rtol=1e-5)
    np.testing.assert_allclose(torch.stack(maps)[:, 0], weights, atol=1e-5)


@pytest.mark.parametrize("sizes", [(1,) * 7, (3, 1, 1, 2), (6, 1), (7,)])
def test_kept_keys_and_values_change_nothing(sizes):
    network, tokens = random_writer(1), ids(2, 7)
    logits, maps = network(tokens)
    state, first = (), 0
    for part in tokens.split(sizes, dim=1):
        reading = network.read(part, state)
        rows, state = slice(first, first + part.shape[1]), reading.state
        torch.testing.assert_close(network.logits(reading.readouts), logits[:, rows], atol=1e-5, rtol=1e-5)
        for weights, whole in zip(reading.maps, maps, strict=True):
            torch.testing.assert_close(weights, whole[:, :, rows, : rows.stop], atol=1e-5, rtol=1e-5)
        first = rows.stop


def test_the_path_of_training_gives_what_the_path_with_weights_gives():
    network, tokens = random_writer(2), ids(3, LONGEST)
    torch.testing.assert_close(network.readouts(tokens), network.read(tokens).readouts, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("changed", range(8))
def test_a_later_token_changes_no_earlier_row(changed):
    network, tokens = random_writer(3), ids(1, 8)
    other = tokens.clone()
    other[0, changed] = 4 + (tokens[0, changed] - 3) % (V - 4)
    before, after = network(tokens), network(other)
    assert torch.equal(before[0][:, :changed], after[0][:, :changed])
    assert not torch.equal(before[0][:, changed], after[0][:, changed])
    for ours, theirs in zip(before[1], after[1], strict=True):
        assert torch.equal(ours[:, :, :changed], theirs[:, :, :changed])
        assert not ours.triu(1).any() and ours.sum(-1).sub(1).abs().max() < 1e-6
    fast = network.readouts(tokens)[:, :changed], network.readouts(other)[:, :changed]
    assert torch.equal(*fast)


def test_weights_can_be_changed_layer_by_layer():
    network, tokens = random_writer(), ids(1, 5)

    def first_only(weights, mask):
        return torch.nn.functional.one_hot(torch.zeros(weights.shape[:-1], dtype=torch.long), 5).to(weights)

    changed = network.read(tokens, reweigh=(None, first_only))
    assert torch.equal(changed.maps[0], network.read(tokens).maps[0])
    assert (changed.maps[1][..., 0] == 1).all() and len(changed.maps) == LAYERS and changed.maps[1].shape[1] == H
    assert not torch.allclose(changed.readouts, network.read(tokens).readouts)


@pytest.mark.parametrize("call", ["read", "readouts"])
def test_more_tokens_than_the_context_are_refused(call):
    with pytest.raises(ValueError) as caught:
        getattr(random_writer(), call)(ids(1, LONGEST + 1))
    assert str(caught.value) == f"the model takes at most {LONGEST} tokens; got {LONGEST + 1}"
    network = random_writer()
    state = network.read(ids(1, LONGEST)).state
    with pytest.raises(ValueError, match=f"at most {LONGEST} tokens; got {LONGEST + 1}"):
        network.read(ids(1, 1), state)


def test_a_head_must_have_an_even_width():
    with pytest.raises(ValueError) as caught:
        DecoderOnly(V, 9, 3, 1, 8)
    assert str(caught.value) == "a head must have an even width, to rotate pairs; got 3"


def test_dropout_is_for_training_only():
    network, tokens = random_writer(dropout=0.5), ids(1, 6)
    assert torch.equal(network.readouts(tokens), network.readouts(tokens))
    network.train()
    assert not torch.equal(network.readouts(tokens), network.readouts(tokens))
