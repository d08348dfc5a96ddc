"""Which formula a module computes: its own parameters, put into each known formula, give the same weights.

A softmax determines the scores up to a constant per row. So the logarithms of weights minus their mean over the keys
are compared with the scores of a formula minus their mean. Letters as in forms; w is the width in which query and key
meet.
"""

import itertools
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.attention import dot_scores
from attnviz.own.capture import Subject
from attnviz.own.forms import Inputs
from attnviz.own.matrices import Groups, Matrix, Place, Seen, groups_of, look, matrices_of, rotary, variants
from attnviz.own.report import FAULT, OK, UNTESTED, Line
from attnviz.own.source import in_words
from attnviz.python_file import ANYTHING

NAMES = ("additive", "dot", "scaled-dot", "general", "concat", "multi-head", "grouped-query", "multi-query")
_EQUAL = 1e-5  # relative, in double precision
_BASES = (1e4, 5e5, 1e6)  # of rotary positions
_ACTIVATIONS: dict[str, Any] = {"tanh": torch.tanh, "ReLU": F.relu, "sigmoid": torch.sigmoid, "no tanh": lambda x: x}


@dataclass(frozen=True)
class Formula:
    """What was recognised. names : its possible names, of NAMES; () for a near miss or an unknown formula. slip : a
    known formula with a wrong or missing root. places : of the formula's matrices and their biases in the module, by
    the letters of `attention`; `[q; k]` or `[k; q]` for W and U in one; `h bias` of a hidden layer. more : what the
    scores have besides, such as rotary positions, in words."""

    words: str
    names: tuple[str, ...] = ()
    slip: bool = False
    more: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)


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
    seen, module = look(subject)
    if reason := seen.no_scores():
        return Formula(f"none of the known ones: {reason}, so no scores can be read off")
    matrices = list(matrices_of(module, seen.weights.shape[1])) if module else []
    for variant in variants(seen, module):
        for kind in (_dots, _projections, _hidden_layers, _biaffine):
            if (formula := kind(variant, matrices, module)) is not None:
                return _with_more(formula, variant)
    return Formula(f"none of the known ones{_shape_of(subject)}")


def _with_more(formula: Formula, seen: Seen) -> Formula:
    """The formula, and what its scores have besides. Where a number is added for each distance, as in T5, no root is no
    slip."""
    more = [part for part in (formula.more, seen.prepared, seen.positions(), seen.window()) if part]
    slip = formula.slip and not (seen.biased and "not divided by" in formula.words)
    return replace(formula, words="; ".join([formula.words, *more]), slip=slip, more="; ".join(more))


def _dots(seen: Seen, matrices: list, module) -> Formula | None:
    """q . k, its multiples, and the cosine."""
    width = seen.query.shape[-1]
    if width != seen.keys.shape[-1]:
        return None
    scores = dot_scores(seen.query, seen.keys).unsqueeze(1)
    factor = seen.factor(scores)
    if factor is not None:
        if _is(factor, 1):
            return Formula(f"dot: q · k; {seen.difference()}", ("dot",))
        if _is(factor, width**-0.5):
            return Formula(f"scaled dot: q · k / √d; {seen.difference()}", ("scaled-dot",))
        times = _times(factor, width)
        return Formula(f"dot products {times}: near scaled dot", slip="not" in times)
    cosine = dot_scores(F.normalize(seen.query, dim=-1), F.normalize(seen.keys, dim=-1)).unsqueeze(1)
    distance = (seen.query.unsqueeze(-2) - seen.keys.unsqueeze(-3)).square().sum(-1).unsqueeze(1)
    for words, scores in (("the cosine", cosine), ("the squared distance", distance)):
        if (factor := seen.factor(scores)) is not None:
            return Formula(f"none of the known ones: {words} of q and k, times {factor:.3g}".replace("-", "−"))
    return None


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
        if len(matrix.weight) == query_width and seen.weights.shape[1] == 1:
            scores = dot_scores(seen.query, matrix(seen.keys)).unsqueeze(1)
            if (factor := seen.factor(scores)) is not None:
                return _general(seen, factor, matrix.words, matrix.places("U"))
    for matrix in of_query:
        if len(matrix.weight) == key_width and seen.weights.shape[1] == 1:
            scores = dot_scores(matrix(seen.query), seen.keys).unsqueeze(1)
            if (factor := seen.factor(scores)) is not None:
                words = matrix.words.removesuffix("ᵀ") if matrix.words.endswith("ᵀ") else f"{matrix.words}ᵀ"
                place, own = {}, matrix.place
                if own is not None and own.count <= 1:  # a part of a matrix that is turned has no place
                    place = {**matrix.places("U"), "U": replace(own, turned=not own.turned)}
                return _general(seen, factor, f"{words}{_with_bias(matrix)}", place)
    return _of_heads(seen, of_query, of_keys, matrices)


def _of_heads(seen: Seen, of_query: list[Matrix], of_keys: list[Matrix], matrices: list[Matrix]) -> Formula | None:
    """Products of projected queries and keys in heads: plain, turned by their positions, or their cosines."""
    ways: list[tuple[str, Callable]] = [("", lambda x: x)]
    if not seen.biased:
        turns = itertools.product(_BASES, (False, True))
        ways += [(f"rotary positions, base {base:g}", partial(rotary, base=base, pairs=pairs)) for base, pairs in turns]
        ways += [("cosine", partial(F.normalize, dim=-1))]
    queries, keys = (
        [(matrix, matrix(x)) for matrix in (*own, Matrix("1", torch.eye(x.shape[-1]).double()))]
        for own, x in ((of_query, seen.query), (of_keys, seen.keys))
    )
    for (name, change), (first, query), (second, key) in itertools.product(ways, queries, keys):
        for groups in groups_of(seen.weights.shape[1], len(first.weight), len(second.weight)):
            scores = dot_scores(change(groups.query(query)), change(groups.key(key)))
            if (factor := seen.factor(scores)) is None:
                continue
            if name == "cosine":
                words = f"the cosine of W q and U k with W = {first.words}, U = {second.words}, times {factor:.3g}"
                return Formula(f"none of the known ones: {words}")
            return replace(_multi_head(seen, groups, factor, first, second, matrices), more=name)
    return None


def _with_bias(matrix: Matrix) -> str:
    return " and its bias" if matrix.bias is not None and bool(matrix.bias.any()) else ""


def _general(seen: Seen, factor: float, words: str, places: dict) -> Formula:
    if _is(factor, 1):
        words = f"Luong general: q · W k with W = {words}; {seen.difference()}"
        return Formula(words, ("general",), places=places)
    times = _times(factor, seen.query.shape[-1])
    if _is(factor, seen.query.shape[-1] ** -0.5):
        times = "divided by √d, which the paper does not do"
    return Formula(f"near Luong general: q · W k with W = {words}, {times}", slip="not by" in times)


def _multi_head(
    seen: Seen, groups: Groups, factor: float, query: Matrix, keys: Matrix, matrices: list[Matrix]
) -> Formula:
    heads, whole = groups.heads, len(query.weight)
    words = f"queries by {query.words}{_with_bias(query)}, keys by {keys.words}"
    if _is(factor, (whole // heads) ** -0.5):
        more, places = _of_values(seen, groups, matrices)
        names = (groups.name, *(["scaled-dot"] if heads == 1 else ["grouped-query"] if groups.count == 1 else []))
        words = f"{groups.words}: {words}{more}; {seen.difference()}"
        return Formula(words, names, places=query.places("W") | keys.places("U") | places)
    times = _times(factor, whole // heads, whole, seen.query.shape[-1])
    slip = "not" in times and (times != "not divided by √d" or heads > 1 or seen.itself)
    return Formula(f"near {groups.words}: {words}, but the products are {times}", slip=slip)


def _of_values(seen: Seen, groups: Groups, matrices: list[Matrix]) -> tuple[str, dict[str, Place]]:
    """The projections of values and output, in words and as places; none unless the context consists of these alone."""
    if seen.context is None:
        return "", {}
    for values in matrices:
        if values.weight.shape[1] != seen.values.shape[-1] or len(values.weight) % groups.count:
            continue
        context = (seen.weights @ groups.key(values(seen.values))).transpose(1, 2).flatten(2)
        outputs = [matrix for matrix in matrices if matrix.weight.shape[1] == context.shape[-1]]
        for output in (None, *outputs):
            made = context if output is None else output(context)
            if made.shape == seen.context.shape and torch.allclose(made, seen.context, rtol=_EQUAL, atol=_EQUAL):
                words = f", values by {values.words}" + (f", output by {output.words}" if output else "")
                return words, values.places("V") | (output.places("O") if output else {})
    return ", and a context that is made otherwise", {}


def _hidden_layers(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """v . tanh(W q + U k) and v . tanh(W [q; k]), with biases, and with other functions than tanh."""
    if seen.weights.shape[1] != 1:
        return None
    vectors = _vectors(module)
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
                    return _additive(seen, factor, names, words, label, places | more)
    return None


def _vectors(module) -> list[tuple[str, Tensor]]:
    """The parameters with one axis that is longer than 1, by name."""
    named = module.named_parameters() if module else ()
    return [(n, p.detach().flatten()) for n, p in named if p.ndim and p.numel() == max(p.shape)]


def _biaffine(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """q . W k + u . k."""
    shape = (seen.query.shape[-1], seen.keys.shape[-1])
    fitting = [matrix for matrix in matrices if matrix.weight.shape == shape and seen.weights.shape[1] == 1]
    for matrix, (name, vector) in itertools.product(fitting, _vectors(module)):
        if len(vector) == shape[1]:
            scores = dot_scores(seen.query, matrix(seen.keys)) + (seen.keys @ vector).unsqueeze(1)
            if _is(seen.factor(scores.unsqueeze(1)) or 0.0, 1):
                words = f"q · W k + u · k (biaffine) with W = {matrix.words}, u = `{name}`"
                return Formula(f"near Luong general: {words}; {seen.difference()}")
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


def _additive(seen: Seen, factor: float, names: tuple, words: str, function: str, places: dict) -> Formula:
    name = "Luong concat" if names[0] == "concat" else "additive (Bahdanau)"
    if function == "tanh" and _is(factor, 1):
        words = f"{name}: v · tanh({words}; {seen.difference()}".replace(" with W", ") with W", 1)
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
    if scale == 1e-3:  # all weights are the same
        return ""
    in_query = abs(score(q + r, k) + score(q * 0, k) - score(q, k) - score(r, k)) < 1e-3 * scale
    in_keys = abs(score(q, k + m) - score(q, k) - score(q, m)) < 1e-3 * scale
    if abs(score(q, k) - score(q, m)) + abs(score(r, k) - score(r, m)) < 1e-3 * scale:
        return ": weights of positions that do not depend on the keys, as in Luong's location-based attention"
    words = {
        (True, True): "linear in the query and in the keys",
        (True, False): "linear in the query and not in the keys",
        (False, True): "linear in the keys and not in the query",
        (False, False): "linear in neither query nor keys",
    }
    return f"; it is {words[in_query, in_keys]}"
