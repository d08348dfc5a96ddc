"""Muon: its orthogonal update, against the singular value decomposition and against torch's own Muon."""

import pytest
import torch

from attnviz.training.trainers.optimizer import Muon, orthogonal

SHAPES = ((6, 6), (4, 9), (9, 4))


def matrix(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_update_has_the_directions_of_the_gradient_and_singular_values_about_one(shape):
    u, s, v = torch.linalg.svd(matrix(shape), full_matrices=False)
    spread = u @ torch.diag(torch.linspace(1, 0.05, len(s))) @ v  # known singular values, one far smaller
    made = orthogonal(spread)
    values = torch.diagonal(u.T @ made @ v.T)
    assert ((0.6 < values) & (values < 1.25)).all()
    torch.testing.assert_close(u @ torch.diag(values) @ v, made, atol=1e-4, rtol=1e-3)


@pytest.mark.parametrize("shape", SHAPES)
def test_steps_are_those_of_torch(shape):
    """torch's Muon multiplies in bfloat16, so the two agree to its precision."""
    ours, theirs = (torch.nn.Parameter(matrix(shape)) for _ in range(2))
    muon = Muon([ours], momentum=0.9, weight_decay=0.1)
    muon.param_groups[0]["lr"] = 0.02
    reference = torch.optim.Muon([theirs], lr=0.02, weight_decay=0.1, momentum=0.9, adjust_lr_fn="match_rms_adamw")
    for step in range(4):
        for parameter in (ours, theirs):
            parameter.grad = matrix(shape, seed=step + 1)
        muon.step()
        reference.step()
    moved = (ours - matrix(shape)).norm()
    assert (ours - theirs).norm() < 0.03 * moved


def test_a_zero_gradient_moves_nothing():
    parameter = torch.nn.Parameter(matrix((3, 4)))
    before, parameter.grad = parameter.detach().clone(), torch.zeros(3, 4)
    muon = Muon([parameter])
    muon.param_groups[0]["lr"] = 0.1
    muon.step()
    assert torch.equal(parameter, before)
