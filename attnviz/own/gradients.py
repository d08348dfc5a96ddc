"""Tests of a module as a part of a network: sentences do not mix, every parameter learns, and large numbers and half
precision work; and its parameters made ready for tests: those that begin as 0, or are made of others at each call."""

import copy
import inspect
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import utils
from torch.nn.parameter import UninitializedParameter
from torch.nn.utils import parametrize
from torch.nn.utils.spectral_norm import SpectralNorm
from torch.nn.utils.weight_norm import WeightNorm
from torch.overrides import TorchFunctionMode

from attnviz.own.capture import Subject
from attnviz.own.checks import FAULT, LIMIT, NEAR, OK, RANDOM, UNTESTED, Line, numbers, shares, smallest, undefined
from attnviz.own.forms import BEFORE, Inputs
from attnviz.own.matrices import BIAS, reads_several, tell_apart, unregistered
from attnviz.own.source import code_of, in_words
from attnviz.python_file import ANYTHING, text_of

_OLDER: dict[type, Callable] = {WeightNorm: utils.remove_weight_norm, SpectralNorm: utils.remove_spectral_norm}
# Why a parameter gets no gradient, behind its name.
_NEVER = " gets no gradient: it is never used in forward()"
_WITHOUT_EFFECT = " gets no gradient: it is used, but changes no result"
_NONE = ": the result has no gradient at all (detach, .data, no_grad or argmax)"
_CUT = " gets no gradient: it is used, but its gradient is cut (detach, .data, no_grad)"


def parameters(subject: Subject, shared: Sequence[str] = ()) -> Line:
    """Every parameter gets a gradient. A gradient of 0 is no fault where the softmax cancels a constant, as with a bias
    that is added to every score. shared : sentences on matrices with which two things are made."""
    test = "every parameter gets a gradient"
    if hidden := unregistered(subject.module) if subject.module else ():
        names = ", ".join(f"self.{name}" for name in dict.fromkeys(name for name, _ in hidden))
        unseen = f"{names} holds layers that PyTorch does not see, so they never train"
        return Line(test, FAULT, f"{unseen}: use nn.ModuleList or a name each")
    if reason := _drawn(subject.module) or _same_heads(subject):
        return Line(test, FAULT, reason)
    try:
        never, constant, deaf = _gradients(subject)
    except ANYTHING as error:  # a person's code may raise anything
        reason = f"backward() raises {in_words(error)}"
        if re.search("in-?place", text_of(error)):
            reason += "; an input or a tensor that is needed for the gradient is changed in place"
        return Line(test, FAULT, reason)
    if never:
        reasons = [f"{name}{why}" for name, why in never.items()]
        if any(name[:4] in ("proj", "proc") for name in subject.form.roles):  # as in `proj_key` of Joey NMT
            return Line(test, LIMIT, f"{'; '.join(reasons)}. What comes projected is projected before the call")
        if more := _left_out(subject, never):
            return Line(test, LIMIT, more)
        return Line(test, FAULT, "; ".join([*reasons, *(shared if _NEVER in never.values() else ())]))
    if deaf and not subject.form.pools:
        reason = "it is not used, or cut off by detach(), .data, no_grad() or argmax"
        return Line(test, FAULT, f"the query gets no gradient: {reason}")
    if _ignores_the_query(subject):
        if shares(subject).verdict == FAULT:
            return Line(test, UNTESTED, "the weights are the same for every query, and no shares: mend that first")
        reason = "what the query adds to the scores is the same for every key, and cancels in the softmax"
        return Line(test, FAULT, f"the weights are the same for every query: {reason}")
    if not subject.module or not list(subject.module.parameters()):
        return Line(test, OK, f"it has no parameters{', and the query gets a gradient' * (not subject.form.pools)}")
    reason = "a constant added to all scores changes no weight"
    if BEFORE in subject.form.roles.values():
        reason += ", and at the first step there are no weights before"
    note = f"; {', '.join(constant)}: 0, since {reason}" if constant else ""
    return Line(test, OK, f"all of them{note}")


def _drawn(module: nn.Module | None) -> str:
    """The reason if a plain tensor holds random numbers, as a parameter would, and is none; else ""."""
    for part in module.modules() if module else ():
        for name, value in vars(part).items():
            if isinstance(value, torch.Tensor) and value.is_floating_point() and value.is_leaf:
                draws = rf"self\.{name}\b[^=\n]*=[^=\n]*\b(randn?|(xavier|kaiming)_\w+|uniform_?|normal_?)\("
                if value.requires_grad or re.search(draws, code_of(part)):
                    advice = "nn.Parameter trains it, register_buffer keeps it as it is"
                    return f"self.{name} is a plain tensor with random numbers, which no optimizer sees: {advice}"
    return ""


def _same_heads(subject: Subject) -> str:
    """The reason if all heads have the same weights, and not because their layers begin as copies of one; else ""."""
    own = subject.copied()
    if own.module:
        tell_apart(own.module)
    weights = own.run(own.inputs(3, 2, 5)).weights
    heads = own.form.pools or own.form.weights.axes != "BHS"  # which may have another axis in the place of heads
    if not heads or weights.shape[1] < 2 or not torch.allclose(weights, weights[:, :1]) or float(weights.std()) < NEAR:
        return ""
    return "all heads have the same weights: do they share one layer? [layer] * n is one layer n times, not n layers"


def _ignores_the_query(subject: Subject) -> bool:
    if subject.form.itself or subject.form.pools:
        return False
    counts = 1 if subject.form.alone else 3, 4 if subject.form.many else 1, 4
    inputs = subject.inputs(*counts)
    other = subject.inputs(*counts, seed=12).query  # no multiple, which even kernels may not see
    before, after = (subject.run(subject.changed(inputs, query=query)).weights for query in (inputs.query, other))
    return torch.allclose(before, after, atol=1e-6, equal_nan=True)


def _gradients(subject: Subject) -> tuple[dict[str, str], list[str], bool]:
    """Parameters without a gradient and why, the names of those with one of 0, and whether the query has none."""
    own = subject.copied()
    module, inputs = own.module, own.inputs(1 if subject.form.alone else 3, 4 if subject.form.many else 1, 5, seed=3)
    (inputs.keys if subject.form.itself or subject.form.pools else inputs.query).requires_grad_(True)
    with torch.enable_grad():
        outcome = own.run(inputs)
        outputs = [outcome.weights, outcome.context]
        wanted = [tensor for tensor in outputs if tensor is not None and tensor.requires_grad]
        if not wanted:
            names = ", ".join(name for name, _ in module.named_parameters()) if module else ""
            return ({names: _NONE} if names else {}), [], True
        random = torch.Generator().manual_seed(5)
        sums = [(tensor * torch.randn(tensor.shape, generator=random).to(tensor)).sum() for tensor in wanted]
        torch.stack(sums).sum().backward()
    never: dict[str, str] = {}
    constant, counts = [], [*outcome.weights.shape[1:]]
    counts[0] = max([counts[0], *(made.weights.shape[1] for made in outcome.softmaxes if made.weights.ndim == 4)])
    for name, parameter in module.named_parameters() if module else ():
        if parameter.requires_grad and parameter.grad is None:
            never[name] = _CUT
            if not _changes(own, parameter):
                never[name] = _WITHOUT_EFFECT if _is_used(own, parameter) else _NEVER
        elif parameter.requires_grad and parameter.grad is not None and float(parameter.grad.abs().max()) < 1e-6:
            constant.append(name)
        elif parameter.grad is not None and (part := _unused_part(parameter.grad, *counts)):
            never[name] = f": {part} get no gradient: the heads that they make are not used"
    query = (inputs.keys if subject.form.itself else inputs.query).grad
    return never, constant, query is None


def _unused_part(gradient: Tensor, heads: int, *tokens: int) -> str:
    """The rows, or columns, of a matrix that get no gradient if these are those of whole heads, also in a joint matrix
    of queries, keys and values; "" if there are none. tokens : numbers of queries and keys."""
    for dim, count in product((0, 1), (heads, 2 * heads, 3 * heads)) if gradient.ndim == 2 and heads > 1 else ():
        used = (gradient != 0).any(dim=1 - dim)
        if bool(used.all()) or int(used.sum()) in (*tokens, 0) or len(used) % count or len(used) == count:
            continue  # as many rows as there are tokens: a table of positions
        blocks = used.unflatten(0, (count, -1))
        if torch.equal(blocks.all(dim=1), blocks.any(dim=1)):
            gone = (~used).nonzero().flatten().tolist()
            last = next((a for a, b in pairwise(gone) if b > a + 1), gone[-1])
            return f"{('rows', 'columns')[dim]} {gone[0] + 1} to {last + 1}" + " and more" * (last < gone[-1])
    return ""


def _left_out(subject: Subject, never: Mapping[str, str]) -> str:
    """The reason if parameters get no gradient because an optional argument is not given: then the code of `forward`
    names their layers; else ""."""
    if subject.module is None or {*never.values()} != {_NEVER}:
        return ""
    forward = type(subject.module).forward
    options = [name for name, p in inspect.signature(forward).parameters.items() if p.default is None]
    mask = subject.form.mask.parameter if subject.form.mask else ""
    options = [f"`{name}`" for name in options if name not in (*subject.form.roles, mask)]
    code = code_of(forward)
    if not options or not all(re.search(rf"self\.{name.partition('.')[0]}\b", code) for name in never):
        return ""
    verb = "get" if len(never) > 1 else "gets"
    reason = f"forward() seems to use that only with {' or '.join(options)}, which this test leaves out"
    return f"{', '.join(never)} {verb} no gradient here: {reason}"


def _changes(subject: Subject, parameter: torch.nn.Parameter) -> bool:
    """Does changing a parameter change the result?"""
    inputs = subject.inputs(1 if subject.form.alone else 2, 1, 4)
    with torch.no_grad():
        before = subject.run(inputs)
        parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(7)))
        after = subject.run(inputs)
    pairs = [(before.weights, after.weights), (before.context, after.context)]
    return any(not torch.allclose(a, b, atol=1e-6) for a, b in pairs if a is not None and b is not None)


def _calls(subject: Subject, inputs: Inputs) -> list[tuple[Callable, list, object]]:
    """The functions of PyTorch that a call uses, with what each is given and gives."""
    calls = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            calls.append((function, [*args, *(kwargs or {}).values()], result))
            return result

    with torch.no_grad(), Watch():
        subject.run(inputs)
    return calls


def _is_used(subject: Subject, parameter: torch.nn.Parameter) -> bool:
    """Does a call make another tensor of a parameter, as of the bias of the keys, which a softmax cancels?"""
    calls = _calls(subject, subject.inputs(1 if subject.form.alone else 2, 1, 4))
    made = ((given, result[0] if isinstance(result, tuple) and result else result) for _, given, result in calls)
    return any(isinstance(first, Tensor) and any(x is parameter for x in given) for given, first in made)


def sentences(subject: Subject) -> Line:
    """Nothing leaks from one sentence of a batch to another."""
    test = "sentences of a batch do not mix"
    if subject.form.alone:
        return Line(test, UNTESTED, "the module reads one sentence at a time")
    if undefined(subject) == RANDOM:
        return Line(test, UNTESTED, RANDOM)

    def examine(inputs: Inputs) -> str | None:
        if len(inputs.query) < 2:
            return None
        before, others = subject.run(inputs), ((0, slice(1, None), "second"), (-1, slice(0, -1), "first"))
        for same, other, words in others:
            parts = [tensor.clone() for tensor in (inputs.query, inputs.keys, inputs.values)]
            for tensor in parts:
                tensor[other] = tensor[other].flip(-1) + 0.5
            query, keys, values = parts
            after = subject.run(subject.changed(inputs, query=query, keys=keys, values=values))
            if (difference := before.difference(after, same)) > NEAR:
                named = "last" if same else "first"
                return f"another {words} sentence changes the {named} one's result by {difference:.2g}"
        return None

    if not (example := smallest(subject, examine)):
        apart = reads_several(subject.module) or shares(subject).verdict == FAULT
        if example := "" if apart else smallest(subject, partial(_queries_mix, subject)):
            reason = "a query changes the weights of another one: a sum over the queries, or a view or reshape"
            return Line(test, FAULT, reason, example)
        return Line(test, OK, "a sentence gives the same alone and beside others")
    causes = "view or reshape in place of transpose, or softmax or a sum over the batch"
    return Line(test, FAULT, f"one sentence changes the result of another: {causes}", example)


def _queries_mix(subject: Subject, inputs: Inputs) -> str | None:
    """An example in which the last query changes the weights of those before it."""
    if not subject.form.many or subject.form.itself or inputs.query.shape[1] < 2:
        return None
    query = torch.cat([inputs.query[:, :-1], inputs.query[:, -1:].flip(-1) + 0.5], dim=1)
    before, after = (subject.run(x).weights[:, :, :-1] for x in (inputs, subject.changed(inputs, query=query)))
    difference = float((before - after).abs().max())
    return f"another last query changes a weight of the first by {difference:.2g}" if difference > NEAR else None


def large(subject: Subject) -> Line:
    """Scores of ±10⁴ give shares, no NaN."""
    test = "scores of ±10⁴"
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)
    inputs = subject.inputs(2, 2, 3)
    scores = subject.run(inputs).scores
    base = float(scores[scores.isfinite()].abs().max()) if scores is not None else 1.0
    factor = (1e4 / max(base, 1e-6)) ** 0.5
    big = subject.changed(inputs, query=inputs.query * factor, keys=inputs.keys * factor)
    try:
        weights = subject.run(big).weights
    except ANYTHING as error:  # a person's code may raise anything
        return Line(test, FAULT, in_words(error, "it raises "))
    sums, example = weights.sum(dim=-1), f"inputs times {factor:.3g}: weights {numbers(weights)}"
    if bool(weights.isfinite().all()) and (bool((sums >= 0.5).all()) or shares(subject).verdict != OK):
        return Line(test, OK, "no NaN")
    if reason := _only_too_small(subject, big):
        return Line(test, LIMIT, reason, example)
    if bool(weights.isfinite().all()):
        return Line(test, FAULT, "rows no longer sum to 1", example)
    reason = "NaN: a row is divided by its sum, which is 0 or infinite"
    if _exponents(subject, big):
        reason = "NaN: exp() of a large score overflows; subtract the largest score first, or use torch.softmax"
    return Line(test, FAULT, reason, example)


def _exponents(subject: Subject, inputs: Inputs) -> list[Tensor]:
    """What exp() is given in a call."""
    calls = _calls(subject, inputs)
    return [args[0] for function, args, _ in calls if getattr(function, "__name__", "") == "exp"]


def _only_too_small(subject: Subject, inputs: Inputs) -> str:
    """Why weights are 0 or NaN if exp() is given no number above 0, as where a score is a distance; else ""."""
    exponents = _exponents(subject, inputs)
    if not exponents or max(float(x.max()) for x in exponents) > 0:
        return ""
    kind = torch.finfo(exponents[0].dtype)
    least = f"−{-math.log(kind.tiny * kind.eps):.0f}"
    far = f"a query whose scores are all below {least}, as one far from every key, gets no weights"
    return f"{far}: exp() of each is 0, and so is their sum; torch.softmax of the scores has no such limit"


def half(subject: Subject) -> Line:
    """Half precision gives shares, no NaN, with a mask too."""
    test = "half precision"
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)
    small, full = subject.copied(), subject.inputs(2, 3, 5)
    if small.module:
        small.module.half()
    inputs = Inputs(full.query.half(), full.keys.half(), full.values.half())
    for masked in (False, True) if subject.form.mask else (False,):
        visible = torch.tensor([[True] * 3 + [False] * 2] * 2) if masked else None
        words = "float16, 2 sentences, 5 keys" + (", 2 of them hidden" if masked else "")
        try:
            weights = small.run(replace(inputs, visible=visible)).weights
        except ANYTHING as error:  # a person's code may raise anything
            return Line(test, LIMIT, _why_not_half(error), words)
        whole = subject.run(replace(full, visible=visible)).weights
        if not bool(weights.isfinite().all()) and bool(whole.isfinite().all()):
            far = _only_too_small(small, replace(inputs, visible=visible))
            reason = "weights are NaN or infinite: a number is beyond ±65504"
            return Line(test, LIMIT if far else FAULT, far or reason, words)
    return Line(test, OK, "no NaN")


def _why_not_half(error: BaseException) -> str:
    """The reason. It is a limit: many textbooks hide a key with -1e9, which is right in single precision."""
    text = text_of(error)
    if "overflow" in text:
        return (
            "the number that hides a key is beyond half precision, which ends at −65504: use float('-inf') or "
            "torch.finfo(scores.dtype).min"
        )
    if "dtype" in text or "same type" in text or "expected" in text:
        return f"a tensor that the module makes itself has another precision: {in_words(error)}"
    return in_words(error, "it raises ")


def without_zeros(target: Callable) -> tuple[Callable, list[str]]:
    """A copy whose parameters that are all 0, as those of an output projection may begin, are random, and their names:
    what they multiply would have no effect. The target itself if it has none but biases, or cannot be copied."""
    zeros: list[str] = []
    try:
        named = [*target.named_parameters()] if isinstance(target, nn.Module) else []
        zeros = [name for name, p in named if _is_0(p) and ("lora" in name or not BIAS.search(name.lower()))]
        copied: Any = copy.deepcopy(target) if zeros else target
    except ANYTHING:  # a person's code may raise anything
        return target, []
    generator = torch.Generator().manual_seed(5)
    for name in zeros:
        parameter = copied.get_parameter(name)
        noise = torch.randn(parameter.shape, generator=generator) / (parameter.shape or (1,))[-1] ** 0.5
        parameter.data.copy_(noise if parameter.numel() > 1 else torch.full_like(noise, 0.5))
    return copied, zeros


def _is_0(parameter: Tensor) -> bool:
    trains = parameter.requires_grad and not isinstance(parameter, UninitializedParameter)
    return trains and parameter.numel() > 0 and not bool(parameter.any())


def made_weights(module: nn.Module) -> dict[str, list[str]]:
    """The weights that parts of a module make of other parameters at each call, as `weight_norm` does: the name of the
    part, and the names of its weights."""
    made: dict[str, list[str]] = {}
    for path, part in module.named_modules():
        names = [*part.parametrizations] if parametrize.is_parametrized(part) else []
        names += [hook.name for hook in _older(part)]
        made |= {path: names} if names else {}
    return made


def _older(part: nn.Module) -> list[Any]:
    return [hook for hook in part._forward_pre_hooks.values() if type(hook) in _OLDER]


def make_plain(module: nn.Module) -> None:
    """Make each such weight a parameter. PyTorch's `remove_parametrizations` would also change the module that this one
    is a copy of."""
    for path, names in made_weights(module).items():
        part = module.get_submodule(path)
        if parametrize.is_parametrized(part):
            weights = {name: getattr(part, name).detach() for name in names}
            part.__class__ = type(part).__bases__[0]
            del part.parametrizations
            for name, weight in weights.items():
                part.register_parameter(name, nn.Parameter(weight))
        for hook in _older(part):
            _OLDER[type(hook)](part, hook.name)
