"""Heads switched off: what a model produces without them, and how much each head matters.

A head is switched off as in Michel et al. 2019, sec. 2.1, eq. 2: its context is multiplied by 0 before the output
projection. This happens in a copy of the model that shares all weights. The model itself never changes, so others can
use it at the same time and nothing needs to be undone. The model must name its output projections
(networks/projections.py).
"""

import math
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pandas as pd
import torch
from torch import Tensor, nn

from attnviz import mechanisms
from attnviz.arguments import brief, checked
from attnviz.heads import Head
from attnviz.models.huggingface.single_stack import Prediction, SingleStackModel
from attnviz.models.model import Model, TextError
from attnviz.networks import sharing
from attnviz.networks.projections import Projection
from attnviz.trace import Trace


@checked
def heads(model: Model) -> list[Head]:
    """Every head that can be switched off, by kind and layer; [] without multi-head attention.

    ValueError for a model family whose output projections are not known.
    """
    return _heads_of(model.projections())


def _heads_of(projections: Iterable[Projection]) -> list[Head]:
    return [Head(place.kind, place.layer, head) for place in projections for head in range(place.heads)]


def without(model: nn.Module, places: Iterable[Projection], off: Iterable[Head]) -> nn.Module:
    """A copy of the model with some heads switched off. ValueError if no projection has such a head.

    The copy shares all parameters. The biases of the projections remain.
    """
    off, places = set(off), list(places)
    every = _heads_of(places)
    if unknown := sorted(off - set(every)):
        raise ValueError(f"heads must be heads of the model ({_listed(every, 3)}); got {_listed(unknown, 3)}")
    changed = sharing(model)
    for kind, layer, path, count in places:
        gates = torch.tensor([float(Head(kind, layer, head) not in off) for head in range(count)])
        if not gates.all():
            changed.get_submodule(path).register_forward_pre_hook(partial(_gate, gates))
    return changed


def _gate(gates: Tensor, _projection: nn.Module, arguments: tuple[Tensor]) -> tuple[Tensor]:
    """A hook before the projection. gates : (H,), 0 or 1. contexts (..., H*d) -> the same, times the gates."""
    contexts = arguments[0].unflatten(-1, (len(gates), -1))
    return ((contexts * gates.to(contexts).unsqueeze(-1)).flatten(-2),)


@checked
def switch_off(model: Model, off: Iterable[Head]) -> Model:
    """The same model without some heads; its name lists them.

    Its traces still hold their weights, which have no effect.
    """
    off = sorted(set(off))
    if not off:
        return model
    return replace(
        model, name=f"{model.name} without {_listed(off, 4)}", model=without(model.model, model.projections(), off)
    )


@dataclass(frozen=True, eq=False)
class Effect:
    """One text through a model with all its heads and without some.

    off : the heads that are switched off.
    before : the original output, forced on the model, so that `after` has the same pieces. (Special and unknown tokens
        that a Hugging Face model may have produced inside it are not part of the text.)
    after : the same output, forced on the model without the heads.
    free : what the model produces without the heads when nothing is forced.
    predictions : for a model that only reads: its predictions of the tokens of the text, with all heads and without
        some; () twice for other models, and for models without a language-model head. Then `after` is `free`.
    """

    off: tuple[Head, ...]
    before: Trace
    after: Trace
    free: Trace
    predictions: tuple[tuple[Prediction, ...], tuple[Prediction, ...]] = ((), ())

    __repr__ = brief

    @property
    def log_probs(self) -> tuple[float, float] | None:
        """Natural log-probability of the output, or of the predicted tokens, with all heads and without some; or
        None."""
        if any(self.predictions):
            before, after = (sum(prediction.log_prob for prediction in side) for side in self.predictions)
            return before, after
        return (sum(self.before.log_probs), sum(self.after.log_probs)) if self.before.log_probs else None

    @property
    def change(self) -> float | None:
        """Log-probability without the heads minus with them. Negative: the model needs them. None if not measured."""
        return self.log_probs and self.log_probs[1] - self.log_probs[0]


@checked
def effect(model: Model, off: Sequence[Head], text: str, target: str | None = None) -> Effect:
    """Switch heads off and compare. The output is `target`, or what the model produces (a greedy translation, a label).

    Errors are those of `trace`, and TextError when the model produces an empty text.
    """
    changed, before = switch_off(model, off), model.trace(text, target)
    if not before.target:
        after = changed.trace(text)
        return Effect(tuple(off), before, after, after, (_predictions(model, text), _predictions(changed, text)))
    if target is None:
        target = _output(before)
        if target is None:  # a model that writes on: the text is the output
            after = changed.trace(text)
            return Effect(tuple(off), before, after, after)
        before = model.trace(text, target)
    return Effect(tuple(off), before, changed.trace(text, target), changed.trace(text))


def _predictions(model: Model, text: str) -> tuple[Prediction, ...]:
    return model.predictions(text) if isinstance(model, SingleStackModel) else ()


class Importance(NamedTuple):
    """How much one head matters. change : as in `Effect`, in nats. done, total : number of heads so far and in all."""

    head: Head
    change: float
    done: int
    total: int


@checked
def importance(
    model: Model, text: str, target: str | None = None, only: Sequence[Head] | None = None
) -> Iterator[Importance]:
    """Switch off each head in turn and measure the log-probability of one output (Michel et al. 2019, sec. 3.2).

    An iterator, which may be stopped at any head. target : the output. None: what the model produces by itself, or the
    predictions of a model that only reads. only : these heads instead of all. Errors are those of `log_prob` and
    `effect`, raised at the first head.
    """
    chosen = heads(model) if only is None else list(only)
    yield from _measured(model, text, *with_all(model, text, target), chosen)


def with_all(model: Model, text: str, target: str | None) -> tuple[str | None, float]:
    """The output that `importance` measures, and its log-probability with all heads."""
    target = _output(model.trace(text)) if target is None else target
    return target, model.log_prob(text, target)


def _measured(
    model: Model, text: str, target: str | None, before: float, chosen: Sequence[Head]
) -> Iterator[Importance]:
    for done, head in enumerate(chosen, start=1):
        yield Importance(head, switch_off(model, [head]).log_prob(text, target) - before, done, len(chosen))


def some_importance(
    model: Model, text: str, before: tuple[str | None, float], only: Sequence[Head], seconds: float
) -> list[Importance]:
    """The first heads of `importance`, at least one: as many as it measures in so many seconds. before : `with_all`."""
    end, measured = time.monotonic() + seconds, []
    for head in _measured(model, text, *before, only):
        measured.append(head)
        if time.monotonic() > end:
            break
    return measured


def _output(trace: Trace) -> str | None:
    """The text that a model produced by itself; None for a model that only reads or that continues the text."""
    kind = mechanisms.ALL.get(trace.mechanism)
    if kind and kind.writes:
        return None
    if trace.target and not trace.translation.strip():
        raise TextError(f"{trace.model} produces an empty text, which cannot be compared; give it a target")
    return trace.translation or None


def table(measured: Iterable[Importance], every: Sequence[Head]) -> pd.DataFrame:
    """One row for each of `every` head: kind, layer, head and change; NaN for heads that are not measured yet."""
    changes = {importance.head: importance.change for importance in measured}
    return pd.DataFrame([(*head, changes.get(head, math.nan)) for head in every], columns=[*Head._fields, "change"])


def _listed(chosen: Sequence[Head], most: int) -> str:
    if not chosen:
        return "it has none"
    return ", ".join(map(str, chosen)) if len(chosen) <= most else f"{chosen[0]} and {len(chosen) - 1} more heads"
