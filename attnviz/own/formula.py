"""Which formula a module computes: its own parameters, put into each known formula, give the same weights.

A softmax determines the scores up to a constant per row. So the logarithms of weights minus their mean over the keys
are compared with the scores of a formula minus their mean. Letters as in forms; w is the width in which query and key
meet.
"""

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.attention import dot_scores
from attnviz.own.capture import Subject
from attnviz.own.checks import FAULT, LIMIT, OK, UNTESTED, Line
from attnviz.own.matrices import Groups, Matrix, Place, groups_of, matrices_of, norms_of, reading, rotary
from attnviz.own.scores import Seen, interaction, joined, look, shape_of, terms_of, variants
from attnviz.own.source import code_of, in_words
from attnviz.python_file import ANYTHING

NAMES = ("additive", "dot", "scaled-dot", "general", "concat", "multi-head", "grouped-query", "multi-query")
_EQUAL = 1e-5  # relative, in double precision
_BASES = (1e4, 5e5, 1e6)  # of rotary positions
_NON_LOCAL = re.compile(r"non.?local|\btheta\b.*\bphi\b|Conv[12]d\(", re.I | re.S)
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


def scaling(formula: Formula, subject: Subject) -> Line:
    """Are the scores scaled as in the nearest formula?"""
    test = "scores are scaled as in the formula"
    if "scaled" in subject.title.partition("(")[0].lower() and formula.names == ("dot",):
        return Line(test, FAULT, f"its name says scaled, and the products are not divided by √d: {formula.words}")
    if formula.slip and "not divided by √d" in formula.words and _NON_LOCAL.search(code_of(subject.target)):
        return Line(test, LIMIT, f"{formula.words}. Only a non-local block (Wang et al. 2018) needs no root")
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
    seen, own = look(subject)
    module = own.module
    if reason := seen.no_scores():
        return Formula(f"none of the known ones: {reason}, so no scores can be read off")
    matrices = list(matrices_of(module, seen.weights.shape[1])) if module else []
    if subject.form.pools:
        return _pooled(seen, matrices, module)
    for variant in itertools.chain(variants(seen, module), joined(own, seen)):
        for kind in (_dots, _projections, _hidden_layers, _biaffine):
            if (formula := kind(variant, matrices, module)) is not None:
                return _with_more(formula, variant)
    if (formula := _with_terms(seen, own, matrices)) is not None:
        return _with_more(formula, seen)
    return Formula(f"none of the known ones{shape_of(subject, seen)}")


def _pooled(seen: Seen, matrices: list[Matrix], module) -> Formula:
    """Scores of the keys alone: v · tanh(U k), and with other functions, or v · k."""
    layers = reading(matrices, seen.keys.shape[-1])
    for matrix, (label, function) in itertools.product(layers, _ACTIVATIONS.items()):
        for name, vector in (pair for pair in _vectors(module) if len(pair[1]) == len(matrix.weight)):
            factor = seen.factor((function(matrix(seen.keys)) @ vector)[:, None, None].expand_as(seen.weights))
            if factor is not None and _is(factor, 1):
                score = "v · U k" if label == "no tanh" else f"v · {label}(U k)"
                words = f"{score} with U = {matrix.words}{_with_bias(matrix)}, v = `{name}`; {seen.difference()}"
                return Formula(f"none of the known ones: pooling without a query, {words}")
    return Formula("none of the known ones: pooling")


def _with_more(formula: Formula, seen: Seen) -> Formula:
    """The formula, and what its scores have besides. Where a number is added for each distance, as in T5, no root is no
    slip."""
    mixed = "heads mixed after the softmax (talking heads, Shazeer et al. 2020)" * seen.mixed
    parts = (formula.more, seen.prepared, seen.normaliser.words, seen.kept(), mixed, seen.positions(), seen.window())
    more = [part for part in parts if part]
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
        learnt, times = _learnt(seen.factors(scores), module), _times(factor, width, counts=seen.counts)
        return Formula(f"dot products {times}{learnt}: near scaled dot", slip="not" in times and not learnt)
    cosine = dot_scores(F.normalize(seen.query, dim=-1), F.normalize(seen.keys, dim=-1)).unsqueeze(1)
    distance = (seen.query.unsqueeze(-2) - seen.keys.unsqueeze(-3)).square().sum(-1).unsqueeze(1)
    for words, scores in (("the cosine", cosine), ("the squared distance", distance)):
        if (factor := seen.factor(scores)) is not None:
            learnt = _learnt(seen.factors(scores), module)
            return Formula(f"none of the known ones: {words} of q and k, times {factor:.3g}{learnt}".replace("-", "−"))
    return None


_is = partial(math.isclose, rel_tol=1e-4)


def _times(factor: float, width: int, whole: int = 0, read: int = 0, counts: tuple[int, ...] = ()) -> str:
    """A factor in words. width : of one head, d. whole : of all. read : of their input. counts : as in `Seen`."""
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
    if _is(factor, 0.5 / width) or _is(factor, 2 / width):
        return f"divided by {'2d' if factor < 1 / width else 'd/2'}, not by √d: d ** 1/2 is half of d, write d ** 0.5"
    numbers = itertools.product(zip(("keys", "queries", "sentences"), counts), (("root of the ", -0.5), ("", -1)))
    for (name, count), (words, power) in numbers:
        if _is(factor, count**power):
            return f"divided by the {words}number of {name}, not by √d"
    return f"times {factor:.3g}"


def _projections(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """Bilinear scores: general, with one matrix between q and k; multi-head, with both projected."""
    widths, heads = (seen.query.shape[-1], seen.keys.shape[-1]), seen.weights.shape[1]
    for matrix in (m for m in matrices if m.weight.shape == widths and heads == 1):
        if (factor := seen.factor(dot_scores(seen.query, matrix(seen.keys)).unsqueeze(1))) is not None:
            return _general(seen, factor, matrix.words, matrix.places("U"))
    for matrix in (m for m in matrices if m.weight.shape == widths[::-1] and heads == 1):
        if (factor := seen.factor(dot_scores(matrix(seen.query), seen.keys).unsqueeze(1))) is not None:
            place, own = {}, matrix.place
            if own is not None and own.count <= 1:  # a part of a matrix that is turned has no place
                place = {**matrix.places("U"), "U": replace(own, turned=not own.turned)}
            return _general(seen, factor, f"{matrix.words}ᵀ{_with_bias(matrix)}", place)
    return _of_heads(seen, matrices, module)


def _of_heads(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """Products of projected queries and keys in heads: plain, turned by their positions, their cosines, or mixed."""
    queries, keys = _by_width(matrices, seen.query), _by_width(matrices, seen.keys)
    for (name, of_q, of_k), (first, query), (second, key) in itertools.product(_ways(seen, module), queries, keys):
        for groups in groups_of(seen.weights.shape[1], query.shape[-1], key.shape[-1]):
            q, k = of_q(groups.query(query.flatten(0, 1))), of_k(groups.key(key.flatten(0, 1)))
            q, k = (x.unflatten(0, (-1, len(seen.query))) for x in (q, k))  # (n, B, H, T, d)
            scores = dot_scores(q[:, None], k)  # of all pairs of matrices
            for i, j in seen.likely(scores)[1].nonzero().tolist():
                if (factors := seen.factors(scores[i, j])) is not None:
                    return _in_heads(seen, groups, factors, name, first[i], second[j], matrices, module)
            mixes = name == "" and groups.heads > 1 and not seen.biased
            for index in seen.mixed_heads(scores.flatten(0, 1)) if mixes else ():
                i, j = divmod(index, len(second))
                words = f"{groups.words}: queries by {first[i].words}, keys by {second[j].words}"
                more = "heads mixed before the softmax (talking heads, Shazeer et al. 2020)"
                return Formula(f"{words}; {seen.difference()}", more=more)
    return None


def _by_width(matrices: list[Matrix], x: Tensor) -> list[tuple[list[Matrix], Tensor]]:
    """Matrices that map x (B, T, D) to the same width w, among them 1, and what they make of it (n, B, T, w)."""
    groups: dict[int, list[Matrix]] = {}
    for matrix in reading(matrices, x.shape[-1]):
        groups.setdefault(len(matrix.weight), []).append(matrix)
    return [(own, torch.stack([matrix(x) for matrix in own])) for own in groups.values()]


def _ways(seen: Seen, module) -> list[tuple[str, Callable, Callable]]:
    """How queries and keys of heads may be changed before their product, in words and as functions."""
    ways: list[tuple[str, Callable, Callable]] = [("", lambda x: x, lambda x: x)]
    norms = [(name, partial(_normed, norm, width)) for name, norm, width in norms_of(module)]
    for (first, of_q), (second, of_k) in itertools.product(norms, repeat=2):
        ways.append((f"queries of heads after `{first}`, keys after `{second}`", of_q, of_k))
    for base, pairs in itertools.product(_BASES, (False, True)) if not seen.biased else ():
        turn = partial(rotary, base=base, pairs=pairs)
        ways.append((f"rotary positions, base {base:g}", turn, turn))
    unit = partial(F.normalize, dim=-1)
    scaled_keys = ("keys divided by their length", lambda x: x, unit)
    return ways if seen.biased else [*ways, ("cosine", unit, unit), scaled_keys]


def _normed(norm: Callable, width: int, x: Tensor) -> Tensor:
    """x (B, H, T, d) after a norm of each head, or of all heads together."""
    if x.shape[-1] == width:
        return norm(x)
    whole = x.transpose(1, 2)
    return norm(whole.flatten(2)).view_as(whole).transpose(1, 2) if whole.shape[2:].numel() == width else x


def _in_heads(seen: Seen, groups: Groups, factors, name: str, first, second, matrices, module) -> Formula:
    """The formula of products in heads, times factors (H). name : how they are changed."""
    learnt = _learnt(factors, module)
    if torch.allclose(factors, factors[0], rtol=1e-4) and name != "cosine" and not learnt:
        return replace(_multi_head(seen, groups, float(factors[0]), first, second, matrices), more=name)
    times = ", ".join(f"{factor:.3g}" for factor in dict.fromkeys(round(x, 9) for x in factors.tolist()))
    what = "the cosine" if name == "cosine" else "the product"
    words = f"{what} of W q and U k with W = {first.words}, U = {second.words}, times {times}{learnt}"
    return Formula(f"none of the known ones: {words}; {seen.difference()}", more=name.replace("cosine", ""))


def _learnt(factors: Any, module) -> str:
    """The parameter whose numbers, or what is made of them, are the factors of the heads, in words; "" if none is."""
    ways = {"{}": lambda x: x, "exp({})": torch.exp, "1 / {}": torch.reciprocal, "exp(−{})": lambda x: (-x).exp()}
    named = module.named_parameters() if module is not None else ()
    for (name, x), (words, way) in itertools.product(named, (ways | {"softplus({})": F.softplus}).items()):
        if x.requires_grad and x.numel() in (1, len(factors)):
            if torch.allclose(way(x.detach().flatten()).expand_as(factors), factors, rtol=1e-4):
                return f", which is learnt: {words.format(f'`{name}`')}"
    return ""


def _with_terms(seen: Seen, own: Subject, matrices: list[Matrix]) -> Formula | None:
    """Products of projected queries and keys, with terms of the query or the key and of positions."""
    query, keys, values = interaction(own)
    for first, second in itertools.product(*(reading(matrices, x.shape[-1]) for x in (query, keys))):
        for groups in groups_of(values.shape[1], len(first.weight), len(second.weight)):
            q, k = (F.linear(x, m.weight).unsqueeze(1) for x, m in ((query, first), (keys, second)))
            products = (groups.query(q) * groups.key(k)).sum(dim=-1).squeeze(-1)
            factor = float((products * values).sum() / (products * products).sum().clamp_min(1e-12))
            if not factor or not bool((factor * products - values).norm() <= _EQUAL * values.norm()):
                continue
            terms, difference = terms_of(
                own, lambda x, m=first, g=groups: g.query(m(x)), lambda x, m=second, g=groups: g.key(m(x)), factor
            )
            more = terms or "terms that do not depend on query and key together, such as of positions"
            width = len(first.weight) // groups.heads
            times = "" if _is(factor, width**-0.5) else f", {_times(factor, width, len(first.weight))}"
            words = f"{groups.words}: queries by {first.words}{_with_bias(first)}, keys by {second.words}{times}"
            if _is(factor, 1) and second.words == "1":
                words = f"Luong general: q · W k with W = {first.words}ᵀ" if first.words != "1" else "dot: q · k"
            words = f"{words}; {difference}" if difference else words
            return Formula(words, more=f"plus {more}")
    return None


def _with_bias(matrix: Matrix) -> str:
    return " and its bias" if matrix.bias is not None and bool(matrix.bias.any()) else ""


def _general(seen: Seen, factor: float, words: str, places: dict) -> Formula:
    if _is(factor, 1):
        words = f"Luong general: q · W k with W = {words}; {seen.difference()}"
        return Formula(words, ("general",), places=places)
    times = _times(factor, seen.query.shape[-1], counts=seen.counts)
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
    times = _times(factor, whole // heads, whole, seen.query.shape[-1], seen.counts)
    slip = "not" in times and (times != "not divided by √d" or heads > 1 or seen.itself)
    return Formula(f"near {groups.words}: {words}, but the products are {times}", slip=slip)


def _of_values(seen: Seen, groups: Groups, matrices: list[Matrix]) -> tuple[str, dict[str, Place]]:
    """The projections of values and output, in words and as places; none unless the context consists of these alone."""
    if seen.context is None:
        return "", {}
    for values in reading(matrices, seen.values.shape[-1]):
        if len(values.weight) % groups.count:
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
    """v . tanh(W q + U k) and v . tanh(W [q; k]), with biases, also in heads, and with other functions than tanh."""
    heads = seen.weights.shape[1]
    vectors = _vectors(module, heads)
    for (names, words, query, keys, places), (label, function) in itertools.product(
        _layers(seen, matrices), _ACTIVATIONS.items()
    ):
        width = query.shape[-1]
        free = [(name, vector) for name, vector in vectors if 1 < len(vector) == width and width % heads == 0]
        last = [*free, *([("", query.new_ones(width))] if heads == 1 else [])]
        for extra, added in (("", 0.0), *(free if heads == 1 else ())) if last else ():
            hidden = function(query.unsqueeze(2) + keys.unsqueeze(1) + added)  # (B, T, S, w)
            several = hidden * torch.stack([vector for _, vector in last])[:, None, None, None]
            several = several.unflatten(-1, (heads, -1)).sum(dim=-1).movedim(-1, 2)  # (n, B, H, T, S)
            likely = seen.likely(several)[1] | (seen.likely(several.tanh())[1] if label == "no tanh" else False)
            for index in likely.nonzero().flatten().tolist():
                name, scores = last[index][0], several[index]
                at_last = label == "no tanh" and seen.factor(scores.tanh()) is not None
                factor = seen.factor(scores) if not at_last else 1.0
                if factor is not None:
                    more = {"v": Place(name)} if name else {}
                    more |= {"h bias": Place(extra)} if extra else {}
                    words = f"{words}, v = {f'`{name}`' if name else '1'}" + f", bias `{extra}`" * bool(extra)
                    if at_last:
                        return Formula(f"near additive (Bahdanau): {words}, with tanh after v and not before it")
                    formula = _additive(seen, factor, names, words, label, places | more)
                    in_heads = replace(formula, names=(), words=f"{formula.words}; in {heads} heads")
                    return formula if heads == 1 else in_heads
    return None


def _vectors(module, heads: int = 1) -> list[tuple[str, Tensor]]:
    """The parameters with one axis that is longer than 1, or beside it that of heads, by name."""
    named = [(n, p.detach()) for n, p in module.named_parameters() if p.ndim] if module else []
    alone = [(n, p.flatten()) for n, p in named if p.numel() == max(p.shape)]
    several = [(n, p) for n, p in named if heads > 1 and p.numel() != max(p.shape)]
    return alone + [(n, p.flatten()) for n, p in several if p.numel() == heads * p.shape[-1]]


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
    for first, second in itertools.product(reading(matrices, query_width), reading(matrices, key_width)):
        if len(first.weight) == len(second.weight):
            words = f"W q + U k with W = {first.words}{_with_bias(first)}, U = {second.words}{_with_bias(second)}"
            places = first.places("W") | second.places("U")
            yield ("additive", "concat"), words, first(seen.query), second(seen.keys), places


def _additive(seen: Seen, factor: float, names: tuple, words: str, function: str, places: dict) -> Formula:
    name = "Luong concat" if names[0] == "concat" else "additive (Bahdanau)"
    if function == "tanh":
        words = f"v · tanh({words}".replace(" with W", ") with W", 1)
        if _is(factor, 1):
            return Formula(f"{name}: {words}; {seen.difference()}", names, places=places)
    place = "without tanh" if function == "no tanh" else f"with {function} in place of tanh"
    times = "" if _is(factor, 1) else f", times {factor:.3g}"
    return Formula(f"near {name}: {words}{times}" + ("" if function == "tanh" else f", {place}"))
