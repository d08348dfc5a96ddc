"""Layers that cost less on a CPU: dropout from few random bits, and matrix products by oneDNN for batches.

Drawing random bits is most of the cost of `nn.Dropout`. torch multiplies fp32 matrices by MKL, which does not use the
widest registers of non-Intel processors. On one core of an AMD EPYC with AVX-512, measured: MKL 90 GFLOP/s; oneDNN,
which torch includes too, 210. The results differ by rounding, so code that must be reproducible bit for bit does not
use it.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

ROWS = 64  # fewer are sooner done the usual way


def share(p: float, name: str = "dropout") -> float:
    """Return p. ValueError, with `name` in its message, unless 0 <= p < 1."""
    if not 0 <= p < 1:
        raise ValueError(f"{name} must be at least 0 and below 1; got {p}")
    return p


class Dropout(nn.Module):
    """Zero each number with probability p, rounded to a 256th, and scale the others so that the mean stays (Srivastava
    et al. 2014).

    One 64-bit draw decides eight numbers. Measured on one core, bfloat16: a fifth of the time of `nn.Dropout`, and a
    quarter less for a whole training step of the Transformer. ValueError unless 0 <= p < 1.
    """

    def __init__(self, p: float = 0.0):
        super().__init__()
        self.dropped = min(round(share(p) * 256), 255)  # of the 256 values of a byte

    def __call__(self, x: Tensor) -> Tensor:
        """In evaluation mode return x at once. A step of a Transformer has twenty dropouts, and even an empty torch
        module call takes time."""
        return super().__call__(x) if self.training else x

    def forward(self, x: Tensor) -> Tensor:
        """x (...) -> (...); x itself in evaluation mode."""
        if not self.training or self.dropped == 0:
            return x
        words = torch.empty(-(-x.numel() // 8), dtype=torch.int64, device=x.device).random_(-(2**63), None)
        stays = words.view(torch.uint8)[: x.numel()].view(x.shape) >= self.dropped
        return x * stays.view(torch.uint8).to(x.dtype).mul_(256 / (256 - self.dropped))

    def extra_repr(self) -> str:
        return f"p={self.dropped}/256"


_quick: ContextVar[bool] = ContextVar("quick", default=False)


@contextmanager
def quick_products() -> Iterator[None]:
    """Within it (`with quick_products():`) the products of `Packed` use its copy. They differ by rounding."""
    before = _quick.set(True)
    try:
        yield
    finally:
        _quick.reset(before)


class Packed:
    """A matrix (V, D), and within `quick_products` copies of it for the product with the rows of a sentence, (.., D) ->
    (.., V), which then takes a third to two thirds of the time: one in the layout of oneDNN, and one transposed, which
    is the quickest for a single row.

    A copy is made when it is first wanted, and again when the matrix has changed. For gradients, and if torch has no
    oneDNN, the matrix itself is used. Copies of this object, in memory or in a file, begin without them.
    """

    def __init__(self):
        self._copies: dict[bool, Tensor] = {}  # is it for a single row?
        self._of = (0, 0)

    def __reduce__(self):
        return type(self), ()

    def product(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        """x (..., D), weight (V, D), bias (V,) -> as `F.linear`; within `quick_products` up to rounding."""
        is_quick = _quick.get() and _PACKS and x.dtype == torch.float32
        if not is_quick or torch.is_grad_enabled() or weight.is_inference():
            return F.linear(x, weight, bias)
        version, is_single = (weight.data_ptr(), weight._version), x.numel() == x.shape[-1]
        if version != self._of:
            self._copies, self._of = {}, version
        if is_single not in self._copies:
            pack = torch.ops.mkldnn._reorder_linear_weight
            self._copies[is_single] = weight.T.contiguous() if is_single else pack(weight, None)
        copy = self._copies[is_single]
        return F.linear(x, copy.T, bias) if is_single else _linear(x, copy, bias)


def found_at_once(network: nn.Module) -> None:
    """Put parts and parameters among the plain attributes of their modules too, where Python looks first.

    torch finds them in dictionaries of its own, by a method of Python that is called last; without that an edit costs
    4 % less. Copies, and assignments such as `network.cell = GRUCell(...)`, stay right. For a network that is not taken
    apart and whose numbers keep their device: `network.to(...)`, `network.cell = None`, `del`, `register_module` and
    `torch.func.functional_call` change the dictionaries only, so the old part stays in use.
    """
    for module in network.modules():
        vars(module).update(module._parameters | module._modules)


class Joined:
    """Linear maps of one input, stacked into one product. They are stacked again when one of them has changed, and at
    every call if torch cannot tell."""

    def __init__(self):
        self._joined = torch.empty(0), torch.empty(0)
        self._of: tuple = ()

    def weights(self, *maps: nn.Linear) -> tuple[Tensor, Tensor]:
        """Their weights (sum of outputs, D) and biases."""
        parts: list[list[Tensor]] = [[module.weight for module in maps], [module.bias for module in maps]]
        has_versions = not any(part.is_inference() for kind in parts for part in kind)
        version = tuple((part.data_ptr(), part._version) for kind in parts for part in kind) if has_versions else ()
        if version != self._of or not has_versions:
            self._joined, self._of = (torch.cat(parts[0]), torch.cat(parts[1])), version
        return self._joined


class OneDNN(TorchFunctionMode):
    """Within it (`with OneDNN():`) linear maps and GRU cells go through oneDNN, in this thread, where no gradient
    is wanted.

    This applies to many rows of fp32 on a CPU; all else, and everything if torch has no oneDNN, is computed as usual.
    Every torch call costs some microseconds more, so it pays for few large products and not for many small ones.
    """

    def __torch_function__(self, func, types, args=(), kwargs=None):
        if func is F.linear and not kwargs and _fits(*args[:2]):
            return _linear(*args)
        if func is torch.gru_cell and not kwargs and len(args) == 6 and _fits(args[0], args[2]):
            return _gru_cell(*args)
        return func(*args, **kwargs or {})


def columns(weight: Tensor, first: int, last: int | None, rows: int) -> Tensor:
    """Columns `first` to `last` of a matrix, for a product with this number of rows: copied for oneDNN, except for few
    rows, where the copy would take longer than the product."""
    part = weight[:, first:last]
    return part if rows < ROWS else part.contiguous()


def _linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")


def _gru_cell(x, state, weight, state_weight, bias, state_bias) -> Tensor:
    return gru_step(_linear(x, weight, bias), _linear(state, state_weight, state_bias), state)


def gru_step(read: Tensor, recalled: Tensor, state: Tensor) -> Tensor:
    """A step of torch's GRU, after its two products.

    read (B, 3W) : W_ih x + b_ih. recalled (B, 3W) : W_hh s + b_hh. state (B, W) : s, before -> the state after (B, W).
    """
    reset, update, new = read.chunk(3, dim=-1)
    of_reset, of_update, of_new = recalled.chunk(3, dim=-1)
    new = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
    return torch.lerp(new, state, torch.sigmoid(update + of_update))


def _fits(x: Tensor, weight: Tensor) -> bool:
    return (
        _AVAILABLE
        and x.dtype == weight.dtype == torch.float32
        and x.device.type == "cpu"
        and x.numel() >= ROWS * x.shape[-1]
        and weight.is_contiguous()  # a part of a matrix takes a hundred times as long
        and not torch.is_grad_enabled()
    )


_AVAILABLE = torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
_PACKS = _AVAILABLE and hasattr(torch.ops.mkldnn, "_reorder_linear_weight")
