"""The residual stream of a model of two layers, by the hand-written network; parts that add up to the logits."""

import numpy as np
import pytest
import torch
from writer_by_hand import LAYERS, D, H, attend, ids, random_writer, rms_norm

from attnviz.networks import decoder_only


def test_what_each_part_adds_is_what_a_network_without_the_others_would():
    """A head alone: the columns of the other heads in the output projection are 0. The bias is a part of its own."""
    network, tokens = random_writer(), ids(7)
    parts = decoder_only.stream(network, tokens)
    for head in range(H):
        alone = {name: value.double().numpy() for name, value in network.state_dict().items()}
        output, width = alone["decoder.0.attention.output.weight"].copy(), D // H
        output[:, [i for i in range(D) if i // width != head]] = 0
        alone |= {"decoder.0.attention.output.weight": output, "decoder.0.attention.output.bias": np.zeros(D)}
        x = alone["embedding.weight"][tokens]
        added, _ = attend(np.stack([rms_norm(row, alone["decoder.0.norms.0.weight"]) for row in x]), alone, _NAME)
        np.testing.assert_allclose(parts.heads[0, head], added, atol=1e-5)


_NAME = "decoder.0.attention"


def test_the_last_reading_of_the_lens_is_the_model():
    network, tokens = random_writer(1), ids(8)
    read = decoder_only.lens(network, tokens)
    assert read.shape[0] == LAYERS + 1
    torch.testing.assert_close(read[-1], network(tokens[None])[0][0], atol=1e-5, rtol=1e-5)


def test_a_reading_is_that_of_a_model_that_ends_there():
    network, tokens = random_writer(2), ids(8)
    read = decoder_only.lens(network, tokens)
    network.decoder = network.decoder[:1]
    torch.testing.assert_close(read[1], network(tokens[None])[0][0], atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("seed", range(3))
def test_parts_add_up_to_the_logit(seed):
    network, tokens, produced = random_writer(seed), ids(9, seed=seed), ids(9, seed=9)
    parts = decoder_only.contributions(network, tokens, produced)
    assert parts.heads.shape == (LAYERS, H, 9) and parts.biases.shape == parts.feeds.shape == (LAYERS, 9)
    wanted = network(tokens[None])[0][0][range(9), produced]
    torch.testing.assert_close(parts.total(), wanted, atol=1e-5, rtol=1e-5)


def test_a_head_that_adds_nothing_contributes_nothing():
    network, tokens = random_writer(), ids(6)
    columns = network.decoder[1].attention.output.weight
    columns[:, : D // H] = 0
    parts = decoder_only.contributions(network, tokens, ids(6, seed=2))
    assert not parts.heads[1, 0].any() and parts.heads[1, 1].any()
