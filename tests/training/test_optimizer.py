"""The optimiser step: learning rate, Adam and Muon."""

import pytest
import runs
import tiny
import torch

from attnviz.training.optimizer import Muon, learning_rate, orthogonal
from attnviz.training.recipes import TrainingConfig
from attnviz.training.train import train
from attnviz.training.trainer import Trainer

PAIRS = tiny.sentences(60, 1)


def trainer(**changes):
    return Trainer(runs.config(**changes), tiny.vocabulary(), PAIRS, "cpu")


def test_rates_must_name_parameters(corpus, tmp_path):
    with pytest.raises(ValueError) as caught:
        train(runs.config(rates={"start.bias": 0.5, "atention.key.weight": 0.1}), corpus, tmp_path, runs.PAIR)
    assert str(caught.value) == "rates must name parameters of bahdanau; got atention.key.weight"
    assert not list(tmp_path.iterdir())


def test_rates_are_factors_on_the_learning_rate():
    slowed = trainer(rates={"start.bias": 0.5})
    slowed.update(slowed.batches.order(0)[0])
    full, optimizer = learning_rate(0, slowed.batches.total, slowed.config), slowed.optimizer
    (slow,) = (group for group in optimizer.optimizers[0].param_groups if group["factor"] == 0.5)
    assert slow["params"] == [optimizer.master.start.bias] and slow["lr"] == full / 2
    assert {group["lr"] for group in optimizer.optimizers[0].param_groups} == {full, full / 2}


@pytest.mark.parametrize("beta2", [0.98, 0.999])
def test_adams_second_decay_is_that_of_the_config(beta2):
    fresh = trainer(beta2=beta2)
    fresh.update(fresh.batches.order(0)[0])  # the first step leaves (1 - beta2) times the squared gradient
    bias = fresh.optimizer.master.start.bias
    state = fresh.optimizer.optimizers[0].state[bias]
    torch.testing.assert_close(state["exp_avg_sq"], (1 - beta2) * bias.grad.square())


@pytest.mark.parametrize(
    "capabilities, precision",
    [
        ({"avx2": True}, "float32"),
        ({"avx512_bf16": True}, "bfloat16"),
        ({"amx_bf16": True, "avx512_bf16": False}, "bfloat16"),
        ({"bf16": True}, "bfloat16"),
        ({}, "float32"),
    ],
)
def test_bfloat16_only_where_the_processor_computes_in_it(monkeypatch, capabilities, precision):
    monkeypatch.setattr(torch.cpu, "get_capabilities", lambda: capabilities, raising=False)
    fresh = trainer()
    assert fresh.optimizer.precision == precision
    assert {parameter.dtype for parameter in fresh.optimizer.working.parameters()} == {getattr(torch, precision)}
    losses = [float(fresh.update(fresh.batches.order(0)[0])) for _ in range(8)]
    assert losses[-1] < losses[0]
    assert {parameter.dtype for parameter in fresh.optimizer.master.parameters()} == {torch.float32}


def test_the_rate_warms_up_and_cools_down():
    config = TrainingConfig("bahdanau", warmup=10, learning_rate=1.0)
    rates = [learning_rate(update, 110, config) for update in range(110)]
    assert rates[0] == 0.1 and rates[9] == 1.0 and rates.index(max(rates)) in (9, 10)
    assert rates[10:] == sorted(rates[10:], reverse=True)
    assert learning_rate(110, 110, config) == pytest.approx(0.02)
    assert learning_rate(60, 110, config) == pytest.approx(0.02 + 0.98 / 2)  # half way down


def test_the_warm_up_of_a_short_run_is_a_tenth_of_it():
    config = TrainingConfig("bahdanau", warmup=400, learning_rate=1.0)
    assert learning_rate(9, 100, config) == 1.0 and learning_rate(0, 100, config) == 0.1
    assert learning_rate(399, 10_000, config) == 1.0 and learning_rate(9, 10_000, config) == 10 / 400


SHAPES = ((6, 6), (4, 9), (9, 4))


def matrix(shape, seed=0):
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("shape", SHAPES)
def test_an_update_has_the_directions_of_the_gradient_and_singular_values_about_one(shape):
    u, s, v = torch.linalg.svd(matrix(shape), full_matrices=False)
    spread = u @ torch.diag(torch.linspace(1, 0.05, len(s))) @ v  # known singular values, one far smaller
    made = orthogonal(spread)
    values = torch.diagonal(u.T @ made @ v.T)
    assert ((values > 0.6) & (values < 1.25)).all()
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
