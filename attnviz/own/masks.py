"""Tests of a mask: hidden keys get exactly 0, the rest sums to 1, and nothing comes from what is hidden; and of the
order of the keys, which a causal mask fixes."""

import re
from contextlib import suppress
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor

from attnviz.own import forms
from attnviz.own.capture import Outcome, Subject, parameters_of
from attnviz.own.checks import FAULT, LIMIT, NEAR, OK, UNTESTED, Line, backwards, numbers, shares, smallest, undefined
from attnviz.own.forms import Inputs
from attnviz.own.matrices import reads_several
from attnviz.own.source import DOCUMENTED, code_of, in_words, meant
from attnviz.python_file import ANYTHING

KEEP, HIDE = forms.KEEP, forms.HIDE
HIDDEN = "hidden keys get 0"  # the name of a test
_ROWS = "the mask hides the rows of padding (queries), not its columns (keys): unsqueeze(1), not unsqueeze(2)"
_NO_SHARES = "weights are no shares of the keys: mend that first"
_DIMMED = "tokens see later ones: the causal mask multiplies scores or adds a small number; it must add −∞ to them"
_CAUSAL = (
    "a causal mask: a query sees no key after its own place. Right where queries and keys are one sentence; "
    "a sentence that is translated must be seen whole"
)

# What a mask does, the better understood the larger.
_NOTHING, _SOMETHING, _AFTER, _NEARLY, HIDES = range(5)


def padded(batch: int, keys: int, same: bool) -> Tensor:
    """Visible keys (batch, keys): the first ones of every sentence, at least one and never all. same : the same for all
    sentences."""
    lengths = [max(1, keys - 2)] * batch if same else [max(1, keys - 1 - b % (keys - 1)) for b in range(batch)]
    return torch.arange(keys) < torch.tensor(lengths).unsqueeze(1)


def effect_of(subject: Subject, inputs: Inputs, base: Tensor) -> tuple[int, bool]:
    """The effect of a mask on the weights, and whether 1 hides a key in it, which is so where that does more."""
    mask, best = subject.form.given_mask, (_NOTHING, False)
    visible = padded(len(inputs.keys), inputs.keys.shape[1], same="B" not in mask.axes)
    for hides in (False, True) if mask.kind in ("bool", "int") else (False,):
        laid = Subject(subject.target, replace(subject.form, mask=replace(mask, hides=hides)))
        weights = laid.run(replace(inputs, visible=visible)).weights
        if mask.kind == "additive":  # of another kind where it is not added: then a finite number does something else
            finite = Subject(subject.target, replace(subject.form, mask=replace(mask, number=-1e4)))
            if not torch.allclose(finite.run(replace(inputs, visible=visible)).weights, weights, equal_nan=True):
                return best
        best = max(best, (_effect(weights, base, visible, subject.form.itself), hides), key=lambda way: way[0])
        if best[0] in (_NOTHING, HIDES):
            break
    return best


def _effect(weights: Tensor, base: Tensor, visible: Tensor, itself: bool) -> int:
    """What a mask does to the weights `base`. itself : rows of padding whose weights are all the same count for
    nothing. Nor do those without a visible key, as of a causal mask that is upside down."""
    rows = weights.isfinite().all(dim=-1) & ((visible[:, None] | (weights.std(dim=-1) > 1e-6)) if itself else True)
    if torch.allclose(weights, base, atol=1e-6) or not bool(rows.any()):
        return _NOTHING if bool(rows.any()) else _SOMETHING
    shown, weights = visible[:, None, None].expand_as(weights)[rows], weights[rows]
    gone, left = weights[~shown], weights[shown]
    sums = torch.allclose(weights.sum(dim=-1), torch.ones(()).to(weights), atol=1e-4)
    if bool((gone == 0).all()) and bool((left != 0).any()):
        return HIDES if sums else _AFTER
    if bool((gone.abs() < 1e-4).all()) and sums:
        return _NEARLY
    return _AFTER if bool((gone < -1).all()) else _SOMETHING  # a large negative number in place of a weight


def hidden(subject: Subject, stated: str | None = None) -> Line:
    """Hidden keys get exactly 0, rows still sum to 1, and the mask is the right way round."""
    test, zeros = HIDDEN, None
    with suppress(*ANYTHING):  # one sentence may be too few, which is for another test
        zeros = _zeros(subject, test)
    if subject.form.mask is None:
        return zeros or _without(subject)
    if (whole := shares(subject).verdict) == FAULT:
        return Line(test, UNTESTED, _NO_SHARES)
    whole = OK if subject.form.weights.log else whole
    if example := smallest(subject, partial(_unhidden, subject, whole)):
        return Line(test, FAULT, _why(subject), example)
    if reason := _one_row(subject):
        return Line(test, FAULT, reason)
    return _not_causal(subject) or zeros or _way(subject, stated, whole)


def _unhidden(subject: Subject, whole: str, inputs: Inputs) -> str | None:
    """An example where a mask of padding does not hide it, or more. whole : OK if rows sum to 1."""
    keys = inputs.keys.shape[1]
    if keys < 2:
        return None
    visible = padded(len(inputs.keys), keys, same="B" not in subject.form.given_mask.axes)
    masked = replace(inputs, visible=visible)
    every, plain = (subject.run(x).weights for x in (masked, inputs))
    gone, obeys = _gone(subject, plain, visible)
    wrong = ((every != 0) & gone).any(dim=-1)
    if whole == OK:
        wrong |= obeys & ((every.sum(dim=-1) - 1).abs() > 1e-4)
    if bool(wrong.any()):
        place = wrong.nonzero()[0].tolist()
        named = zip(("in sentence", "in head", "of query"), place)
        where = "".join(f"{name} {index + 1} " for name, index in named if index)
        row = every[tuple(place)]
        return f"key {keys} hidden: weights {where}{numbers(row)}, their sum {float(row.sum()):.3g}"
    row = every[0, :, 0].mean(dim=0)
    lost = (row == 0) & visible[0] & (plain[0, :, 0].mean(dim=0) != 0)
    if bool(lost.any()) and subject.form.given_mask.kind != "lengths":  # in a batch, and not alone
        lost &= subject.run(masked.sentence(0)).weights[0, :, 0].mean(dim=0) != 0
    if bool(lost.any()) or _swallowed(plain[0, :, 0], row[visible[0]], visible[0]):
        return f"key {keys} hidden: weights {numbers(row)}"
    return None


def _gone(subject: Subject, plain: Tensor, visible: Tensor) -> tuple[Tensor, Tensor]:
    """Where weights (B, H, T, S) must be 0; and the rows (B, H, T) that must obey a mask: without it they have weight
    on a visible key, and in self-attention are no padding. plain : weights without a mask."""
    shown = visible[:, None, None].expand_as(plain)
    obeys = ((plain != 0) & shown).any(dim=-1)
    obeys = obeys & visible[:, None] if subject.form.itself else obeys
    return ~shown & obeys[..., None], obeys


def _not_causal(subject: Subject) -> Line | None:
    """The line of causal self-attention in which tokens see later ones as soon as a mask comes. A fault, and a limit if
    the mask may have a row for each query, which the caller can make causal; else None."""
    mask, inputs = subject.form.given_mask, subject.inputs(1 if subject.form.alone else 2, 4, 4)
    masked = replace(inputs, visible=padded(len(inputs.keys), 4, same=True))
    weights = subject.run(masked).weights[:, :, :2]  # the rows of padding are free
    if not subject.form.causal or not bool((weights.triu(1) != 0).any()):
        return None
    example = f"4 tokens, the last two hidden: the first has weights {numbers(weights[0, 0, 0])}"
    if "T" in mask.axes or mask.axes in ("B1S", "B11S"):
        reason = "a mask takes the place of the causal one: right if it hides later tokens itself"
        return Line(HIDDEN, LIMIT, reason, example)
    reason = "with a mask, tokens see later ones: a key must be hidden where either mask hides it (to keep: &, not |)"
    return Line(HIDDEN, FAULT, reason, example)


def _one_row(subject: Subject) -> str:
    """The reason if one row of a mask (T, S) hides keys from every query; else ""."""
    if subject.form.given_mask.axes != "TS":
        return ""
    inputs, place, name = subject.inputs(1, 3, 4), subject.form.weights, subject.form.given_mask.parameter
    shown, first = (subject.given(replace(inputs, visible=torch.arange(4)[None] < n)) for n in (4, 3))
    first[name][1:] = shown[name][1:]  # the first query alone sees less
    whole, less = (forms.as_weights(subject.call(x)[0][place.name], place.axes, 1)[:, :, 1:] for x in (shown, first))
    same = torch.allclose(whole, less, atol=NEAR, equal_nan=True)
    return "" if same else "the first row of the mask hides keys from every query, or in every sentence of a batch"


def _way(subject: Subject, stated: str | None, whole: str) -> Line:
    """The line of a mask that hides. whole : OK if rows sum to 1."""
    test, mask = HIDDEN, subject.form.given_mask
    wanted, source = meant(code_of(subject.target), mask, stated)
    if mask.kind in ("bool", "int") and mask.hides != (wanted == HIDE):
        does, means = ("hides", "keeps") if mask.hides else ("keeps", "hides")
        advice = f"; if you mean it so, say --mask {HIDE if mask.hides else KEEP}, or write it in the docstring"
        reason = f"the mask is the other way round: here 1 {does} a key, and {source} that 1 {means} it{advice}"
        given = torch.tensor([[not mask.hides, mask.hides]])
        weights = subject.run(replace(subject.inputs(1, 1, 2), visible=given)).weights[0, 0, 0]
        return Line(test, FAULT, reason, f"2 keys, mask 1 0: weights {numbers(weights)}")
    if mask.kind == "additive" and not re.search("att|bias|add", mask.parameter):
        reason = f"{mask.parameter} is added to the scores: right for 0 and −∞, and 1 and 0 would hide nothing"
        return Line(test, FAULT if stated or source == DOCUMENTED else LIMIT, reason)
    sums = "rows sum to 1" if whole == OK else "rows sum to less than 1, as without it"
    return Line(test, OK, f"hidden keys get exactly 0 and {sums} ({subject.form.mask_in_words()})")


def _without(subject: Subject) -> Line:
    """The line of a module that no form of a mask fits: it takes none, or lays it over as many queries as keys."""
    for name in (name for name in _unread_masks(subject) if not re.search("quer|^q_|tgt|trg|target|dec", name)):
        laid = Subject(subject.target, replace(subject.form, mask=forms.MaskForm(name, "bool", "BS")), subject.title)
        inputs, visible = laid.inputs(2, 3, 3), padded(2, 3, same=False)
        with suppress(*ANYTHING):  # a person's code may raise anything
            before, after = (laid.run(x).weights for x in (inputs, replace(inputs, visible=visible)))
            if _over_queries(before, after, visible):
                example = f"its query has weights {numbers(after[0, 0, -1])}"
                return Line(HIDDEN, FAULT, _ROWS, f"1 sentence, 3 queries, 3 keys, the last hidden: {example}")
    return Line(HIDDEN, UNTESTED, _unread(subject) or "it takes no mask: in a batch, padding gets weight like any key")


def _unread_masks(subject: Subject) -> list[str]:
    return [name for name in parameters_of(subject.target) if forms.role_of(name) == forms.MASK]


def _unread(subject: Subject) -> str:
    """Why the masks of a module that no form fits are not tested; "" if it takes none."""
    for name in (name for name, role in subject.form.roles.items() if role == forms.ROWS):
        return f"{name} lies over queries, (B,T), so no key is hidden by it: padding gets weight like any key"
    names = ", ".join(_unread_masks(subject))
    shapes = ", ".join(f"({','.join(axes)})" for axes in forms.MASK_AXES)
    return f"{names} fits no form of a mask that is known: bool, 0 and 1, or added, {shapes}" if names else ""


def _over_queries(before: Tensor, after: Tensor, visible: Tensor) -> bool:
    """Does a mask change the rows of hidden tokens, and no others?"""
    shown = visible[:, None, :, None].expand_as(before)
    same = torch.isclose(before, after, atol=1e-6)
    return bool(same[shown].all()) and not bool(same[~shown].any())


def _zeros(subject: Subject, test: str) -> Line | None:
    """Is a key of zeros hidden, and none near it? A limit, and a fault if its score hides it and not the key."""
    inputs = subject.inputs(1, 1, 4)
    inputs = replace(inputs, visible=torch.ones(1, 4, dtype=torch.bool) if subject.form.mask else None)
    size = 1e-3 * inputs.keys[:, :1]

    def row(first: Tensor, query: int = 1) -> Tensor:
        """The weights (H, 4) of a query times a number, where the first key is `first`."""
        keys = torch.cat([first, inputs.keys[:, 1:3], query * inputs.keys[:, 3:]], dim=1)
        return subject.run(subject.changed(inputs, query=query * inputs.query, keys=keys)).weights[0, :, -1]

    near = [row(first)[:, 0] for first in (size, -size, size.flip(-1), -size.flip(-1))]
    weights = row(0 * size)
    if bool((weights[:, 0] != 0).any()) or not bool((torch.stack(near) > 0).all()):
        return None
    example = f"1 sentence, 1 query, 4 keys, the first of zeros: weights {numbers(weights[0])}"
    if bool((row(0 * size, query=0)[:, 0].nan_to_num(0) != 0).any()):  # NaN, 0 divided by 0, tells nothing
        reason = "a key is hidden where its score is 0, which is no sign of padding: fill where the mask is 0"
        return Line(test, FAULT, reason, example)
    reason = "a key of zeros, or whose score is 0, is hidden: right if padding is zeros, and nothing else is"
    return Line(test, LIMIT, reason, example)


def _swallowed(before: Tensor, after: Tensor, visible: Tensor) -> bool:
    """Do visible keys, whose weights differ without a mask, all get the same with it? before (H, S), after : those of
    visible keys, visible (S)."""
    return len(after) > 1 and float(after.std()) < 1e-7 and float(before.mean(dim=0)[visible].std()) > NEAR


def _why(subject: Subject) -> str:
    """What is wrong with a mask that does not hide."""
    inputs = subject.inputs(1 if subject.form.alone else 3, 2, 5)
    visible = padded(len(inputs.keys), 5, same="B" not in subject.form.given_mask.axes)
    before, after = subject.run(inputs), subject.run(replace(inputs, visible=visible))
    gone = (~visible)[:, None, None].expand_as(after.weights)
    if torch.allclose(before.weights, after.weights, atol=1e-6):
        used = "is taken and never used, or a number next to 0 hides (-1e-9 for -1e9?)"
        return f"{subject.form.given_mask.parameter} {used}: the weights are the same without it"
    row = after.weights[0, :, 0].mean(dim=0)[visible[0]]
    if _swallowed(before.weights[0, :, 0], row, visible[0]):
        lost = "a number such as 1e9 that is added to their scores swallows them"
        return f"with a mask all visible keys get the same weight: {lost}; hide the other keys, with −∞"
    if subject.form.itself and _over_queries(before.weights, after.weights, visible):
        return _ROWS
    if not bool(after.weights.isfinite().all()):
        return "a mask makes weights NaN or infinite"
    if bool((after.weights[~gone] == 0).all()) and subject.form.given_mask.kind == "lengths":
        return "the mask is the other way round: the visible keys get 0 and the padding has all the weight"
    whole = torch.allclose(after.weights.sum(dim=-1), torch.ones(()).to(after.weights), atol=NEAR)
    if whole and bool((after.weights[gone] == 0).all()):
        if subject.form.given_mask.kind == "lengths":
            return "the last key within the length gets 0 too: the length is counted one too few"
        return "visible keys get 0 too: the mask of one sentence hides keys of the others"
    if bool((after.weights[gone] == 0).all()) or bool((after.weights[gone] < -1).any()):
        return "the mask comes after the softmax, so rows no longer sum to 1: hide the scores before the softmax"
    must, _ = _gone(subject, before.weights, visible)
    return _partly((after.weights != 0) & must, must) or _weak(subject, after, gone)


def _partly(leaks: Tensor, must: Tensor) -> str:
    """Which sentences, heads or queries see what a mask hides, if others do not; "" if all do. leaks : weights that are
    not 0, must : those that must be (B, H, T, S)."""
    leaks, must = leaks.any(dim=-1), must.any(dim=-1)
    if torch.equal(leaks, must):
        return ""
    axes = {"sentences": (1, 2), "heads": (0, 2), "queries": (0, 1)}
    alike = (name for name, dims in axes.items() if torch.equal(leaks.any(dim=dims, keepdim=True) & must, leaks))
    return f"some {next(alike, 'heads of some sentences')} see hidden keys, and others do not: they get another mask"


def _weak(subject: Subject, after: Outcome, gone: Tensor) -> str:
    most = float(after.weights[gone].max())
    if subject.form.given_mask.kind == "lengths" and bool((after.weights[gone] == 0).any()):
        return f"a key beyond the length gets weight {most:.2g}: the length is counted one too far (<= for <?)"
    if after.scores is not None:
        score = float(after.scores[gone].max())
        if score == 0:
            return "the mask multiplies the scores, or fills them with 0: a hidden key needs −∞, and still gets weight"
        return f"a hidden key still gets weight {most:.2g}: its score became {score:.3g}, and must be −∞ or far below"
    return f"a hidden key still gets weight {most:.2g}"


def padding(subject: Subject) -> Line:
    """What stands in hidden keys and values changes nothing."""
    test = "nothing leaks from padding"
    if subject.form.mask is None:
        return Line(test, UNTESTED, f"{_unread(subject) or 'it takes no mask'}")
    if shares(subject).verdict == FAULT:
        return Line(test, UNTESTED, _NO_SHARES)

    def examine(inputs: Inputs) -> str | None:
        batch, keys = inputs.keys.shape[:2]
        if keys < (3 if subject.form.itself else 2):  # a token may not see itself
            return None
        visible = padded(batch, keys, same="B" not in subject.form.given_mask.axes)
        keyed, values = (torch.where(visible[..., None], x, x + 3.0) for x in (inputs.keys, inputs.values))
        inputs = replace(inputs, visible=visible)
        before, after = (subject.run(x) for x in (inputs, subject.changed(inputs, keys=keyed, values=values)))
        if subject.form.itself:  # the rows of padding itself may change
            first = int(visible[0].sum())
            before, after = (
                Outcome(o.weights[:, :, :first], None if o.context is None else o.given[:, :first], None)
                for o in (before, after)
            )
        if (difference := before.difference(after, 0)) > 1e-4:
            return f"another last key changes the result by {difference:.2g}"
        return None

    example = smallest(subject, examine)
    if not example:
        return Line(test, OK, "other numbers in hidden keys change nothing")
    return Line(test, FAULT, "what stands in a hidden key changes the result", example)


def _not_below(weights: Tensor) -> str:
    """What is wrong with a causal mask that is upside down, or whose diagonal is one too high or too low; "" for any
    other. weights (B, H, T, S)."""
    if backwards(weights):
        return "a token sees those after it and none before: the causal mask is upside down (triu for tril?)"
    least, most = weights.amin(dim=(0, 1)) > 0, weights.amax(dim=(0, 1)) > 0
    for diagonal, reason in (
        (1, "a token sees the one after it, and none further on: the causal mask hides one too few"),
        (-1, "a token sees those before it and not itself: the causal mask hides one too many"),
    ):
        wanted = torch.ones_like(least).tril(diagonal)
        if all(torch.equal(seen[1:], wanted[1:]) for seen in (least, most)):  # the first may see none, and then all
            return f"{reason} (triu needs diagonal=1, tril diagonal=0)"
    return ""


def order(subject: Subject) -> Line:
    """Permuted keys give permuted weights."""
    test = "permuted keys give permuted weights"
    if subject.form.itself and (reason := _not_below(subject.run(subject.inputs(3, 4, 7)).weights)):
        return Line(test, FAULT, reason)
    if subject.form.itself and subject.dims_later():
        return Line(test, FAULT, _DIMMED)
    if subject.form.causal:
        return Line(test, UNTESTED, "causal attention depends on the order")
    if subject.form.many and not subject.form.itself:
        seen = subject.run(subject.inputs(1 if subject.form.alone else 3, 4, 7)).weights > 0
        if any(bool((seen == torch.ones(4, 7).tril(diagonal)).all()) for diagonal in (0, 3)):
            return Line(test, LIMIT, _CAUSAL)
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)

    def examine(inputs: Inputs) -> str | None:
        turn = torch.arange(inputs.keys.shape[1]).roll(1)
        turned = subject.changed(inputs, keys=inputs.keys[:, turn], values=inputs.values[:, turn])
        before, after = subject.run(inputs).weights[..., turn], subject.run(turned).weights
        before = before[..., turn, :] if subject.form.itself else before
        if (difference := float((after - before).abs().max())) > NEAR:
            return f"a weight differs by {difference:.2g}"
        return None

    example = smallest(subject, examine)
    if not example:
        return Line(test, OK, "the order of the keys does not matter")
    if subject.mixes():
        if reason := reads_several(subject.module):
            return Line(test, UNTESTED, reason)
        reason = "the score of a key changes with another key: view or reshape in place of transpose mixes positions"
        return Line(test, FAULT, reason, example)
    return Line(test, OK, "the weights depend on the positions of the keys, each score on its own key alone", example)


def nothing_visible(subject: Subject) -> Line:
    """A row without a visible key is not NaN. PyTorch's own modules give NaN, so this is a limit."""
    test = "every key hidden"
    if subject.form.mask is None or shares(subject).verdict == FAULT:
        return Line(test, UNTESTED, _NO_SHARES if subject.form.mask else _unread(subject) or "it takes no mask")
    inputs = subject.inputs(1, 1, 2)
    try:
        outcome = subject.run(replace(inputs, visible=torch.zeros(1, 2, dtype=torch.bool)))
    except ANYTHING as error:  # a person's code may raise anything
        return Line(test, OK, f"it is refused: {in_words(error)}")
    row = f"weights {numbers(outcome.weights)}"
    if bool(outcome.weights.isnan().any()):
        cause = "−∞ less −∞, or 0 divided by 0, in a softmax that is written out"
        if outcome.softmaxes:
            alone = any(bool(softmax.weights.isnan().any()) for softmax in outcome.softmaxes)
            cause = "the softmax of −∞ alone" if alone else "weights of 0 divided by their sum"
        reason = f"NaN: {cause}. A sentence without a visible key makes every later loss NaN"
        return Line(test, LIMIT, reason, f"1 sentence, 1 query, 2 keys, both hidden: {row}")
    return Line(test, OK, f"no NaN: {row}")
