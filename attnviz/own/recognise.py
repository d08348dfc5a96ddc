"""Finds the form of a user's module by the names of its parameters and by trial runs. In a trial the numbers of
sentences, queries and keys and the widths all differ if the module permits, so that the axes of the result can be
distinguished.
"""

import copy
import inspect
import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import torch
from torch import nn

from attnviz.own import forms
from attnviz.own.capture import Subject
from attnviz.own.forms import (
    INPUT,
    KEYS,
    MASK,
    QUERY,
    STATE,
    VALUES,
    Form,
    Inputs,
    NotRecognised,
    Place,
    mask_forms,
)
from attnviz.own.masks import HIDES, effect_of
from attnviz.own.matrices import is_lazy, widths
from attnviz.own.source import call_of, looked_at, name_of, raised, stated_axes, within
from attnviz.python_file import ANYTHING, is_slip, line_reached, text_of, where_and_why

_MISSES = re.compile(r"mask|pad|len|NoneType", re.I)  # in what a call without a mask raises
# In what a module raises that reads tokens, or one tensor, where roles have vectors, or a list: so in every layout.
_TOKENS = re.compile("'indices' to have|used as indices")
_MISFIT = re.compile(r"'indices' to have|used as indices|must be Tensor, not list|'list' object")
_PRIMES = (3, 4, 5, 7, 11, 13, 17, 19, 23, 29, 31)  # numbers of sentences, queries and keys; none may be a width
_FIXED = "it runs with {}: take such sizes from the inputs, not from a number"
_NULLS = ((0, 0), (0, 1), (1, 0), (0, 2), (2, 0))  # learnt keys, or zeros, before and after the keys
_YES = ("return_attention", "return_weights", "return_attn", "output_attentions", "return_attention_weights")
# Options that make a module return the weights of every head.
_EXTRAS = {"need_weights": True, "average_attn_weights": False} | dict.fromkeys(_YES, True)
# Axes of the query, those of the keys, the usual first. * : several queries at once.
_LAYOUTS = "BTD* BSD, TBD* SBD, BTD BSD, TBD SBD, BD BSD, BD SBD, TBD BSD, LBD BSD, LBD SBD"
_LAYOUTS += ", (LBD) BSD, (LBD) SBD, (1BD) BSD, (1BD) SBD, (BD) BSD, (BD) SBD"
_LAYOUTS += ", BDT* BDS, BTD* BDS, BTD BDS, BD BDS, BD1T* BD1S, B BS, TD* SD, D SD, TBD SD, TBD 1SD"
_SELF_LAYOUTS = "BTD* BSD, TBD* SBD, BDT* BDS, BD1T* BD1S, TD* SD"


@dataclass
class Trials:
    """The best subject so far, and the results of trials. widths : that the module may read. close : forms that only
    lack a mask. mixed : in one, a sentence had weights for other sentences. reached : the line at which `failed` came.
    slip : an error in the code itself. errors : of all trials, as text; "" where it ran, or where the form is wrong."""

    widths: list[int]
    best: Subject | None = None
    rank: tuple = ()
    returned: str = ""
    failed: str = ""
    fixed: str = ""
    among_heads: bool = False
    misfit: Mapping[str, str] | None = None
    mixed: bool = False
    reached: float = -1
    slip: str = ""
    errors: set[str] = field(default_factory=set)
    close: list[Form] = field(default_factory=list)

    def note(self, error: BaseException, subject: Subject, inputs: Inputs) -> None:
        """Keep the likeliest reason: of (B, D) beside (B, S, D) if the file says so, else of what ran farthest."""
        form, call, text = subject.form, call_of(subject.target), text_of(error)
        where, line = where_and_why(error, getattr(call, "__module__", "")), line_reached(error, call)
        self.slip = self.slip or where * is_slip(error, nn.Module)
        self.errors.add("" if _MISFIT.search(text) or _MISSES.search(text) or not line else where)
        if plain := (form.query, form.keys) == ("BD", "BSD"):
            state = any(role == QUERY == forms.role_of(name) and "q" not in name for name, role in form.roles.items())
            line = math.inf if line and len(stated_axes(subject.target)) == 2 else line + state / 4
        line += (form.keys == "BSD") / 4  # of those that ran as far, the usual one
        if line > self.reached:
            words = raised(error, subject.target, *inputs.keys.shape[: 2 * plain], verb="raised")
            self.failed, self.reached = f"called with {subject.shapes(inputs)} {words}", line

    def done(self, roles: Mapping[str, str]) -> bool:
        """Is the best fit good enough to stop, or can none fit? A module may project its context."""
        if self.misfit == roles:
            return True
        by_name = all(forms.role_of(name) == role for name, role in roles.items())
        certain = by_name or {INPUT, STATE, forms.CELL} & {*roles.values()}
        return self.rank[:2] == (True, True) and self.rank[2] >= (1 if certain else 2)


def recognise(target: Callable, title: str = "") -> Subject:
    """The module or function with its form. NotRecognised with the list of forms and the result of the trial."""
    with looked_at(target, title or name_of(target)):
        return _recognised(target, title or name_of(target))


def _recognised(target: Callable, title: str) -> Subject:
    parameters = _parameters(target)
    trials = Trials(widths(target))
    masks = [name for name, p in parameters.items() if forms.role_of(name) in (MASK, forms.LENGTHS)]
    extras: dict[str, object] = {name: value for name, value in _EXTRAS.items() if name in parameters}
    extras |= {name: None for name in masks if parameters[name].default is inspect.Parameter.empty}
    for roles in forms.assignments(parameters):
        if trials.best is not None and ({forms.PAIR, forms.TRIPLE} & {*roles.values()} or trials.best.form.parts):
            break  # it takes one tensor, so no list; or the output of a decoder with its states
        _sweep(target, title, roles, extras, trials)
        optional = [name for name, role in roles.items() if role in (QUERY, KEYS) and parameters[name].default is None]
        if trials.best is not None and optional and _ignores(trials.best, optional):
            trials.best, trials.rank = None, ()
    trials.misfit = None
    if trials.best is None and masks:  # perhaps it cannot do without a mask
        for form, mask in product(trials.close, mask_forms(masks)):
            if trials.done(form.roles):
                break
            _try(target, title, replace(form, mask=mask, needs_mask=True), trials)
        for name, form in product(masks, trials.close):  # or it lies over the queries
            if not trials.done(form.roles):
                _try(target, title, replace(form, roles={**form.roles, name: forms.ROWS}), trials)
    reason = _reason(trials, parameters) if trials.best is None else _steps(trials.best)
    if trials.best is None or reason:
        raise _refusal(trials, target, title, reason)
    subject = _with_mask(_with_logs(_with_parts(trials.best)), masks)
    outcome = subject.run(subject.inputs(1 if subject.form.alone else 3, 2 if subject.form.many else 1, 4))
    return _with(subject, weights=forms.per_head(subject.form, outcome.weights, [x.weights for x in outcome.softmaxes]))


def _with_logs(subject: Subject) -> Subject:
    """The subject; where it returns logarithms of weights and nothing else, with their exp() as weights."""
    outcome = subject.run(subject.inputs(3, 2, 4))
    sums = outcome.weights.exp().sum(dim=-1)
    if outcome.context is None and bool((outcome.weights <= 0).all()) and torch.allclose(sums, sums.new_ones(())):
        return _with(subject, weights=replace(subject.form.weights, log=True))
    return subject


def _with_parts(subject: Subject) -> Subject:
    """The subject with the parts of a decoder's states that it reads. A query (1, B, D) may be the states of several
    layers: then it is read from one of them."""
    form = subject.form
    if form.query == "TBD" and not (form.many or form.state or form.alone):
        layers = _with(subject, query="LBD")
        try:
            reads = _reads(layers)
        except ANYTHING:  # a person's code may raise anything
            return subject
        return _with(layers, reads=reads) if reads else subject
    return _with(subject, reads=_reads(subject)) if form.parts else subject


def _reads(subject: Subject) -> tuple[str, ...]:
    """The parts that change the weights of the last query."""
    form = subject.form
    inputs = subject.inputs(1 if form.alone else 3, 4 if form.many else 1, 5)
    before = subject.run(inputs).weights[:, :, -1]
    after = ((part, subject.beside(inputs, {part: 1})) for part in form.parts)
    return tuple(part for part, weights in after if not torch.allclose(before, weights, atol=1e-6, equal_nan=True))


def _steps(subject: Subject) -> str:
    """The reason if a decoder within the module attends several times in a call; else ""."""
    outcome = subject.run(subject.inputs(1 if subject.form.alone else 3, 1, 5))
    parts = subject.module.modules() if subject.module else ()
    recurrent = any(isinstance(part, nn.RNNBase | nn.RNNCellBase) for part in parts)
    steps = len(outcome.softmaxes) if recurrent and len(outcome.softmaxes) == outcome.weights.shape[1] else 1
    return f"it attends {steps} times in a call, once a step, as a whole decoder does" if steps > 1 else ""


def _ignores(subject: Subject, names: Sequence[str]) -> bool:
    """Do the weights stay the same without these arguments?"""
    given = subject.given(subject.inputs(1 if subject.form.alone else 3, 2 if subject.form.many else 1, 4))
    calls = given, {name: value for name, value in given.items() if name not in names}
    try:
        return torch.equal(*(subject.call(arguments)[0][subject.form.weights.name] for arguments in calls))
    except ANYTHING:  # it needs them, so a person's code may raise anything
        return False


def _refusal(trials: Trials, target: Callable, title: str, reason: str) -> NotRecognised:
    """Why no form fits, with the list of forms; where none can help, the line of the file and its error."""
    whole = trials.best is not None or _TOKENS.search(trials.failed) or not (trials.failed or trials.returned)
    part = within(target, bool(whole) and len(_parameters(target)) > 2)
    slip = trials.slip or "".join(trials.errors) * (len(trials.errors) == 1 and not part)
    if trials.best is None and slip:
        return NotRecognised(f"{title} cannot run: {slip}")
    return NotRecognised(f"{title} is not recognised as attention: {reason.rstrip('.')}.{part}\n{forms.FORMS}")


def _reason(trials: Trials, parameters: Mapping[str, inspect.Parameter]) -> str:
    if trials.among_heads:
        swap = "swap the axes of tokens and heads, with transpose(1, 2), before the product"
        return f"{trials.returned}, and the heads of a token attend to each other, not tokens: {swap}"
    if trials.returned and not trials.mixed:
        linear = "as weights have. If it is linear attention, it makes none to test or to show"
        return f"{trials.returned}, and none of it has an axis for the keys, {linear}"
    if _TOKENS.search(trials.failed):
        return "it reads numbers of tokens, and attention reads vectors"
    names = ", ".join(name for name, p in parameters.items() if p.default is p.empty)
    many = f"it needs {names}, and attention takes a query, keys and values, beside masks"
    failed = trials.failed or (many if names.count(",") > 2 else "its parameters name no queries and no keys")
    return f"{failed.rstrip('.')}; {trials.fixed}" if trials.fixed else failed


def _parameters(target: Callable) -> dict[str, inspect.Parameter]:
    try:
        parameters = inspect.signature(call_of(target)).parameters
    except (TypeError, ValueError):
        traced = ": torch.jit.trace keeps no names of parameters, so test the module that it was made from"
        traced *= isinstance(target, torch.jit.ScriptModule)
        words = f"has no signature that Python can read{traced}.\n{forms.FORMS}"
        raise NotRecognised(f"{name_of(target)} {words}") from None
    return {name: p for name, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _width_choices(target: Callable, roles: dict, sizes: list[int]) -> Iterator[tuple[int, int, int]]:
    """Widths of query, keys and values to try; different ones first if the module does not determine them. sizes :
    those that it may read."""
    if INPUT in roles.values() or {*roles.values()} == {KEYS}:
        yield from ((n, n, n) for n in sizes or [6])
        return
    sizes = sizes[:4] if {STATE, forms.CELL} & {*roles.values()} else sizes  # there are many layouts
    free = [(6, 7), (6, 6)]  # where no matrix says a width, and of a lazy layer, which takes any
    pairs = [*free, *product(sizes, sizes)] if is_lazy(target) else [*product(sizes, sizes), *free]
    for query, keys in pairs:
        values = (keys,)
        if {VALUES, forms.TRIPLE} & {*roles.values()}:
            values = dict.fromkeys((forms.FREE if forms.FREE not in (query, keys) else 14, *sizes, keys))
        yield from ((query, keys, n) for n in values)


def _sweep(target, title, roles: dict, extras: dict, trials: Trials) -> None:
    """Try every layout and width with these roles, until one fits in all respects."""
    own = {*roles.values()}
    layouts = [layout.split(" ") for layout in (_SELF_LAYOUTS if INPUT in own else _LAYOUTS).split(", ")]
    if own == {KEYS} or own & {STATE, forms.CELL}:
        queries = ("BD", "D") if own == {KEYS} else ("BTD", "TBD", "BD") if STATE in own else forms.PARTS
        layouts = [layout for layout in layouts if layout[0].rstrip("*") in queries]
    befores = forms.BEFORE_AXES if forms.BEFORE in own else ("BS",)
    for (query, keys), state, before in product(layouts, forms.PARTS if STATE in own else ("",), befores):
        if "B" not in keys and (trials.best is not None or trials.mixed):
            return  # a module that takes a batch is used with one
        for sizes in _width_choices(target, roles, trials.widths) if keys != "BS" else [(1, 1, 1)]:
            if trials.done(roles):
                return
            how: dict[str, Any] = {"extras": extras, "state": state, "before": before}
            _try(target, title, Form(roles, query.rstrip("*"), keys, "*" in query, sizes, **how), trials)


def _try(target: Callable, title: str, form: Form, trials: Trials) -> None:
    """One trial run; store the subject if it fits better than earlier ones."""
    subject = Subject(copy.deepcopy(target) if is_lazy(target) else target, form, title)
    batch, queries, keys = [n for n in _PRIMES if n not in {*form.widths, *trials.widths}][:3]
    batch, keys = 1 if form.alone else batch, form.count or keys
    inputs = subject.inputs(batch, keys if form.itself else queries if form.many else 1, keys)
    try:
        left, softmaxes = subject.call(subject.given(inputs))
    except ANYTHING as error:  # a person's code may raise anything
        trials.misfit = form.roles if _MISFIT.search(text_of(error)) else trials.misfit
        trials.close += [form] * bool(_MISSES.search(text_of(error)))
        if count := _size(subject, text_of(error), inputs, trials):
            return _try(target, title, replace(form, count=count), trials)
        return trials.note(error, subject, inputs)
    trials.errors.add("")
    _choose(subject, inputs, left, softmaxes, trials)
    if trials.best is None and not trials.returned:
        shapes = ", ".join(str(tuple(t.shape)) for name, t in left.items() if name.startswith("result")) or "no tensor"
        trials.returned = f"called with {subject.shapes(inputs)} it returned {shapes}"
        lost = [t.shape[2:] for t in left.values() if form.itself and t.ndim == 4 and t.shape[:2] == (batch, keys)]
        trials.among_heads |= any(rows == columns for rows, columns in lost)


def _choose(subject: Subject, inputs: Inputs, left: dict, softmaxes: list, trials: Trials) -> None:
    """Store the subject, with the places of weights and context that fit best, if it fits better than earlier ones."""
    form, sizes = subject.form, dict(zip("BTS", (*inputs.query.shape[:2], inputs.keys.shape[1])))
    usual = form.keys in ("BSD", "SBD", "SD", "1SD")  # elsewhere what is no weights might look like such
    nulls = _NULLS if trials.best is None else _NULLS[:1]
    for null, places in ((n, places) for n in nulls for places in _places(form, left, softmaxes, sizes, n)):
        if (form.pools and places["context"] is None) or (any(null) and trials.best is not None):
            continue  # anything may have these axes, and keys alone are likelier
        candidate = _with(subject, **places)
        try:
            rank = _rank(candidate, inputs, sum(name.startswith("result") for name in left))
        except ANYTHING:  # the same call may raise the next time
            continue
        own = places["weights"]  # of every sentence for every other one, where a query (B, 1, D) is spread over them
        mixed = own.axes == "BHS" and left[own.name].shape[1] == sizes["B"] and not rank[1]
        trials.mixed |= mixed
        if not mixed and (trials.best is None or rank > trials.rank) and (rank[0] or (usual and not any(null))):
            trials.best, trials.rank = candidate, rank


def _size(subject: Subject, error: str, inputs: Inputs, trials: Trials) -> int:
    """The number of keys with which a call runs whose error names it; 0 where none helps, or another size is noted."""
    batch, keys = len(inputs.query), inputs.keys.shape[1]
    named = {int(number) for number in re.findall(r"\d+", error)} & {*trials.widths} - {*subject.form.widths, keys}
    for number in named if re.search("batch2|invalid for|must match|not broadcast", error) else ():
        for sizes in (number, 1, keys), (batch, 1, number):
            with suppress(*ANYTHING):  # a person's code may raise anything
                subject.call(subject.given(subject.inputs(*sizes)))
                if sizes[2] == number and not (subject.form.itself or subject.form.pools):
                    return number
                words = f"{number} tokens" if sizes[2] == number else f"a batch of {number} sentences"
                trials.fixed = trials.fixed or _FIXED.format(words)
    return 0


def _places(form: Form, left: dict, softmaxes: list, sizes: dict, null: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Possible places of weights and context among the tensors left by a call, the likely ones first."""
    kind, sizes = "alone" if form.alone else "batch", sizes | {"S": sizes["S"] + sum(null)}
    scores = [softmax.scores for softmax in softmaxes if softmax.scores is not None]  # these are no weights
    places = []
    for axes in forms.WEIGHTS[kind]:
        if (form.many and "T" not in axes) or (form.itself and axes in ("BST", "BHST", "ST")):
            continue  # without an axis for the queries; queries and keys could be mistaken for each other
        if axes[0] == "S" and form.keys[0] == "B":
            continue  # so they lie only where the keys do: else the softmax runs over another axis than it seems
        fitting = [name for name, tensor in left.items() if forms.fits(tensor.shape, axes, sizes)]
        fitting = [x for x in fitting if axes != "TSBH" or (x[:6] != "result" and left[x].shape[3] > 1)]  # kept
        places += [(axes, name) for name in fitting if not any(torch.equal(left[name], x) for x in scores)]
    if returned := [place for place in places if place[1].startswith("result")]:
        places = returned  # also where they are wrong: these are the weights that the caller sees
    for axes, name in places:
        contexts = [
            Place(other, kind_axes)
            for other, value in left.items()
            for kind_axes in forms.CONTEXTS.get(form.keys, forms.CONTEXTS[kind])
            if other != name and other.startswith("result") and forms.fits(value.shape, kind_axes, sizes)
            if not (form.many and "T" not in kind_axes)
            if kind_axes != "BHD" or (form.pools and axes == "BHS" and value.shape[1] == left[name].shape[1])
        ]
        if contexts or name.startswith("result"):  # else nothing that it returns has been understood
            yield {"weights": Place(name, axes, null=null), "context": contexts[0] if contexts else None}


def _rank(subject: Subject, inputs, results: int) -> tuple:
    """How well a form fits: (rows sum to 1, sentences do not mix, context, returned). Larger is better.

    returned : 2 for a tensor that the call returned, 1 for one that the module stores, 0 for one captured at a softmax,
    a half for those of several heads. results : number of tensors that the call returns."""
    subject = _with_parts(subject) if subject.form.parts else subject  # so that sentences differ in what it reads
    outcome = subject.run(inputs)
    weights = outcome.weights
    shares, independent = bool((weights >= -1e-6).all()), True
    if any(subject.form.weights.null):  # the weights of equal keys are equal, and those that are cut off are others
        equal = inputs.keys[:, :1].expand_as(inputs.keys)
        last = subject.run(subject.changed(inputs, keys=equal)).weights[..., -1, :]
        shares &= torch.allclose(last, last[..., :1], atol=1e-5) and bool((last.sum(dim=-1) < 1 - 1e-4).all())
    else:
        shares &= torch.allclose(weights.sum(dim=-1), torch.ones_like(weights[..., 0]), atol=1e-4)
    for same, others in ((0, slice(1, None)), (-1, slice(0, -1))):
        query, keys, values = (tensor.clone() for tensor in (inputs.query, inputs.keys, inputs.values))
        for tensor in (query, keys, values):
            tensor[others] = tensor[others].flip(-1) + 1.0
        changed = subject.changed(inputs, query=query, keys=keys, values=values)
        independent &= torch.allclose(subject.run(changed).weights[same], weights[same], atol=1e-5)
    name = subject.form.weights.name
    returned = 0.5 if name == forms.HEADS else 2 if name.startswith("result") else int(name.startswith("self."))
    return shares, independent, _context(outcome, inputs, results), returned


def _context(outcome, inputs, results: int) -> int:
    """2 if the context is weights times values, or only weights are returned; 1 for another context; 0 if something
    else is returned."""
    if outcome.context is None:
        return 2 if results == 1 else 0
    mean = (outcome.weights.mean(dim=1) if outcome.weights.shape[1] > 1 else outcome.weights[:, 0]) @ inputs.values
    return 2 if mean.shape == outcome.context.shape and torch.allclose(mean, outcome.context, atol=1e-4) else 1


def _with_mask(subject: Subject, names: list[str]) -> Subject:
    """The subject with its mask format, if any, and whether it is causal."""
    taken = {*subject.form.widths, *widths(subject.target)}
    queries, keys = [n for n in _PRIMES if n not in taken][1:3]
    inputs = subject.inputs(1 if subject.form.alone else 3, queries if subject.form.many else 1, keys)
    base = subject.run(inputs).weights
    above = torch.ones(base.shape[-2:], dtype=torch.bool).triu(1)
    causal = subject.form.itself and bool((base[..., above] == 0).all())
    subject = _with(subject, causal=causal)
    best, rank = None, -1
    for form in mask_forms(sorted(names, key=lambda name: "pad" not in name)):
        try:
            effect, hides = effect_of(_with(subject, mask=form), inputs, base)
        except ANYTHING:  # not the form that it takes, so it may raise anything
            continue
        if effect > rank:
            best, rank = replace(form, hides=hides and form.kind in ("bool", "int")), effect
        if rank == HIDES:
            break
    return subject if best is None else _with(subject, mask=best)


def _with(subject: Subject, **changes) -> Subject:
    return Subject(subject.target, replace(subject.form, **changes), subject.title)
