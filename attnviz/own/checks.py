"""The tests of a person's attention. Each returns one Line: verdict, reason, and the smallest example that fails.
Letters: B sentences, T queries, S keys, H heads. Inputs are random with a fixed seed."""

import itertools
import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache, partial

import torch
from torch import Tensor

from attnviz.own.capture import Outcome, Subject
from attnviz.own.forms import Inputs
from attnviz.own.matrices import Matrix, matrices_of, reads_several, tell_apart
from attnviz.own.source import code_of
from attnviz.python_file import ANYTHING

# `fault` makes the report fail. `limit`: right in ordinary use, and not in the case that the line names.
OK, FAULT, LIMIT, UNTESTED = "ok", "fault", "limit", "not tested"
_SIZES = ((1, 1, 1), (1, 1, 2), (1, 2, 3), (2, 1, 2), (2, 1, 3), (2, 2, 3), (3, 4, 5))
RANDOM = "the same call gives other weights each time: mend that first"
_TALKING = "heads are mixed after the softmax (talking heads, Shazeer et al. 2020): rows need not sum to 1"
NEAR = 1e-4  # two numbers of single precision count as equal


@dataclass(frozen=True)
class Line:
    """One test: its name, its verdict, the reason in plain words, and the smallest example that fails.

    >>> own.check(lambda query, keys: (query @ keys.mT).softmax(-2)).faults[0].reason
    'weights sum to 1 over the queries and not over the keys: softmax has the wrong dim'
    """

    test: str
    verdict: str
    reason: str
    example: str = ""


def smallest(subject: Subject, examine: Callable[[Inputs], str | None]) -> str:
    """The first failing example, in words; "" if none fails. Sizes that the module rejects are for another test."""
    for inputs in (subject.inputs(*sizes) for sizes in _SIZES):
        with suppress(*ANYTHING):  # a person's code may raise anything
            if text := examine(inputs):
                return f"{inputs.words}: {text}"
    return ""


def numbers(values: Tensor) -> str:
    """At most five numbers, rounded."""
    return " ".join(f"{value:.3g}" for value in values.flatten()[:5].tolist()) + " …" * (values.numel() > 5)


@lru_cache(1)  # several tests of a module ask
def undefined(subject: Subject) -> str:
    """Why a test cannot be done because weights are NaN without a mask, or random; "" if they are not."""
    weights, again = (subject.run(subject.inputs(1 if subject.form.alone else 3, 4, 5)).weights for _ in range(2))
    if bool(weights.isnan().any()):
        return "some weights are NaN without a mask: mend that first"
    return "" if torch.allclose(weights, again, atol=NEAR) else RANDOM


@lru_cache(1)
def shares(subject: Subject) -> Line:
    """Weights are at least 0 and sum to 1 over the keys."""
    test = "weights sum to 1 over keys"

    def examine(inputs: Inputs) -> str | None:
        for row in subject.run(inputs).weights.flatten(0, 2):
            if not bool((row >= -1e-6).all()) or abs(float(row.sum()) - 1) > NEAR:
                return f"a row of weights is {numbers(row)}, its sum {float(row.sum()):.3g}"
        return None

    example, outcome = smallest(subject, examine), subject.run(subject.inputs(3, 7 if subject.form.many else 1, 5))
    if not example:
        if subject.form.weights.log:
            return Line(test, LIMIT, "logarithms of weights come back, as a loss takes them: take exp() for a context")
        if reason := _softmax_of_weights(outcome) or _of_values_alone(subject, outcome):
            return Line(test, FAULT, reason)
        return Line(test, OK, f"every row is at least 0 and sums to 1{_of_scores(subject)}")
    if limit := _gaussian(outcome) or _with_a_sink(subject, outcome) or _rectified(subject) or _TALKING * outcome.mixed:
        return Line(test, LIMIT, limit, example)
    return Line(test, FAULT, _of_values_alone(subject, outcome) or _why_no_shares(outcome), example)


def _of_scores(subject: Subject) -> str:
    """A note if the module returns the scores and not their softmax; else ""."""
    if not subject.form.weights.name.startswith("softmax"):
        return ""
    left, softmaxes = subject.call(subject.given(subject.inputs(1 if subject.form.alone else 2, 1, 3)))
    pairs = itertools.product((x for name, x in left.items() if name.startswith("result")), softmaxes)
    same = any(made.scores is not None and torch.equal(returned, made.scores) for returned, made in pairs)
    return "; it returns the scores before the softmax, and these are no weights" if same else ""


def _softmax_of_weights(outcome: Outcome) -> str:
    """The reason if a softmax is taken of the weights of another one; else ""."""
    pairs = itertools.combinations(outcome.softmaxes, 2)
    twice = any(second.scores is not None and torch.equal(second.scores, first.weights) for first, second in pairs)
    return "softmax is taken twice: that of weights makes all of them nearly the same" if twice else ""


def _gaussian(outcome: Outcome) -> str:
    """The reason if the weights are a softmax times a Gaussian of the keys' positions; else ""."""
    for softmax in outcome.softmaxes:
        if softmax.weights.numel() == outcome.weights.numel():
            bends = (outcome.weights.reshape(softmax.weights.shape) / softmax.weights).log().diff(n=2).flatten()
            if len(bends) and torch.allclose(bends, bends[0], atol=1e-3) and float(bends[0]) < -NEAR:
                return "a softmax times a Gaussian around a position, as in Luong's local-p: rows sum to less than 1"
    return ""


def _with_a_sink(subject: Subject, outcome: Outcome) -> str:
    """The reason if rows are divided by more than their sums, which differ: then a key changes the weights of the
    others, but not their ratios; else ""."""
    sums = outcome.weights.sum(dim=-1)
    below = bool((outcome.weights > 0).all()) and bool((sums < 1 - NEAR).all()) and float(sums.std()) > NEAR
    if not below or float(subject.run(subject.inputs(1, 1, 5)).weights.sum(dim=-1).max()) > 1 - NEAR:
        return ""  # the softmax runs over more than the keys
    if torch.allclose(*subject.beside_another_key(), atol=NEAR) or subject.mixes():
        return subject.form.filling
    return "rows sum to less than 1: each is divided by more than its sum, so a share goes to no key (a sink)"


def _rectified(subject: Subject) -> str:
    """The reason if weights are cut at 0 and divided by the number of keys: each is half as large beside each key once
    more, and none depends on another key; else ""."""
    few = subject.inputs(1 if subject.form.alone else 12, 1, 4)
    many = subject.changed(few, **{name: getattr(few, name).repeat(1, 2, 1) for name in ("keys", "values")})
    before, after = (subject.run(x).weights[..., : few.query.shape[1], :4] for x in (few, many))
    relu = "weights are cut at 0 and divided by the number of keys, as in ReLU attention (Wortsman et al. 2023)"
    cut = float(before.min()) == 0 < float(before.max()) and torch.allclose(before, 2 * after)
    alone = cut and torch.allclose(*subject.beside_another_key())
    return f"{relu}: rows need not sum to 1, and may be all 0" if alone else ""


def _of_values_alone(subject: Subject, outcome: Outcome) -> str:
    """The reason if no softmax is taken, weights are 0 in other places in other sentences, and a row may be all 0 or
    another sum than 1, as after ReLU. What takes a threshold of each row, as sparsemax, leaves 1; else ""."""
    if any(softmax.weights.numel() == outcome.weights.numel() for softmax in outcome.softmaxes):
        return ""
    sizes = 1 if subject.form.alone else 12, 8 if subject.form.many else 1, 3
    first, second = (subject.run(subject.inputs(*sizes, seed=seed)).weights for seed in range(2))
    gone = [(x == 0) | x.isnan() for x in (first, second)]
    rows = torch.cat([first, second]).sum(dim=-1)
    if torch.equal(*gone) or bool((torch.cat([first, second]) < 0).any()):
        return ""
    relu = any(word in code_of(subject.target).lower() for word in ("relu", "clamp", "clip", "maximum"))
    if not torch.allclose(rows[rows != 0].nan_to_num(1), rows.new_ones(()), atol=NEAR):
        if relu:
            return "ReLU of each score in place of a softmax over the keys: rows do not sum to 1, and may be all 0"
        return "some weights are cut to 0, and rows are not divided by their sums after it: they do not sum to 1"
    words = "NaN, 0 divided by 0" if bool(rows.isnan().any()) else "all 0" * bool((rows == 0).any())
    where = "no score is above 0 and ReLU leaves none" if relu else "all weights are cut to 0"
    return f"a row is {words}, where {where}: a softmax gives every key a share" if words else ""


def backwards(weights: Tensor) -> bool:
    """Does no token of a self-attention but the last see one before it, and the first others? weights (B, H, T, S)."""
    seen = weights.nan_to_num(0).amax(dim=(0, 1))[:-1] > 0
    return weights.shape[2] == weights.shape[3] > 2 and not bool(seen.tril(-1).any()) and bool(seen.triu(1).any())


def _why_no_shares(outcome: Outcome) -> str:
    weights = outcome.weights
    if bool(weights.isnan().any()):
        if weights.shape[2] == weights.shape[3] and bool(weights[:, :, 0].isnan().all()):
            return "the first row is NaN: the causal mask hides a token from itself too (diagonal one too low)"
        if backwards(weights):
            return "the last row is NaN: the causal mask is upside down, a token sees only those after it"
        return "some rows are NaN: all their keys are hidden, or a score is NaN"
    if outcome.turned:
        return "the weights are transposed after the softmax: a row must belong to a query, and a column to a key"
    axes: dict[str, tuple[int, ...]] = {"the sentences of the batch": (0,), "the queries": (2,), "the heads": (1,)}
    axes |= {"queries and keys together": (2, 3), "the whole tensor": (0, 1, 2, 3), "batch and keys together": (0, 3)}
    for name, dims in axes.items():
        sums = weights.sum(dim=dims)
        if torch.allclose(sums, torch.ones_like(sums), atol=NEAR) and all(weights.shape[dim] > 1 for dim in dims[:1]):
            return f"weights sum to 1 over {name} and not over the keys: softmax has the wrong dim"
    if torch.allclose(weights, torch.ones_like(weights), atol=NEAR):
        return "every weight is 1: softmax runs over an axis of length 1 (dim is wrong), not over the keys"
    if torch.allclose(weights.amax(dim=-1), torch.ones(()).to(weights), atol=NEAR):
        return "each row is divided by its largest number, and not by its sum"
    for softmax in outcome.softmaxes:
        sums, places, keys = softmax.weights.sum(dim=-1), softmax.weights.shape[-1], weights.shape[-1]
        if places > keys and torch.equal(softmax.weights[..., :keys].flatten(), weights.flatten()):
            return f"the softmax runs over {places} places, and what lies behind the keys is cut off: hide it before"
        if softmax.weights.numel() == weights.numel() and torch.allclose(sums, torch.ones_like(sums), atol=NEAR):
            ratio = (weights.reshape(softmax.weights.shape) / softmax.weights).flatten()
            if torch.allclose(ratio, ratio[0], atol=NEAR):
                return f"the weights are multiplied by {ratio[0]:.3g} after the softmax: scale the scores before it"
            if bool(((ratio - 1).abs().minimum(ratio.abs()) < NEAR).all()):
                return "weights are set to 0 after the softmax: hide the scores before it, with −∞"
            return "the weights are changed after the softmax"
    if torch.allclose(weights.exp().sum(dim=-1), torch.ones(()), atol=NEAR):
        return "these are logarithms of weights: log_softmax in place of softmax"
    if bool((weights < -1e-6).any()) or bool((weights > 1 + NEAR).any()):
        return "these are scores: no softmax over the keys was taken, or it was changed after"
    sums = weights.sum(dim=-1)
    if bool((sums.minimum((sums - 1).abs()) < NEAR).all()) and bool((sums > 0.5).any()):
        return "some rows of weights are all 0, as of a query that sees no key: every query must see at least one"
    return "weights lie between 0 and 1, but no axis sums to 1: each score has become a share of its own (sigmoid?)"


def context(subject: Subject) -> Line:
    """The context is the weights times the values, or times their projections."""
    test = "context is weights times values"
    if subject.form.context is None:
        return Line(test, UNTESTED, "no context is returned, so the weights alone are tested")
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)

    def examine(inputs: Inputs) -> str | None:
        outcome = subject.run(inputs)
        wanted, returned = outcome.weights.mean(dim=1) @ inputs.values, outcome.given
        if wanted.shape == returned.shape and torch.allclose(wanted, returned, atol=NEAR):
            return None
        return f"context {numbers(returned[0, 0])}; weights times values {numbers(wanted[0, 0])}"

    if not (example := smallest(subject, examine)):
        return Line(test, OK, "weights times values is the context")
    if reason := _other_context(subject):
        return Line(test, FAULT, reason, example)
    if (residual := projected(subject)) is None:
        return Line(test, UNTESTED, "it takes no softmax of PyTorch, so weights cannot be kept while values change")
    if residual < 1e-3 and _of_a_mean(subject):
        verdict, reason = FAULT, "the context is divided by the number of keys: a mean is taken in place of a sum"
    elif residual < 1e-3 and (name := _projected_twice(subject)):
        verdict, reason = FAULT, f"the values go through {name} twice: give each projection a layer of its own"
    elif residual < 1e-3:
        verdict, reason = OK, "the context is weights times values in projections that the module learns"
    elif math.isinf(residual):
        verdict, reason = FAULT, "the values do not change the context: are keys in their place?"
    else:
        verdict, reason = _made_otherwise(subject)
    return Line(test, verdict, reason, example if verdict in (FAULT, LIMIT) else "")


def _projected_twice(subject: Subject) -> str:
    """The name of a matrix that all values meet twice, with another one after it or none; "" if there is none."""
    own, inputs = subject.copied(), subject.inputs(1, 1, 3)
    if own.module is None:
        return ""
    tell_apart(own.module)  # layers may begin as copies of one
    outcome = own.run(inputs)
    frozen = () if own.form.separate else tuple(softmax.weights for softmax in outcome.softmaxes)
    change = torch.randn(inputs.values.shape[-1], generator=torch.Generator().manual_seed(1)).to(inputs.values)
    before, after = (_context_of(own, inputs, frozen, inputs.values + x) for x in (0 * change, change))
    made = (after - before)[0, 0]

    def is_made(values: Tensor, *others: Matrix) -> bool:
        ways = [values, *(x.weight @ values for x in others if x.weight.shape[1] == len(values))]
        return any(x.shape == made.shape and float((x - made).norm()) < 1e-3 * float(made.norm()) for x in ways)

    matrices = list(matrices_of(own.module, outcome.weights.shape[1]))
    read = [(x, x.weight @ change) for x in matrices if x.weight.shape[1] == len(change)]
    if any(is_made(values, *(other for other in matrices if other is not x)) for x, values in read):
        return ""
    again = (x for x, values in read if len(values) == len(change) and is_made(x.weight @ values, *matrices))
    return next((x.words for x in again), "")


def _of_a_mean(subject: Subject) -> bool:
    """Where all values are the same, has their number an effect, and that of a division?"""
    first, other = subject.inputs(1, 1, 3, seed=8), subject.inputs(1, 1, 3, seed=9)

    def read(inputs: Inputs, count: int) -> Tensor:
        keys, values = (x[:, :1].expand(-1, count, -1) for x in (inputs.keys, inputs.values))
        return subject.run(subject.changed(inputs, keys=keys, values=values)).given[0, 0]

    few, many = (read(first, keys) - read(replace(other, query=first.query), keys) for keys in (3, 6))
    return float(few.norm()) > NEAR and torch.allclose(few, 2 * many, atol=1e-2 * float(few.norm()))


def _made_otherwise(subject: Subject) -> tuple[str, str]:
    """Verdict and reason of a context that is no weights times projected values."""

    def explained(**how: bool) -> bool:
        return (projected(subject, **how) or 0.0) < 1e-3

    if of_weighted_sum(subject) or (subject.form.itself and explained(others=True)):
        return OK, "what is returned is made of weights times values and of the query"
    if explained(every=True):
        return OK, "the context is made of weights times values, of every softmax that is taken (hops, or heads)"
    if subject.form.itself and explained(turned=True):
        if subject.run(subject.inputs(2, 2, 3)).turned:
            return OK, "the context is made of the weights before they are transposed"
        return FAULT, "the weights are transposed before they are multiplied with the values"
    if explained(centred=True):
        return LIMIT, "a number is added to all weights after the softmax, as by the bias of a layer"
    if reason := reads_several(subject.module):
        return UNTESTED, reason
    outcome = subject.run(subject.inputs(1, 2, 3))
    heads = next((x.weights for x in outcome.softmaxes if x.weights.ndim == 4), outcome.weights)
    if heads.shape[1] > 1 and torch.equal(heads[:, :1], outcome.weights):
        return FAULT, "only the weights of the first head come back, and the context is made of all: return all of them"
    several = outcome.weights.shape[1] > 1
    joined = ": are the heads joined by view or reshape, without the transpose before it?" * several
    return FAULT, f"the context is not the weights times any projection of the values{joined}"


def _other_context(subject: Subject) -> str:
    """What the context is instead, if it is a simple case."""
    outcome = subject.run(inputs := subject.inputs(3, 4, 5))
    weights = outcome.weights.mean(dim=1)
    total = inputs.values.sum(dim=1, keepdim=True).expand(-1, weights.shape[1], -1)
    over_features = weights * inputs.values.sum(dim=-1)[:, None]
    others = {"weights times keys, not values": weights @ inputs.keys}
    others["weights times values, summed over the features and not over the keys"] = over_features
    others |= {"the sum of the values, without weights": total, "the mean of the values, without weights": total / 5}
    if outcome.scores is not None:
        others["scores times values: the softmax is not used"] = outcome.scores.mean(dim=1) @ inputs.values
    if outcome.softmaxes and outcome.softmaxes[-1].weights.shape == weights.shape and not outcome.turned:
        others["softmax times values, while other weights are returned"] = outcome.softmaxes[-1].weights @ inputs.values
    given = outcome.given
    same = (name for name, x in others.items() if x.shape == given.shape and torch.allclose(x, given, atol=NEAR))
    return next((f"the context is {name}" for name in same), "")


def projected(
    subject: Subject, others: bool = False, centred: bool = False, every: bool = False, turned: bool = False
) -> float | None:
    """The error with which the weights explain the effect of one changed value on the context: 0 for a projection of
    values, also of normalised ones. others : not on the row of the token itself, to which x may be added. centred : up
    to a constant that is added to all weights. every : weights of every softmax, as of hops. turned : transposed ones.

    All values are x at first, and the weights are fixed. Where value s becomes y, the context of query t changes by
    sum_h a_hts (V_h y - V_h x). These differences are fitted. None if values cannot change alone; infinity if they
    change nothing.
    """
    form = subject.form
    inputs = subject.inputs(1 if form.alone else 20 if every else 2, 2 if form.many else 1, 6)
    weights = subject.run(inputs)
    frozen = () if form.separate and not every else tuple(softmax.weights for softmax in weights.softmaxes)
    if not form.separate and not frozen:
        return None
    explaining = weights.weights.mT if turned else _every(weights) if every else weights.weights
    change = torch.randn(inputs.values.shape[-1], generator=torch.Generator().manual_seed(1)).to(inputs.values)
    context_of = partial(_context_of, subject, inputs, frozen)
    same = inputs.values[:1, :1].expand_as(inputs.values)
    before, effects, rows = context_of(same.clone()), [], []
    for key in range(6):
        values = same.clone()
        values[:, key] += change
        counted = torch.arange(before.shape[1]) != (key if others else -1)
        effects.append((context_of(values) - before)[:, counted].flatten(0, 1))
        rows.append(explaining[..., key].permute(0, 2, 1)[:, counted].flatten(0, 1))
    shares, effect = torch.cat(rows).double(), torch.cat(effects).double()
    if centred:
        shares, effect = shares - shares.mean(dim=0), effect - effect.mean(dim=0)
    if not others and float(effect.norm()) < 1e-9:
        return math.inf
    fit = torch.linalg.lstsq(shares, effect, driver="gelsd").solution
    if every and float(fit[: weights.weights.shape[1]].norm()) < 1e-3 * float(fit.norm()):
        return 1.0  # made of other weights than those that come back
    return float((shares @ fit - effect).norm() / effect.norm().clamp_min(1e-9))


def _context_of(subject: Subject, inputs: Inputs, frozen: tuple, values: Tensor) -> Tensor:
    """The context with other values, and with the weights of `frozen` where keys change with them."""
    keys = inputs.keys if subject.form.separate else values
    return subject.run(subject.changed(inputs, keys=keys, values=values), frozen=frozen).given


def _every(outcome: Outcome) -> Tensor:
    """The weights, and beside them, as further heads, those of all other softmaxes of their size; where there is one
    query, also of several heads, whose mean may have come back."""
    own, made = outcome.weights, [softmax.weights for softmax in outcome.softmaxes]
    made = [x for x in made if x.numel() == own.numel() or (own.shape[2] == 1 and x.shape[-1] == own.shape[-1])]
    alike = [x.reshape(len(own), -1, *own.shape[2:]) for x in made if x.numel() % own.numel() == 0]
    return torch.cat([own, *(x for x in alike if not torch.equal(x, own))], dim=1)


def of_weighted_sum(subject: Subject) -> bool:
    """Is the returned context a function of the weighted sum and of the query, as tanh(W [c; s]) and x + c are?

    With the weights fixed, values that are all the same are changed in a way that leaves the weighted sums of one query
    as they are, and its own row in self-attention. They change little, since a norm may come before the sum.
    """
    form, count = subject.form, subject.run(subject.inputs(1, 1, 2)).weights.shape[1] + 4
    inputs = subject.inputs(1 if form.alone else 2, 2 if form.many else 1, count)
    outcome = subject.run(inputs)
    row = outcome.weights.shape[2] - 1  # of causal attention, the one that sees every key
    fixed = outcome.weights[0, :, row].double()
    if form.itself:
        fixed = torch.cat([fixed, torch.eye(count, dtype=torch.float64)[row].unsqueeze(0)])
    generator = torch.Generator().manual_seed(1)
    shares, change = (torch.randn(n, generator=generator).double() for n in (count, inputs.values.shape[-1]))
    shares[row] *= not form.itself
    frozen = tuple(softmax.weights for softmax in outcome.softmaxes)

    def effect(of_keys: Tensor) -> float:
        step, same = torch.zeros_like(inputs.values), inputs.values[:1, :1].expand_as(inputs.values)
        step[0] = 3e-2 * (of_keys.unsqueeze(1) * change).to(step)
        more, less = (_context_of(subject, inputs, frozen, same + x) for x in (step, -step))
        return float((more - less)[0, row].abs().max())

    return effect(shares - torch.linalg.pinv(fixed) @ (fixed @ shares)) < 1e-3 * effect(shares)
