"""The optimiser step in mixed precision: fp32 weights, a working copy in bfloat16, and a moving average.

The working copy does the forward and backward passes, in bfloat16 if the device supports it. The fp32 master
weights take the steps (Micikevicius et al. 2018, sec. 3.1). Their moving average is validated and shipped.
"""

import copy
import math
import resource
from collections.abc import Iterable

import torch
from torch import Tensor, nn

from attnviz.training.recipes import TrainingConfig

_ADAM_STATE = ("step", "exp_avg", "exp_avg_sq")
# Muon (Jordan et al. 2024) makes the update of matrices orthogonal. torch.optim.Muon multiplies in bfloat16, which a
# CPU without it only emulates, dozens of times as slowly; this is fp32.
QUINTIC = (3.4445, -4.7750, 2.0315)  # its coefficients, chosen by Jordan et al. for a steep rise near 0
STEPS = 5
RMS = 0.2  # of an update whose learning rate is 1: that of AdamW, so that both take one learning rate (Liu et al. 2025)


def learning_rate(update: int, total: int, config: TrainingConfig) -> float:
    """Linear warm-up, for at most a tenth of all updates, then a cosine down to 2 % of the peak.

    With `config.decay` the rate is constant after the warm-up, and falls linearly to 0 in this last share of the
    updates (Hu et al. 2024, sec. 4.2). Before the decay, a run may still be extended.
    """
    warmup = min(config.warmup, total // 10)
    if update < warmup:
        return config.learning_rate * (update + 1) / warmup
    if config.decay:
        return config.learning_rate * min(1.0, (total - update) / (config.decay * total))
    progress = (update - warmup) / max(1, total - warmup)
    return config.learning_rate * (0.02 + 0.98 * 0.5 * (1 + math.cos(math.pi * min(1.0, progress))))


class Optimizer:
    """AdamW over a model's weights; with `config.muon`, Muon over the matrices of its layers.

    total : updates of the whole run, for the learning rate.

    ValueError when `config.rates` names a parameter that the model does not have.
    """

    def __init__(self, model: nn.Module, config: TrainingConfig, total: int):
        self.master, self.config, self.total, self.updates = model, config, total, 0
        self.device = next(model.parameters()).device
        self.precision = "bfloat16" if computes_bfloat16(self.device.type) else "float32"
        self.working = copy.deepcopy(model).to(getattr(torch, self.precision))
        self.average = _copied(model)
        self.optimizers = self._optimizers()

    def _optimizers(self) -> list[torch.optim.Optimizer]:
        """AdamW; and Muon, if the configuration enables it."""
        config, parameters = self.config, dict(self.master.named_parameters())
        names = [name for name in parameters if config.muon and _within(name, parameters[name])]
        matrices = [parameters.pop(name) for name in names]
        adam = torch.optim.AdamW(
            self._parameter_groups(parameters), betas=(0.9, config.beta2), weight_decay=config.weight_decay, fused=True
        )
        if not matrices:
            return [adam]
        muon = Muon(matrices, weight_decay=config.weight_decay)
        muon.param_groups[0]["factor"] = config.muon
        return [adam, muon]

    def _parameter_groups(self, parameters: dict[str, nn.Parameter]) -> list[dict]:
        """The parameters, grouped by the factor on their learning rate."""
        groups = {}
        if unknown := self.config.rates.keys() - parameters:
            raise ValueError(f"rates must name parameters of {self.config.mechanism}; got {', '.join(sorted(unknown))}")
        for name, parameter in parameters.items():
            groups.setdefault(self.config.rates.get(name, 1.0), []).append(parameter)
        return [{"params": group, "factor": factor} for factor, group in groups.items()]

    def step(self) -> None:
        """One update from the gradients of the working copy. FloatingPointError when they are not finite."""
        for master, working in self._parameter_pairs():
            gradient = working.grad  # None of a projection that a person's attention has and a decoder ignores
            master.grad = torch.zeros_like(master) if gradient is None else gradient.float()
            working.grad = None
        if not nn.utils.clip_grad_norm_(self.master.parameters(), self.config.clip).isfinite():
            raise FloatingPointError("the gradient of the loss is not finite")
        rate = learning_rate(self.updates, self.total, self.config)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = rate * group["factor"]
            optimizer.step()
        self.updates += 1
        decay = min(self.config.average, self.updates / (self.updates + 10))
        with torch.no_grad():
            for master, working in self._parameter_pairs():
                working.copy_(master)
            for name, value in self.master.state_dict().items():
                self.average[name].lerp_(value, 1 - decay)

    def start_from(self, weights: dict[str, Tensor]) -> None:
        """Replace the random weights by these."""
        self.master.load_state_dict({name: value.float() for name, value in weights.items()})
        self.working.load_state_dict(self.master.state_dict())
        self.average = _copied(self.master)

    def averaged_model(self) -> nn.Module:
        """A model with the moving average of the weights, fp32, in evaluation mode."""
        model = copy.deepcopy(self.master)  # building one would draw random numbers
        model.load_state_dict(self.average)
        return model.eval()

    def state(self) -> dict[str, Tensor]:
        """Every tensor that `load_state` needs."""
        tensors = {f"average.{name}": value for name, value in self.average.items()}
        for name, parameter in self.master.named_parameters():
            tensors[f"master.{name}"] = parameter
            state = self._optimizer_of(parameter).state[parameter]
            tensors |= {f"optimizer.{key}.{name}": value for key, value in state.items()}
        return tensors

    def load_state(self, tensors: dict[str, Tensor], updates: int) -> None:
        """Continue from `state` after some updates. KeyError, RuntimeError if it belongs to a different model."""
        self.average = {name: tensors[f"average.{name}"].to(self.device) for name in self.average}
        with torch.no_grad():
            for name, parameter in self.master.named_parameters():
                parameter.copy_(tensors[f"master.{name}"])
                optimizer = self._optimizer_of(parameter)
                keys = Muon.STATE if isinstance(optimizer, Muon) else _ADAM_STATE
                optimizer.state[parameter] = {key: tensors[f"optimizer.{key}.{name}"].to(self.device) for key in keys}
            for master, working in self._parameter_pairs():
                working.copy_(master)
        self.updates = updates

    def _optimizer_of(self, parameter: nn.Parameter) -> torch.optim.Optimizer:
        groups = ((optimizer, group) for optimizer in self.optimizers for group in optimizer.param_groups)
        return next(optimizer for optimizer, group in groups if any(parameter is other for other in group["params"]))

    def _parameter_pairs(self) -> list[tuple[nn.Parameter, nn.Parameter]]:
        return list(zip(self.master.parameters(), self.working.parameters()))


def _within(name: str, parameter: nn.Parameter) -> bool:
    """Is it a matrix of a layer, not a vector or an embedding table?"""
    return parameter.dim() == 2 and not name.startswith("embedding.")


def _copied(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


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
    eq. 4). So one learning rate suits both.
    """

    STATE = ("momentum",)

    def __init__(self, parameters: Iterable[nn.Parameter], momentum: float = 0.95, weight_decay: float = 0.0):
        super().__init__(parameters, {"lr": 0.0, "momentum": momentum, "weight_decay": weight_decay, "factor": 1.0})

    @torch.no_grad()
    def step(self, closure=None):
        """One update from the gradients. closure : must be None."""
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


def computes_bfloat16(device: str) -> bool:
    """Does the device multiply in bfloat16? If it only emulates bfloat16, fp32 is faster."""
    if device == "cuda":
        return torch.cuda.is_bf16_supported(including_emulation=False)
    if not hasattr(torch.cpu, "get_capabilities"):  # an older PyTorch does not say
        return False
    return any(torch.cpu.get_capabilities().get(name) for name in ("avx512_bf16", "amx_bf16", "bf16"))  # x86, x86, ARM


def device_name(device: str) -> str:
    """The device in words, for the card."""
    return torch.cuda.get_device_name() if device == "cuda" else f"cpu, {torch.get_num_threads()} thread(s)"


def peak_memory_mb() -> int:
    """The peak memory (MB) of the process; on a GPU that of its tensors."""
    if torch.cuda.is_available():
        return torch.cuda.max_memory_allocated() // 2**20
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
