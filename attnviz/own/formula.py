"""Which formula a module computes: its own parameters, put into each known formula, give the same weights.

A softmax keeps the scores up to a constant of a row. So the logarithms of weights, less their mean over the keys, are
compared with the scores of a formula, less theirs. Letters as in forms; w is the width in which query and key meet.
"""

import copy
import itertools
import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import dot_scores
from attnviz.own.forms import Inputs, Subject
from attnviz.own.report import FAULT, OK, UNTESTED, Line

NAMES = ("additive", "dot", "scaled-dot", "general", "concat", "multi-head")
_EQUAL = 1e-5  # relative, in double precision
_ACTIVATIONS = {"tanh": torch.tanh, "ReLU": F.relu, "sigmoid": torch.sigmoid, "no tanh": lambda x: x}


@dataclass(frozen=True)
class Formula:
    """What was recognised. names : of NAMES that it may be called; none for a near miss or an unknown formula. slip : a
    known formula with another root or without it, as by mistake."""

    words: str
    names: tuple[str, ...] = ()
    slip: bool = False


@dataclass(frozen=True)
class Matrix:
    """A map of vectors (..., D) to (..., w), from parameters of the module. weight (w, D), bias (w) or None."""

    words: str
    weight: Tensor
    bias: Tensor | None = None

    def __call__(self, x: Tensor) -> Tensor:
        return F.linear(x, self.weight, self.bias)


@dataclass(frozen=True)
class Seen:
    """One run in double precision: query (B, T, Dq), keys (B, S, Dk), weights and their centred logarithms
    (B, H, T, S)."""

    query: Tensor
    keys: Tensor
    weights: Tensor
    logs: Tensor

    def factor(self, scores: Tensor) -> float | None:
        """c with which c * scores gives these weights; None where no factor does. scores (B, H, T, S)."""
        if scores.shape != self.logs.shape:
            return None
        scores = scores - scores.mean(dim=-1, keepdim=True)
        size = float((scores * scores).sum())
        factor = float((scores * self.logs).sum()) / size if size > 1e-12 else 0.0
        fits = (self.logs - factor * scores).norm() <= _EQUAL * self.logs.norm()
        return factor if bool(fits) and factor else None

    def difference(self, scores: Tensor) -> str:
        """The largest difference of a weight, in words."""
        return f"largest difference {float((torch.softmax(scores, dim=-1) - self.weights).abs().max()):.0e}"


def scaling(formula: Formula) -> Line:
    """Are the scores scaled as in the formula that they are near to?"""
    test = "scores are scaled as in the formula"
    if formula.slip:
        return Line(test, FAULT, formula.words)
    return Line(test, OK if formula.names else UNTESTED, formula.words)


def line(formula: Formula, wanted: str) -> Line:
    """Is the formula the one that was wanted?"""
    return Line(f"the formula is {wanted}", OK if wanted in formula.names else FAULT, formula.words)


def recognised(subject: Subject) -> Formula:
    """The formula of a module."""
    seen, module = _look(subject)
    if not bool(seen.logs.isfinite().all()) or float(seen.logs.norm()) < 1e-9:
        return Formula("none of the known ones: some weights are 0 or all are the same, so no scores can be read off")
    matrices = list(_matrices(module)) if module else []
    for kind in (_dots, _projections, _hidden_layers):
        if (formula := kind(seen, matrices, module)) is not None:
            return formula
    return Formula(f"none of the known ones{_shape_of(subject)}")


def _look(subject: Subject) -> tuple[Seen, nn.Module | None]:
    """A run of the module in double precision. Of causal attention, the last query, which sees every key."""
    module = copy.deepcopy(subject.module).double() if subject.module else None
    own = Subject(module or subject.target, subject.form, subject.title)
    inputs = _double(own.inputs(1 if subject.form.alone else 3, 4, 6, seed=11), subject)
    weights = own.run(inputs).weights
    query = inputs.query
    if subject.form.causal:
        weights, query = weights[:, :, -1:], query[:, -1:]
    logs = weights.clamp_min(0).log()
    return Seen(query, inputs.keys, weights, logs - logs.mean(dim=-1, keepdim=True)), module


def _double(inputs: Inputs, subject: Subject) -> Inputs:
    keys = inputs.keys.double()
    query = keys if subject.form.itself else inputs.query.double()
    return replace(inputs, query=query, keys=keys, values=inputs.values.double() if subject.form.separate else keys)


def _matrices(module: nn.Module) -> Iterator[Matrix]:
    """The matrices of a module, also transposed, and the thirds of one that makes queries, keys and values at once."""
    biases = dict(module.named_parameters())
    for name, parameter in module.named_parameters():
        weight = parameter.detach().squeeze() if parameter.ndim > 2 else parameter.detach()
        if weight.ndim != 2:
            continue
        bias = biases.get(name.removesuffix("weight") + "bias") if name.endswith("weight") else None
        bias = None if bias is None or len(bias) != len(weight) else bias.detach()
        yield Matrix(f"`{name}`", weight, bias)
        yield Matrix(f"`{name}`ᵀ", weight.T)
        yield from _parts(name, weight, bias)
        if not name.endswith("weight"):
            yield from _parts(f"{name}ᵀ", weight.T, None)


def _parts(name: str, weight: Tensor, bias: Tensor | None) -> Iterator[Matrix]:
    if len(weight) == 3 * weight.shape[1]:
        biases = (None,) * 3 if bias is None else bias.chunk(3)
        for index, (part, its_bias) in enumerate(zip(weight.chunk(3), biases)):
            yield Matrix(f"third {index + 1} of `{name}`", part, its_bias)


def _dots(seen: Seen, matrices: list, module) -> Formula | None:
    """q . k, its multiples, and the cosine."""
    width = seen.query.shape[-1]
    if width != seen.keys.shape[-1]:
        return None
    scores = dot_scores(seen.query, seen.keys).unsqueeze(1)
    factor = seen.factor(scores)
    if factor is not None:
        if _is(factor, 1):
            return Formula(f"dot: q · k; {seen.difference(scores)}", ("dot",))
        if _is(factor, width**-0.5):
            return Formula(f"scaled dot: q · k / √d; {seen.difference(scores * factor)}", ("scaled-dot",))
        times = _times(factor, width)
        return Formula(f"dot products {times}: near scaled dot", slip="not" in times)
    cosine = dot_scores(F.normalize(seen.query, dim=-1), F.normalize(seen.keys, dim=-1)).unsqueeze(1)
    factor = seen.factor(cosine)
    return None if factor is None else Formula(f"none of the known ones: the cosine of q and k, times {factor:.3g}")


def _is(a: float, b: float) -> bool:
    return math.isclose(a, b, rel_tol=1e-4)


def _times(factor: float, width: int, whole: int = 0) -> str:
    """A factor in words. width : d, of a head where there are heads. whole : of all heads together."""
    if _is(factor, 1 / width):
        return "divided by d, not by its root"
    if _is(factor, width**0.5):
        return "multiplied by √d, not divided by it"
    if _is(factor, 1):
        return "not divided by √d"
    if whole and _is(factor, whole**-0.5):
        return "divided by the root of the whole width, not of a head's"
    return f"times {factor:.3g}"


def _projections(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """Bilinear scores: general, where one matrix stands between q and k; multi-head, where both are projected."""
    query_width, key_width = seen.query.shape[-1], seen.keys.shape[-1]
    of_query = [m for m in matrices if m.weight.shape[1] == query_width]
    of_keys = [m for m in matrices if m.weight.shape[1] == key_width]
    for matrix in of_keys:
        if len(matrix.weight) == query_width and seen.logs.shape[1] == 1:
            scores = dot_scores(seen.query, matrix(seen.keys)).unsqueeze(1)
            if (factor := seen.factor(scores)) is not None:
                return _general(seen, scores, factor, matrix.words)
    for matrix in of_query:
        if len(matrix.weight) == key_width and seen.logs.shape[1] == 1:
            scores = dot_scores(matrix(seen.query), seen.keys).unsqueeze(1)
            if (factor := seen.factor(scores)) is not None:
                words = matrix.words.removesuffix("ᵀ") if matrix.words.endswith("ᵀ") else f"{matrix.words}ᵀ"
                return _general(seen, scores, factor, f"{words}{_with_bias(matrix)}")
    for first, second in itertools.product(of_query, of_keys):
        if len(first.weight) != len(second.weight) or len(first.weight) % seen.logs.shape[1]:
            continue
        scores = dot_scores(_heads(first(seen.query), seen), _heads(second(seen.keys), seen))
        if (factor := seen.factor(scores)) is not None:
            return _multi_head(seen, scores, factor, first, second)
    return None


def _with_bias(matrix: Matrix) -> str:
    return " and its bias" if matrix.bias is not None and bool(matrix.bias.any()) else ""


def _general(seen: Seen, scores: Tensor, factor: float, words: str) -> Formula:
    if _is(factor, 1):
        return Formula(f"Luong general: q · W k with W = {words}; {seen.difference(scores)}", ("general",))
    times = _times(factor, seen.query.shape[-1]).replace("divided by d, not by its root", "divided by d")
    if _is(factor, seen.query.shape[-1] ** -0.5):
        times = "divided by √d, which the paper does not do"
    return Formula(f"near Luong general: q · W k with W = {words}, {times}")


def _heads(x: Tensor, seen: Seen) -> Tensor:
    """(B, T, w) -> (B, H, T, w/H)."""
    return x.unflatten(-1, (seen.logs.shape[1], -1)).transpose(1, 2)


def _multi_head(seen: Seen, scores: Tensor, factor: float, query: Matrix, keys: Matrix) -> Formula:
    heads, whole = seen.logs.shape[1], len(query.weight)
    number = "one head" if heads == 1 else f"{heads} heads"
    words = f"queries by {query.words}{_with_bias(query)}, keys by {keys.words}"
    if _is(factor, (whole // heads) ** -0.5):
        names = ("multi-head", "scaled-dot") if heads == 1 else ("multi-head",)
        return Formula(f"multi-head, {number}: {words}; {seen.difference(scores * factor)}", names)
    times = _times(factor, whole // heads, whole)
    slip = "not by its root" in times or "not of a head" in times or "not divided by it" in times
    return Formula(f"near multi-head, {number}: {words}, but the products are {times}", slip=slip)


def _hidden_layers(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """v . tanh(W q + U k) and v . tanh(W [q; k]), with biases, and with another function in place of tanh."""
    if module is None or seen.logs.shape[1] != 1:
        return None
    vectors = [(f"`{n}`", p.detach().flatten()) for n, p in module.named_parameters() if p.numel() == max(p.shape)]
    for (names, words, query, keys), (label, function) in itertools.product(
        _layers(seen, matrices), _ACTIVATIONS.items()
    ):
        width = query.shape[-1]
        free = [(name, vector) for name, vector in vectors if len(vector) == width]
        for extra in (None, *(vector for _, vector in free)):
            hidden = query.unsqueeze(2) + keys.unsqueeze(1)
            hidden = function(hidden if extra is None else hidden + extra)
            for name, vector in (*free, ("1", query.new_ones(width))):
                scores = (hidden @ vector).unsqueeze(1)
                if (factor := seen.factor(scores)) is not None:
                    return _additive(seen, scores, factor, names, f"{words}, v = {name}", label)
    return None


def _layers(seen: Seen, matrices: list[Matrix]) -> Iterator[tuple[tuple[str, ...], str, Tensor, Tensor]]:
    """Ways to make a hidden layer of query and keys: names of the formula, words, both parts (B, T, w), (B, S, w)."""
    query_width, key_width = seen.query.shape[-1], seen.keys.shape[-1]
    for matrix in matrices:
        if matrix.weight.shape[1] != query_width + key_width:
            continue
        for order, at in (("[q; k]", query_width), ("[k; q]", key_width)):
            left, right = matrix.weight[:, :at], matrix.weight[:, at:]
            of_query, of_keys = (left, right) if order == "[q; k]" else (right, left)
            keys = F.linear(seen.keys, of_keys, matrix.bias)
            words = f"W {order} with W = {matrix.words}{_with_bias(matrix)}"
            yield ("concat", "additive"), words, F.linear(seen.query, of_query), keys
    for first, second in itertools.product(matrices, matrices):
        fits = first.weight.shape[1] == query_width and second.weight.shape[1] == key_width
        if fits and len(first.weight) == len(second.weight):
            words = f"W q + U k with W = {first.words}{_with_bias(first)}, U = {second.words}{_with_bias(second)}"
            yield ("additive", "concat"), words, first(seen.query), second(seen.keys)


def _additive(seen: Seen, scores: Tensor, factor: float, names: tuple, words: str, function: str) -> Formula:
    name = "Luong concat" if names[0] == "concat" else "additive (Bahdanau)"
    if function == "tanh" and _is(factor, 1):
        return Formula(f"{name}: v · tanh({words}; {seen.difference(scores)}".replace(" with W", ") with W", 1), names)
    place = "without tanh" if function == "no tanh" else f"with {function} in place of tanh"
    times = "" if _is(factor, 1) else f", times {factor:.3g}"
    return Formula(f"near {name}: {words}{times}" + ("" if function == "tanh" else f", {place}"))


def _shape_of(subject: Subject) -> str:
    """How the score depends on query and key, where they are apart."""
    if subject.form.itself:
        return ""
    first = subject.inputs(1, 1, 2, seed=5)
    other = subject.inputs(1, 1, 2, seed=6)

    def score(query: Tensor, key: Tensor) -> float:
        """The score of a key less that of a key of zeros."""
        keys = torch.stack([key, torch.zeros_like(key)], dim=1)
        logs = subject.run(Inputs(query, keys, first.values if subject.form.separate else keys)).weights.log()
        return float((logs[..., 0] - logs[..., 1]).mean())

    q, r, k, m = first.query, other.query, first.keys[:, 0], other.keys[:, 0]
    scale = max(abs(score(q, k)), abs(score(r, m)), 1e-3)
    in_query = abs(score(q + r, k) + score(q * 0, k) - score(q, k) - score(r, k)) < 1e-3 * scale
    in_keys = abs(score(q, k + m) - score(q, k) - score(q, m)) < 1e-3 * scale
    words = {
        (True, True): "linear in the query and in the keys",
        (True, False): "linear in the query and not in the keys",
    }
    words |= {
        (False, True): "linear in the keys and not in the query",
        (False, False): "linear in neither query nor keys",
    }
    return f"; it is {words[in_query, in_keys]}"
