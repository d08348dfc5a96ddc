"""`own.check`: run every test on a module and report the results, as text, as a table of a notebook, and as JSON."""

import contextlib
import html
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import torch

from attnviz.own import checks, gradients, masks
from attnviz.own import formula as formulas
from attnviz.own.capture import Subject
from attnviz.own.checks import FAULT, LIMIT, OK, UNTESTED, Line
from attnviz.own.matrices import reads_several, without_zeros
from attnviz.own.recognise import recognise
from attnviz.own.source import Built, built, in_words, looked_at, same_numbers
from attnviz.python_file import ANYTHING

if TYPE_CHECKING:
    from attnviz.own.trained import InTrained

_COLORS = {OK: "#1a7f37", FAULT: "#b42318", LIMIT: "#9a6700", UNTESTED: "#6e7781"}
_TESTS: tuple[Callable, ...] = (
    checks.shares,
    checks.context,
    masks.hidden,
    masks.padding,
    masks.nothing_visible,
    gradients.sentences,
    masks.order,
    gradients.evaluation,
    gradients.sizes,
    gradients.large,
    gradients.half,
    gradients.parameters,
    gradients.top_layer,
    gradients.untouched,
)


@dataclass(frozen=True)
class Report:
    """Every test of one module. name : how it was made. form : how it is called. formula : the formula that it
    computes. trained : its result in the trained model of this formula.

    >>> own.check(lambda query, keys: (query @ keys.mT).softmax(-1)).form
    'attention, batch-first: (query (B,T,D), keys (B,S,D)) -> weights (B,T,S)'
    """

    name: str
    form: str
    lines: tuple[Line, ...]
    formula: str = ""
    trained: str = ""

    @property
    def ok(self) -> bool:
        """No test found a fault."""
        return all(line.verdict != FAULT for line in self.lines)

    @property
    def faults(self) -> tuple[Line, ...]:
        """The lines with a fault."""
        return tuple(line for line in self.lines if line.verdict == FAULT)

    def summary(self) -> str:
        """The counts of the verdicts."""
        counts = {verdict: sum(line.verdict == verdict for line in self.lines) for verdict in _COLORS}
        return ", ".join(f"{count} {_plural(verdict, count)}" for verdict, count in counts.items() if count)

    def _facts(self) -> list[str]:
        """Lines on how the module is called, what it computes, and its result in a trained model."""
        facts = {"recognised as": self.form, "formula:": self.formula, "in a trained model:": self.trained}
        return [f"{name} {words}" for name, words in facts.items() if words]

    def to_dict(self) -> dict:
        """For JSON."""
        lines = [asdict(line) for line in self.lines]
        return {"name": self.name, "ok": self.ok, "summary": self.summary(), "form": self.form} | {
            "formula": self.formula,
            "trained": self.trained,
            "tests": lines,
        }

    def __str__(self) -> str:
        head = [self.name, *self._facts(), ""]
        wide = max((len(line.test) for line in self.lines), default=0)
        body = []
        for line in self.lines:
            body.append(f"{line.verdict:10}  {line.test:{wide}}  {line.reason}")
            if line.example:
                body.append(f"{'':10}  {'':{wide}}  smallest example: {line.example}")
        return "\n".join([*head, *body, "", self.summary()])

    def _repr_html_(self) -> str:
        rows = "".join(
            f'<tr><td style="color:{_COLORS[line.verdict]}"><b>{line.verdict}</b></td>'
            f'<td style="text-align:left">{html.escape(line.test)}</td>'
            f'<td style="text-align:left">{html.escape(line.reason)}</td>'
            f'<td style="text-align:left">{html.escape(line.example)}</td></tr>'
            for line in self.lines
        )
        head = "<tr><th>verdict</th><th>test</th><th>reason</th><th>smallest example</th></tr>"
        facts = "".join(f"<div>{html.escape(line)}</div>" for line in self._facts())
        return f"<div><b>{html.escape(self.name)}</b>{facts}<table>{head}{rows}</table></div>"


def _plural(verdict: str, count: int) -> str:
    """`4 faults`, but `4 ok` and `4 not tested`."""
    return f"{verdict}s" if verdict in (FAULT, LIMIT) and count > 1 else verdict


def check(
    module: Callable | Built,
    name: str = "",
    mask: str | None = None,
    formula: str | None = None,
    in_trained: bool = False,
    settings: Mapping[str, object] | None = None,
) -> Report:
    """Test an attention of your own: an `nn.Module`, its class, a function, or what `own.load` returns.

    name : for the report. mask : the meaning of 1 in the mask, `keep` or `hide`; None: from the docstring, else from
    its name. formula : the intended formula, one of `formula.NAMES`. in_trained : also run it in the trained model of
    its formula, see `own.in_trained`. settings : arguments of the class, by name; the others are chosen. ValueError if
    it has none of the supported forms.

    >>> own.check(lambda query, keys: (query @ keys.mT).softmax(-1)).ok
    True
    """
    if mask not in (None, masks.KEEP, masks.HIDE):
        raise ValueError(f"mask must be {masks.KEEP} or {masks.HIDE}; got {mask!r:.80}")
    if formula not in (None, *formulas.NAMES):
        raise ValueError(f"formula must be one of {', '.join(formulas.NAMES)}; got {formula!r:.80}")
    with same_numbers():
        made, trained = built(module, settings), ""
    with _in_one_thread(), torch.no_grad(), warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")  # of the module's code, once a call; what it prints, too
        subject, recognised = _read(made, name)
        lines = tuple(line for test in _TESTS if (line := _line(test, subject, mask)) is not None)
        if in_trained:
            trained = _in_trained(made, subject, recognised, formula)
            if not trained.startswith("not run") and FAULT in [
                line.verdict for line in lines if line.test == masks.HIDDEN
            ]:
                trained += "; a sentence read by itself hides no key, so the fault of its mask does not show here"
    lines = (*(_unused(_excused(line, subject), recognised) for line in lines), formulas.scaling(recognised, subject))
    if formula:
        lines += (formulas.line(recognised, formula),)
    return Report(subject.title, subject.form.sentence(), lines, recognised.words, trained)


def in_trained(
    module: Callable | Built,
    texts: Sequence[str] = (),
    formula: str | None = None,
    settings: Mapping[str, object] | None = None,
) -> "InTrained":
    """Run a module of your own in the trained en-fr model of its formula, beside ours: its class is built in the
    trained widths and gets the trained matrices.

    texts : sentences; (): the examples of the page. formula : the one to use if the module fits two. settings : as in
    `check`. ValueError, with the reason, if this is impossible.

    >>> dot = own.in_trained(lambda query, keys: (query @ keys.mT).softmax(-1), ["The black dog runs."])
    >>> dot.model, dot.yours[0].translation
    ('en-fr/luong-dot', 'Le chien noir court.')
    """
    from attnviz.own import trained  # which imports the models, and they the mechanisms, of which a person's is one

    with _in_one_thread(), torch.no_grad():
        made = built(module, settings)
        return trained.placed(made, *_read(made), formula, texts)


def _read(made: Built, name: str = "") -> tuple[Subject, formulas.Formula]:
    """The form and the formula of a module, and what the tests run: the module, or a copy of it with random numbers for
    parameters that begin as 0. If it has no known formula with them, the formula is that with 0."""
    target, zeros = without_zeros(made.target)
    subject = recognise(target, name or made.title)
    with looked_at(made.target, subject.title):
        recognised = formulas.recognised(subject)
        if zeros and not recognised.names:
            plain = formulas.recognised(Subject(made.target, subject.form, subject.title))
            recognised = plain if plain.names else recognised
    if zeros:
        names = ", ".join(f"`{zero}`" for zero in zeros[:5]) + " …" * (len(zeros) > 5)
        words = f"{recognised.words}; tested with random numbers for {names}, all 0 at the start"
        recognised = replace(recognised, words=words)
    return subject, recognised


@contextlib.contextmanager
def _in_one_thread() -> Iterator[None]:
    """In the block there is one thread, because with two, matrices this small take ten times as long if both cores are
    busy, and the random numbers are the same each time."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with same_numbers():
            yield
    finally:
        torch.set_num_threads(threads)


def _in_trained(made: Built, subject: Subject, formula: formulas.Formula, wanted: str | None) -> str:
    """The module's result in the trained model of its formula, or why there is none."""
    from attnviz.own import trained

    try:
        return trained.placed(made, subject, formula, wanted).words
    except ANYTHING as error:  # a person's code may raise anything
        return f"not run: {error}" if isinstance(error, ValueError) else f"not run: {in_words(error, 'it raises ')}"


def _excused(line: Line, subject: Subject) -> Line:
    """The line; not tested where keys or values are made of several tokens, as by an RNN within the module."""
    layer = reads_several(subject.module)
    if not layer or line.verdict != FAULT or not re.match("the score of a key|the context is not the w", line.reason):
        return line
    reason = f"`{layer}` reads several tokens at once, so a key and its value change with the others"
    return replace(line, verdict=UNTESTED, reason=reason, example="")


def _unused(line: Line, formula: formulas.Formula) -> Line:
    """The line; for a matrix that is never used, with what is made by another in its place."""
    parts = {"W": "queries", "U": "keys", "V": "values"}
    names = {
        formula.places[x]: [parts[y] for y in parts if formula.places.get(y) == formula.places[x]]
        for x in formula.places
        if x in parts
    }
    twice = [f"`{place.parameter}` makes {' and '.join(made)}" for place, made in names.items() if len(made) > 1]
    if line.verdict != FAULT or "never used" not in line.reason or not twice or "gets no gradient" not in line.reason:
        return line
    return replace(line, reason=f"{line.reason}; {', '.join(twice)}")


def _line(test: Callable, subject: Subject, mask: str | None) -> Line | None:
    """Run one test; None where it is of other modules. An unexpected exception is a fault of the module."""
    try:
        return test(subject, mask) if test is masks.hidden else test(subject)
    except ANYTHING as error:  # a person's code may raise anything
        title = (test.__doc__ or "").splitlines()[0].rstrip(".")
        return Line(title, FAULT, in_words(error, "it raises "))
