"""A change at one step at a time. The steps before it are unchanged, so the effect is that of this step alone.

Letters: B rows of a batch, S source tokens, T target tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attnviz.arguments import checked
from attnviz.data.batching import pad
from attnviz.data.tokenizer import BOS
from attnviz.intervene import scope as scopes
from attnviz.intervene.changes import Change, Place
from attnviz.intervene.scope import Scope
from attnviz.networks.classifier import SelfAttention
from attnviz.networks.cpu import OneDNN
from attnviz.networks.decode import DecoderStep

TOGETHER = 8  # steps whose changed logits are worked out at once


class StepEffect(NamedTuple):
    """One step. weights : of each layer, (H, S), unchanged. plain (V,) : logits of the next token; changed (B, V) :
    each row's."""

    step: int
    weights: tuple[Tensor, ...]
    plain: Tensor
    changed: Tensor


@checked
@torch.inference_mode()  # of a generator: only while it runs
def effects(
    network: nn.Module,
    source: Sequence[int],
    target: Sequence[int],
    change: Change,
    rows: int = 1,
    scope: Scope = Scope(),
) -> Iterator[StepEffect]:
    """Force a target (ids) and change attention at each step alone, `rows` times in one batch (a seed gives each row
    its own).

    Yields one step after the other, so the caller can stop. ValueError as of `scope.check`.
    """
    for step, weights, plain, changed in effects_together(network, [source], [target], change, rows, scope):
        yield StepEffect(step, tuple(layer[0] for layer in weights), plain[0], changed[:, 0])


@checked
@torch.inference_mode()  # of a generator: only while it runs
def effects_together(
    network: nn.Module,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    change: Change,
    rows: int = 1,
    scope: Scope = Scope(),
) -> Iterator[StepEffect]:
    """`effects` for N sources of one length in one batch, up to the end of the longest target.

    weights (N, H, S) of each layer, plain (N, V), changed (rows, N, V). What follows a shorter target's end has no
    meaning. The change is called with rows * N rows: the first row of every source, then the second of every source.
    """
    scopes.check(network, scope)
    memory = network.encode(torch.tensor([list(source) for source in sources]))
    wide, state = widened(memory, rows), memory.state
    waiting: list[tuple[int, DecoderStep, Tensor]] = []
    tokens = pad([[BOS, *target[:-1]] for target in targets]).unbind(1)
    for step, token in enumerate(tokens):
        plain = network.step(memory, state, token, project=False)
        reweighs = scopes.reweighs(network, change, scope, step)
        with OneDNN():  # a wide batch: the products take less than half the time
            changed = network.step(wide, widened(state, rows), widened(token, rows), reweighs, project=False)
        waiting.append((step, plain, torch.cat([plain.readout, changed.readout])))
        state = plain.state
        if len(waiting) == TOGETHER or step == len(tokens) - 1:
            yield from _projected(network, waiting, rows)
            waiting = []


def _projected(network: nn.Module, waiting: list[tuple[int, DecoderStep, Tensor]], rows: int) -> Iterator[StepEffect]:
    """The effects of some steps: number, step as it is, and readouts, first those as they are and then the changed
    ones. The output matrix is by far the largest; it is laid out for the product once for all these."""
    with OneDNN():
        logits = network.logits(torch.cat([readouts for _, _, readouts in waiting])).split(len(waiting[0][2]))
    for (step, unchanged, _), each in zip(waiting, logits):
        both = each.unflatten(0, (rows + 1, -1))
        yield StepEffect(step, unchanged.cross, both[0], both[1:])


@checked
@torch.inference_mode()
def effect_on_label(network: SelfAttention, source: Sequence[int], change: Change, rows: int = 1) -> StepEffect:
    """`effects` for a classifier, whose pooling is its one step; `plain` and `changed` are logits of the labels."""
    step, (weights,), plain, changed = effects_on_labels(network, [source], change, rows)
    return StepEffect(step, (weights[0],), plain[0], changed[:, 0])


@checked
@torch.inference_mode()
def effects_on_labels(
    network: SelfAttention, sources: Sequence[Sequence[int]], change: Change, rows: int = 1
) -> StepEffect:
    """`effects_together` for a classifier."""
    vectors = network.embedding(torch.tensor([list(source) for source in sources]))
    plain = network.judge_vectors(vectors)

    def reweigh(weights: Tensor, mask: Tensor | None) -> Tensor:
        visible = weights.new_ones(weights.shape, dtype=torch.bool) if mask is None else mask.expand_as(weights)
        return change(weights, visible, Place(0, 0))

    changed = network.judge_vectors(widened(vectors, rows), reweigh=reweigh)
    return StepEffect(0, (plain.pooling,), plain.logits, changed.logits.unflatten(0, (rows, -1)))


def widened(tree, rows: int):
    """Nested tuples of tensors (N, ...), `rows` times one after the other (rows * N, ...); one row is not copied."""
    if tree is None:
        return None
    if isinstance(tree, Tensor):
        return tree.expand(rows, *tree.shape[1:]) if len(tree) == 1 else tree.repeat(rows, *[1] * (tree.ndim - 1))
    branches = [widened(branch, rows) for branch in tree]
    return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)


@checked
def total_variation(plain: Tensor, changed: Tensor) -> Tensor:
    """Logits (..., V) and (B, ..., V) -> (B, ...): half the sum of absolute differences of the two
    distributions, 0 to 1."""
    return changed.softmax(-1).sub_(plain.softmax(-1)).abs_().sum(-1) / 2
