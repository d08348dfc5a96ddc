"""`own.check`: a module goes through every test, and the report says what holds."""

import contextlib
import io
import warnings
from collections.abc import Callable

import torch

from attnviz.own import checks, gradients, masks
from attnviz.own import formula as formulas
from attnviz.own.forms import Subject
from attnviz.own.recognise import recognise
from attnviz.own.report import FAULT, Line, Report
from attnviz.own.source import build, in_words
from attnviz.python_file import ANYTHING

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


def check(module: Callable, name: str = "", mask: str | None = None, formula: str | None = None) -> Report:
    """Test an attention of your own: an `nn.Module`, its class, or a function.

    name : for the report. mask : what 1 in the mask is meant to do, `keep` or `hide`; None: as the docstring says, else
    as its name says. formula : the one that it is meant to compute, of `formula.NAMES`. NotRecognised, a ValueError,
    when it has none of the forms that are recognised.
    """
    if mask not in (None, masks.KEEP, masks.HIDE):
        raise ValueError(f"mask must be {masks.KEEP} or {masks.HIDE}; got {mask!r:.80}")
    if formula not in (None, *formulas.NAMES):
        raise ValueError(f"formula must be one of {', '.join(formulas.NAMES)}; got {formula!r:.80}")
    if isinstance(module, type):
        built = build(module)
        module, name = built.target, name or built.title
    if not callable(module):
        raise ValueError(f"module must be an nn.Module or a function; got {type(module).__name__}")
    state = torch.get_rng_state()
    try:
        torch.manual_seed(0)
        with torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # of the module's code, once a call; what it prints, too
            subject = recognise(module, name)
            lines = tuple(_line(test, subject, mask) for test in _TESTS)
            recognised = _formula(subject)
    finally:
        torch.set_rng_state(state)
    lines += (formulas.scaling(recognised),)
    if formula:
        lines += (formulas.line(recognised, formula),)
    return Report(subject.title, subject.form.sentence(), lines, recognised.words)


def _formula(subject: Subject) -> formulas.Formula:
    """The formula of the module, as far as it can be told."""
    try:
        return formulas.recognised(subject)
    except ANYTHING as error:  # a person's code may raise anything, in double precision too
        return formulas.Formula(f"not told: in double precision it raises {in_words(error)}")


def _line(test: Callable, subject: Subject, mask: str | None) -> Line:
    """One test. What raises where it must not is a fault of the module."""
    try:
        return test(subject, mask) if test is masks.hidden else test(subject)
    except ANYTHING as error:  # a person's code may raise anything
        title = (test.__doc__ or "").splitlines()[0].rstrip(".")
        return Line(title, FAULT, f"it raises {in_words(error)}")
