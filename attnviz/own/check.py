"""`own.check`: run every test on a module and report the results, as text, as a table of a notebook, and as JSON. Here
are the tests of calls, their sizes and what they change, and of the form and the formula that were recognised."""

import contextlib
import html
import io
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from attnviz.own import checks, gradients, masks
from attnviz.own import formula as formulas
from attnviz.own.capture import ShapeChanged, Subject
from attnviz.own.checks import FAULT, LIMIT, OK, RANDOM, UNTESTED, Line, undefined
from attnviz.own.forms import LAYERS, TOP, NotRecognised
from attnviz.own.matrices import Place
from attnviz.own.recognise import recognise
from attnviz.own.source import Built, built, code_of, in_words, looked_at, raised, same_numbers, stated_axes
from attnviz.python_file import ANYTHING

if TYPE_CHECKING:
    from attnviz.own.trained import InTrained

_COLORS = {OK: "#1a7f37", FAULT: "#b42318", LIMIT: "#9a6700", UNTESTED: "#6e7781"}
_BELOW = {
    frozenset(["h[0]"]): "the first layer's state: right for a decoder of one layer",
    frozenset(["h[-2]", "h[0]"]): "the first two states: right for one layer in two directions",
    frozenset(["h[-2]"]): "a state below the last, or one direction of two",
}


def _top_layer(subject: Subject) -> Line | None:
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


def _untouched(subject: Subject) -> Line:
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


def _evaluation(subject: Subject) -> Line:
    """In evaluation mode there is no dropout: the same call gives the same result."""
    test = "no dropout in evaluation"
    if (reason := undefined(subject)) == RANDOM:
        makes = re.search(
            r"nn\.(Linear|Conv\dd|Embedding|Parameter)\(", code_of(getattr(subject.module, "forward", subject.target))
        )
        made = "; a layer that forward() makes has new numbers each time: make it in __init__()" if makes else ""
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


def _sizes(subject: Subject) -> Line:
    """One sentence, one key and 200 keys give results of the promised shape, without NaN."""
    test = "one sentence, one key, 200 keys"
    if reason := undefined(subject):
        return Line(test, UNTESTED, reason)
    for batch, queries, keys in ((1, 1, 1), (1, 2, 3), (2, 1, 1), (2, 3, 200)):
        inputs = subject.inputs(batch, queries, keys)
        try:
            weights = subject.run(inputs).weights
        except ShapeChanged as error:
            lost = "a squeeze() without dim, or a view, loses an axis of length 1"
            return Line(test, FAULT, f"{error}: {lost if 1 in (batch, keys) else 'axes change'}", inputs.words)
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


_TESTS: tuple[Callable, ...] = (
    checks.shares,
    checks.context,
    masks.hidden,
    masks.padding,
    masks.nothing_visible,
    gradients.sentences,
    masks.order,
    _evaluation,
    _sizes,
    gradients.large,
    gradients.half,
    gradients.parameters,
    _top_layer,
    _untouched,
)


@dataclass(frozen=True)
class Report:
    """Every test of one module. name : how it was made. form : how it is called. formula : the formula that it
    computes. trained : its result in the trained model of this formula. called : the call with a query (B,D) that
    raises, where only (B,1,D) is taken.

    >>> own.check(lambda query, keys: (query @ keys.mT).softmax(-1)).form
    'attention, batch-first: (query (B,T,D), keys (B,S,D)) -> weights (B,T,S)'
    """

    name: str
    form: str
    lines: tuple[Line, ...]
    formula: str = ""
    trained: str = ""
    called: str = ""

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
        facts = {"recognised as": self.form, "called with": self.called, "formula:": self.formula}
        facts |= {"in a trained model:": self.trained}
        return [f"{name} {words}" for name, words in facts.items() if words]

    def to_dict(self) -> dict:
        """For JSON."""
        lines = [asdict(line) for line in self.lines]
        return {"name": self.name, "ok": self.ok, "summary": self.summary(), "form": self.form} | {
            "formula": self.formula,
            "trained": self.trained,
            "called": self.called,
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
        more: dict[Callable, list] = {masks.hidden: [mask], gradients.parameters: [_shared(recognised.places)]}
        made_lines = [_line(test, subject, *more.get(test, ())) for test in _TESTS]
        lines = [*(line for line in made_lines if line is not None), _scaled(recognised, subject)]
        if in_trained:
            hides = FAULT not in [line.verdict for line in lines if line.test == masks.HIDDEN]
            trained = _in_trained(made, subject, recognised, formula, hides)
    if formula:
        verdict = OK if formula in recognised.names else FAULT
        lines.append(Line(f"the formula is {formula}", verdict, recognised.words))
    called = _without_an_axis(subject)
    return Report(subject.title, subject.form.sentence(), tuple(lines), recognised.words, trained, called)


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
    target, zeros = gradients.without_zeros(made.target)
    subject = recognise(target, name or made.title)
    with looked_at(made.target, subject.title):
        for made_weights in (softmax.weights for softmax in subject.run(subject.inputs(3, 2, 5)).softmaxes):
            if made_weights.dtype in (torch.float16, torch.bfloat16):
                why = f"{subject.title} makes its weights in {made_weights.dtype}, which has too few digits to test"
                raise NotRecognised(f"{why}: test it in single precision, without half(), bfloat16() and autocast")
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


def _in_trained(made: Built, subject: Subject, formula: formulas.Formula, wanted: str | None, hides: bool) -> str:
    """The module's result in the trained model of its formula, or why there is none. hides : no fault of its mask was
    found."""
    from attnviz.own import trained

    unseen = "; a sentence read by itself hides no key, so the fault of its mask does not show here"
    try:
        return trained.placed(made, subject, formula, wanted).words + unseen * (not hides)
    except ANYTHING as error:  # a person's code may raise anything
        return f"not run: {error}" if isinstance(error, ValueError) else f"not run: {in_words(error, 'it raises ')}"


def _without_an_axis(subject: Subject) -> str:
    """The call with a query (B, D) and its error, where (B, 1, D) is taken, unless the file says (B, 1, D); else ""."""
    form, words, inputs = subject.form, "", [subject.inputs(3, 1, keys) for keys in (5, 3)]
    other = Subject(subject.target, replace(form, query="BD"))
    if (form.query, form.keys, form.many, form.state) == ("BTD", "BSD", False, ""):
        for sizes in inputs if stated_axes(subject.target)[1:2] != ("1",) else ():
            try:
                other.call(other.given(sizes))
                return f"{words}. With as many keys as sentences it runs, and mixes the sentences" * bool(words)
            except ANYTHING as error:  # a person's code may raise anything
                words = words or f"{other.shapes(sizes)} {raised(error, other.target, 3, 5)}, if you call it so"
    return words


def _non_local(formula: formulas.Formula, module: nn.Module | None) -> bool:
    """Is it a non-local block: by its name, or because θ and φ, or convolutions, make its queries and keys?"""
    names = [formula.places[letter].parameter.removesuffix(".weight") for letter in "WU" if letter in formula.places]
    layers = [layer for path, layer in module.named_modules() if path in names] if module else []
    convolutions = len(layers) == 2 and all(isinstance(layer, nn.Conv1d | nn.Conv2d) for layer in layers)
    named = re.search("non_?local", type(module).__name__, re.I) is not None
    return named or convolutions or {name.rpartition(".")[2] for name in names} == {"theta", "phi"}


def _shared(places: Mapping[str, Place]) -> list[str]:
    """The parameters that make two of queries, keys and values, in sentences."""
    made: dict[Place, list[str]] = {}
    for letter, name in (("W", "queries"), ("U", "keys"), ("V", "values")):
        if letter in places:
            made.setdefault(places[letter], []).append(name)
    return [f"`{place.parameter}` makes {' and '.join(names)}" for place, names in made.items() if len(names) > 1]


def _scaled(formula: formulas.Formula, subject: Subject) -> Line:
    """Are the scores scaled as in the nearest formula?"""
    test = "scores are scaled as in the formula"
    if "scaled" in subject.title.partition("(")[0].lower() and formula.names == ("dot",):
        return Line(test, FAULT, f"its name says scaled, and the products are not divided by √d: {formula.words}")
    if formula.slip is formulas.Slip.NO_ROOT and _non_local(formula, subject.module):
        return Line(test, LIMIT, f"{formula.words}. Only a non-local block (Wang et al. 2018) needs no root")
    if formula.slip or formula.names:
        return Line(test, FAULT if formula.slip else OK, formula.words)
    return Line(test, UNTESTED, f"which scale is right is known of the known formulas only. This is {formula.words}")


def _line(test: Callable, subject: Subject, *more: object) -> Line | None:
    """Run one test; None where it is of other modules. An unexpected exception is a fault of the module."""
    try:
        return test(subject, *more)
    except ANYTHING as error:  # a person's code may raise anything
        title = (test.__doc__ or "").splitlines()[0].rstrip(".")
        return Line(title, FAULT, in_words(error, "it raises "))
