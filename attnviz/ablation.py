"""Heads switched off: what a model says without them, and how much it minds each one.

A head is switched off as in Michel et al. 2019, sec. 2.1, eq. 2: its context is multiplied by 0 before the output projection.
That is the same as 0 in the columns of the projection that read it, and so it is done: in a copy of the model that shares all
other weights. The model itself never changes, so that others may use it meanwhile and nothing needs undoing.
"""

import copy
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import pandas as pd
import torch
from torch import nn

from attnviz.attention import MultiHead
from attnviz.heads import Head
from attnviz.trace import Trace
from attnviz.trained import Trained

_PLACES = {"encoder": ("encoder", "attention"), "decoder": ("decoder", "attention"), "cross": ("decoder", "cross")}


def heads(model: nn.Module) -> list[Head]:
    """Every head of a model that can be switched off, kind by kind and layer by layer; none without multi-head attention."""
    return [Head(kind, layer, head) for kind in _PLACES for layer, block in enumerate(_blocks(model, kind))
            for head in range(block.heads)]  # fmt: skip


def without(model: nn.Module, off: Iterable[Head]) -> nn.Module:
    """A copy of the model with some heads switched off; ValueError if it has no such head.

    Parameters are shared with the model, but for the output projections concerned; their bias stays.
    """
    off, known = set(off), heads(model)
    if unknown := sorted(off - set(known)):
        raise ValueError(f"heads must be heads of the model ({_listed(known, 3)}); got {_listed(unknown, 3)}")
    shared = {id(tensor): tensor for tensor in [*model.parameters(), *model.buffers()]}
    changed = copy.deepcopy(model, shared)
    for kind, layer in {(head.kind, head.layer) for head in off}:
        block = _blocks(changed, kind)[layer]
        kept = torch.tensor([Head(kind, layer, head) not in off for head in range(block.heads)])
        weight = block.output.weight.detach()  # (D, H*d)
        columns = kept.repeat_interleave(weight.shape[1] // block.heads).to(weight)
        block.output.weight = nn.Parameter(weight * columns, requires_grad=False)
    return changed


def switch_off(trained: Trained, off: Iterable[Head]) -> Trained:
    """The same Translator or Classifier without some heads; its name says so. Their weights are in its traces, but reach nothing."""
    off = sorted(set(off))
    if not off:
        return trained
    return replace(trained, name=f"{trained.name} without {_listed(off, 4)}", model=without(trained.model, off))


@dataclass(frozen=True, eq=False)
class Effect:
    """A sentence with and without some heads.

    before : the original output, forced (so that `after` has the same pieces). after : that output without the heads.
    free : what the model says without the heads when nothing is forced. All three are of the same text.
    """

    off: tuple[Head, ...]
    before: Trace
    after: Trace
    free: Trace

    @property
    def change(self) -> float:
        """Log-probability (natural) of the original output without the heads, minus that with them; below 0: they are missed."""
        return self.after.log_prob - self.before.log_prob


def effect(trained: Trained, off: Sequence[Head], text: str, target: str | None = None) -> Effect:
    """Switch heads off. The original output is `target`, or what the model says (a greedy translation, a label); errors as of
    `trace`."""
    changed = switch_off(trained, off)
    target = trained.trace(text).translation if target is None else target
    return Effect(tuple(off), trained.trace(text, target), changed.trace(text, target), changed.trace(text))


class Importance(NamedTuple):
    """How much a model minds one head. change : as of `Effect`, in nats. done, total : heads so far and in all."""

    head: Head
    change: float
    done: int
    total: int


def importance(trained: Trained, text: str, target: str, only: Sequence[Head] | None = None) -> Iterator[Importance]:
    """Each head switched off in turn (Michel et al. 2019, sec. 3.2), on the log-probability of one output; stop whenever.

    target : the output, the model's own or another. only : those heads instead of all. Errors as of `trace`, with the first.
    """
    chosen = heads(trained.model) if only is None else list(only)
    before = trained.log_prob(text, target)
    for done, head in enumerate(chosen, start=1):
        yield Importance(head, switch_off(trained, [head]).log_prob(text, target) - before, done, len(chosen))


def table(found: Iterable[Importance], known: Sequence[Head]) -> pd.DataFrame:
    """One row for each of `known` heads: kind, layer, head and change; NaN for those not yet found."""
    changes = {one.head: one.change for one in found}
    return pd.DataFrame([(*head, changes.get(head, math.nan)) for head in known], columns=[*Head._fields, "change"])


def _blocks(model: nn.Module, kind: str) -> list[MultiHead]:
    """The multi-head attention of each layer: the layer's own, or the layer itself."""
    stack, name = _PLACES[kind]
    layers = getattr(model, stack, ())
    blocks = [getattr(layer, name, layer) for layer in layers] if isinstance(layers, nn.ModuleList) else []
    return [block for block in blocks if isinstance(block, MultiHead)]


def _listed(chosen: Sequence[Head], most: int) -> str:
    if not chosen:
        return "it has none"
    return ", ".join(map(str, chosen)) if len(chosen) <= most else f"{chosen[0]} and {len(chosen) - 1} more heads"
