"""A change at one step at a time. The steps before it are unchanged, so the effect is that of this step alone.

Letters: B rows of a batch, S source tokens, T target tokens, V vocabulary.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from attnviz.data.tokenizer import BOS
from attnviz.intervene import scope as scopes
from attnviz.intervene.changes import Change, Place
from attnviz.intervene.scope import Scope
from attnviz.networks.classifier import SelfAttention


class StepEffect(NamedTuple):
    """One step. weights : of each layer, (H, S), unchanged. plain (V,) : logits of the next token; changed (B, V) :
    each row's."""

    step: int
    weights: tuple[Tensor, ...]
    plain: Tensor
    changed: Tensor


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
    scopes.check(network, scope)
    memory = network.encode(torch.tensor([list(source)]))
    wide, state = widened(memory, rows), memory.state
    for step, token in enumerate(torch.tensor([BOS, *target[:-1]])):
        plain = network.step(memory, state, token[None])
        reweighs = scopes.reweighs(network, change, scope, step)
        changed = network.step(wide, widened(state, rows), token.expand(rows), reweighs)
        weights = tuple(layer[0] for layer in plain.cross)
        yield StepEffect(step, weights, plain.logits[0], changed.logits)
        state = plain.state


@torch.inference_mode()
def effect_on_label(network: SelfAttention, source: Sequence[int], change: Change, rows: int = 1) -> StepEffect:
    """`effects` for a classifier, whose pooling is its one step; `plain` and `changed` are logits of the labels."""
    vectors = network.embedding(torch.tensor([list(source)]))
    plain = network.judge_vectors(vectors)

    def reweigh(weights: Tensor, mask: Tensor | None) -> Tensor:
        visible = weights.new_ones(weights.shape, dtype=torch.bool) if mask is None else mask.expand_as(weights)
        return change(weights, visible, Place(0, 0))

    changed = network.judge_vectors(widened(vectors, rows), reweigh=reweigh)
    return StepEffect(0, (plain.pooling[0],), plain.logits[0], changed.logits)


def widened(tree, rows: int):
    """Nested tuples of tensors with one row, expanded to `rows` equal rows without a copy."""
    if tree is None:
        return None
    if isinstance(tree, Tensor):
        return tree.expand(rows, *tree.shape[1:])
    branches = [widened(branch, rows) for branch in tree]
    return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)


def total_variation(plain: Tensor, changed: Tensor) -> Tensor:
    """Logits (V,) and (B, V) -> (B,): half the sum of absolute differences of the two distributions, 0 to 1."""
    return changed.softmax(-1).sub_(plain.softmax(-1)).abs_().sum(-1) / 2
