"""The matrices of a module, their places in it, how heads divide what they make, and the widths that it may read.
Letters as in forms; w: the common width of projected queries and keys."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import permutations, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.parameter import UninitializedParameter

from attnviz.attention import rotated

_EQUAL = 1e-5  # relative, in double precision
_BASES = (1e4, 5e5, 1e6)  # of rotary positions
_MOST = 10  # widths that are tried
BIAS = re.compile(r"bias|(^|[._])b[a-z0-9_]{0,3}$")
_ROOTS = re.compile("scal|sqrt|root|temp|norm|factor|inv")  # attributes that hold the root of a width


@dataclass(frozen=True)
class Place:
    """The place of a matrix in a module: a parameter, transposed or not, and which of `count` equal parts of its rows,
    or of the rows of each of several `heads`. `*` in the name of the parameter: of every head, whose matrices are
    joined. order : of the axes of a parameter with three, (H, w, D)."""

    parameter: str
    turned: bool = False
    part: int = 0
    count: int = 1
    heads: int = 1
    order: tuple[int, ...] = ()

    def matrix(self, module: nn.Module) -> Tensor:
        """The matrix (w, D) or vector (w), to be read; to be written with `write`."""
        weight = torch.cat(self._held(module)) if "*" in self.parameter else self._held(module)[0]
        if self.order:
            weight = weight.permute(self.order).flatten(0, 1)
        weight = weight.squeeze() if weight.ndim > 2 else weight
        weight = weight.T if self.turned else weight
        return weight[rows_of(weight, self.heads, self.count, self.part)] if self.heads > 1 else self._of_part(weight)

    def write(self, module: nn.Module, matrix: Tensor) -> None:
        """Put a matrix (w, D) or vector (w) there."""
        held = self._held(module)
        if "*" in self.parameter:
            for weight, part in zip(held, matrix.chunk(len(held)), strict=True):
                weight.copy_(part)
        elif self.order:
            weight = held[0].permute(self.order).chunk(self.count)[self.part]
            weight.copy_((matrix.T if self.turned else matrix).view_as(weight))
        else:
            weight = held[0].squeeze() if held[0].ndim > 2 else held[0]
            weight = weight.T if self.turned else weight
            if self.heads > 1:
                weight[rows_of(weight, self.heads, self.count, self.part)] = matrix
            else:
                self._of_part(weight).copy_(matrix)

    def _of_part(self, weight: Tensor) -> Tensor:
        return weight.chunk(self.count)[self.part]

    def _held(self, module: nn.Module) -> list[Tensor]:
        """The parameters: one, or that of every head."""
        names = re.escape(self.parameter).replace(r"\*", r"\d+")
        return [p.detach() for name, p in module.named_parameters() if re.fullmatch(names, name)]


def rows_of(weight: Tensor, heads: int, count: int, part: int) -> Tensor:
    """Which rows are the part of each head, where each head has all its parts before the next head."""
    return torch.arange(len(weight)).view(heads, count, -1)[:, part].flatten()


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

    @property
    def and_bias(self) -> str:
        """For behind its name: has it a bias that is not 0?"""
        return " and its bias" if self.bias is not None and bool(self.bias.any()) else ""


def reading(matrices: list[Matrix], width: int) -> list[Matrix]:
    """The matrices that map vectors of a width, and 1."""
    return [*(m for m in matrices if m.weight.shape[1] == width), Matrix("1", torch.eye(width).double())]


def matrices_of(module: nn.Module, heads: int = 1) -> Iterator[Matrix]:
    """The matrices of a module, also transposed, and the parts of a joint projection of queries, keys and values; with
    several heads, where keys may be narrower than queries."""
    yield from _of_heads(module, heads)
    for name, parameter in module.named_parameters():
        weight = parameter.detach().squeeze() if parameter.ndim > 2 else parameter.detach()
        if parameter.ndim == 3 and len(parameter) in (2, 3):  # matrices that lie one behind the other
            yield from _layers_of(module, name, parameter.detach())
        if weight.ndim != 2:
            continue
        own = [*_with_biases(module, f"`{name}`", Place(name))]
        yield from own
        bias = own[0].bias
        if heads > 1 and weight.shape[0] == weight.shape[1]:
            repeated = torch.block_diag(*[weight] * heads)
            yield Matrix(f"`{name}` in every head", repeated, None if bias is None else bias.repeat(heads))
        turned = [*_with_biases(module, f"`{name}`ᵀ", Place(name, True))]
        yield from turned
        yield from _parts(own[0], heads)
        if not name.endswith("weight"):
            yield from _parts(turned[0], heads)


def _with_biases(module: nn.Module, words: str, place: Place) -> Iterator[Matrix]:
    """The matrix at a place with the bias that has its name, as `weight` and `bias`, or `W_q` and `b_q`. Of names such
    as these without it too. In a bias of several axes those of heads come first."""
    weight, named = place.matrix(module), dict(module.named_parameters())
    own, of_layer = place.parameter.removesuffix("weight") + "bias", place.parameter.endswith("weight")
    exact = of_layer and own in named
    if not exact:
        own = next((n for n in named if BIAS.search(n.lower()) and _stem(n) == _stem(place.parameter)), "")
    bias = named[own].detach().flatten() if own and not (place.turned and exact) else None
    fits = bias is not None and len(bias) == len(weight) * place.count
    if bias is not None and fits:
        bias, its_place = bias.chunk(place.count)[place.part], Place(own, False, place.part, place.count)
        yield Matrix(words, weight, bias, place, its_place)
    if not fits or not exact:
        yield Matrix(words, weight, place=place)


def _stem(name: str) -> str:
    """`q` of `W_q`, `bq`, `q_weight` and `q.bias`."""
    return re.sub(r"weights?|kernel|bias|matrix|(?<![a-z])[wb](?=_|$|[a-z0-9]{1,2}$)|(?<=_)[wb]$|_", "", name.lower())


def _layers_of(module: nn.Module, name: str, parameter: Tensor) -> Iterator[Matrix]:
    """The matrices in a parameter (n, a, b), also transposed."""
    for part, (order, mark) in product(range(len(parameter)), (((0, 1, 2), ""), ((0, 2, 1), "ᵀ"))):
        words = f"{('half', 'third')[len(parameter) - 2]} {part + 1} of `{name}`{mark}"
        yield from _with_biases(module, words, Place(name, False, part, len(parameter), order=order))


def _of_heads(module: nn.Module, heads: int) -> Iterator[Matrix]:
    """Matrices of heads that are separate modules, such as `heads.0.key.weight`, or lie in a parameter of three axes:
    joined into one, with their biases."""
    groups: dict[str, list[torch.Size]] = {}
    for name, parameter in module.named_parameters():
        groups.setdefault(re.sub(r"\.\d+\.", ".*.", name), []).append(parameter.shape)
        for first in (axis for axis in range(3) if parameter.ndim == 3 and parameter.shape[axis] == heads > 1):
            for order in ((first, *others) for others in permutations({0, 1, 2} - {first})):
                for place, mark in ((Place(name, order=order), ""), (Place(name, True, order=order), "ᵀ")):
                    yield from _with_biases(module, f"`{name}`{mark} of each head", place)
                blocks = torch.block_diag(*parameter.detach().permute(order))
                yield Matrix(f"`{name}` of each head for its part", blocks)
    for name, shapes in groups.items():
        if "*" in name and len(shapes) > 1 and len(shapes[0]) == 2 and len({*shapes}) == 1:
            own = Place(name.removesuffix("weight") + "bias")
            bias = own if name.endswith("weight") and len(groups.get(own.parameter, ())) == len(shapes) else None
            its_bias = None if bias is None else bias.matrix(module)
            yield Matrix(f"`{name}`", Place(name).matrix(module), its_bias, Place(name), bias)


def _parts(matrix: Matrix, heads: int) -> Iterator[Matrix]:
    """The parts of a joint projection of keys and values, or of queries too. With several heads, keys and values may be
    narrower than queries; such a part has no place, because other sizes divide the rows otherwise."""
    weight, bias, whole = matrix.weight, matrix.bias, matrix.place or Place("")
    name, turned, of_bias = whole.parameter, whole.turned, (matrix.of_bias or whole).parameter
    rows, width = weight.shape
    count, rest = divmod(rows, width)
    exact = [count] if not rest and count in (2, 3) else []
    for equal in exact or ([n for n in dict.fromkeys((2, 3, heads)) if rows % n == 0] if heads > 1 else []):
        part_of = {2: "half {}", 3: "third {}"}.get(equal, f"part {{}} of {equal}")
        for index, part in enumerate(weight.chunk(equal)[: equal if equal < 4 else 1]):  # or of the first head alone
            words = f"{part_of.format(index + 1)} of `{name}`{'ᵀ' * turned}"
            its_bias = None if bias is None else bias.chunk(equal)[index]
            place = None if bias is None else Place(of_bias, False, index, equal)
            yield Matrix(words, part, its_bias, Place(name, turned, index, equal), place)
        if (
            heads > 1 and equal < 4 and rows % (heads * equal) == 0
        ):  # of each head the queries, then its keys, then its values
            for index in range(equal):
                words = f"{part_of.format(index + 1)} of each head in `{name}`{'ᵀ' * turned}"
                rows_in, place = rows_of(weight, heads, equal, index), Place(name, turned, index, equal, heads)
                where = None if bias is None else Place(of_bias, False, index, equal, heads)
                yield Matrix(words, weight[rows_in], None if bias is None else bias[rows_in], place, where)
    if heads > 1 and rows > width and (rows - width) % 2 == 0 and exact != [3]:
        narrow = (rows - width) // 2
        for first, last in ((0, width), (width, width + narrow), (width + narrow, rows)):
            words = f"rows {first + 1} to {last} of `{name}`{'ᵀ' * turned}"
            yield Matrix(words, weight[first:last], None if bias is None else bias[first:last])


@dataclass(frozen=True)
class Groups:
    """Heads that share keys and values: each of `count` key heads serves as many query heads, which are neighbours, or
    `apart`."""

    heads: int
    count: int
    apart: bool = False

    @property
    def name(self) -> str:
        """Of this attention, as `formula.NAMES` has it."""
        if self.count == self.heads:
            return "multi-head"
        return "multi-query" if self.count == 1 else "grouped-query"

    @property
    def words(self) -> str:
        """Name and numbers."""
        if self.count == self.heads:
            return f"multi-head, {'one head' if self.heads == 1 else f'{self.heads} heads'}"
        ending = {2: "nd", 3: "rd"}.get(self.count, "th")
        shared = f"{self.count} key heads" if self.count > 1 else "one key head"
        order = f", shared by every {self.count}{ending} head in place of neighbours" if self.apart else ""
        return f"{self.name}, {self.heads} heads with {shared}{order}"

    def query(self, x: Tensor) -> Tensor:
        """(B, T, w) -> (B, H, T, w/H)."""
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def key(self, x: Tensor) -> Tensor:
        """(B, S, w) -> (B, H, S, w/count), repeated for all heads; also for values."""
        x, times = x.unflatten(-1, (self.count, -1)).transpose(1, 2), self.heads // self.count
        return x.repeat(1, times, 1, 1) if self.apart else x.repeat_interleave(times, dim=1)


def groups_of(heads: int, query: int, keys: int) -> Iterator[Groups]:
    """The ways in which heads may share keys. query, keys : widths of what their matrices make, for all heads."""
    count, rest = divmod(keys * heads, query)
    if not rest and not query % heads and 0 < count <= heads and not heads % count:
        yield Groups(heads, count)
        if 1 < count < heads:
            yield Groups(heads, count, apart=True)


def ways_of(module: nn.Module | None, biased: bool) -> list[tuple[str, Callable, Callable]]:
    """How queries and keys of heads may be changed before their product, in words and as functions. biased : in no way
    that positions change."""
    ways: list[tuple[str, Callable, Callable]] = [("", lambda x: x, lambda x: x)]
    norms = [(name, partial(_normed, norm, width)) for name, norm, width in norms_of(module)]
    for (first, of_q), (second, of_k) in product(norms, repeat=2):
        ways.append((f"queries of heads after `{first}`, keys after `{second}`", of_q, of_k))
    for base, pairs in product(_BASES, (False, True)) if not biased else ():
        turn = partial(rotary, base=base, pairs=pairs)
        ways.append((f"rotary positions, base {base:g}", turn, turn))
    unit = partial(F.normalize, dim=-1)
    scaled_keys = ("keys divided by their length", lambda x: x, unit)
    return ways if biased else [*ways, ("cosine", unit, unit), scaled_keys]


def _normed(norm: Callable, width: int, x: Tensor) -> Tensor:
    """x (B, H, T, d) after a norm of each head, or of all heads together."""
    if x.shape[-1] == width:
        return norm(x)
    whole = x.transpose(1, 2)
    return norm(whole.flatten(2)).view_as(whole).transpose(1, 2) if whole.shape[2:].numel() == width else x


def rotary(x: Tensor, base: float, pairs: bool) -> Tensor:
    """Rotary positions of x (..., T, d), as of `rotated`. pairs : neighbours are a pair, as in the paper; else a
    number of each half."""
    if x.shape[-1] % 2:
        return x
    return rotated(x.unflatten(-1, (-1, 2)).mT.flatten(-2) if pairs else x, base=base)


def entmax(scores: Tensor, alpha: float) -> Tensor:
    """Peters et al. 2019, eq. 10: ((alpha - 1) scores - t)^(1 / (alpha - 1)) where that is above 0; t is found by
    halving. alpha = 2 is sparsemax (Martins & Astudillo 2016, eq. 3)."""
    scores, power = (alpha - 1) * scores, 1 / (alpha - 1)
    high = scores.amax(dim=-1, keepdim=True)
    low = high - 1
    for _ in range(60):
        middle = (low + high) / 2
        above = ((scores - middle).clamp_min(0) ** power).sum(dim=-1, keepdim=True) >= 1
        low, high = torch.where(above, middle, low), torch.where(above, high, middle)
    return (scores - low).clamp_min(0) ** power


def norms_of(module: nn.Module | None) -> Iterator[tuple[str, nn.Module, int]]:
    """The norms of vectors within a module, such as LayerNorm and RMSNorm, with their names and widths. That of a batch
    or of groups reads other axes too."""
    for name, part in module.named_modules() if module is not None else ():
        sizes = {tuple(p.shape) for p in part.parameters()} or {tuple(getattr(part, "normalized_shape", ()))}
        width = max(sizes)[0] if len(sizes) == 1 and len(max(sizes)) == 1 else 0
        if width > 1 and name and re.search("^(?!.*(batch|group|instance)).*norm", type(part).__name__, re.I):
            yield name, part, width


def vectors_of(module, heads: int = 1) -> list[tuple[str, Tensor]]:
    """The parameters with one axis that is longer than 1, or beside it that of heads, by name."""
    named = [(n, p.detach()) for n, p in module.named_parameters() if p.ndim] if module else []
    alone = [(n, p.flatten()) for n, p in named if p.numel() == max(p.shape)]
    several = [(n, p) for n, p in named if heads > 1 and p.numel() != max(p.shape)]
    return alone + [(n, p.flatten()) for n, p in several if p.numel() == heads * p.shape[-1]]


def as_long(vectors: list, width: int, heads: int, halves: bool) -> list[tuple[str, Tensor]]:
    """Vectors of a width, and one for every head; and with halves, two such vectors as the halves of each head's."""
    free = [(f"`{n}`", v) for n, v in vectors if 1 < len(v) == width]
    if halves:
        free += [(f"`{n}`", v.repeat(heads)) for n, v in vectors if heads > 1 and 1 < len(v) == width // heads]
        parts = [(n, v.unflatten(0, (heads, -1))) for n, v in vectors if 2 < 2 * len(v) == width]
        pairs = permutations(parts, 2)
        free += [(f"[`{m}`; `{n}`]", torch.cat([v, w], dim=1).flatten()) for (m, v), (n, w) in pairs]
    return free


def tell_apart(module: nn.Module) -> None:
    """Change distinct matrices and norms with equal values, such as copied layers, so that they differ."""
    generator, seen = torch.Generator().manual_seed(3), []
    norms = [p for _, norm, _ in norms_of(module) for p in [*norm.parameters()][:1]]
    for parameter in [*(p for p in module.parameters() if p.ndim > 1), *norms]:
        if any(torch.equal(parameter, other) for other in seen if other.shape == parameter.shape):
            noise = torch.randn(parameter.shape, generator=generator, dtype=parameter.dtype)
            parameter.data.add_(noise * (parameter.std() or 0.1))
        seen.append(parameter)


def reads_several(module: nn.Module | None) -> str:
    """Why a key and its value may depend on others: a layer reads several tokens at once, as an RNN or a convolution
    does; "" if there is none. A convolution of one or two channels reads weights."""
    for name, part in module.named_modules() if module is not None else ():
        wide = isinstance(part, nn.Conv1d | nn.Conv2d) and part.in_channels > 2 and max(part.kernel_size) > 1
        if wide or isinstance(part, nn.RNNBase):
            return f"`{name}` reads several tokens at once, so a key and its value change with the others"
    return ""


def unregistered(module: nn.Module) -> list[tuple[str, nn.Module | Tensor]]:
    """Layers and parameters in a plain list, tuple or dict, which PyTorch does not register: (attribute, layer or
    parameter)."""
    parts: list[tuple[str, nn.Module | Tensor]] = []
    for name, value in ((name, value) for part in module.modules() for name, value in vars(part).items()):
        held = list(value.values()) if isinstance(value, dict) else value
        if not name.startswith("_") and isinstance(held, list | tuple):
            parts += [(name, part) for part in held if isinstance(part, nn.Module | nn.Parameter)]
    return parts


def is_lazy(target: Callable) -> bool:
    """Has it layers that get their width from the first call?"""
    return isinstance(target, nn.Module) and any(isinstance(p, UninitializedParameter) for p in target.parameters())


def widths(target: Callable) -> list[int]:
    """Possible input widths of a module, from its parameters and its integer attributes."""
    if not isinstance(target, nn.Module):
        return []
    of_layers: list[Any] = [part.in_features for part in target.modules() if hasattr(part, "in_features")]
    shapes: list[int] = [n for p in target.parameters() if not isinstance(p, UninitializedParameter) for n in p.shape]
    for _, part in unregistered(target):
        shapes += [n for p in (part.parameters() if isinstance(part, nn.Module) else [part]) for n in p.shape]
    whole = [n for part in target.modules() for n in vars(part).values() if type(n) is int and 4 < n <= 4096]
    sizes = list(dict.fromkeys(n for n in (*of_layers, *shapes) if n > 1))
    whole += _under_roots(target)
    differences = [a - b for a in sizes for b in (*sizes, *whole) if a > b]  # of a matrix that reads two things, joined
    halves = [n // 2 for n in sizes if n % 2 == 0]
    heads = [n for part in target.modules() for name, n in vars(part).items() if "head" in name and type(n) is int]
    joined = [n * count for count in heads for n in sizes if 1 < count < 65]  # of matrices that each head has
    joined += [len(p) * p.shape[2] for p in target.parameters() if p.ndim == 3]
    return [n for n in dict.fromkeys((*sizes, *halves, *joined[:2], *whole, *differences)) if n > 1][:_MOST]


def _under_roots(module: nn.Module) -> list[int]:
    """The widths of which a module keeps the root or its inverse, as `self.scale = d_model ** 0.5` does."""
    parts = [part for part in module.modules() if not type(part).__module__.startswith("torch.nn")]
    attributes = [pair for part in parts for pair in (*vars(part).items(), *part.named_buffers(recurse=False))]
    numbers = [(name, x) for name, x in attributes if isinstance(x, float | Tensor) and torch.as_tensor(x).numel() == 1]
    roots = [float(value) for name, value in numbers if _ROOTS.search(name.lower())]
    squares = [root**power for root in roots if root > 0 for power in (2, -2)]
    return [round(square) for square in squares if 4 < square <= 4096 and abs(square - round(square)) < 1e-3]
