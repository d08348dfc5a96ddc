"""The tests of a person's attention. Each returns one Line: verdict, reason, and the smallest example that fails.

Letters: B sentences, T queries, S keys, H heads. Inputs are random with a fixed seed.
"""

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial

import torch
from torch import Tensor

from attnviz.own.capture import Outcome, Subject
from attnviz.own.forms import Inputs
from attnviz.python_file import ANYTHING

# `fault` makes the report fail. `limit`: right in ordinary use, and not in the case that the line names.
OK, FAULT, LIMIT, UNTESTED = "ok", "fault", "limit", "not tested"
_SIZES = ((1, 1, 1), (1, 1, 2), (1, 2, 3), (2, 1, 2), (2, 1, 3), (2, 2, 3), (3, 4, 5))
RANDOM = "the same call gives other weights each time: mend that first"
NEAR = 1e-4  # two numbers of single precision count as equal
Examine = Callable[[Inputs], str | None]


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


def examples(subject: Subject, queries: int = 0) -> Iterator[tuple[Inputs, str]]:
    """Inputs from small to larger, and their sizes in words. queries : their number in every example; 0: as listed."""
    for batch, several, keys in _SIZES:
        inputs = subject.inputs(batch, queries or several, keys)
        yield inputs, f"{count(batch, 'sentence')}, {count(inputs.query.shape[1], 'query')}, {count(keys, 'key')}"


def count(number: int, thing: str) -> str:
    plural = {"query": "queries"}.get(thing, f"{thing}s")
    return f"{number} {thing if number == 1 else plural}"


def smallest(subject: Subject, examine: Examine) -> str:
    """The first failing example, in words; "" if none fails. Sizes that the module rejects are for another test."""
    for inputs, words in examples(subject):
        try:
            text = examine(inputs)
        except ANYTHING:  # a person's code may raise anything
            continue
        if text:
            return f"{words}: {text}"
    return ""


def numbers(values: Tensor) -> str:
    """At most five numbers, rounded."""
    values = values.detach().flatten()
    return " ".join(f"{value:.3g}" for value in values[:5].tolist()) + (" …" if len(values) > 5 else "")


def undefined(subject: Subject) -> str:
    """Why a test cannot be done because weights are NaN without a mask, or random; "" if they are not."""
    weights, again = (subject.run(subject.inputs(1 if subject.form.alone else 3, 4, 5)).weights for _ in range(2))
    if bool(weights.isnan().any()):
        return "some weights are NaN without a mask: mend that first"
    return "" if torch.allclose(weights, again, atol=NEAR) else RANDOM


def shares(subject: Subject) -> Line:
    """Weights are at least 0 and sum to 1 over the keys."""
    test = "weights sum to 1 over keys"

    def examine(inputs: Inputs) -> str | None:
        rows = subject.run(inputs).weights.flatten(0, 2)
        for row in rows:
            if not bool((row >= -1e-6).all()) or abs(float(row.sum()) - 1) > NEAR:
                return f"a row of weights is {numbers(row)}, its sum {float(row.sum()):.3g}"
        return None

    example, outcome = smallest(subject, examine), subject.run(subject.inputs(3, 7 if subject.form.many else 1, 5))
    if subject.form.weights.log and not example:
        return Line(test, LIMIT, "logarithms of weights come back, as a loss takes them: a context needs their exp()")
    if not example:
        if reason := _softmax_of_weights(outcome):
            return Line(test, FAULT, reason)
        return Line(test, OK, f"every row is at least 0 and sums to 1{_of_scores(subject)}")
    if limit := _in_a_gaussian(outcome) or _with_a_sink(subject, outcome) or _of_talking_heads(outcome):
        return Line(test, LIMIT, limit, example)
    return Line(test, FAULT, _why_no_shares(outcome), example)


def _of_scores(subject: Subject) -> str:
    """A note if the module returns the scores and not their softmax; else ""."""
    if not subject.form.weights.name.startswith("softmax"):
        return ""
    left, softmaxes = subject.call(subject.given(subject.inputs(1 if subject.form.alone else 2, 1, 3)))
    scores = [softmax.scores for softmax in softmaxes if softmax.scores is not None]
    returned = [tensor for name, tensor in left.items() if name.startswith("result")]
    if any(x.shape == y.shape and torch.equal(x, y) for x, y in itertools.product(returned, scores)):
        return "; it returns the scores before the softmax, and these are no weights"
    return ""


def _softmax_of_weights(outcome: Outcome) -> str:
    """The reason if a softmax is taken of the weights of another one; else ""."""
    for first, second in itertools.combinations(outcome.softmaxes, 2):
        if second.scores is not None and second.scores.shape == first.weights.shape:
            if torch.equal(second.scores, first.weights):
                return "softmax is taken twice: that of weights makes all of them nearly the same"
    return ""


def _in_a_gaussian(outcome: Outcome) -> str:
    """The reason if the weights are a softmax times a Gaussian of the keys' positions; else ""."""
    for softmax in outcome.softmaxes:
        if softmax.weights.numel() == outcome.weights.numel():
            ratio = outcome.weights.reshape(softmax.weights.shape) / softmax.weights
            bends = ratio.log().diff(n=2).flatten()
            if len(bends) and torch.allclose(bends, bends[0], atol=1e-3) and float(bends[0]) < -NEAR:
                words = "a softmax times a Gaussian around a position, as in Luong et al. 2015, eq. 10"
                return f"{words}: rows sum to less than 1"
    return ""


def _with_a_sink(subject: Subject, outcome: Outcome) -> str:
    """The reason if rows are divided by more than their sums, which differ: then a key changes the weights of the
    others, but not their ratios; else ""."""
    sums = outcome.weights.sum(dim=-1)
    below = bool((outcome.weights > 0).all()) and bool((sums < 1 - NEAR).all()) and float(sums.std()) > NEAR
    if not below or torch.allclose(*_beside_another_key(subject), atol=NEAR) or mixes(subject):
        return ""
    return "rows sum to less than 1: each is divided by more than its sum, so a share goes to no key (a sink)"


def _of_talking_heads(outcome: Outcome) -> str:
    """The reason if heads are mixed after the softmax; else ""."""
    words = "heads are mixed after the softmax (talking heads, Shazeer et al. 2020): rows need not sum to 1"
    return "" if outcome.before_mix is None else words


def backwards(weights: Tensor) -> bool:
    """Does no token of a self-attention see one before it, while the first sees others? weights (B, H, T, S)."""
    seen = weights.nan_to_num(0).amax(dim=(0, 1)) > 0
    return seen.shape[0] == seen.shape[1] > 1 and not bool(seen.tril(-1).any()) and bool(seen.triu(1).any())


def _why_no_shares(outcome: Outcome) -> str:
    weights = outcome.weights
    if bool(weights.isnan().any()):
        if weights.shape[2] == weights.shape[3] and bool(weights[:, :, 0].isnan().all()):
            return "the first row is NaN: the causal mask hides a token from itself too (diagonal one too low)"
        if backwards(weights):
            return "the last row is NaN: the causal mask is upside down, a token sees only those after it"
        return "some rows are NaN: all their keys are hidden, or a score is NaN"
    axes: dict[str, tuple[int, ...]] = {"the sentences of the batch": (0,), "the queries": (2,), "the heads": (1,)}
    axes |= {"queries and keys together": (2, 3), "the whole tensor": (0, 1, 2, 3), "batch and keys together": (0, 3)}
    for name, dims in axes.items():
        sums = weights.sum(dim=dims)
        if torch.allclose(sums, torch.ones_like(sums), atol=NEAR) and all(weights.shape[dim] > 1 for dim in dims[:1]):
            return f"weights sum to 1 over {name} and not over the keys: softmax has the wrong dim"
    if torch.allclose(weights, torch.ones_like(weights), atol=NEAR):
        return "every weight is 1: softmax runs over an axis of length 1 (dim is wrong), not over the keys"
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
    tops = weights.amax(dim=-1)
    if weights.shape[-1] > 1 and torch.allclose(tops, torch.ones_like(tops), atol=NEAR):
        return "each row is divided by its largest number, and not by its sum"
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
        wanted = outcome.weights.mean(dim=1) @ inputs.values
        returned = _given(outcome)
        if wanted.shape == returned.shape and torch.allclose(wanted, returned, atol=NEAR):
            return None
        return f"context {numbers(returned[0, 0])}; weights times values {numbers(wanted[0, 0])}"

    example = smallest(subject, examine)
    if not example:
        return Line(test, OK, "weights times values is the context")
    if reason := _other_context(subject):
        return Line(test, FAULT, reason, example)
    residual = projected(subject)
    if residual is None:
        reason = "what is returned is more than the weighted sum, and values cannot be changed apart"
        return Line(test, UNTESTED, reason)
    if _of_a_mean(subject):
        return Line(
            test, FAULT, "the context is divided by the number of keys: a mean is taken in place of a sum", example
        )
    if residual < 1e-3:
        return Line(test, OK, "the context is weights times values in projections that the module learns")
    if math.isinf(residual):
        return Line(test, FAULT, "the values do not change the context: are keys in their place?", example)
    verdict, reason = _made_otherwise(subject)
    return Line(test, verdict, reason, example if verdict != OK else "")


def _of_a_mean(subject: Subject) -> bool:
    """Where all values are the same, has their number an effect, and that of a division?"""
    first, other = subject.inputs(1, 1, 3, seed=8), subject.inputs(1, 1, 3, seed=9)

    def read(inputs: Inputs, keys: int) -> Tensor:
        query, same = (x[:, :1].expand(-1, n, -1) for x, n in ((inputs.query, 1), (inputs.values, keys)))
        own = inputs.keys[:, :1].expand(-1, keys, -1) if subject.form.separate else same
        return _given(subject.run(Inputs(own if subject.form.itself else query, own, same)))[0, 0]

    few, many = (read(first, keys) - read(replace(other, query=first.query), keys) for keys in (3, 6))
    return float(few.norm()) > NEAR and torch.allclose(few, 2 * many, atol=1e-2 * float(few.norm()))


def _made_otherwise(subject: Subject) -> tuple[str, str]:
    """Verdict and reason of a context that is no weights times projected values."""

    def explained(**how: bool) -> bool:
        return (projected(subject, **how) or 0.0) < 1e-3

    itself = subject.form.itself
    if of_weighted_sum(subject) or (itself and explained(others=True)):
        return OK, "what is returned is made of weights times values and of the query"
    if explained(every=True):
        return OK, "the context is made of weights times values, of every softmax that is taken (hops)"
    if itself and explained(turned=True):
        return FAULT, "the weights are transposed before they are multiplied with the values"
    if explained(centred=True):
        return LIMIT, "a number is added to all weights after the softmax, as by the bias of a layer"
    reason = "the context is not the weights times any projection of the values"
    if subject.run(subject.inputs(1, 1, 2)).weights.shape[1] > 1:
        reason += ": are the heads joined by view or reshape, without the transpose before it?"
    return FAULT, reason


def _other_context(subject: Subject) -> str:
    """What the context is instead, if it is a simple case."""
    inputs = subject.inputs(3, 4, 5)
    outcome = subject.run(inputs)
    weights = outcome.weights.mean(dim=1)
    total, others = inputs.values.sum(dim=1, keepdim=True).expand(-1, weights.shape[1], -1), {}
    others["weights times keys, not values"] = weights @ inputs.keys
    others["weights times values, summed over the features and not over the keys"] = (
        weights * inputs.values.sum(dim=-1)[:, None]
    )
    others |= {"the sum of the values, without weights": total, "the mean of the values, without weights": total / 5}
    if outcome.scores is not None:
        others["scores times values: the softmax is not used"] = outcome.scores.mean(dim=1) @ inputs.values
    if outcome.softmaxes and outcome.softmaxes[-1].weights.shape == weights.shape:
        before = outcome.softmaxes[-1].weights @ inputs.values
        others["softmax times values, while other weights are returned"] = before
    for name, other in others.items():
        returned = _given(outcome)
        if other.shape == returned.shape and torch.allclose(other, returned, atol=NEAR):
            return f"the context is {name}"
    return ""


def _given(outcome: Outcome) -> Tensor:
    """The context. ValueError if none is returned."""
    if outcome.context is None:
        raise ValueError("no context comes back")
    return outcome.context


def projected(
    subject: Subject, others: bool = False, centred: bool = False, every: bool = False, turned: bool = False
) -> float | None:
    """The error with which the weights explain the effect of one changed value on the context: 0 for a projection of
    values, also of normalised ones. others : not on the row of the token itself, to which x may be added. centred : up
    to a constant that is added to all weights. every : the weights of every softmax, as of hops. turned : the
    transposed weights.

    All values are x at first, and the weights are fixed. Where value s becomes y, the context of query t changes by
    sum_h a_hts (V_h y - V_h x). These differences are fitted. None if values cannot change without the weights;
    infinity if they change nothing.
    """
    form = subject.form
    inputs = subject.inputs(1 if form.alone else 2, 2 if form.many else 1, 6)
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
    changed = Inputs(inputs.query, inputs.keys, values)
    if not subject.form.separate:
        changed = Inputs(values if subject.form.itself else inputs.query, values, values)
    return _given(subject.run(changed, frozen=frozen))


def _every(outcome: Outcome) -> Tensor:
    """The weights, and beside them, as further heads, those of all other softmaxes of their size."""
    own = outcome.weights
    alike = [x.weights.reshape(own.shape) for x in outcome.softmaxes if x.weights.numel() == own.numel()]
    return torch.cat([own, *(x for x in alike if not torch.equal(x, own))], dim=1)


def of_weighted_sum(subject: Subject) -> bool:
    """Is the returned context a function of the weighted sum and of the query, as tanh(W [c; s]) and x + c are?

    With the weights fixed, values are changed in a way that leaves the weighted sums of one query as they are, and its
    own row in self-attention.
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
    if form.itself:
        shares[row] = 0
    frozen = tuple(softmax.weights for softmax in outcome.softmaxes)

    def effect(of_keys: Tensor) -> float:
        values = inputs.values.clone()
        values[0] += (of_keys.unsqueeze(1) * change).to(values)
        return float((_context_of(subject, inputs, frozen, values) - _given(outcome))[0, row].abs().max())

    hidden = shares - torch.linalg.pinv(fixed) @ (fixed @ shares)
    return effect(hidden) < 1e-3 * effect(shares)


def difference_of(before: Outcome, after: Outcome, sentence: int) -> float:
    """The largest difference of weights and context of one sentence."""
    pairs = [(before.weights, after.weights), (before.context, after.context)]
    return max(float((a[sentence] - b[sentence]).abs().max()) for a, b in pairs if a is not None and b is not None)


def _beside_another_key(subject: Subject) -> tuple[Tensor, Tensor]:
    """The weights of four keys (1, H, 4) before and after a change of a fifth."""
    inputs = subject.inputs(1, 1, 5, seed=2)
    keys = inputs.keys.clone()
    keys[:, 4] += 1.0
    query = keys if subject.form.itself else inputs.query
    changed = Inputs(query, keys, inputs.values if subject.form.separate else keys)
    return subject.run(inputs).weights[..., 0, :4], subject.run(changed).weights[..., 0, :4]


def mixes(subject: Subject) -> bool:
    """Does the ratio of two weights change when a third key changes? Not with scores of one query and one key each."""
    before, after = (weights / weights.sum(dim=-1, keepdim=True) for weights in _beside_another_key(subject))
    return float((after - before).abs().max()) > NEAR
