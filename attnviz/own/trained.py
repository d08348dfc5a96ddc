"""A user's attention in the trained model of its formula: the class is built in the trained widths, gets the trained
matrices, and is compared with ours on real sentences.

Letters: as in forms. W, U, v, V and O are the matrices of `attention`, which the recogniser of formulas finds in our
scores as in a user's.
"""

import copy
import functools
import itertools
import math
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from attnviz import loading, mechanisms
from attnviz.attention import MultiHead, masked_softmax
from attnviz.data.tasks import TASKS
from attnviz.mechanisms import Config, Mechanism
from attnviz.models import checkpoints
from attnviz.models.checkpoint_files import ROOT, root_of
from attnviz.models.names import TOKENIZER
from attnviz.models.translator import Translator
from attnviz.networks.registry import named
from attnviz.own import forms
from attnviz.own.capture import Subject
from attnviz.own.forms import Form, Inputs
from attnviz.own.formula import Formula, recognised
from attnviz.own.gradients import made_weights, make_plain, without_zeros
from attnviz.own.matrices import Place
from attnviz.own.matrices import widths as widths_of
from attnviz.own.recognise import recognise
from attnviz.own.source import Built, Sizes, in_words, load
from attnviz.own.wrap import Yours, of_trained, widened
from attnviz.python_file import ANYTHING
from attnviz.trace import Trace

PAIR = "en-fr"


@dataclass(frozen=True)
class InTrained:
    """A module in the trained model of its formula, with the trained matrices in it.

    ours, yours : traces of the same sentences. difference : the largest difference of a weight. words : the result in
    words.
    """

    model: str
    ours: tuple[Trace, ...]
    yours: tuple[Trace, ...]
    difference: float
    words: str


class InPlaceOfHeads(nn.Module):
    """A module in place of a MultiHead of a Transformer, with the same inputs, including a decoder's cached keys and
    values. If `whole`, its context is used too; else its weights are applied to the trained values, and a module of one
    head replaces the first head. first : only its first head is used, because its heads share keys."""

    def __init__(self, subject: Subject, ours: MultiHead, whole: bool, first: bool = False):
        super().__init__()
        self.used = 1 if first else None
        self.subject, self.module, self.ours, self.heads, self.whole = subject, subject.module, ours, ours.heads, whole

    def remember(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """memory (B, S, D) -> the same twice (B, 1, S, D): the module projects it at every call."""
        return memory.unsqueeze(1), memory.unsqueeze(1)

    def forward(self, query: Tensor, memory: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        return self.read(query, *self.remember(memory), mask)

    def read(self, query, keys, values, mask=None, reweigh=None):
        """As of MultiHead. A causal mask (T, S) is a prefix of the keys for each query."""
        memory = keys[:, 0]
        if mask is None or mask.ndim > 2:
            return self._attend(query, memory, None if mask is None else mask[:, 0, 0], reweigh)
        contexts, weights = [], []
        for row, count in enumerate(mask.sum(dim=-1).tolist()):
            context, shares = self._attend(query[:, row : row + 1], memory[:, :count], None, None)
            contexts.append(context)
            weights.append(widened(shares, memory.shape[1]))
        return torch.cat(contexts, dim=1), torch.cat(weights, dim=2)

    def _attend(self, query: Tensor, memory: Tensor, visible: Tensor | None, reweigh) -> tuple[Tensor, Tensor]:
        """query (B, T, D), memory (B, S, D), visible (B, S) -> context (B, T, D), weights (B, H, T, S)."""
        form, last = self.subject.form, query.shape[1]
        takes = form.mask is not None and "B" in form.mask.axes
        inputs = Inputs(memory if form.itself else query, memory, memory, visible if takes else None)
        outcome = self.subject.run(inputs)
        weights, context = outcome.weights[:, : self.used, -last:], outcome.context if self.whole else None
        mask = None if visible is None else visible[:, None, None]
        if mask is not None and not takes:
            weights, context = weights * mask / (weights * mask).sum(dim=-1, keepdim=True), None
        keys, values = self.ours.remember(memory)
        if weights.shape[1] < self.heads:
            others = masked_softmax(self.ours.score(self.ours.split(self.ours.query(query)), keys), mask)
            weights = torch.cat([weights, others[:, weights.shape[1] :]], dim=1)
        if reweigh is not None:
            weights, context = reweigh(weights, mask), None
        if context is not None:
            return context[:, -last:], weights
        return self.ours.output((weights @ values).transpose(1, 2).flatten(-2)), weights


def placed(
    made: Built, subject: Subject, formula: Formula, wanted: str | None = None, texts: Sequence[str] = ()
) -> InTrained:
    """`in_trained` of a module whose form and formula are known."""
    if formula.more:
        raise ValueError(f"no trained {PAIR} model has its formula: {formula.more}")
    model = _trained([wanted] if wanted in formula.names else formula.names)
    network, notes = _with_module(made, subject, formula, model.model)
    theirs = replace(model, model=network)
    ours = [model.trace(text) for text in texts or TASKS[PAIR].examples[:3]]
    yours = [theirs.trace(trace.text) for trace in ours]
    same = all(a.translation == b.translation for a, b in zip(ours, yours))
    if not same:
        yours = [theirs.trace(trace.text, trace.translation) for trace in ours]
        ours = [model.trace(trace.text, trace.translation) for trace in ours]
    pairs = [(a.weights, b.weights) for first, second in zip(ours, yours) for a, b in zip(first.maps, second.maps)]
    difference = max(float(abs(a - b).max()) for a, b in pairs)
    count = f"{len(ours)} {'sentence' if len(ours) == 1 else 'sentences'}"
    result = "the same translations" if same else "other translations; with ours forced"
    words = f"{model.name} on {count}: {result}, largest difference of a weight {difference:.1g}"
    return InTrained(model.name, tuple(ours), tuple(yours), difference, "; ".join([words, *notes]))


@functools.lru_cache(1)
def network(place: str, settings: tuple[tuple[str, object], ...] = ()) -> tuple[str, Any, str]:
    """The module that `FILE.py:Class` names, in the trained model of its formula -> that model's mechanism, the
    network, and notes. ValueError as in `in_trained`."""
    with torch.no_grad():
        made = load(place, dict(settings))
        subject = recognise(without_zeros(made.target)[0], made.title)
        formula = recognised(subject)
        model = _trained(formula.names)
        theirs, notes = _with_module(made, subject, formula, model.model)
    return model.mechanism, theirs, "; ".join(notes)


def save(folder: Path, place: str, settings: Mapping[str, object]) -> tuple[str, str]:
    """Write the checkpoint of `wrap.of_trained` to a folder of checkpoints, with the tokenizer of its pair -> the
    mechanism of the trained model, and notes. ValueError as in `in_trained`."""
    shutil.rmtree(folder / PAIR, ignore_errors=True)  # that of an earlier module
    ours, theirs, notes = network(place, tuple(settings.items()))
    mechanism = of_trained(place, settings, ours, notes)
    vocabulary = theirs.embedding.num_embeddings
    checkpoints.save_model(folder / PAIR / mechanism.name, Config(mechanism.name, vocabulary), theirs.state_dict())
    name = f"{PAIR}/{ours}"
    shutil.copyfile(_root(name) / PAIR / TOKENIZER, folder / PAIR / TOKENIZER)
    return ours, notes


def _trained(names: Sequence[str]) -> Translator:
    """The trained model of the first of these formulas that has one. CheckpointError if it is missing."""
    name = f"{PAIR}/{_of_formula(names).name}"
    return loading.load_translator(name, _root(name))


def _root(name: str) -> Path:
    """The folder of a shipped checkpoint, even if the settings name other folders."""
    root = root_of(name)
    return root if (root / name).is_dir() else ROOT


def _of_formula(names: Sequence[str]) -> Mechanism:
    """The shipped mechanism of the first of these formulas. ValueError when there is none."""
    for name in names:
        for mechanism in mechanisms.MECHANISMS.values():
            if mechanisms.was_added(mechanism.name) or mechanism.local:
                continue
            own = named(mechanism.score).name.replace(" ", "-") if mechanism.score else ""
            if name == own or (name in ("multi-head", "grouped-query") and mechanism.multi_head):
                return mechanism
    raise ValueError(f"no trained {PAIR} model has its formula")


def _with_module(made: Built, subject: Subject, formula: Formula, network: Any) -> tuple[Any, list[str]]:
    """A copy of a trained network with the module in it, and notes."""
    replaced, notes = (_in_recurrent if hasattr(network, "attention") else _with_heads)(made, subject, formula, network)
    weights = made_weights(subject.module) if subject.module else {}
    names = ", ".join(f"`{path}.{name}`" for path, names in weights.items() for name in names)
    return replaced, notes + [f"the trained matrix takes the place of {names}, which it makes itself"] * bool(names)


def _in_recurrent(made: Built, subject: Subject, formula: Formula, network: Any) -> tuple[Any, list[str]]:
    """`_with_module` of a recurrent translator."""
    score = network.attention
    widths = getattr(score, "widths", None) or (network.cell.hidden_size,) * 2
    ours = Subject(score, _shipped(("query", "keys", "values"), (*widths, widths[1]), "BTS"))
    matrices = _views(recognised(ours).places, score, widths)
    filled, notes = _filled(made, subject, formula, matrices, widths)
    network = copy.copy(network)
    network._modules = {**network._modules, "attention": Yours(filled).eval()}
    return network, notes


def _with_heads(made: Built, subject: Subject, formula: Formula, network: Any) -> tuple[Any, list[str]]:
    """`_with_module` of a Transformer. If the module has no biases, the network's own are removed, so that both are the
    same formula."""
    first = network.encoder[0].attention
    width = first.query.in_features
    of_ours = recognised(Subject(first, _shipped(("query", "memory"), (width,) * 3, "BHTS")))
    made, subject, formula = _with_biases(made, subject, formula)
    replaced = _replaced(subject.form, network)
    trained = [_views(of_ours.places, getattr(*attention), (width, width)) for attention in replaced]
    count = _heads_of(subject)
    whole = count > 1 and {"V", "O"} <= formula.places.keys()
    needed = "WUVO" if whole else "WU"
    missing = [f"{letter} bias" for letter in needed if letter != "U" and f"{letter} bias" not in formula.places]
    for matrices in trained:
        for letter in missing:
            matrices[letter].zero_()
    theirs = copy.deepcopy(network)
    for (layer, name), matrices in zip(_replaced(subject.form, theirs), trained):
        wanted = {letter: x for letter, x in matrices.items() if letter[0] in needed and letter not in missing}
        if count == 1:
            wanted = {letter: x[: width // first.heads] for letter, x in wanted.items()}
        filled, shared = _filled_heads(made, subject, formula, wanted, first)
        setattr(layer, name, InPlaceOfHeads(filled, getattr(layer, name), whole and not shared, shared).eval())
    grouped = "grouped-query" in formula.names
    notes = {
        f"in {len(replaced)} attentions of its layers": True,
        "its heads share keys, so its first is the first of each": shared,
        "built with a key head for every head": grouped and not shared,
        "it has one head, and is the first of each": count == 1 < first.heads,
        "its weights alone, on the trained values": shared or not whole,
        "it has no biases, so those of the trained model are 0 in both": bool(missing),
    }
    return theirs, [words for words, is_so in notes.items() if is_so]


def _with_biases(made: Built, subject: Subject, formula: Formula) -> tuple[Built, Subject, Formula]:
    """The module rebuilt with biases if its class supports them, as in the trained model."""
    if "W bias" in formula.places or made.again is None:
        return made, subject, formula
    again = made.again(biases=True)
    other = Subject(again.target, subject.form, subject.title)
    try:
        other.run(other.inputs(1, 1, 2))  # which gives lazy layers their sizes
        with_biases = recognised(other)
    except ANYTHING:  # a person's code may raise anything
        return made, subject, formula
    if "W bias" not in with_biases.places:
        return made, subject, formula
    return replace(made, again=partial(made.again, biases=True)), other, with_biases


def _heads_of(subject: Subject) -> int:
    return subject.run(subject.inputs(1, 1, 2)).weights.shape[1]


def _views(places: Mapping[str, Place], module: nn.Module, widths: tuple[int, ...], held: list | None = None) -> dict:
    """The matrices of a formula within a module by their letters: tensors that share numbers with those that `held`
    gets, (place, matrix). widths : of query and keys, where one matrix is for both."""
    views: dict[str, Tensor] = {}
    for letter, place in places.items():
        x = place.matrix(module)
        if held is not None:
            held.append((place, x))
        if letter in ("[q; k]", "[k; q]"):
            first, second = ("W", "U") if letter == "[q; k]" else ("U", "W")
            at = widths[0] if first == "W" else widths[1]
            views |= {first: x[:, :at], second: x[:, at:]}
        else:
            views[letter] = x.reshape(-1) if letter == "v" or "bias" in letter else x
    return views


def _filled(
    made: Built, subject: Subject, formula: Formula, matrices: dict[str, Tensor], widths: tuple[int, int]
) -> tuple[Subject, list[str]]:
    """The module in the trained widths with trained matrices, and notes. If it has one width for all, it is as wide as
    the keys, and the rest is filled with zeros."""
    query, keys = widths
    all_sizes = dict.fromkeys([(query, keys), (query, query), (keys, keys)])
    problems = []
    for (first, second), own in itertools.product(all_sizes, dict.fromkeys([(query, keys), (keys, keys)])):
        sizes = Sizes(first, second, second, first, dropout=0.0)
        try:
            filled = _in_sizes(made, subject, sizes, (*own, own[1]))
            _fill(filled, formula, matrices)
        except ANYTHING as error:  # a person's code may raise anything
            problems.append(error)
            continue
        wider = own != widths
        return filled, [f"built {own[0]} wide, with zeros beside the trained numbers"] if wider else []
    reason = next((error for error in problems if isinstance(error, Unfit)), problems[-1])
    raise ValueError(_why(reason, f"for queries of width {query} and keys of width {keys}"))


def _filled_heads(
    made: Built, subject: Subject, formula: Formula, matrices: dict, ours: MultiHead
) -> tuple[Subject, bool]:
    """The module with the width and heads of a trained attention, and its matrices; and whether its heads share keys.
    Then it has those of the first head alone. ValueError."""
    width, shared = ours.query.in_features, False
    try:
        sizes = Sizes(*(width,) * 4, heads=ours.heads, dropout=0.0, key_heads=ours.heads)
        filled = _in_sizes(made, subject, sizes, (width,) * 3)
        count = _heads_of(filled)
        if count not in (1, ours.heads):
            raise Unfit(f"it has {count} heads, the trained model {ours.heads}")
        own = {letter: replace(p, heads=count if p.heads > 1 else 1) for letter, p in formula.places.items()}
        formula = replace(formula, places=own)
        if "grouped-query" in formula.names:
            formula = recognised(filled)
            shared = "grouped-query" in formula.names
        if shared:
            firsts = {letter: matrices[letter][: width // ours.heads] for letter in matrices if letter[0] in "WU"}
            _fill(filled, formula, firsts)
        else:
            _fill(filled, formula, matrices, count, width // ours.heads)
    except ANYTHING as error:  # a person's code may raise anything
        raise ValueError(_why(error, f"{width} wide")) from error
    return filled, shared


class Unfit(ValueError):
    """A module's matrices cannot hold the trained ones, or it does not run with one sentence."""


def _why(error: BaseException, sizes: str) -> str:
    """Why a module is not run: it does not fit, or cannot be built in these sizes."""
    why = str(error) if isinstance(error, ValueError) else in_words(error, "it raises ")
    return why if isinstance(error, Unfit) else f"the class cannot be built {sizes}: {why}"


def _in_sizes(made: Built, subject: Subject, sizes: Sizes, widths: tuple[int, int, int]) -> Subject:
    """The module in other sizes, for these widths of query, keys and values."""
    target = made.target  # where no parameter that begins as 0 has other numbers
    if subject.module is not None and widths_of(subject.module):
        if made.again is None:
            raise ValueError("TorchScript has compiled it; name the class that it was made from")
        target = made.again(sizes=sizes).target
        before, after = subject.form.widths[1], widths_of(target)
        if before in after and widths[1] not in after:
            raise Unfit(f"it stays {before} wide whatever its arguments are: its width is a number in the file")
    other = Subject(target, replace(subject.form, widths=widths), subject.title)
    if other.module is not None:
        make_plain(other.module)
    several = other.inputs(1 if other.form.alone else 3, 2 if other.form.many else 1, 3)
    other.run(several)  # raises where the widths do not fit, and gives lazy layers theirs
    try:
        other.run(other.inputs(1, 1, 3))
    except ANYTHING as error:  # a person's code may raise anything
        raise Unfit(f"called with one sentence {in_words(error, 'it raises ')}") from error
    return other


def _fill(subject: Subject, formula: Formula, matrices: dict[str, Tensor], heads: int = 1, width: int = 0) -> None:
    """Put matrices into a module, and 0 around them. width : of a head of the trained attention, if scores are divided
    by its root."""
    if subject.module is None or not (formula.places or matrices):
        return
    letters = [[x for x, place in formula.places.items() if place == twin] for twin in formula.places.values()]
    if twice := next((x for x in letters if len(x) > 1), []):
        raise Unfit(f"its {' and '.join(twice)} are one matrix, and the trained model has one for each")
    held: list[tuple[Place, Tensor]] = []
    views = _views(formula.places, subject.module, subject.form.widths, held)
    for view in views.values():
        view.zero_()
    for letter, matrix in matrices.items():
        if letter not in views and letter != "U bias":
            reasons = {" rows ": "is a part of a joint matrix", " in every head": "is one matrix for all heads"}
            reasons[" for its part"] = "has a block for each head"
            reason = next((reasons[mark] for mark in reasons if mark in formula.words), "")
            raise Unfit(f"its {letter} {reason}" if reason else f"its formula has no {letter}, and the trained one has")
        view = views.get(letter, matrix)
        if any(have < needed for have, needed in zip(view.shape, matrix.shape)):
            raise Unfit(f"its {letter} has the shape {tuple(view.shape)}, the trained one {tuple(matrix.shape)}")
        if heads > 1 and letter[0] in "WUV" and len(view) != len(matrix):
            raise Unfit(f"its heads are {len(view) // heads} wide, the trained ones {len(matrix) // heads}")
        scale = math.sqrt(len(view) / heads / width) if width and letter[0] == "W" else 1.0
        view[tuple(slice(length) for length in matrix.shape)].copy_(matrix * scale)
    for place, matrix in held:
        place.write(subject.module, matrix)


def _shipped(roles: tuple[str, ...], widths: Any, axes: str) -> Form:
    """The form of a shipped score or of MultiHead."""
    names = dict(zip(roles, (forms.QUERY, forms.KEYS, forms.VALUES)))
    places: dict[str, Any] = {"weights": forms.Place("result[1]", axes), "context": forms.Place("result[0]", "BTD")}
    return Form(names, "BTD", "BSD", True, widths, **places)


def _replaced(form: Form, network: Any) -> list[tuple[nn.Module, str]]:
    """Which attentions of a Transformer a module can take the place of: (layer, name of its attention)."""
    encoder = [(layer, "attention") for layer in network.encoder]
    decoder = [(layer, "attention") for layer in network.decoder]
    if form.causal:
        return decoder
    return encoder if form.itself else [*encoder, *decoder, *((layer, "cross") for layer in network.decoder)]
