"""Tests of a module as a part of a network: sentences do not mix, every parameter learns, no input is changed, there is
no dropout in evaluation, and few and many sentences and keys, large numbers and half precision work."""

import inspect
import re
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from attnviz.own.capture import ShapeChanged, Subject
from attnviz.own.checks import (
    FAULT,
    LIMIT,
    NEAR,
    OK,
    RANDOM,
    UNTESTED,
    Line,
    numbers,
    shares,
    smallest,
    undefined,
)
from attnviz.own.forms import BEFORE, LAYERS, TOP, Inputs
from attnviz.own.matrices import reads_several, tell_apart, unregistered
from attnviz.own.source import code_of, drawn, in_words
from attnviz.python_file import ANYTHING, text_of

_NEVER = "never used in forward()"
_BELOW = {
    frozenset(["h[0]"]): "the first layer's state: right for a decoder of one layer",
    frozenset(["h[-2]", "h[0]"]): "the first two states: right for one layer in two directions",
    frozenset(["h[-2]"]): "a state below the last, or one direction of two",
}


def parameters(subject: Subject) -> Line:
    """Every parameter gets a gradient. A gradient of 0 is no fault where the softmax cancels a constant, as with a bias
    that is added to every score."""
    test = "every parameter gets a gradient"
    if hidden := unregistered(subject.module) if subject.module else ():
        names = ", ".join(f"self.{name}" for name in dict.fromkeys(name for name, _ in hidden))
        reason = (
            f"{names} holds layers that PyTorch does not see, so they never train: use nn.ModuleList or a name each"
        )
        return Line(test, FAULT, reason)
    if reason := drawn(subject.module) or _same_heads(subject):
        return Line(test, FAULT, reason)
    try:
        never, constant, deaf = _gradients(subject)
    except ANYTHING as error:  # a person's code may raise anything
        reason = f"backward() raises {in_words(error)}"
        if re.search("in-?place", text_of(error)):
            reason += "; an input or a tensor that is needed for the gradient is changed in place"
        return Line(test, FAULT, reason)
    if never and any(name.startswith("proj") for name in subject.form.roles):  # as in `proj_key` of Joey NMT
        return Line(test, LIMIT, f"{'; '.join(never)}. What comes projected is projected before the call")
    if never and (more := _left_out(subject, never)):
        return Line(test, LIMIT, more)
    if never:
        return Line(test, FAULT, "; ".join(never))
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


def _gradients(subject: Subject) -> tuple[list[str], list[str], bool]:
    """Sentences about parameters without a gradient, the names of those with one of 0, and whether the query has
    none."""
    own = subject.copied()
    module, inputs = own.module, own.inputs(1 if subject.form.alone else 3, 4 if subject.form.many else 1, 5, seed=3)
    (inputs.keys if subject.form.itself or subject.form.pools else inputs.query).requires_grad_(True)
    with torch.enable_grad():
        outcome = own.run(inputs)
        outputs = [outcome.weights, outcome.context]
        wanted = [tensor for tensor in outputs if tensor is not None and tensor.requires_grad]
        if not wanted:
            names = [name for name, _ in module.named_parameters()] if module else []
            return (
                [f"{', '.join(names)}: the result has no gradient at all (detach, .data, no_grad or argmax)"]
                * bool(names),
                [],
                True,
            )
        random = torch.Generator().manual_seed(5)
        sums = [(tensor * torch.randn(tensor.shape, generator=random).to(tensor)).sum() for tensor in wanted]
        torch.stack(sums).sum().backward()
    never, constant = [], []
    for name, parameter in module.named_parameters() if module else ():
        if parameter.requires_grad and parameter.grad is None:
            why = "it is used, but its gradient is cut (detach, .data, no_grad)"
            if not _changes(own, parameter):
                why = "it is used, but changes no result" if _is_used(own, parameter) else f"it is {_NEVER}"
            never.append(f"{name} gets no gradient: {why}")
        elif parameter.requires_grad and parameter.grad is not None and float(parameter.grad.abs().max()) < 1e-6:
            constant.append(name)
    query = (inputs.keys if subject.form.itself else inputs.query).grad
    return never, constant, query is None


def _left_out(subject: Subject, never: list[str]) -> str:
    """The reason if parameters get no gradient because an optional argument is not given: then the code of `forward`
    names their layers; else ""."""
    if subject.module is None or not all(sentence.endswith(_NEVER) for sentence in never):
        return ""
    forward = type(subject.module).forward
    options = [name for name, p in inspect.signature(forward).parameters.items() if p.default is None]
    mask = subject.form.mask.parameter if subject.form.mask else ""
    options = [f"`{name}`" for name in options if name not in (*subject.form.roles, mask)]
    names = [sentence.partition(" ")[0] for sentence in never]
    code = code_of(forward)
    if not options or not all(re.search(rf"self\.{name.partition('.')[0]}\b", code) for name in names):
        return ""
    got = "get" if len(names) > 1 else "gets"
    reason = f"forward() seems to use that only with {' or '.join(options)}, which this test leaves out"
    return f"{', '.join(names)} {got} no gradient here: {reason}"


def _changes(subject: Subject, parameter: torch.nn.Parameter) -> bool:
    """Does changing a parameter change the result?"""
    inputs = subject.inputs(1 if subject.form.alone else 2, 1, 4)
    with torch.no_grad():
        before = subject.run(inputs)
        parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(7)))
        after = subject.run(inputs)
    pairs = [(before.weights, after.weights), (before.context, after.context)]
    return any(not torch.allclose(a, b, atol=1e-6) for a, b in pairs if a is not None and b is not None)


def _is_used(subject: Subject, parameter: torch.nn.Parameter) -> bool:
    """Does a call make another tensor of a parameter, as of the bias of the keys, which a softmax cancels?"""
    uses = []

    class Watch(TorchFunctionMode):
        def __torch_function__(self, function, types, args=(), kwargs=None):
            result = function(*args, **(kwargs or {}))
            made = isinstance(result[0] if isinstance(result, tuple) and result else result, Tensor)
            uses.append(made and any(x is parameter for x in (*args, *(kwargs or {}).values())))
            return result

    with torch.no_grad(), Watch():
        subject.run(subject.inputs(1 if subject.form.alone else 2, 1, 4))
    return any(uses)


def top_layer(subject: Subject) -> Line | None:
    """The query is the state of the top layer. None where no states of layers come, or none is read."""
    form = subject.form
    if not form.reads:
        return None
    test, read = "the query is the top layer's state", " and ".join(map(form.name_of, form.reads))
    if {*LAYERS} <= {*form.reads}:
        inputs, first = subject.inputs(3, 1, 5), {LAYERS[0]: 1}
        moved = [subject.beside(inputs, first | {layer: -1}) for layer in LAYERS[1:]]
        mean = all(torch.allclose(weights, subject.run(inputs).weights[:, :, -1], atol=1e-6) for weights in moved)
        how, top = "the mean or sum of all layers" if mean else "all layers", form.name_of("h[-1]")
        return Line(test, LIMIT, f"it reads {how}: right for a decoder of one layer. The top layer's state is {top}")
    unread = "" if len(form.parts) == len(form.reads) or not form.state else ", and nothing else of the decoder"
    if not {*TOP} & {*form.reads}:
        top, below = form.name_of(next(part for part in form.parts if part in TOP[1:])), {*LAYERS} & {*form.reads}
        reason = f"the cell of an LSTM. Papers and textbooks ask with its state, {top}"
        reason = f"{_BELOW[frozenset(below)]}. The top layer's is {top}" if below else reason
        return Line(test, LIMIT, f"it reads {read}, {reason}")
    return Line(test, OK, f"it reads {read}{unread}")


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
    reason = (
        "one sentence changes the result of another: view or reshape in place of transpose, or softmax or a sum over "
    )
    return Line(test, FAULT, f"{reason}the batch", example)


def _queries_mix(subject: Subject, inputs: Inputs) -> str | None:
    """An example in which the last query changes the weights of those before it."""
    if not subject.form.many or subject.form.itself or inputs.query.shape[1] < 2:
        return None
    query = torch.cat([inputs.query[:, :-1], inputs.query[:, -1:].flip(-1) + 0.5], dim=1)
    before, after = (subject.run(x).weights[:, :, :-1] for x in (inputs, subject.changed(inputs, query=query)))
    difference = float((before - after).abs().max())
    return f"another last query changes a weight of the first by {difference:.2g}" if difference > NEAR else None


def untouched(subject: Subject) -> Line:
    """Neither an input nor the mask is changed in place."""
    test = "no input is changed"
    inputs = subject.inputs(1 if subject.form.alone else 2, 2 if subject.form.many else 1, 4)
    visible = torch.tensor([[True, True, True, False]] * len(inputs.query)) if subject.form.mask else None
    arguments = subject.given(type(inputs)(inputs.query, inputs.keys, inputs.values, visible))
    tensors = {name: tensor for name, tensor in arguments.items() if isinstance(tensor, Tensor)}
    before = {name: tensor.clone() for name, tensor in tensors.items()}
    with torch.no_grad():
        subject.call(arguments)
    changed = [name for name, tensor in tensors.items() if not torch.equal(tensor, before[name])]
    if not changed:
        return Line(test, OK, "all are as they were")
    name = changed[0]
    first = (tensors[name] != before[name]).nonzero()[0].tolist()
    values = before[name][tuple(first)].item(), tensors[name][tuple(first)].item()
    example = f"{name}{first} was {values[0]:.3g} and is {values[1]:.3g} after the call"
    reason = f"{', '.join(changed)} is changed in place (+=, *=, or a method that ends in _): work on a new tensor"
    return Line(test, FAULT, reason, example)


def large(subject: Subject) -> Line:
    """Scores of ±10⁴ give shares, no NaN."""
    test = "scores of ±10⁴"
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)
    inputs = subject.inputs(2, 2, 3)
    scores = subject.run(inputs).scores
    base = float(scores[scores.isfinite()].abs().max()) if scores is not None else 1.0
    factor = (1e4 / max(base, 1e-6)) ** (0.5)
    big = subject.changed(inputs, query=inputs.query * factor, keys=inputs.keys * factor)
    try:
        weights = subject.run(big).weights
    except ANYTHING as error:  # a person's code may raise anything
        return Line(test, FAULT, in_words(error, "it raises "))
    sums = weights.sum(dim=-1)
    if not bool(weights.isfinite().all()):
        reason = "NaN: a row is divided by its sum, which is 0 or infinite"
        if "exp(" in code_of(subject.target):
            reason = "NaN: exp() of a large score overflows; subtract the largest score first, or use torch.softmax"
        return Line(test, FAULT, reason, f"inputs times {factor:.3g}: weights {numbers(weights)}")
    if bool((sums < 0.5).any()) and shares(subject).verdict == OK:
        return Line(
            test, FAULT, "rows no longer sum to 1", f"inputs times {factor:.3g}: a sum is {float(sums.min()):.3g}"
        )
    return Line(test, OK, "no NaN")


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
            return Line(test, FAULT, "weights are NaN or infinite: a number is beyond ±65504", words)
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


def sizes(subject: Subject) -> Line:
    """One sentence, one key and 200 keys give results of the promised shape, without NaN."""
    test = "one sentence, one key, 200 keys"
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)
    for batch, queries, keys in ((1, 1, 1), (1, 2, 3), (2, 1, 1), (2, 3, 200)):
        inputs = subject.inputs(batch, queries, keys)
        try:
            weights = subject.run(inputs).weights
        except ShapeChanged as error:
            reason = (
                "a squeeze() without dim, or a view, loses an axis of length 1" if 1 in (batch, keys) else "axes change"
            )
            return Line(test, FAULT, f"{error}: {reason}", inputs.words)
        except ANYTHING as error:  # a person's code may raise anything
            if keys > 3 and (most := _most_keys(subject, keys)):
                return Line(test, LIMIT, f"it is built for at most {most} keys", inputs.words)
            squeezed = 1 in (batch, keys) and "squeeze()" in code_of(subject.target)
            lost = "squeeze() without dim loses an axis of length 1: " if squeezed else ""
            return Line(test, FAULT, f"{lost}{in_words(error, 'it raises ')}", inputs.words)
        if not bool(weights.isfinite().all()):
            return Line(test, FAULT, "weights are NaN", inputs.words)
    return Line(test, OK, "all have the promised shape")


def _most_keys(subject: Subject, too_many: int) -> int:
    """The largest number of keys, from attributes or tensors, of a module built for a fixed number; 0 for any other."""

    def takes(keys: int) -> bool:
        try:
            subject.run(subject.inputs(2, 3, keys))
        except ANYTHING:  # a person's code may raise anything
            return False
        return True

    parts = list(subject.module.modules()) if subject.module else []
    numbers = {value for part in parts for value in vars(part).values() if type(value) is int}
    numbers |= {size for part in parts for _, tensor in part.named_buffers(recurse=False) for size in tensor.shape}
    numbers |= {size for part in parts for _, tensor in part.named_parameters(recurse=False) for size in tensor.shape}
    stated = sorted(number for number in numbers if 3 < number < too_many)
    return next((number for number in stated if takes(number) and not takes(number + 1)), 0)


def evaluation(subject: Subject) -> Line:
    """In evaluation mode there is no dropout: the same call gives the same result."""
    test = "no dropout in evaluation"
    if (reason := undefined(subject)) == RANDOM:
        made = "; a layer that forward() makes has new numbers each time: make it in __init__()"
        made *= bool(
            re.search(
                r"nn\.(Linear|Conv\dd|Embedding|Parameter)\(",
                code_of(getattr(subject.module, "forward", subject.target)),
            )
        )
        reason = f"random numbers are drawn after eval(), as by gumbel_softmax: keep them for training{made}"
        return Line(test, FAULT, reason)
    if reason:
        return Line(test, UNTESTED, reason)
    inputs = subject.inputs(2, 3, 5)
    runs = [subject.run(inputs, dropout=True) for _ in range(4)]
    quiet = subject.run(inputs)
    changes = max(max(run.difference(quiet, 0), run.difference(quiet, 1)) for run in runs)
    if changes < 1e-6:
        return Line(test, OK, "four calls give the same")
    zero = any(bool((run.weights == 0).any()) for run in runs) and not bool((quiet.weights == 0).any())
    reason = "dropout stays on after eval(): F.dropout needs training=self.training, or use nn.Dropout"
    if max(run.difference(runs[0], 0) for run in runs[1:]) < 1e-6 and not zero:
        reason = "dropout changes the result although it is the same every time"
    return Line(test, FAULT, reason, f"2 sentences, the same call: a result differs by {changes:.2g}")
