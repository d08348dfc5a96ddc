"""The product with the output matrix is bit for bit that of torch; the quick one follows the matrix."""

import copy

import pytest
import torch
from decoding import every, ids, random_model
from torch.nn import functional as F

from attnviz.networks import decode
from attnviz.networks.cpu import Packed, found_at_once, quick_products


@pytest.fixture
def matrix():
    """(V, D), and the vector that is added (V,)."""
    torch.manual_seed(5)
    return torch.randn(901, 64), torch.randn(901)


@torch.inference_mode(False)
@pytest.mark.parametrize("rows", [1, 2, 40])
def test_the_product_is_that_of_torch_bit_for_bit_and_the_quick_one_up_to_rounding(matrix, rows):
    x, output = torch.randn(rows, 64), Packed()
    with torch.no_grad():
        wanted = F.linear(x, *matrix)
        assert torch.equal(output.product(x, *matrix), wanted)
        with quick_products():
            torch.testing.assert_close(output.product(x, *matrix), wanted, atol=1e-5, rtol=1e-5)
        assert torch.equal(output.product(x, *matrix), wanted)


def test_the_quick_product_follows_a_changed_matrix(matrix):
    (weight, bias), x, output = matrix, torch.randn(1, 64), Packed()
    with torch.no_grad(), quick_products():
        output.product(x, weight, bias)
        weight *= 2
        torch.testing.assert_close(output.product(x, weight, bias), F.linear(x, weight, bias), atol=1e-5, rtol=1e-5)


@every
def test_quick_products_change_no_token_and_no_weight(name):
    model, source = random_model(name), ids(1, 7)
    plain = decode.greedy(model, source)
    with quick_products():
        quick = decode.greedy(model, source)
    assert torch.equal(quick.tokens, plain.tokens)
    for ours, theirs in zip(quick.cross + quick.decoder, plain.cross + plain.decoder, strict=True):
        assert torch.equal(ours, theirs)
    torch.testing.assert_close(quick.logits, plain.logits, atol=1e-5, rtol=1e-5)


@every
def test_a_network_whose_parts_are_found_at_once_writes_the_same_and_can_be_copied_and_changed(name):
    model, source = random_model(name), ids(1, 7)
    plain = decode.greedy(model, source)
    found_at_once(model)
    assert torch.equal(decode.greedy(model, source).logits, plain.logits)
    changed = copy.deepcopy(model)
    changed.embedding.weight = torch.nn.Parameter(torch.zeros_like(model.embedding.weight), requires_grad=False)
    assert not changed.embedding(source).any() and model.embedding(source).any()
    assert torch.equal(decode.greedy(model, source).logits, plain.logits)
