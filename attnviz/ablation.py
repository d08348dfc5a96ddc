"""Heads switched off: what a model says without them, and how much it minds each one.

A head is switched off as in Michel et al. 2019, sec. 2.1, eq. 2: its context is multiplied by 0 before the output projection;
in a copy of the model that shares all weights. The model itself never changes, so that others may use it meanwhile and
nothing needs undoing. Every model that says where its output projections are (projections.py) will do.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from attnviz.heads import Head
from attnviz.models.huggingface.models import Prediction, Pretrained
from attnviz.models.trained import TextError, Trained
from attnviz.networks.projections import Projection
from attnviz.trace import Trace

Model = Trained | Pretrained


def heads(model: Model) -> list[Head]:
    """Every head that can be switched off, kind by kind and layer by layer; none without multi-head attention.

    ValueError for a model whose family is not known well enough."""
    return [Head(one.kind, one.layer, head) for one in model.projections() for head in range(one.heads)]


def without(model: nn.Module, places: Iterable[Projection], off: Iterable[Head]) -> nn.Module:
    """A copy of the model with some heads switched off; ValueError if none of its projections has such a head.

    All parameters are shared with the model; the biases of the projections still speak.
    """
    off, places = set(off), list(places)
    known = [Head(one.kind, one.layer, head) for one in places for head in range(one.heads)]
    if unknown := sorted(off - set(known)):
        raise ValueError(f"heads must be heads of the model ({_listed(known, 3)}); got {_listed(unknown, 3)}")
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    changed = copy.deepcopy(model, shared)
    for kind, layer, path, count in places:
        gates = torch.tensor([float(Head(kind, layer, head) not in off) for head in range(count)])
        if not gates.all():
            changed.get_submodule(path).register_forward_pre_hook(partial(_gate, gates))
    return changed


def _gate(gates: Tensor, _projection: nn.Module, arguments: tuple[Tensor]) -> tuple[Tensor]:
    """gates (H), the contexts (..., H*d) on their way into the projection -> those that remain."""
    contexts = arguments[0].unflatten(-1, (len(gates), -1))
    return ((contexts * gates.to(contexts).unsqueeze(-1)).flatten(-2),)


def switch_off(model: Model, off: Iterable[Head]) -> Model:
    """The same model without some heads; its name says so. Their weights are in its traces, but reach nothing."""
    off = sorted(set(off))
    if not off:
        return model
    return replace(
        model, name=f"{model.name} without {_listed(off, 4)}", model=without(model.model, model.projections(), off)
    )


@dataclass(frozen=True, eq=False)
class Effect:
    """A text with and without some heads.

    before : the text of the original output, forced (so that `after` has the same pieces; special and unknown ones that a model
    of another make may have produced within it are not of the text). after : that text without the heads.
    free : what the model says without the heads when nothing is forced. All three are of the same text. Of a model that only
    reads they are of what it read, and `after` is `free`; predictions : of the tokens of the text, with all heads and without
    some; () each for a model that says something, or that has nothing to predict with.
    """

    off: tuple[Head, ...]
    before: Trace
    after: Trace
    free: Trace
    predictions: tuple[tuple[Prediction, ...], tuple[Prediction, ...]] = ((), ())

    @property
    def log_probs(self) -> tuple[float, float] | None:
        """Log-probability (natural) of the original output, or of what is predicted of the text, with all heads and without some."""
        if any(self.predictions):
            return tuple(sum(one.log_prob for one in side) for side in self.predictions)
        return (self.before.log_prob, self.after.log_prob) if self.before.log_probs else None

    @property
    def change(self) -> float | None:
        """Log-probability without the heads, minus that with them; below 0: they are missed. None where there is none."""
        return self.log_probs and self.log_probs[1] - self.log_probs[0]


def effect(model: Model, off: Sequence[Head], text: str, target: str | None = None) -> Effect:
    """Switch heads off. The original output is `target`, or what the model says (a greedy translation, a label); errors as of
    `trace`, and TextError when the model says nothing by itself."""
    changed, before = switch_off(model, off), model.trace(text, target)
    if not before.target:
        after = changed.trace(text)
        return Effect(tuple(off), before, after, after, (model.predictions(text), changed.predictions(text)))
    if target is None:
        target = _said(before)
        before = model.trace(text, target)
    return Effect(tuple(off), before, changed.trace(text, target), changed.trace(text))


class Importance(NamedTuple):
    """How much a model minds one head. change : as of `Effect`, in nats. done, total : heads so far and in all."""

    head: Head
    change: float
    done: int
    total: int


def importance(
    model: Model, text: str, target: str | None = None, only: Sequence[Head] | None = None
) -> Iterator[Importance]:
    """Each head switched off in turn (Michel et al. 2019, sec. 3.2), on the log-probability of one output; stop whenever.

    target : the output; None: what the model says by itself, or, of a model that only reads, its predictions of the text.
    only : those heads instead of all. Errors as of `log_prob` and `effect`, with the first.
    """
    chosen = heads(model) if only is None else list(only)
    target = _said(model.trace(text)) if target is None else target
    before = model.log_prob(text, target)
    for done, head in enumerate(chosen, start=1):
        yield Importance(head, switch_off(model, [head]).log_prob(text, target) - before, done, len(chosen))


def _said(trace: Trace) -> str | None:
    """What a model said by itself; None of one that only reads."""
    if trace.target and not trace.translation.strip():
        raise TextError(f"{trace.model} says nothing of this text that could be compared; give it a target")
    return trace.translation or None


def table(found: Iterable[Importance], known: Sequence[Head]) -> pd.DataFrame:
    """One row for each of `known` heads: kind, layer, head and change; NaN for those not yet found."""
    changes = {one.head: one.change for one in found}
    return pd.DataFrame([(*head, changes.get(head, math.nan)) for head in known], columns=[*Head._fields, "change"])


def _listed(chosen: Sequence[Head], most: int) -> str:
    if not chosen:
        return "it has none"
    return ", ".join(map(str, chosen)) if len(chosen) <= most else f"{chosen[0]} and {len(chosen) - 1} more heads"
