"""Which formula a module computes: its own parameters, put into each known formula, give the same weights.

A softmax determines the scores up to a constant per row. So the logarithms of weights minus their mean over the keys
are compared with the scores of a formula minus their mean. Letters as in forms; w is the width in which query and key
meet.
"""

import itertools
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import partial
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.attention import dot_scores
from attnviz.own.capture import Subject
from attnviz.own.matrices import Groups, Matrix, Place, as_long, groups_of, matrices_of, reading, vectors_of, ways_of
from attnviz.own.scores import Seen, interaction, joined, look, shape_of, terms_of, uncapped, variants
from attnviz.own.source import in_words
from attnviz.python_file import ANYTHING

NAMES = ("additive", "dot", "scaled-dot", "general", "concat", "multi-head", "grouped-query", "multi-query")
_EQUAL = 1e-5  # relative, in double precision
_GAT = "LeakyReLU(0.2)"  # as both papers have it
_LEAKY: dict[str, Any] = {_GAT: partial(F.leaky_relu, negative_slope=0.2), "LeakyReLU(0.01)": F.leaky_relu}
_ACTIVATIONS: dict[str, Any] = {"tanh": torch.tanh, "ReLU": F.relu, "sigmoid": torch.sigmoid, "no tanh": lambda x: x}
_ACTIVATIONS, _AT_LAST = _ACTIVATIONS | _LEAKY, {"": torch.clone, "tanh": torch.tanh} | _LEAKY  # before v, after v


class Slip(Enum):
    """What is wrong with the factor of the products."""

    NO_ROOT, FACTOR = "not divided by √d", "another factor that is a slip"


@dataclass(frozen=True)
class Formula:
    """What was recognised. names : its possible names, of NAMES; () for a near miss or an unknown formula. slip : of a
    known formula with a wrong or missing root. places : of the formula's matrices and their biases in the module, by
    the letters of `attention`; `[q; k]` or `[k; q]` for W and U in one; `h bias` of a hidden layer. more : what the
    scores have besides, such as rotary positions, in words."""

    words: str
    names: tuple[str, ...] = ()
    slip: Slip | None = None
    more: str = ""
    places: Mapping[str, Place] = field(default_factory=dict)


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
            formula = kind(variant, matrices, module)
            if formula is not None and (formula.names or not variant.normaliser.exact):
                return _with_more(formula, variant)
    if (formula := _capped(seen, own, matrices, module)) is not None:
        return formula
    if (formula := _with_terms(seen, own, matrices)) is not None:
        return _with_more(formula, seen)
    return Formula(f"none of the known ones{shape_of(subject, seen)}")


def _pooled(seen: Seen, matrices: list[Matrix], module) -> Formula:
    """Scores of the keys alone: v · tanh(U k), and with other functions, or v · k; also with a gate."""
    layers, unknown = reading(matrices, seen.keys.shape[-1]), "none of the known ones: pooling"
    for matrix, (label, function) in itertools.product(layers, _ACTIVATIONS.items()):
        hidden, score = function(matrix(seen.keys)), "U k" if label == "no tanh" else f"{label}(U k)"
        words = f"{unknown} without a query, v · {score} with U = {matrix.words}{matrix.and_bias}"
        gates = [(words, hidden)]
        for gate in layers if label == "tanh" else ():
            if len(gate.weight) == len(matrix.weight):
                names = f"V = {matrix.words}{matrix.and_bias}, U = {gate.words}{gate.and_bias}"
                words = f"gated attention pooling (Ilse et al. 2018): v · (tanh(V k) ⊙ sigmoid(U k)) with {names}"
                gates.append((words, hidden * gate(seen.keys).sigmoid()))
        for (words, made), (name, vector) in itertools.product(gates, vectors_of(module)):
            if len(vector) == len(matrix.weight):
                factor = seen.factor((made @ vector)[:, None, None].expand_as(seen.weights))
                if factor is not None and _is(factor, 1):
                    return Formula(f"{words}, v = `{name}`; {seen.difference()}")
    return Formula(unknown)


def _capped(seen: Seen, own: Subject, matrices: list[Matrix], module) -> Formula | None:
    """Products s that are capped, c · tanh(s / c), and tanh or sigmoid of them, which is another formula."""
    cap, variant_of = uncapped(own, seen)
    soft = [(cap, f"{cap:.4g} · tanh(s / {cap:.4g})", " (soft cap, Gemma Team 2024)")] if cap else []
    others = [(1.0, f"{cap:.4g} · tanh(s)", " (Bello et al. 2016)")] if cap else []
    if _is(cap, 1) or _is(cap, 0.5):
        soft, others = [], [(1.0, "tanh(s)", " (as in Ma et al. 2017)") if _is(cap, 1) else (2.0, "sigmoid(s)", "")]
    near = None
    for (inner, words, paper), kind in itertools.product(soft + others, (_dots, _projections)):
        formula = kind(variant_of(inner), matrices, module)
        if formula is None:
            continue
        if formula.names and not (soft and inner == cap):
            return Formula(f"{words}{paper}, where s is {formula.words}", more=words)
        more = f"scores s become {words}{paper if formula.names else ''}"
        formula = replace(formula, words=f"{formula.words}; {more}", more=more, slip=formula.slip if soft else None)
        if formula.names:
            return formula
        near = near or formula
    return near


def _with_more(formula: Formula, seen: Seen) -> Formula:
    """The formula, and what its scores have besides. Where a number is added for each distance, as in T5, no root is no
    slip."""
    mixed = "heads mixed after the softmax (talking heads, Shazeer et al. 2020)" * seen.mixed
    shares = f"normalised {seen.normaliser.words}, not by softmax" if seen.normaliser.words else ""
    parts = (formula.more, seen.prepared, shares, seen.zeros(), mixed, seen.positions(), seen.window())
    more = [part for part in parts if part]
    slip = None if seen.biased and formula.slip is Slip.NO_ROOT else formula.slip
    return replace(formula, words="; ".join([formula.words, *more]), slip=slip, more="; ".join(more))


def _dots(seen: Seen, matrices: list, module) -> Formula | None:
    """q . k, its multiples, and the cosine."""
    width = seen.query.shape[-1]
    if width != seen.keys.shape[-1]:
        return None
    scores = dot_scores(seen.query, seen.keys).unsqueeze(1)
    if (factor := seen.factor(scores)) is not None:
        if _is(factor, 1):
            return Formula(f"dot: q · k; {seen.difference()}", ("dot",))
        if _is(factor, width**-0.5):
            return Formula(f"scaled dot: q · k / √d; {seen.difference()}", ("scaled-dot",))
        learnt, (times, slip) = _learnt(seen.factors(scores), module), _times(factor, width, counts=seen.counts)
        return Formula(f"dot products {times}{learnt}: near scaled dot", slip=None if learnt else slip)
    cosine = dot_scores(F.normalize(seen.query, dim=-1), F.normalize(seen.keys, dim=-1)).unsqueeze(1)
    distance = (seen.query.unsqueeze(-2) - seen.keys.unsqueeze(-3)).square().sum(-1).unsqueeze(1)
    for words, scores in (("the cosine", cosine), ("the squared distance", distance)):
        if (factor := seen.factor(scores)) is not None:
            learnt = _learnt(seen.factors(scores), module)
            return Formula(f"none of the known ones: {words} of q and k, times {factor:.3g}{learnt}".replace("-", "−"))
    return None


_is = partial(math.isclose, rel_tol=1e-4)


def _times(
    factor: float, width: int, whole: int = 0, read: int = 0, counts: tuple[int, ...] = ()
) -> tuple[str, Slip | None]:
    """A factor in words, and what is wrong with it. width : of one head, d. whole : of all. read : of their input.
    counts : as in `Seen`."""
    if _is(factor, 1):
        return "not divided by √d", Slip.NO_ROOT
    half, root = "not by √d: d ** 1/2 is half of d, write d ** 0.5", "divided by the root of the"
    slips = [(1 / width, "divided by d, not by its root"), (width**0.5, "multiplied by √d, not divided by it")]
    slips += [(whole**-0.5, f"{root} whole width, not of a head's")] if whole else []
    slips += [(read**-0.5, f"{root} width of the input, not of a head's")] if read else []
    slips += [(0.5 / width, f"divided by 2d, {half}"), (2 / width, f"divided by d/2, {half}")]
    for name, count in zip(("keys", "queries", "sentences"), counts):
        slips += [(count**-0.5, f"{root} number of {name}, not by √d")]
        slips += [(1 / count, f"divided by the number of {name}, not by √d")]
    words = next((words for number, words in slips if _is(factor, number)), "")
    return (words, Slip.FACTOR) if words else (f"times {factor:.3g}", None)


def _projections(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """Bilinear scores: general, with one matrix between q and k; multi-head, with both projected."""
    widths, heads = (seen.query.shape[-1], seen.keys.shape[-1]), seen.weights.shape[1]
    for turned, matrix in itertools.product((False, True), matrices if heads == 1 else ()):
        if matrix.weight.shape == (widths[::-1] if turned else widths):
            q, k = (matrix(seen.query), seen.keys) if turned else (seen.query, matrix(seen.keys))
            if (factor := seen.factor(dot_scores(q, k).unsqueeze(1))) is not None:
                return _general(seen, factor, matrix, turned)
    return _of_heads(seen, matrices, module)


def _of_heads(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """Products of projected queries and keys in heads: plain, turned by their positions, their cosines, or mixed."""
    queries, keys, ways = _by_width(matrices, seen.query), _by_width(matrices, seen.keys), ways_of(module, seen.biased)
    for (name, of_q, of_k), (first, query), (second, key) in itertools.product(ways, queries, keys):
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
            times = "" if _is(factor, width**-0.5) else f", {_times(factor, width, len(first.weight))[0]}"
            words = f"{groups.words}: queries by {first.words}{first.and_bias}, keys by {second.words}{times}"
            if _is(factor, 1) and second.words == "1":
                words = f"Luong general: q · W k with W = {first.words}ᵀ" if first.words != "1" else "dot: q · k"
            words = f"{words}; {difference}" if difference else words
            return Formula(words, more=f"plus {more}")
    return None


def _general(seen: Seen, factor: float, matrix: Matrix, turned: bool) -> Formula:
    """q · W k, or with Wᵀ. A part of a matrix that is turned has no place."""
    words, places = matrix.words + f"ᵀ{matrix.and_bias}" * turned, matrix.places("U")
    if turned and matrix.place is not None:
        places = (
            places | {"U": replace(matrix.place, turned=not matrix.place.turned)} if matrix.place.count <= 1 else {}
        )
    if _is(factor, 1):
        words = f"Luong general: q · W k with W = {words}; {seen.difference()}"
        return Formula(words, ("general",), places=places)
    times, slip = _times(factor, seen.query.shape[-1], counts=seen.counts)
    if _is(factor, seen.query.shape[-1] ** -0.5):
        times, slip = "divided by √d, which the paper does not do", None
    return Formula(f"near Luong general: q · W k with W = {words}, {times}", slip=slip)


def _multi_head(
    seen: Seen, groups: Groups, factor: float, query: Matrix, keys: Matrix, matrices: list[Matrix]
) -> Formula:
    heads, whole = groups.heads, len(query.weight)
    words = f"queries by {query.words}{query.and_bias}, keys by {keys.words}"
    if _is(factor, (whole // heads) ** -0.5):
        more, places = _of_values(seen, groups, matrices)
        names = (groups.name, *(["scaled-dot"] if heads == 1 else ["grouped-query"] if groups.count == 1 else []))
        words = f"{groups.words}: {words}{more}; {seen.difference()}"
        return Formula(words, names, places=query.places("W") | keys.places("U") | places)
    times, slip = _times(factor, whole // heads, whole, seen.query.shape[-1], seen.counts)
    if slip is Slip.NO_ROOT and heads == 1 and not seen.itself:
        slip = None  # as Luong's general score with two matrices for one
    places = query.places("W") | keys.places("U")
    return Formula(f"near {groups.words}: {words}, but the products are {times}", slip=slip, places=places)


def _of_values(seen: Seen, groups: Groups, matrices: list[Matrix]) -> tuple[str, dict[str, Place]]:
    """The projections of values and output, in words and as places; none unless the context consists of these alone."""
    if seen.context is None:
        return "", {}
    for values in (x for x in reading(matrices, seen.values.shape[-1]) if len(x.weight) % groups.count == 0):
        context = (seen.weights @ groups.key(values(seen.values))).transpose(1, 2).flatten(2)
        outputs = [matrix for matrix in matrices if matrix.weight.shape[1] == context.shape[-1]]
        for output in (None, *outputs):
            made = context if output is None else output(context)
            if made.shape == seen.context.shape and torch.allclose(made, seen.context, rtol=_EQUAL, atol=_EQUAL):
                words = f", values by {values.words}" + (f", output by {output.words}" if output else "")
                return words, values.places("V") | (output.places("O") if output else {})
    return ", and a context that is made otherwise", {}


def _hidden_layers(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """v . tanh(W q + U k) and v . tanh(W [q; k]), with biases, also in heads, with other functions than tanh, and with
    a function after v."""
    vectors = vectors_of(module, heads := seen.weights.shape[1])
    layers = itertools.product(_layers(seen, matrices), _ACTIVATIONS.items())
    for (names, words, query, keys, places), (label, function) in layers:
        width = query.shape[-1]
        free = as_long(vectors, width, heads, not names) if width % heads == 0 else []
        last = [*free, *([("", query.new_ones(width))] if heads == 1 else [])]
        ends = {end: after for end, after in _AT_LAST.items() if (label == "no tanh" if end else names)}
        for extra, added in (("", 0.0), *(free if heads == 1 and names else ())) if last and ends else ():
            hidden = function(query.unsqueeze(2) + keys.unsqueeze(1) + added)  # (B, T, S, w)
            several = hidden * torch.stack([vector for _, vector in last])[:, None, None, None]
            several = several.unflatten(-1, (heads, -1)).sum(dim=-1).movedim(-1, 2)  # (n, B, H, T, S)
            for end, after in ends.items():
                for index in seen.likely(after(several))[1].nonzero().flatten().tolist():
                    name, factor = last[index][0], seen.factor(after(several[index]))
                    if factor is None:
                        continue
                    words = f"{words}, v = {name or '1'}" + f", bias {extra}" * bool(extra)
                    if end:
                        return _at_last(seen, factor, words, end)
                    more = {"v": Place(name[1:-1])} if name else {}
                    more |= {"h bias": Place(extra[1:-1])} if extra else {}
                    formula = _additive(seen, factor, names, words, label, places | more)
                    in_heads = replace(formula, names=(), words=f"{formula.words}; in {heads} heads")
                    return formula if heads == 1 else in_heads
    return None


def _at_last(seen: Seen, factor: float, words: str, function: str) -> Formula:
    """A score with a function after v."""
    if function == "tanh":
        return Formula(f"near additive (Bahdanau): {words}, with tanh after v and not before it")
    name = "GAT (Veličković et al. 2018)" if function == _GAT and _is(factor, 1) else "none of the known ones"
    return Formula(f"{name}: {function} of v · ({words.replace(' with W', ') with W', 1)}; {seen.difference()}")


def _biaffine(seen: Seen, matrices: list[Matrix], module) -> Formula | None:
    """q . W k + u . k."""
    shape = (seen.query.shape[-1], seen.keys.shape[-1])
    fitting = [matrix for matrix in matrices if matrix.weight.shape == shape and seen.weights.shape[1] == 1]
    for matrix, (name, vector) in itertools.product(fitting, vectors_of(module)):
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
            words = f"W {order} with W = {matrix.words}{matrix.and_bias}"
            yield ("concat", "additive"), words, F.linear(seen.query, of_query), keys, matrix.places(order)
    for first, second in itertools.product(reading(matrices, query_width), reading(matrices, key_width)):
        if len(first.weight) == len(second.weight):
            words = f"W q + U k with W = {first.words}{first.and_bias}, U = {second.words}{second.and_bias}"
            places = first.places("W") | second.places("U")
            yield ("additive", "concat"), words, first(seen.query), second(seen.keys), places
    for matrix in reading(matrices, query_width) if query_width == key_width else ():
        if len(matrix.weight) % (heads := seen.weights.shape[1]) == 0:
            q, k = (matrix(x).unflatten(-1, (heads, -1)) for x in (seen.query, seen.keys))  # [W q; W k], in heads
            q, k = F.pad(q, (0, q.shape[-1])), F.pad(k, (k.shape[-1], 0))
            yield (), f"[W q; W k] with W = {matrix.words}{matrix.and_bias}", q.flatten(-2), k.flatten(-2), {}


def _additive(seen: Seen, factor: float, names: tuple, words: str, function: str, places: dict) -> Formula:
    name = "Luong concat" if names[0] == "concat" else "additive (Bahdanau)"
    if function == "tanh":
        words = f"v · tanh({words}".replace(" with W", ") with W", 1)
        if _is(factor, 1):
            return Formula(f"{name}: {words}; {seen.difference()}", names, places=places)
    if function == _GAT and _is(factor, 1):
        words = f"GATv2 (Brody et al. 2022): v · {_GAT}({words}".replace(" with W", ") with W", 1)
        return Formula(f"{words}; {seen.difference()}")
    place = "without tanh" if function == "no tanh" else f"with {function} in place of tanh"
    times = "" if _is(factor, 1) else f", times {factor:.3g}"
    return Formula(f"near {name}: {words}{times}" + ("" if function == "tanh" else f", {place}"))
