"""Finds the form of a user's module by the names of its parameters and by trial runs. In a trial the numbers of
sentences, queries and keys and the widths all differ if the module permits, so that the axes of the result can be
distinguished.
"""

import copy
import inspect
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import permutations, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.parameter import UninitializedParameter

from attnviz.own import forms
from attnviz.own.capture import Subject
from attnviz.own.forms import INPUT, KEYS, LENGTHS, MASK, QUERY, STATE, VALUES, Form, NotRecognised, Place, mask_forms
from attnviz.own.masks import HIDES, effect_of
from attnviz.own.matrices import widths
from attnviz.own.source import in_words, line_reached, looked_at
from attnviz.python_file import ANYTHING, text_of

_MISSES = re.compile(r"mask|pad|len|NoneType", re.I)  # in what a call without a mask raises
# In what a module raises that reads tokens, or one tensor, where roles have vectors, or a list: so in every layout.
_MISFIT = re.compile(r"'indices' to have|used as indices|must be Tensor, not list|'list' object")
_PRIMES = (3, 4, 5, 7, 11, 13, 17, 19, 23, 29, 31)  # numbers of sentences, queries and keys; none may be a width
_YES = ("return_attention", "return_weights", "return_attn", "output_attentions", "return_attention_weights")
# Options that make a module return the weights of every head.
_EXTRAS = {"need_weights": True, "average_attn_weights": False} | dict.fromkeys(_YES, True)
# (axes of the query, axes of the keys, several queries at once), the usual first
_LAYOUTS = (
    ("BTD", "BSD", True),
    ("TBD", "SBD", True),
    ("BTD", "BSD", False),
    ("TBD", "SBD", False),
    ("BD", "BSD", False),
    ("BD", "SBD", False),
    ("TBD", "BSD", False),
    ("LBD", "BSD", False),
    ("LBD", "SBD", False),
    *product((forms.STATES, "(1BD)", "(BD)"), ("BSD", "SBD"), (False,)),
    ("TD", "SD", True),
    ("D", "SD", False),
)
_SELF_LAYOUTS = (("BTD", "BSD", True), ("TBD", "SBD", True), ("TD", "SD", True))
# Of the parameters of a decoder's step: its output or its input, beside its states; and the cell of an LSTM.
_OUTPUTS = re.compile(r"^((rnn|lstm|gru|dec(oder)?|cell)_?)?out(put)?s?(_?t)?$|^inputs?$|embed|_emb$")
_CELLS = re.compile(r"^c$|^c_[tn0x]|cell")
_STATES = re.compile(r"hid|state|^h$|^h[_xnct]|^hs?$")


@dataclass
class Trials:
    """The state of the search: the best subject so far, and the results of the first trials. widths : that the module
    may read. close : forms that only lack a mask."""

    widths: list[int]
    best: Subject | None = None
    rank: tuple = ()
    returned: str = ""
    failed: str = ""
    fixed: str = ""
    among_heads: bool = False
    misfit: Mapping[str, str] | None = None
    reached: int = -1
    close: list[Form] = field(default_factory=list)

    def done(self, roles: Mapping[str, str]) -> bool:
        """Is the best fit good enough to stop, or can none fit? A module may project its context."""
        if self.misfit == roles:
            return True
        by_name = all(forms.role_of(name) == role for name, role in roles.items())
        certain = by_name or {INPUT, STATE, forms.CELL} & {*roles.values()}
        return self.rank[:2] == (True, True) and self.rank[2] >= (1 if certain else 2)


def recognise(target: Callable, title: str = "") -> Subject:
    """The module or function with its form. NotRecognised with the list of forms and the result of the trial."""
    with looked_at(target, title or _name(target)):
        return _recognised(target, title or _name(target))


def _recognised(target: Callable, title: str) -> Subject:
    parameters = _parameters(target)
    trials = Trials(widths(target))
    masks = [name for name, p in parameters.items() if forms.role_of(name) in (MASK, LENGTHS)]
    extras: dict[str, object] = {name: value for name, value in _EXTRAS.items() if name in parameters}
    extras |= {name: None for name in masks if parameters[name].default is inspect.Parameter.empty}
    for roles in _assignments(parameters):
        if trials.best is not None and ({forms.PAIR, forms.TRIPLE} & {*roles.values()} or trials.best.form.parts):
            break  # it takes one tensor, so no list; or the output of a decoder with its states
        _sweep(target, title, roles, extras, trials)
        optional = [name for name, role in roles.items() if role in (QUERY, KEYS) and parameters[name].default is None]
        if trials.best is not None and optional and trials.best.ignores(optional):
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
    if trials.best is None:
        reason = f"{_reason(trials).rstrip('.')}.{_within(target)}"
        raise NotRecognised(f"{title} is not recognised as attention: {reason}\n{forms.FORMS}")
    return _per_head(_with_mask(_with_logs(_with_parts(trials.best)), masks))


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
    if form.query == "TBD" and not form.many:
        layers = _with(subject, query="LBD")
        try:
            reads = _reads(layers)
        except ANYTHING:  # a person's code may raise anything
            return subject
        return _with(layers, reads=reads) if reads else subject
    return _with(subject, reads=_reads(subject)) if form.parts else subject


def _reads(subject: Subject) -> tuple[str, ...]:
    """The parts that change the weights of the last query."""
    inputs, form = subject.inputs(3, 4 if subject.form.many else 1, 5), subject.form
    before = subject.run(inputs).weights[:, :, -1]
    after = ((part, subject.beside(inputs, {part: 1})) for part in form.parts)
    return tuple(part for part, weights in after if not torch.allclose(before, weights, atol=1e-6, equal_nan=True))


def _per_head(subject: Subject) -> Subject:
    """For a module that returns the mean weights of its heads: the form with all heads, captured at a softmax."""
    inputs = subject.inputs(1 if subject.form.alone else 3, 2 if subject.form.many else 1, 4)
    outcome = subject.run(inputs)
    for index, softmax in enumerate(outcome.softmaxes if subject.form.many else ()):
        heads = softmax.weights
        if outcome.weights.shape[1] > 1 or heads.ndim not in (3, 4) or heads.shape[-2:] != outcome.weights.shape[-2:]:
            continue
        axes = ("NTS", "BHTS")[heads.ndim - 3] if not subject.form.alone else "HTS"
        if len(axes) != heads.ndim or heads.shape[-3] < 2 or len(heads) % len(outcome.weights):
            continue
        mean = forms.as_weights(heads, axes, len(outcome.weights)).mean(dim=1, keepdim=True)
        if mean.shape == outcome.weights.shape and torch.allclose(mean, outcome.weights, atol=1e-6):
            if len(heads) > len(mean) or heads.ndim == 4:
                return _with(subject, weights=Place(f"softmax {index}", axes))
    return subject


def _within(target: Callable) -> str:
    """Which submodule may be the attention, in a sentence; "" if none has such a name."""
    parts = target.named_modules() if isinstance(target, nn.Module) else ()
    own = ((name, type(part)) for name, part in parts if name)
    names = [(n, kind.__name__) for n, kind in own if kind.__module__[:8] != "torch.nn" or "Att" in kind.__name__]
    inner = [f"{kind} (self.{name})" for name, kind in names if re.search("att", f"{name.split('.')[-1]} {kind}", re.I)]
    if not inner and {"input", "hidden", "encoder_outputs"} <= {*_parameters(target)}:
        return " It seems to be a whole step of a decoder: test its attention in a class of its own, or use own.watch."
    return f" It holds {inner[0]}: test that class by itself." if inner else ""


def _name(target: Callable) -> str:
    return getattr(target, "__name__", type(target).__name__)


def _reason(trials: Trials) -> str:
    if trials.among_heads:
        swap = "swap the axes of tokens and heads, with transpose(1, 2), before the product"
        return f"{trials.returned}, and the heads of a token attend to each other, not tokens: {swap}"
    if trials.returned:
        return f"{trials.returned}, and none of it has an axis for the keys, as weights have"
    failed = trials.failed or "its parameters name no queries and no keys"
    return f"{failed.rstrip('.')}; {trials.fixed}" if trials.fixed else failed


def _parameters(target: Callable) -> dict[str, inspect.Parameter]:
    call = target.forward if isinstance(target, nn.Module) else target
    try:
        parameters = inspect.signature(call).parameters
    except (TypeError, ValueError):
        traced = ": torch.jit.trace keeps no names of parameters, so test the module that it was made from"
        traced *= isinstance(target, torch.jit.ScriptModule)
        raise NotRecognised(f"{_name(target)} has no signature that Python can read{traced}.\n{forms.FORMS}") from None
    return {name: p for name, p in parameters.items() if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}


def _assignments(parameters: dict) -> Iterator[dict[str, str]]:
    """Which parameter may be which tensor, the likely first."""
    roles = {name: forms.role_of(name) for name in parameters}
    needed = [name for name, p in parameters.items() if p.default is p.empty and roles[name] not in (MASK, LENGTHS)]
    before = {name: forms.BEFORE for name in needed if roles[name] == forms.BEFORE}
    needed = [name for name in needed if name not in before]
    more = [name for name in parameters if name not in needed and roles[name] in (QUERY, KEYS, VALUES)]
    for names in (needed + more, needed) if more else (needed,):
        if len(names) == 1:
            yield from ({names[0]: role} | before for role in (INPUT, forms.PAIR, forms.TRIPLE, KEYS))
        elif len(names) in (2, 3):
            yield from (order | before for order in (*_with_states(names, roles), *_orders(names, roles)))


def _with_states(names: list[str], roles: dict) -> Iterator[dict[str, str]]:
    """Roles of the output of a decoder, its states, and keys, or of state, cell and keys, where the names say so."""
    outputs = [name for name in names if _OUTPUTS.search(name.lower())]
    states = [name for name in names if roles[name] == QUERY and name not in outputs and _STATES.search(name.lower())]
    cells = [name for name in names if _CELLS.search(name.lower()) and name not in (*outputs, *states)]
    for first, role, second in ((outputs, STATE, states), (states, forms.CELL, cells)):
        if len(names) == 3 and len(first) == len(second) == 1:
            own = {first[0]: QUERY, second[0]: role}
            yield {name: own.get(name, KEYS) for name in names}


def _orders(names: list[str], roles: dict) -> Iterator[dict[str, str]]:
    """Roles of two or three tensors. A role implied by a name is fixed, unless another name implies the same role."""
    wanted = (QUERY, KEYS, VALUES)[: len(names)]
    says = {name: KEYS if roles[name] == VALUES and len(names) == 2 else roles[name] for name in names}
    for order in permutations(wanted):
        if all(says[name] == role or says[name] not in wanted for name, role in zip(names, order)):
            yield dict(zip(names, order))
    if len({says[name] for name in names} & set(wanted)) < sum(says[name] in wanted for name in names):
        yield from (dict(zip(names, order)) for order in permutations(wanted))  # two names say the same


def _width_choices(target: Callable, roles: dict, sizes: list[int]) -> Iterator[tuple[int, int, int]]:
    """Widths of query, keys and values to try; different ones first if the module does not determine them. sizes :
    those that it may read."""
    if {INPUT, KEYS} == {INPUT, *roles.values()}:
        yield from ((n, n, n) for n in sizes or [6])
        return
    sizes = sizes[:4] if {STATE, forms.CELL} & {*roles.values()} else sizes  # there are many layouts
    free = [(6, 7), (6, 6)]  # where no matrix says a width, and of a lazy layer, which takes any
    pairs = [*free, *product(sizes, sizes)] if _lazy(target) else [*product(sizes, sizes), *free]
    for query, keys in pairs:
        values = (keys,)
        if {VALUES, forms.TRIPLE} & {*roles.values()}:
            values = dict.fromkeys((forms.FREE if forms.FREE not in (query, keys) else 14, *sizes, keys))
        yield from ((query, keys, n) for n in values)


def _sweep(target, title, roles: dict, extras: dict, trials: Trials) -> None:
    """Try every layout and width with these roles, until one fits in all respects."""
    itself = INPUT in roles.values()
    layouts = product(_SELF_LAYOUTS if itself else _LAYOUTS, ("",))
    if {*roles.values()} == {KEYS}:
        layouts = product([layout for layout in _LAYOUTS if layout[0] in ("BD", "D")], ("",))
    elif forms.CELL in roles.values():
        layouts = product([layout for layout in _LAYOUTS if layout[0].startswith("(")], ("",))
    elif STATE in roles.values():
        layouts = product([layout for layout in _LAYOUTS if layout[0] in ("BTD", "TBD", "BD")], forms.PARTS)
    for (query, keys, many), state in layouts:
        if "B" not in keys and trials.best is not None:
            return  # a module that takes a batch is used with one
        for sizes in _width_choices(target, roles, trials.widths):
            if trials.done(roles):
                return
            _try(target, title, Form(roles, query, keys, many, sizes, extras=extras, state=state), trials)


def _lazy(target: Callable) -> bool:
    return isinstance(target, nn.Module) and any(isinstance(p, UninitializedParameter) for p in target.parameters())


def _try(target: Callable, title: str, form: Form, trials: Trials) -> None:
    """One trial run; store the subject if it fits better than earlier ones."""
    subject = Subject(copy.deepcopy(target) if _lazy(target) else target, form, title)
    taken = {*form.widths, *trials.widths}
    batch, queries, keys = [n for n in _PRIMES if n not in taken][:3]
    queries = keys if form.itself else queries if form.many else 1
    batch = 1 if form.alone else batch
    inputs = subject.inputs(batch, queries, keys)
    try:
        left, softmaxes = subject.call(subject.given(inputs))
    except ANYTHING as error:  # a person's code may raise anything
        trials.misfit = form.roles if _MISFIT.search(text_of(error)) else trials.misfit
        trials.close += [form] * bool(_MISSES.search(text_of(error)))
        trials.fixed = trials.fixed or subject.fixed(text_of(error), inputs, trials.widths)
        line = line_reached(error, target)
        if line > trials.reached:
            trials.failed = f"called with {subject.shapes(inputs)} {in_words(error, 'it raised ')}"
            trials.reached = line
        return
    sizes = {"B": batch, "T": queries, "S": keys}
    for places in _places(form, left, softmaxes, sizes):
        if form.pools and places["context"] is None:
            continue  # anything may have these axes
        candidate = Subject(subject.target, replace(form, **places), title)
        try:
            rank = _rank(candidate, inputs, sum(name.startswith("result") for name in left))
        except ANYTHING:  # the same call may raise the next time
            continue
        if trials.best is None or rank > trials.rank:
            trials.best, trials.rank = candidate, rank
    if trials.best is None and not trials.returned:
        shapes = ", ".join(str(tuple(t.shape)) for name, t in left.items() if name.startswith("result")) or "no tensor"
        trials.returned = f"called with {subject.shapes(inputs)} it returned {shapes}"
        lost = [t.shape[2:] for t in left.values() if form.itself and t.ndim == 4 and t.shape[:2] == (batch, keys)]
        trials.among_heads |= any(rows == columns for rows, columns in lost)


def _places(form: Form, left: dict, softmaxes: list, sizes: dict) -> Iterator[dict[str, Any]]:
    """Possible places of weights and context among the tensors left by a call, the likely ones first."""
    kind = "alone" if form.alone else "batch"
    scores = {f"softmax {index}": softmax.scores for index, softmax in enumerate(softmaxes)}
    places = []
    for axes in forms.WEIGHTS[kind]:
        if (form.many and "T" not in axes) or (form.itself and axes in ("BST", "BHST", "ST")):
            continue  # without an axis for the queries; queries and keys could be mistaken for each other
        if axes[0] == "S" and form.keys == "BSD":
            continue  # so they lie only where the keys do: else the softmax runs over another axis than it seems
        fitting = [name for name, tensor in left.items() if forms.fits(tensor.shape, axes, sizes)]
        fitting = [x for x in fitting if axes != "TSBH" or (x[:6] != "result" and left[x].shape[3] > 1)]  # kept
        places += [(axes, name) for name in fitting if not _is_score(left[name], scores.values())]
    if returned := [place for place in places if place[1].startswith("result")]:
        places = returned  # also where they are wrong: these are the weights that the caller sees
    for axes, name in places:
        contexts = [
            Place(other, kind_axes)
            for other, value in left.items()
            for kind_axes in forms.CONTEXTS[kind]
            if other != name and other.startswith("result") and forms.fits(value.shape, kind_axes, sizes)
            if not (form.many and "T" not in kind_axes)
            if kind_axes != "BHD" or (form.pools and axes == "BHS" and value.shape[1] == left[name].shape[1])
        ]
        if contexts or name.startswith("result"):  # else nothing that it returns has been understood
            yield {"weights": Place(name, axes), "context": contexts[0] if contexts else None}


def _is_score(tensor: Tensor, scores) -> bool:
    """Is a tensor the input of a softmax? Then it is not the weights."""
    return any(score is not None and score.shape == tensor.shape and torch.equal(score, tensor) for score in scores)


def _rank(subject: Subject, inputs, results: int) -> tuple:
    """How well a form fits: (rows sum to 1, sentences do not mix, context, returned). Larger is better.

    results : number of tensors that the call returns."""
    subject = _with_parts(subject) if subject.form.parts else subject  # so that sentences differ in what it reads
    outcome = subject.run(inputs)
    weights = outcome.weights
    sums, independent = weights.sum(dim=-1), True
    shares = bool((weights >= -1e-6).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)
    for same, others in ((0, slice(1, None)), (-1, slice(0, -1))):
        query, keys, values = (tensor.clone() for tensor in (inputs.query, inputs.keys, inputs.values))
        for tensor in (query, keys, values):
            tensor[others] = tensor[others].flip(-1) + 1.0
        changed = subject.changed(inputs, query=query, keys=keys, values=values)
        independent &= torch.allclose(subject.run(changed).weights[same], weights[same], atol=1e-5)
    return shares, independent, _context(outcome, inputs, results), _returned(subject.form.weights.name)


def _returned(name: str) -> float:
    """2 for a tensor that the call returned, 1 for one that the module stores, 0 for one captured at a softmax, a half
    for those of several heads."""
    return 0.5 if name == forms.HEADS else 2 if name.startswith("result") else 1 if name.startswith("self.") else 0


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
