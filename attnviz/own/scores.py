"""One run of a module, with whose weights the scores of a formula are compared. Letters as in forms."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from itertools import permutations, takewhile
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from attnviz.own.capture import Subject
from attnviz.own.forms import Inputs
from attnviz.own.gradients import make_plain
from attnviz.own.matrices import entmax, norms_of, tell_apart

_EQUAL = 1e-5  # relative, in double precision


@dataclass(frozen=True)
class Normaliser:
    """What makes weights from scores. inverse : scores of weights above 0, up to a number for each row. words : what is
    in the place of a softmax. exact : any factor of the scores would fit, so only the formula's is told."""

    weights: Callable[[Tensor], Tensor]
    inverse: Callable[[Tensor], Tensor]
    words: str = ""
    exact: bool = False


SOFTMAX = Normaliser(partial(torch.softmax, dim=-1), torch.log)
_SPARSE = (
    Normaliser(partial(entmax, alpha=2.0), torch.clone, "by sparsemax (Martins & Astudillo 2016)"),
    Normaliser(partial(entmax, alpha=1.5), lambda weights: 2 * weights.sqrt(), "by 1.5-entmax (Peters et al. 2019)"),
    Normaliser(
        lambda scores: scores.relu() / scores.shape[-1],
        lambda weights: weights * weights.shape[-1],
        "by ReLU and the number of keys (Wortsman et al. 2023)",
        exact=True,
    ),
)


@dataclass(frozen=True)
class Seen:
    """One run in double precision: query (B, T, Dq), keys (B, S, Dk), weights (B, H, T, S), values (B, S, Dv), context
    (B, T, D) if returned.

    prepared : how query and keys are changed before the matrices, in words. biased : compare up to a number for each
    pair of positions. fitted : after `factor` has found one, the scores that give these weights. normaliser : what made
    the weights. sparse : some are 0 without a mask, and not by their positions. mixed : heads are mixed afterwards.
    """

    query: Tensor
    keys: Tensor
    weights: Tensor
    values: Tensor
    context: Tensor | None
    itself: bool = False
    prepared: str = ""
    biased: bool = False
    fitted: list[Tensor] = field(default_factory=list)
    normaliser: Normaliser = SOFTMAX
    sparse: bool = False
    mixed: bool = False

    @property
    def counts(self) -> tuple[int, ...]:
        """The numbers of keys, queries and sentences."""
        return self.keys.shape[1], self.query.shape[1], len(self.query)

    @cached_property
    def visible(self) -> Tensor:
        """The keys with a weight (B, H, T, S)."""
        return self.weights > 0

    @cached_property
    def logs(self) -> Tensor:
        """The centred logarithms of the weights (B, H, T, S), or what else gives scores."""
        return self.centred(self.normaliser.inverse(self.weights))

    def centred(self, scores: Tensor) -> Tensor:
        """scores (B, H, T, S) less their mean over the visible keys of a row, which a softmax cannot tell; less the
        mean over sentences too if `biased`. 0 for hidden keys."""
        scores = torch.where(self.visible, scores, 0.0)
        means = scores.sum(dim=-1, keepdim=True) / self.visible.sum(dim=-1, keepdim=True).clamp_min(1)
        scores = torch.where(self.visible, scores - means, 0.0)
        return scores - scores.mean(dim=-4, keepdim=True) if self.biased else scores

    def no_scores(self) -> str:
        """Why no scores can be read off the weights; "" if they can."""
        if bool((self.weights < 0).any()):
            return "some weights are negative"
        if float(self.logs.norm()) >= 1e-9:
            return ""
        if self.sparse:
            return "each row has all its weight on one key (hard attention)"
        return "weights are NaN" if bool(self.weights.isnan().any()) else "all weights of a row are the same"

    def likely(self, scores: Tensor) -> tuple[Tensor, Tensor]:
        """For many scores (..., B, H, T, S): factors c of heads (..., H), and whether c * scores gives the same
        differences of logarithms (...)."""
        centred = self.centred(scores)
        sizes = (centred * centred).sum(dim=(-4, -2, -1))
        factors = (centred * self.logs).sum(dim=(-4, -2, -1)) / sizes.clamp_min(1e-12)
        rest = (self.logs - factors[..., None, :, None, None] * centred).flatten(-4).norm(dim=-1)
        return factors, factors.all(dim=-1) & (rest <= _EQUAL * self.logs.norm())

    def factors(self, scores: Tensor) -> Tensor | None:
        """The factors c of heads (H) for which c * scores gives these weights; None if there are none. scores (B, H, T,
        S)."""
        if scores.shape != self.weights.shape:
            return None
        factors, fits = self.likely(scores)
        if not bool(fits):
            return None
        self.fitted[:] = [factors[:, None, None] * scores]
        return factors if self.fits() else None

    def factor(self, scores: Tensor) -> float | None:
        """The one factor of all heads; None if there is none."""
        if (factors := self.factors(scores)) is None or not torch.allclose(factors, factors[0], rtol=1e-4):
            return None
        return float(factors[0])

    def mixed_heads(self, scores: Tensor) -> list[int]:
        """Which of many scores (n, B, H, T, S) give these weights as sums over heads, each times a number."""
        parts, logs = (x.movedim(-3, -1).flatten(-4, -2) for x in (self.centred(scores), self.logs))
        mix = torch.linalg.lstsq(parts, logs.expand(len(parts), -1, -1), driver="gelsd").solution
        close = (parts @ mix - logs).flatten(1).norm(dim=-1) <= _EQUAL * logs.norm()
        for index in (several := close.nonzero().flatten().tolist()):
            self.fitted[:] = [torch.einsum("bhts,hg->bgts", scores[index], mix[index])]
        return several if several and self.fits() else []

    def fits(self) -> bool:
        """Are the weights those of `fitted`? ReLU is proportional to scores as sparsemax is, but of another sum."""
        return self.normaliser is SOFTMAX or float((self.made() - self.weights).abs().max()) <= _EQUAL

    def made(self) -> Tensor:
        """The weights (B, H, T, S) of the scores `fitted`."""
        scores = self.fitted[0] + (self.added() if self.biased else 0.0)
        open_to = self.visible.flatten(0, 1).any(dim=0) if self.normaliser is not SOFTMAX else self.visible
        return self.normaliser.weights(scores.masked_fill(~open_to, -torch.inf))

    def difference(self) -> str:
        """The largest difference of a weight, or its share where rows do not sum to 1, from those of `fitted`."""
        shares = self.weights / (self.weights.sum(dim=-1, keepdim=True) if self.normaliser is SOFTMAX else 1)
        return f"largest difference {float((self.made() - shares).nan_to_num().abs().max()):.0e}"

    def added(self) -> Tensor:
        """What each pair of positions adds to `fitted`, less the mean of the row (H, T, S)."""
        plain = replace(self, biased=False)
        return (plain.logs - plain.centred(self.fitted[0])).mean(dim=0)

    def positions(self) -> str:
        """What `added` is, in words; "" if nothing is added."""
        if not self.biased:
            return ""
        added, plain = self.added(), replace(self, biased=False)
        queries, keys = (torch.arange(length, dtype=torch.float64) for length in added.shape[1:])
        away = plain.centred(-(queries[:, None] - keys).abs().expand(self.weights.shape))[0]
        rates = (added * away).sum(dim=(1, 2)) / (away * away).sum(dim=(1, 2))
        if torch.allclose(added, rates[:, None, None] * away, atol=1e-6):
            return f"less {', '.join(f'{rate:.3g}' for rate in rates.tolist())} times the distance (ALiBi)"
        both = self.visible[0, :, 1:, 1:] & self.visible[0, :, :-1, :-1]
        along = torch.where(both, added[:, 1:, 1:] - added[:, :-1, :-1], torch.nan)
        same = (along - along.nanmean(dim=-1, keepdim=True)).nan_to_num().abs().max() < 1e-6
        return f"plus a number for each {'distance' if bool(same) else 'pair of positions'}"

    def zeros(self) -> str:
        """Which keys get exactly 0 although nothing hides them, in words; "" if none do, or the normaliser says it."""
        if not self.sparse or self.normaliser is not SOFTMAX:
            return ""
        counts, scores = self.visible.sum(dim=-1), self.fitted[0]
        least, most = (scores.masked_fill(hide, end) for hide, end in ((~self.visible, 1e9), (self.visible, -1e9)))
        if bool((counts == counts[0, 0, -1]).all()) and bool((least.amin(dim=-1) >= most.amax(dim=-1)).all()):
            return f"only the {int(counts[0, 0, -1])} keys with the largest scores get weight (top-k)"
        return "some keys get exactly 0 without a mask"

    def window(self) -> str:
        """Which keys are hidden by their positions, in words; "" if none are, or only later ones."""
        queries, keys = (torch.arange(length) for length in self.weights.shape[2:])
        shown, distance = self.visible[0, 0], keys - queries[:, None]
        if not self.itself or bool(shown.all()) or bool((self.visible != shown).any()):
            return ""
        before, after = -int(distance[shown].min()), int(distance[shown].max())
        if before < 1:  # a causal mask upside down
            return ""
        if not torch.equal(shown, (distance >= -before) & (distance <= after)):
            return "some keys are hidden by their positions"
        sides = [f"{before} before"] * (before < len(keys) - 1) + [f"{after} after"] * (0 < after < len(keys) - 1)
        return f"in a window: a token sees at most {' and '.join(sides)} it" if sides else ""


def look(subject: Subject) -> tuple[Seen, Subject]:
    """A run of the module in double precision, and the module that ran. Where some weights are 0 without a mask, with
    smaller numbers: then more of them are above 0."""
    own = subject.copied()
    if own.module is not None:
        make_plain(own.module.double())
        tell_apart(own.module)
    keys = next(number for number in (6, 5, 7, 9) if number not in own.form.widths)  # so that its root is another
    seen = seen_in(own, own.inputs(3, 4, keys, seed=11))
    if seen.sparse:
        seen = replace(seen_in(own, own.inputs(12, 4, keys, seed=11), 0.25), sparse=True)
    return seen, own


def seen_in(own: Subject, inputs: Inputs, size: float = 1.0) -> Seen:
    """A run with these inputs, times `size`."""
    parts = {name: size * getattr(inputs, name).double() for name in ("query", "keys", "values")}
    inputs = own.changed(inputs, **parts)
    outcome = own.run(inputs)
    before, context = outcome.before_mix, outcome.context
    weights = (outcome.weights if before is None else before).double()
    weights = weights[:, :1] if torch.allclose(weights, weights[:, :1]) else weights  # heads that are all the same
    context = None if context is None else context.double()
    seen = Seen(inputs.query, inputs.keys, weights, inputs.values, context, own.form.itself, mixed=before is not None)
    return replace(seen, sparse=bool((seen.visible != seen.visible[0]).any()) and not bool((weights < 0).any()))


def variants(seen: Seen, module: nn.Module | None) -> Iterator[Seen]:
    """The run, the run after a norm within the module, and both up to a number for each pair of positions."""
    whole = [seen]
    for name, norm, width in norms_of(module):
        query, keys = width == seen.query.shape[-1], width == seen.keys.shape[-1]
        for of_query, of_keys in ((True, True),) if seen.itself else ((True, True), (True, False), (False, True)):
            if (query or not of_query) and (keys or not of_keys):
                words = "queries and keys" if of_query and of_keys else "queries" if of_query else "keys"
                changed = {"query": norm(seen.query)} if of_query else {}
                changed |= {"keys": norm(seen.keys), "values": norm(seen.values)} if of_keys else {}
                whole.append(replace(seen, **changed, prepared=f"{words} after `{name}`"))
    yield from whole
    for normaliser in _SPARSE if seen.sparse else ():
        yield from (replace(variant, normaliser=normaliser, fitted=[]) for variant in whole)
    shares = torch.allclose(seen.weights.sum(dim=-1), seen.weights.new_ones(()))
    if shares and len(seen.weights) > 1 and bool((seen.visible == seen.visible[0]).all()):
        yield from (replace(variant, biased=True, fitted=[]) for variant in whole)


def uncapped(own: Subject, seen: Seen) -> tuple[float, Callable[[float], Seen]]:
    """If scores are c · tanh(s / a): c, and a run with s in place of the logarithms for any a; else 0. A key that is a
    million times as large has the scores c and -c, for ± a million."""
    inputs = own.inputs(3, 4, seen.keys.shape[1] + 1, seed=11)
    large, rest = (slice(1), slice(1, None)) if own.form.causal else (slice(-1, None), slice(-1))
    rows, less = rest if own.form.itself else slice(None), []
    for size in (1e6, -1e6):
        keys = inputs.keys.clone()
        keys[:, large] *= size
        run = seen_in(own, own.changed(inputs, keys=keys), 0.25)
        less.append((logs := run.weights.log()[:, :, rows])[..., large] - logs[..., rest])
    weights, twice = run.weights[:, :, rows, rest], less[0] - less[1]
    caps = twice[weights > 0].abs() / 2
    if not len(caps) or not bool(caps.isfinite().all()) or caps.std() > 1e-6 * caps.mean() or caps.mean() < 1e-6:
        return 0.0, lambda _: seen
    cap, run = float(caps.mean()), replace(run, query=run.query[:, rows], keys=run.keys[:, rest], context=None)
    run = replace(run, weights=weights / weights.sum(dim=-1, keepdim=True), values=run.values[:, rest], sparse=False)

    def of(inner: float) -> Seen:
        whole = inner * (twice.sign() - less[0] / cap).clamp(1e-12 - 1, 1 - 1e-12).atanh()

        def made(scores: Tensor) -> Tensor:
            added = (whole - scores)[weights > 0].mean()  # a bias within the tanh
            return torch.where(scores.isinf(), scores, cap * ((scores + added) / inner).tanh()).softmax(dim=-1)

        return replace(run, normaliser=Normaliser(made, whole.view_as), fitted=[])

    return cap, of


def joined(own: Subject, seen: Seen) -> Iterator[Seen]:
    """The run with several parts of a decoder's states as the query: joined, in any order, or their mean."""
    form = own.form
    if len(form.reads) < 2 or form.many:
        return
    steps = [own.given(own.changed(Inputs(x, seen.keys, seen.values))) for x in seen.query.split(1, dim=1)]
    parts = {form.name_of(part): torch.stack([form.part(x, part) for x in steps], dim=1) for part in form.reads}
    for names in permutations(parts):
        query = torch.cat([parts[name] for name in names], dim=-1)
        yield replace(seen, query=query, prepared=f"the query is [{'; '.join(names)}]", fitted=[])
    mean = torch.stack([*parts.values()]).mean(dim=0)
    yield replace(seen, query=mean, prepared=f"the query is the mean of {', '.join(parts)}", fitted=[])


def interaction(own: Subject) -> tuple[Tensor, Tensor, Tensor]:
    """Changes of a query (B, Dq) and of a key (B, Dk), and what both together add to the difference of its score and
    that of another key (B, H): nothing of the query alone, of the key alone, or of positions."""
    inputs, other = (own.inputs(24, 1, 6, seed=seed) for seed in (12, 13))
    row, key = (4 if own.form.itself else 0), 2

    def score(of_query: bool, of_key: bool) -> Tensor:
        query, keys = inputs.query.double().clone(), inputs.keys.double().clone()
        if of_key:
            keys[:, key] = other.keys[:, key]
        if of_query:
            (keys if own.form.itself else query)[:, row] = (other.keys if own.form.itself else other.query)[:, row]
        made = own.changed(inputs, query=query, keys=keys, values=inputs.values.double())
        logs = own.run(made).weights[:, :, row].log()
        return logs[..., key] - logs[..., 1]

    changes = (other.keys - inputs.keys).double()
    of_query = changes[:, row] if own.form.itself else (other.query - inputs.query).double()[:, row]
    return of_query, changes[:, key], score(True, True) - score(True, False) - score(False, True) + score(False, False)


def terms_of(own: Subject, query: Callable, keys: Callable, factor: float) -> tuple[str, str]:
    """What the scores have besides factor * q . k: the first terms in the list that give it all, and the largest
    difference of a weight, in words; "" if none does. query, keys : what makes q and k (B, H, T, d) of the inputs."""
    seen = seen_in(own, own.inputs(40, 6, 6, seed=14))
    q, k = query(seen.query), keys(seen.keys)
    products = factor * q @ k.mT
    rows, columns = (torch.arange(length) for length in seen.weights.shape[2:])
    distance = columns - rows[:, None]
    number = one_hot(distance - distance.min()).double().expand(*seen.weights.shape, -1)
    of_query = (q[:, :, :, None, None] * number[..., None]).flatten(4)
    of_keys = (k[:, :, None, :, None] * number[..., None]).flatten(4)
    alone = k[:, :, None].expand(*seen.weights.shape, -1)
    for words, parts in {
        "q · r, r a learnt vector of the distance (relative positions, Shaw et al. 2018)": (of_query,),
        "u · k, u one vector for all queries": (alone,),
        "q · r and a number, both of the distance": (of_query, number),
        "u · k, and q · r and a number of the distance (Transformer-XL, Dai et al. 2019)": (of_query, alone, number),
        "q · r + k · r′, of the distance (as in DeBERTa, He et al. 2021)": (of_query, of_keys, number),
    }.items():
        together = torch.cat(parts, dim=-1)
        heads = (_fitted(seen, together[:, head], products[:, head], head) for head in range(q.shape[1]))
        made = list(takewhile(lambda scores: scores is not None, heads))
        if len(made) == q.shape[1]:
            seen.fitted[:] = [torch.stack(made, dim=1)]
            return words, seen.difference()
    return "", ""


def _fitted(seen: Seen, parts: Tensor, products: Tensor, head: int) -> Any:
    """The scores of a head (B, T, S) as products (B, T, S) and a sum of parts (B, T, S, n), each times a number; None
    if that does not give the weights."""
    visible = seen.visible[:, head]
    if 2 * parts.shape[-1] > int(visible.sum()):
        return None  # too few weights to tell
    together = torch.cat([parts, products[..., None], seen.logs[:, head, ..., None]], dim=-1)
    together = torch.where(visible[..., None], together, 0.0)
    means = together.sum(dim=2, keepdim=True) / visible.sum(dim=-1)[..., None, None].clamp_min(1)
    flat = torch.where(visible[..., None], together - means, 0.0).flatten(0, 2)
    rest = flat[:, -1] - flat[:, -2]
    fit = torch.linalg.lstsq(flat[:, :-2], rest[:, None], driver="gelsd").solution[:, 0]
    exact = bool((flat[:, :-2] @ fit - rest).norm() <= _EQUAL * rest.norm())
    return products + parts @ fit if exact else None


def shape_of(subject: Subject, seen: Seen) -> str:
    """How the score depends on query, key and positions, in words for the end of a sentence."""
    more = "; some keys get exactly 0 without a mask" if seen.sparse else ""
    if subject.form.itself:
        return more + _of_positions(subject)
    first, other = (subject.inputs(1, 1, 2, seed=seed) for seed in (5, 6))

    def score(query: Tensor, key: Tensor) -> float:
        """The score of a key less that of a key of zeros."""
        keys = torch.stack([key, torch.zeros_like(key)], dim=1)
        logs = subject.run(Inputs(query, keys, first.values if subject.form.separate else keys)).weights.log()
        return float((logs[..., 0] - logs[..., 1]).mean())

    q, r, k, m = first.query, other.query, first.keys[:, 0], other.keys[:, 0]
    scale = max(abs(score(q, k)), abs(score(r, m)), 1e-3)
    if scale == 1e-3:  # all weights are the same
        return more
    in_query = abs(score(q + r, k) + score(q * 0, k) - score(q, k) - score(r, k)) < 1e-3 * scale
    in_keys = abs(score(q, k + m) - score(q, k) - score(q, m)) < 1e-3 * scale
    if abs(score(q, k) - score(q, m)) + abs(score(r, k) - score(r, m)) < 1e-3 * scale:
        if subject.form.separate:
            read = subject.inputs(2, 1, 4, seed=5)
            swapped = subject.run(replace(read, values=read.values.flip(1))).weights
            if not torch.allclose(swapped, subject.run(read).weights, atol=1e-5):
                return ": the scores are of the query and the values, not the keys: values are in the place of keys"
        return ": weights of positions that do not depend on the keys, as in Luong's location-based attention"
    words = {
        (True, True): "linear in the query and in the keys",
        (True, False): "linear in the query and not in the keys",
        (False, True): "linear in the keys and not in the query",
        (False, False): "linear in neither query nor keys",
    }
    return f"; it is {words[in_query, in_keys]}{more}"


def _of_positions(subject: Subject) -> str:
    """Does a token's weight depend on positions? x is read once more behind another token, and in another order."""
    x = subject.inputs(1, 5, 6, seed=4).keys
    turn = torch.tensor([1, 0, 3, 2, 4, 5])

    def ratios(tokens: Tensor, order: Tensor) -> Tensor:
        """Of the weights of the last token of x, to their sum (H, S)."""
        row = subject.run(Inputs(tokens, tokens, tokens)).weights[0, :, -1, order]
        return (row / row.sum(dim=-1, keepdim=True)).nan_to_num()

    whole, last = torch.arange(6), torch.arange(5)
    if torch.allclose(ratios(x, whole), ratios(x[:, turn], turn.argsort()), atol=1e-4):
        return ""
    behind = torch.allclose(ratios(x[:, 1:], last), ratios(x, last + 1), atol=1e-4)
    return f"; it depends on {'the distance between' if behind else 'the positions of'} query and key"
