"""`own.check`: a module goes through every test, and the report says what holds."""

from collections.abc import Callable

import torch

from attnviz.own import checks, gradients, masks
from attnviz.own.recognise import recognise
from attnviz.own.report import FAULT, Line, Report
from attnviz.own.source import build, in_words

_TESTS: tuple[Callable, ...] = (
    checks.shares,
    checks.context,
    masks.hidden,
    masks.padding,
    masks.nothing_visible,
    checks.sentences,
    checks.order,
    checks.evaluation,
    checks.sizes,
    checks.large,
    checks.half,
    gradients.parameters,
    gradients.untouched,
)


def check(module: Callable, name: str = "", mask: str | None = None) -> Report:
    """Test an attention of your own: an `nn.Module`, its class, or a function.

    name : for the report. mask : what 1 in the mask is meant to do, `keep` or `hide`; None: as the docstring says, else
    as its name says. NotRecognised (a ValueError) when it has none of the forms that are recognised.
    """
    if mask not in (None, masks.KEEP, masks.HIDE):
        raise ValueError(f"mask must be {masks.KEEP} or {masks.HIDE}; got {mask!r:.80}")
    if isinstance(module, type):
        built = build(module)
        module, name = built.target, name or built.title
    if not callable(module):
        raise ValueError(f"module must be an nn.Module or a function; got {type(module).__name__}")
    state = torch.get_rng_state()
    try:
        torch.manual_seed(0)
        with torch.no_grad():
            subject = recognise(module, name)
            lines = tuple(_line(test, subject, mask) for test in _TESTS)
    finally:
        torch.set_rng_state(state)
    return Report(subject.title, subject.form.sentence(), lines)


def _line(test: Callable, subject, mask: str | None) -> Line:
    """One test. What raises where it must not is a fault of the module."""
    try:
        return test(subject, mask) if test is masks.hidden else test(subject)
    except Exception as error:  # a person's code may raise anything
        title = (test.__doc__ or "").splitlines()[0].rstrip(".")
        return Line(title, FAULT, f"it raises {in_words(error)}")
