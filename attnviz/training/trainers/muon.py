"""Muon: momentum whose update is made orthogonal, for the matrices within a network (Jordan et al. 2024).

torch.optim.Muon multiplies in bfloat16, which a CPU without it only emulates, dozens of times as slowly; this is fp32.
"""

from collections.abc import Iterable

import torch
from torch import Tensor, nn

QUINTIC = (3.4445, -4.7750, 2.0315)  # its coefficients, chosen by Jordan et al. for a steep rise near 0
STEPS = 5
RMS = 0.2  # of an update whose learning rate is 1: that of AdamW, so that both take one learning rate (Liu et al. 2025)


def orthogonal(matrix: Tensor) -> Tensor:
    """matrix (m, n) -> U V^T of its singular value decomposition U S V^T, about: singular values from 0.7 to 1.2.

    Five steps of a Newton-Schulz iteration, x -> a x + b (x x^T) x + c (x x^T)^2 x.
    """
    a, b, c = QUINTIC
    wide = matrix if matrix.shape[0] <= matrix.shape[1] else matrix.T
    x = wide / (wide.norm() + 1e-7)
    for _ in range(STEPS):
        square = x @ x.T
        x = a * x + (b * square + c * square @ square) @ x
    return x if wide is matrix else x.T


class Muon(torch.optim.Optimizer):
    """Muon over matrices, with Nesterov momentum and decoupled weight decay.

    The update is scaled by 0.2 * sqrt(larger side), so that its entries are as large as AdamW's (Liu et al. 2025,
    eq. 4). A learning rate thus means the same for both.
    """

    STATE = ("momentum",)

    def __init__(self, parameters: Iterable[nn.Parameter], momentum: float = 0.95, weight_decay: float = 0.0):
        super().__init__(parameters, {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay, "factor": 1.0})

    @torch.no_grad()
    def step(self) -> None:
        """One update from the gradients."""
        for group in self.param_groups:
            for parameter in group["params"]:
                state = self.state[parameter]
                if "momentum" not in state:
                    state["momentum"] = torch.zeros_like(parameter)
                mean = state["momentum"].lerp_(parameter.grad, 1 - group["momentum"])
                ahead = parameter.grad.lerp(mean, group["momentum"])  # Nesterov
                parameter.mul_(1 - group["lr"] * group["weight_decay"])
                scale = RMS * max(parameter.shape) ** 0.5
                parameter.add_(orthogonal(ahead), alpha=-group["lr"] * scale)
