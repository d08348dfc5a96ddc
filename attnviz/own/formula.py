"""Which formula a module computes: its own parameters, put into each known formula, give the same weights.

A softmax determines the scores up to a constant per row. So the logarithms of weights minus their mean over the keys
are compared with the scores of a formula minus their mean. Letters as in forms; w is the width in which query and key
meet.
"""

import copy
import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import dot_scores
from attnviz.own.forms import Inputs, Subject
from attnviz.own.matrices import Matrix, Place, matrices_of, tell_apart
from attnviz.own.report import FAULT, OK, UNTESTED, Line
from attnviz.own.source import in_words
from attnviz.python_file import ANYTHING

NAMES = ("additive", "dot", "scaled-dot", "general", "concat", "multi-head")
_EQUAL = 1e-5  # relative, in double precision
_ACTIVATIONS: dict[str, Any] = {"tanh": torch.tanh, "ReLU": F.relu, "sigmoid": torch.sigmoid, "no tanh": lambda x: x}


@dataclass(frozen=True)
class Formula:
    """What was recognised. names : its possible names, of NAMES; () for a near miss or an unknown formula. slip : a
    known formula with a wrong or missing root. places : of the formula's matrices and their biases in the module, by
    the letters of `attention`; `[q; k]` or `[k; q]` for W and U in one; `h bias` of a hidden layer."""

    words: str
    names: tuple[str, ...] = ()
    slip: bool = False
    places: Mapping[str, Place] = field(default_factory=dict)


@dataclass(frozen=True)
class Seen:
    """One run in double precision: query (B, T, Dq), keys (B, S, Dk), weights and their centred logarithms
    (B, H, T, S), values (B, S, Dv), context (B, T, D) if returned. itself : is it self-attention?"""

    query: Tensor
    keys: Tensor
    weights: Tensor
    logs: Tensor
    values: Tensor
    context: Tensor | None
    itself: bool = False

    def factor(self, scores: Tensor) -> float | None:
        """The factor c for which c * scores gives these weights; None if there is none. scores (B, H, T, S)."""
        if scores.shape != self.logs.shape:
            return None
        scores = scores - scores.mean(dim=-1, keepdim=True)
        size = float((scores * scores).sum())
        factor = float((scores * self.logs).sum()) / size if size > 1e-12 else 0.0
        fits = (self.logs - factor * scores).norm() <= _EQUAL * self.logs.norm()
        return factor if bool(fits) and factor else None

    def difference(self, scores: Tensor) -> str:
        """The largest difference of a weight, in words; of its share of the row, where rows do not sum to 1."""
        shares = self.weights / self.weights.sum(dim=-1, keepdim=True)
        return f"largest difference {float((torch.softmax(scores, dim=-1) - shares).abs().max()):.0e}"


def scaling(formula: Formula, title: str = "") -> Line:
    """Are the scores scaled as in the nearest formula? title : of the module, which may contain `scaled`."""
    test = "scores are scaled as in the formula"
    if "scaled" in title.partition("(")[0].lower() and formula.names == ("dot",):
        return Line(test, FAULT, f"its name says scaled, and the products are not divided by √d: {formula.words}")
    if formula.slip:
        return Line(test, FAULT, formula.words)
    if formula.names:
        return Line(test, OK, formula.words)
    return Line(test, UNTESTED, f"which scale is right is known of the known formulas only. This is {formula.words}")


def line(formula: Formula, wanted: str) -> Line:
    """The test whether the formula is the intended one."""
    return Line(f"the formula is {wanted}", OK if wanted in formula.names else FAULT, formula.words)


def recognised(subject: Subject) -> Formula:
    """The formula of a module, as far as it can be recognised."""
    try:
        return _recognised(subject)
    except ANYTHING as error:  # a person's code may raise anything, in double precision too
        return Formula(f"not told: in double precision {in_words(error, 'it raises ')}")


def _recognised(subject: Subject) -> Formula:
    seen, module = _look(subject)
    if not bool(seen.logs.isfinite().all()) or float(seen.logs.norm()) < 1e-9:
        return Formula("none of the known ones: some weights are 0 or all are the same, so no scores can be read off")
    matrices = list(matrices_of(module)) if module else []
    for kind in (_dots, _projections, _hidden_layers):
        if (formula := kind(seen, matrices, module)) is not None:
            return formula
    return Formula(f"none of the known ones{_shape_of(subject)}")


def _look(subject: Subject) -> tuple[Seen, nn.Module | None]:
    """A run of the module in double precision. For causal attention, only the last query, which sees every key."""
    module = copy.deepcopy(subject.module).double() if subject.module else None
    if module is not None:
        tell_apart(module)
    own = Subject(module or subject.target, subject.form, subject.title)
    inputs = _double(own.inputs(1 if subject.form.alone else 3, 4, 6, seed=11), subject)
    outcome = own.run(inputs)
    weights, context, query = outcome.weights, outcome.context, inputs.query
    if subject.form.causal:
        weights, query, context = weights[:, :, -1:], query[:, -1:], None if context is None else context[:, -1:]
    logs = weights.clamp_min(0).log()
    logs = logs - logs.mean(dim=-1, keepdim=True)
    return Seen(query, inputs.keys, weights, logs, inputs.values, context, subject.form.itself), module


def _double(inputs: Inputs, subject: Subject) -> Inputs:
    keys = inputs.keys.double()
    query = keys if subject.form.itself else inputs.query.double()
    return replace(inputs, query=query, keys=keys, values=inputs.values.double() if subject.form.separate else keys)


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


def _times(factor: float, width: int, whole: int = 0, read: int = 0) -> str:
    """A factor in words. width : d, of one head if there are heads. whole : of all heads together. read : of the heads'
    input."""
    if _is(factor, 1 / width):
        return "divided by d, not by its root"
    if _is(factor, width**0.5):
        return "multiplied by √d, not divided by it"
    if _is(factor, 1):
        return "not divided by √d"
    if whole and _is(factor, whole**-0.5):
        return "divided by the root of the whole width, not of a head's"
    if read and _is(factor, read**-0.5):
        return "divided by the root of the width of the input, not of a head's"
    return f"times {factor:.3g}"


def _projections(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """Bilinear scores: general, with one matrix between q and k; multi-head, with both projected."""
    query_width, key_width = seen.query.shape[-1], seen.keys.shape[-1]
    of_query = [m for m in matrices if m.weight.shape[1] == query_width]
    of_keys = [m for m in matrices if m.weight.shape[1] == key_width]
    for matrix in of_keys:
        if len(matrix.weight) == query_width and seen.logs.shape[1] == 1:
            scores = dot_scores(seen.query, matrix(seen.keys)).unsqueeze(1)
            if (factor := seen.factor(scores)) is not None:
                return _general(seen, scores, factor, matrix.words, matrix.places("U"))
    for matrix in of_query:
        if len(matrix.weight) == key_width and seen.logs.shape[1] == 1:
            scores = dot_scores(matrix(seen.query), seen.keys).unsqueeze(1)
            if (factor := seen.factor(scores)) is not None:
                words = matrix.words.removesuffix("ᵀ") if matrix.words.endswith("ᵀ") else f"{matrix.words}ᵀ"
                place, own = {}, matrix.place
                if own is not None and own.count <= 1:  # a part of a matrix that is turned has no place
                    place = {**matrix.places("U"), "U": replace(own, turned=not own.turned)}
                return _general(seen, scores, factor, f"{words}{_with_bias(matrix)}", place)
    for first, second in itertools.product(of_query, of_keys):
        if len(first.weight) != len(second.weight) or len(first.weight) % seen.logs.shape[1]:
            continue
        scores = dot_scores(_heads(first(seen.query), seen), _heads(second(seen.keys), seen))
        if (factor := seen.factor(scores)) is not None:
            return _multi_head(seen, scores, factor, first, second, matrices)
    return None


def _with_bias(matrix: Matrix) -> str:
    return " and its bias" if matrix.bias is not None and bool(matrix.bias.any()) else ""


def _general(seen: Seen, scores: Tensor, factor: float, words: str, places: dict) -> Formula:
    if _is(factor, 1):
        words = f"Luong general: q · W k with W = {words}; {seen.difference(scores)}"
        return Formula(words, ("general",), places=places)
    times = _times(factor, seen.query.shape[-1])
    if _is(factor, seen.query.shape[-1] ** -0.5):
        times = "divided by √d, which the paper does not do"
    return Formula(f"near Luong general: q · W k with W = {words}, {times}", slip="not by" in times)


def _heads(x: Tensor, seen: Seen) -> Tensor:
    """(B, T, w) -> (B, H, T, w/H)."""
    return x.unflatten(-1, (seen.logs.shape[1], -1)).transpose(1, 2)


def _multi_head(
    seen: Seen, scores: Tensor, factor: float, query: Matrix, keys: Matrix, matrices: list[Matrix]
) -> Formula:
    heads, whole = seen.logs.shape[1], len(query.weight)
    number = "one head" if heads == 1 else f"{heads} heads"
    words = f"queries by {query.words}{_with_bias(query)}, keys by {keys.words}"
    if _is(factor, (whole // heads) ** -0.5):
        names = ("multi-head", "scaled-dot") if heads == 1 else ("multi-head",)
        more, places = _of_values(seen, matrices)
        words = f"multi-head, {number}: {words}{more}; {seen.difference(scores * factor)}"
        return Formula(words, names, places=query.places("W") | keys.places("U") | places)
    times = _times(factor, whole // heads, whole, seen.query.shape[-1])
    slip = "not" in times and (times != "not divided by √d" or heads > 1 or seen.itself)
    return Formula(f"near multi-head, {number}: {words}, but the products are {times}", slip=slip)


def _of_values(seen: Seen, matrices: list[Matrix]) -> tuple[str, dict[str, Place]]:
    """The projections of values and output, in words and as places; none unless the context consists of these alone."""
    if seen.context is None:
        return "", {}
    for values in matrices:
        if values.weight.shape[1] != seen.values.shape[-1] or len(values.weight) % seen.logs.shape[1]:
            continue
        context = (seen.weights @ _heads(values(seen.values), seen)).transpose(1, 2).flatten(2)
        outputs = [matrix for matrix in matrices if matrix.weight.shape[1] == context.shape[-1]]
        for output in (None, *outputs):
            made = context if output is None else output(context)
            if made.shape == seen.context.shape and torch.allclose(made, seen.context, rtol=_EQUAL, atol=_EQUAL):
                words = f", values by {values.words}" + (f", output by {output.words}" if output else "")
                return words, values.places("V") | (output.places("O") if output else {})
    return ", and a context that is made otherwise", {}


def _hidden_layers(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """v . tanh(W q + U k) and v . tanh(W [q; k]), with biases, and with other functions than tanh."""
    if seen.logs.shape[1] != 1:
        return None
    named = module.named_parameters() if module else ()
    vectors = [(n, p.detach().flatten()) for n, p in named if p.ndim and p.numel() == max(p.shape)]
    for (names, words, query, keys, places), (label, function) in itertools.product(
        _layers(seen, matrices), _ACTIVATIONS.items()
    ):
        width = query.shape[-1]
        free = [(name, vector) for name, vector in vectors if len(vector) == width]
        for extra, added in (("", 0.0), *free):
            hidden = function(query.unsqueeze(2) + keys.unsqueeze(1) + added)
            for name, vector in (*free, ("", query.new_ones(width))):
                scores = (hidden @ vector).unsqueeze(1)
                if (factor := seen.factor(scores)) is not None:
                    more = {"v": Place(name)} if name else {}
                    more |= {"h bias": Place(extra)} if extra else {}
                    words = f"{words}, v = {f'`{name}`' if name else '1'}"
                    return _additive(seen, scores, factor, names, words, label, places | more)
    return None


def _layers(seen: Seen, matrices: list[Matrix]) -> Iterator[tuple[tuple[str, ...], str, Tensor, Tensor, dict]]:
    """Candidates for a hidden layer: names of the formula, words, both parts (B, T, w), (B, S, w), places of
    matrices."""
    query_width, key_width = seen.query.shape[-1], seen.keys.shape[-1]
    for matrix in matrices:
        if matrix.weight.shape[1] != query_width + key_width:
            continue
        for order, at in (("[q; k]", query_width), ("[k; q]", key_width)):
            left, right = matrix.weight[:, :at], matrix.weight[:, at:]
            of_query, of_keys = (left, right) if order == "[q; k]" else (right, left)
            keys = F.linear(seen.keys, of_keys, matrix.bias)
            words = f"W {order} with W = {matrix.words}{_with_bias(matrix)}"
            yield ("concat", "additive"), words, F.linear(seen.query, of_query), keys, matrix.places(order)
    same = [Matrix("1", torch.eye(width).double()) for width in dict.fromkeys((query_width, key_width))]
    for first, second in itertools.product([*matrices, *same], repeat=2):
        fits = first.weight.shape[1] == query_width and second.weight.shape[1] == key_width
        if fits and len(first.weight) == len(second.weight):
            words = f"W q + U k with W = {first.words}{_with_bias(first)}, U = {second.words}{_with_bias(second)}"
            places = first.places("W") | second.places("U")
            yield ("additive", "concat"), words, first(seen.query), second(seen.keys), places


def _additive(
    seen: Seen, scores: Tensor, factor: float, names: tuple, words: str, function: str, places: dict
) -> Formula:
    name = "Luong concat" if names[0] == "concat" else "additive (Bahdanau)"
    if function == "tanh" and _is(factor, 1):
        words = f"{name}: v · tanh({words}; {seen.difference(scores)}".replace(" with W", ") with W", 1)
        return Formula(words, names, places=places)
    place = "without tanh" if function == "no tanh" else f"with {function} in place of tanh"
    times = "" if _is(factor, 1) else f", times {factor:.3g}"
    return Formula(f"near {name}: {words}{times}" + ("" if function == "tanh" else f", {place}"))


def _shape_of(subject: Subject) -> str:
    """How the score depends on query and key, if they are separate."""
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
