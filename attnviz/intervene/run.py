"""One change of attention, and the output of the model under it: its own, and with the original output forced."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch

from attnviz import function_words
from attnviz.arguments import brief, checked
from attnviz.intervene.changed import Changed, OnStep, at, where_said
from attnviz.intervene.changes import Change, Identity
from attnviz.intervene.scope import Scope
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.trace import Trace


@dataclass(frozen=True, eq=False)
class Outcome:
    """A translation with and without a change of attention.

    before : the original translation, forced. forced : the same text, forced under the change, so that maps and
    log-probabilities can be compared step by step. free : the model's own translation under the change.
    total_variation (T,) : half the sum of absolute differences between the two next-token distributions of each step,
    0 to 1. steps (T,) bool : at which steps of the forced text attention was changed.
    """

    change: Change
    scope: Scope
    before: Trace
    forced: Trace
    free: Trace
    total_variation: np.ndarray
    steps: np.ndarray

    __repr__ = brief

    @property
    def log_prob_changes(self) -> np.ndarray:
        """(T,): log-probability (natural) of each target token under the change, minus that without."""
        return np.subtract(self.forced.log_probs, self.before.log_probs)


@torch.inference_mode()
@checked
def run(
    model: Translator,
    text: str,
    change: Change,
    scope: Scope = Scope(),
    target: str | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> Outcome:
    """Translate under a change. target : the text that is forced; None for the model's own (greedy) translation.

    on_step : called before each step of decoding, to say how far it is; what it raises stops it.

    With a scope of function or content words, the steps in the forced text are those of such words. In free decoding
    they are the steps at which the unchanged model would choose a piece of such a word. Errors as of `trace`;
    ValueError for a model without attention, a step, layer or head that is not there, or a language without a list of
    function words.
    """
    target = own_text(model, text) if target is None else target
    before, plain = forced_with_logits(model, text, target, Identity(), Scope(), None, on_step)
    count = len(before.target)
    if scope.steps and max(scope.steps) >= count:
        raise ValueError(f"steps must be from 0 to {count - 1}, as the target has tokens; got {max(scope.steps)}")
    chosen = _chosen(model, before, scope)
    forced, changed = forced_with_logits(model, text, target, change, scope, chosen, on_step)
    variation = (plain.softmax(-1) - changed.softmax(-1)).abs().sum(-1) / 2
    steps = np.isin(np.arange(count), chosen)
    free = free_text(model, text, change, scope, on_step)
    return Outcome(change, scope, before, forced, free, variation.numpy(), steps)


def own_text(model: Translator, text: str) -> str:
    """The model's greedy translation. TextError where it is empty."""
    trace = model.trace(text)
    if not trace.translation.strip():
        raise TextError(f"{model.name} produces no text here, so there is nothing to force; give it a target")
    return trace.translation


def _chosen(model: Translator, before: Trace, scope: Scope) -> list[int]:
    """The steps of the forced text at which attention is changed."""
    steps = list(range(len(before.target))) if scope.steps is None else list(scope.steps)
    if scope.words is None:
        return steps
    kinds = function_words.kinds(before.translation, before.target, target_language(model))
    return [step for step in steps if kinds[step] == scope.words]


def forced_with_logits(
    model: Translator, text: str, target: str, change: Change, scope: Scope, steps, on_step: OnStep
) -> tuple[Trace, torch.Tensor]:
    """The trace of a forced text, and the logits of its steps (T, V)."""
    changed = Changed(model.model, change, scope, at(steps), on_step)
    trace = _changed(model, changed).trace(text, target)
    return trace, torch.stack(changed.said)


def free_text(model: Translator, text: str, change: Change, scope: Scope, on_step: OnStep) -> Trace:
    """The trace of what the model writes by itself under the change."""
    if scope.words is None:
        chosen = at(scope.steps)
    else:
        language = target_language(model)
        chosen = where_said(
            scope.steps, lambda piece: function_words.kind(model.tokenizer.piece(piece), language) == scope.words
        )
    return _changed(model, Changed(model.model, change, scope, chosen, on_step)).trace(text)


def _changed(model: Translator, network: Changed) -> Translator:
    """The translator, with its attention changed; its name says how."""
    same = isinstance(network.change, Identity)
    return replace(model, name=model.name if same else f"{model.name} ({network.change.title})", model=network)


def target_language(model: Translator) -> str:
    """The language that a model translates into."""
    return model.task.target
