"""Tests of a module as a part of a network: every parameter learns, and no input is changed."""

import copy

import torch
from torch import Tensor

from attnviz.own.forms import Subject
from attnviz.own.report import FAULT, OK, Line
from attnviz.own.source import in_words
from attnviz.python_file import ANYTHING


def parameters(subject: Subject) -> Line:
    """Every parameter gets a gradient. A gradient of 0 is no fault where the softmax cancels a constant, as with a bias
    that is added to every score."""
    test = "every parameter gets a gradient"
    try:
        never, constant, deaf = _gradients(subject)
    except ANYTHING as error:  # a person's code may raise anything
        reason = f"backward() raises {in_words(error)}"
        if "in-place" in str(error) or "inplace" in str(error):
            reason += "; an input or a tensor that is needed for the gradient is changed in place"
        return Line(test, FAULT, reason)
    if never:
        return Line(test, FAULT, "; ".join(never))
    if deaf:
        return Line(test, FAULT, "the query gets no gradient: it is cut off by detach(), .data, no_grad() or argmax")
    if not subject.module or not list(subject.module.parameters()):
        return Line(test, OK, "it has no parameters, and the query gets a gradient")
    note = f"; {', '.join(constant)}: 0, since a constant added to all scores changes no weight" if constant else ""
    return Line(test, OK, f"all of them{note}")


def _gradients(subject: Subject) -> tuple[list[str], list[str], bool]:
    """Sentences about parameters without a gradient, the names of those with one of 0, and whether the query has
    none."""
    module = copy.deepcopy(subject.module) if subject.module else None
    own = Subject(module or subject.target, subject.form, subject.title)
    inputs = own.inputs(1 if subject.form.alone else 3, 4 if subject.form.many else 1, 5, seed=3)
    (inputs.keys if subject.form.itself else inputs.query).requires_grad_(True)
    with torch.enable_grad():
        outcome = own.run(inputs)
        outputs = [outcome.weights, outcome.context]
        wanted = [tensor for tensor in outputs if tensor is not None and tensor.requires_grad]
        if not wanted:
            names = [name for name, _ in module.named_parameters()] if module else []
            return (
                [f"{', '.join(names)}: the result has no gradient at all (detach, .data or no_grad)"] * bool(names),
                [],
                True,
            )
        torch.stack([(tensor * _random(tensor)).sum() for tensor in wanted]).sum().backward()
    never, constant = [], []
    for name, parameter in module.named_parameters() if module else ():
        if parameter.requires_grad and parameter.grad is None:
            used = _changes(own, parameter)
            why = "used, but its gradient is cut (detach, .data, no_grad)" if used else "never used in forward()"
            never.append(f"{name} gets no gradient: it is {why}")
        elif parameter.requires_grad and float(parameter.grad.abs().max()) < 1e-6:
            constant.append(name)
    query = (inputs.keys if subject.form.itself else inputs.query).grad
    return never, constant, query is None


def _random(tensor: Tensor) -> Tensor:
    return torch.randn(tensor.shape, generator=torch.Generator().manual_seed(5)).to(tensor.dtype)


def _changes(subject: Subject, parameter: torch.nn.Parameter) -> bool:
    """Does another value of a parameter change the result?"""
    inputs = subject.inputs(1 if subject.form.alone else 2, 1, 4)
    with torch.no_grad():
        before = subject.run(inputs)
        parameter.add_(torch.randn(parameter.shape, generator=torch.Generator().manual_seed(7)))
        after = subject.run(inputs)
    pairs = [(before.weights, after.weights), (before.context, after.context)]
    return any(not torch.allclose(a, b, atol=1e-6) for a, b in pairs if a is not None)


def untouched(subject: Subject) -> Line:
    """No input is changed in place, the mask neither."""
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
