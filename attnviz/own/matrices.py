"""The matrices of a module, and their places in it. Letters as in forms; w: the common width of projected queries and
keys."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Place:
    """The place of a matrix in a module: a parameter, transposed or not, and which of `count` equal parts of its
    rows."""

    parameter: str
    turned: bool = False
    part: int = 0
    count: int = 1

    def of(self, module: nn.Module) -> Tensor:
        """The matrix (w, D) or vector (w): a view, to be read and written."""
        weight = module.get_parameter(self.parameter).detach()
        weight = weight.squeeze() if weight.ndim > 2 else weight
        return (weight.T if self.turned else weight).chunk(self.count)[self.part]


@dataclass(frozen=True)
class Matrix:
    """A map of vectors (..., D) to (..., w), from parameters of the module. weight (w, D), bias (w) or None.
    place, of_bias : where they lie."""

    words: str
    weight: Tensor
    bias: Tensor | None = None
    place: Place | None = None
    of_bias: Place | None = None

    def places(self, letter: str) -> dict[str, Place]:
        """Where the matrix `letter` and its bias lie."""
        both = {letter: self.place, f"{letter} bias": self.of_bias}
        return {name: place for name, place in both.items() if place is not None}

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


def matrices_of(module: nn.Module) -> Iterator[Matrix]:
    """The matrices of a module, also transposed, and the thirds of a joint projection of queries, keys and values."""
    biases = dict(module.named_parameters())
    yield from _of_heads(module)
    for name, parameter in module.named_parameters():
        weight = parameter.detach().squeeze() if parameter.ndim > 2 else parameter.detach()
        if weight.ndim != 2:
            continue
        of_bias = name.removesuffix("weight") + "bias" if name.endswith("weight") else ""
        bias = biases.get(of_bias)
        bias = None if bias is None or len(bias) != len(weight) else bias.detach()
        place = Place(of_bias) if bias is not None else None
        yield Matrix(f"`{name}`", weight, bias, Place(name), place)
        yield Matrix(f"`{name}`ᵀ", weight.T, place=Place(name, True))
        yield from _parts(name, weight, bias, False)
        if not name.endswith("weight"):
            yield from _parts(name, weight.T, None, True)


def _of_heads(module: nn.Module) -> Iterator[Matrix]:
    """Matrices of heads that are separate modules, such as `heads.0.key.weight`, joined into one."""
    groups: dict[str, list[Tensor]] = {}
    for name, parameter in module.named_parameters():
        if parameter.ndim == 2 and re.search(r"\.\d+\.", name):
            groups.setdefault(re.sub(r"\.\d+\.", ".*.", name), []).append(parameter.detach())
    for name, heads in groups.items():
        if len(heads) > 1 and len({weight.shape for weight in heads}) == 1:
            yield Matrix(f"`{name}`", torch.cat(heads))


def _parts(name: str, weight: Tensor, bias: Tensor | None, turned: bool) -> Iterator[Matrix]:
    """The parts of a joint projection of keys and values, or of queries too."""
    count, rest = divmod(len(weight), weight.shape[1])
    if rest or count not in (2, 3):
        return
    of_bias = name.removesuffix("weight") + "bias"
    for index, part in enumerate(weight.chunk(count)):
        words = f"{('half', 'third')[count - 2]} {index + 1} of `{name}`{'ᵀ' * turned}"
        its_bias = None if bias is None else bias.chunk(count)[index]
        place = None if bias is None else Place(of_bias, False, index, count)
        yield Matrix(words, part, its_bias, Place(name, turned, index, count), place)


def tell_apart(module: nn.Module) -> None:
    """Change distinct matrices with equal values, such as copied layers, so that they differ."""
    generator, seen = torch.Generator().manual_seed(3), []
    for parameter in (p for p in module.parameters() if p.ndim > 1):
        if any(torch.equal(parameter, other) for other in seen if other.shape == parameter.shape):
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.data.add_(noise * parameter.std())
        seen.append(parameter)
