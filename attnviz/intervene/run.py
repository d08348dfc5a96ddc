"""A text and its output, with something changed.

A change of attention, or a source word replaced: the output of the model, and the original output forced. `effects`
changes one step at a time. Earlier steps are then unchanged, so the effect is that of this step alone.

Letters: B rows of a batch, S source tokens, T target tokens, V vocabulary.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from attnviz import function_words
from attnviz.arguments import brief, checked
from attnviz.data.batching import pad
from attnviz.intervene.changed import (
    MASK,
    Changed,
    ChangedWriter,
    OnStep,
    Scope,
    Word,
    WritesOn,
    at_steps,
    changed_name,
    check_scope,
    first_id,
    network_of,
    opened_under,
    replaced,
    reweigh_layers,
    target_language,
    total_variation_of,
    where_first_choice,
    widened,
    writing_under,
)
from attnviz.intervene.changes import Change, Identity, Place
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.model import TextError
from attnviz.models.translator import Translator
from attnviz.networks import Network, ReadoutStep
from attnviz.networks.classifier import SelfAttention
from attnviz.networks.cpu import OneDNN
from attnviz.networks.writing import Sampling
from attnviz.trace import Trace

_GREEDY = Sampling(0.0)
Translating = Translator | EncoderDecoderModel  # the second where its family can be opened (`why_closed`)
TOGETHER = 8  # steps whose changed logits are worked out at once


@dataclass(frozen=True, eq=False)
class Outcome:
    """A translation with and without a change of attention.

    before : the original translation, forced. forced : the same text, forced under the change, so that maps and
    log-probabilities can be compared step by step. free : the model's own translation under the change.
    total_variation (T,) : half the sum of absolute differences between the two next-token distributions of each step,
    0 to 1. steps (T,) bool : at which steps of the forced text attention was changed.

    >>> intervene.run(model, "The black dog runs.", intervene.Uniform()).total_variation.round(1)
    array([0. , 0.5, 0.8, 0.9, 0.1, 0. ], dtype=float32)
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
    model: Translating,
    text: str,
    change: Change,
    scope: Scope = Scope(),
    target: str | None = None,
    on_step: Callable[[], None] = lambda: None,
) -> Outcome:
    """Translate under a change. target : the text that is forced; None for the model's own (greedy) translation.

    on_step : called before each step of decoding, to report progress; an exception that it raises stops the decoding.

    With a scope of function or content words, the steps in the forced text are those of such words. In free decoding
    they are the steps at which the unchanged model would choose a piece of such a word. Errors as of `trace`;
    ValueError for a model without attention, a step, layer or head out of range, or a language without a list of
    function words.

    >>> intervene.run(model, "The black dog runs.", intervene.Uniform()).free.translation
    'Le chien noir est en train de courir.'
    """
    target = own_text(model, text) if target is None else target
    before, plain = forced_with_logits(model, text, target, Identity(), Scope(), None, on_step)
    count = len(before.target)
    if scope.steps and max(scope.steps) >= count:
        raise ValueError(f"steps must be from 0 to {count - 1}, as the target has tokens; got {max(scope.steps)}")
    chosen = _chosen(model, before, scope)
    forced, changed = forced_with_logits(model, text, target, change, scope, chosen, on_step)
    steps = np.isin(np.arange(count), chosen)
    free = free_text(model, text, change, scope, on_step)
    return Outcome(change, scope, before, forced, free, total_variation_of(plain, changed), steps)


def own_text(model: Translating, text: str) -> str:
    """The model's greedy translation. TextError where it is empty."""
    trace = model.trace(text)
    if not trace.translation.strip():
        raise TextError(f"{model.name} produces no text here, so there is nothing to force; give it a target")
    return trace.translation


def _chosen(model: Translating, before: Trace, scope: Scope) -> list[int]:
    """The steps of the forced text at which attention is changed."""
    steps = list(range(len(before.target))) if scope.steps is None else list(scope.steps)
    if scope.words is None:
        return steps
    kinds = function_words.kinds(before.translation, before.target, target_language(model))
    return [step for step in steps if kinds[step] == scope.words]


def forced_with_logits(
    model: Translating, text: str, target: str, change: Change, scope: Scope, steps, on_step: OnStep
) -> tuple[Trace, torch.Tensor]:
    """The trace of a forced text, and the logits of its steps (T, V)."""
    if isinstance(model, EncoderDecoderModel):
        return opened_under(model, change, scope, steps, on_step).traced(text, target)
    changed = Changed(model.model, change, scope, at_steps(steps), on_step)
    trace = _changed(model, changed).trace(text, target)
    return trace, torch.stack(changed.step_logits)


def free_text(model: Translating, text: str, change: Change, scope: Scope, on_step: OnStep) -> Trace:
    """The trace of the model's own output under the change."""
    language = "" if scope.words is None else target_language(model)

    def is_such(piece: str) -> bool:
        return function_words.kind(piece, language) == scope.words

    if isinstance(model, EncoderDecoderModel):
        return opened_under(model, change, scope, scope.steps, on_step, is_such if language else None).trace(text)
    chosen = at_steps(scope.steps)
    if language:
        chosen = where_first_choice(scope.steps, lambda piece: is_such(model.tokenizer.piece(piece)))
    return _changed(model, Changed(model.model, change, scope, chosen, on_step)).trace(text)


def _changed(model: Translator, network: Changed) -> Translator:
    """The translator with changed attention; its name includes the change."""
    return replace(model, name=changed_name(model.name, network.change), model=network)


class StepEffect(NamedTuple):
    """One step. weights : of each layer, (H, S), unchanged. plain (V,) : logits of the next token; changed (B, V) :
    each row's.

    >>> effect = next(faithfulness.subject(model, "The black dog runs.").effects(intervene.Uniform()))
    >>> effect.step, effect.weights[0].shape
    (0, torch.Size([1, 6]))
    """

    step: int
    weights: tuple[Tensor, ...]
    plain: Tensor
    changed: Tensor


@checked
@torch.inference_mode()  # of a generator: only while it runs
def effects(
    network: Network,
    source: Sequence[int],
    target: Sequence[int],
    change: Change,
    rows: int = 1,
    scope: Scope = Scope(),
) -> Iterator[StepEffect]:
    """Force a target (ids) and change attention at each step alone, `rows` times in one batch (a seed gives each row
    its own). Yields one step after the other, so the caller can stop. ValueError as of `check_scope`.

    >>> subject = faithfulness.subject(model, "The black dog runs.")
    >>> effects = intervene.effects(model.model, subject.source, subject.target, intervene.Uniform())
    >>> [round(intervene.total_variation(effect.plain, effect.changed).item(), 1) for effect in effects]
    [0.0, 0.5, 0.8, 0.9, 0.3, 0.0]
    """
    for step, weights, plain, changed in effects_together(network, [source], [target], change, rows, scope):
        yield StepEffect(step, tuple(layer[0] for layer in weights), plain[0], changed[:, 0])


@checked
@torch.inference_mode()  # of a generator: only while it runs
def effects_together(
    network: Network,
    sources: Sequence[Sequence[int]],
    targets: Sequence[Sequence[int]],
    change: Change,
    rows: int = 1,
    scope: Scope = Scope(),
) -> Iterator[StepEffect]:
    """`effects` for N sources of one length in one batch, up to the end of the longest target.

    weights (N, H, S) of each layer, plain (N, V), changed (rows, N, V). Values after a shorter target's end have no
    meaning. The change is called with rows * N rows: the first row of every source, then the second of every source.
    """
    check_scope(network, scope)
    memory = network.encode(torch.tensor([list(source) for source in sources]))
    wide, state = widened(memory, rows), memory.state
    waiting: list[tuple[int, ReadoutStep, Tensor]] = []
    tokens = pad([[first_id(network), *target[:-1]] for target in targets]).unbind(1)
    for step, token in enumerate(tokens):
        plain = network.step_readout(memory, state, token)
        reweighs = reweigh_layers(network, change, scope, step)
        with OneDNN():  # a wide batch: the products take less than half the time
            changed = network.step_readout(wide, widened(state, rows), widened(token, rows), reweighs)
        waiting.append((step, plain, torch.cat([plain.readout, changed.readout])))
        state = plain.state
        if len(waiting) == TOGETHER or step == len(tokens) - 1:
            yield from _projected(network, waiting, rows)
            waiting = []


def _projected(network: Network, waiting: list[tuple[int, ReadoutStep, Tensor]], rows: int) -> Iterator[StepEffect]:
    """The effects of some steps. Input: number, unchanged step, and readouts (first the unchanged, then the changed).
    The output matrix, by far the largest, is prepared once for all of them."""
    with OneDNN():
        logits = network.logits(torch.cat([readouts for _, _, readouts in waiting])).split(len(waiting[0][2]))
    for (step, unchanged, _), step_logits in zip(waiting, logits):
        both = step_logits.unflatten(0, (rows + 1, -1))
        yield StepEffect(step, unchanged.cross, both[0], both[1:])


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


@dataclass(frozen=True, eq=False)
class Rewritten:
    """A translation of a text, and of the same text with another word.

    before : of the text as it was, its translation forced. forced : the same translation forced, of the new text.
    free : the model's own translation of the new text. total_variation (T,) : between the two next-token distributions
    of each step of the forced translation, 0 to 1.

    >>> intervene.rewrite(model, "The black dog runs.", intervene.words(trace)[1], "white").total_variation.round()
    array([0., 0., 1., 0., 0., 0.], dtype=float32)
    """

    before: Trace
    forced: Trace
    free: Trace
    total_variation: np.ndarray

    __repr__ = brief

    @property
    def log_prob_changes(self) -> np.ndarray:
        """(T,): log-probability (natural) of each target token with the new word, minus that with the old one."""
        last = slice(-len(self.total_variation), None)  # of a model that writes, without the prompt
        return np.subtract(self.forced.log_probs[last], self.before.log_probs[last])


@checked
@torch.inference_mode()
def rewrite(
    model: Translating,
    text: str,
    word: Word,
    new: str = MASK,
    target: str | None = None,
    on_step: OnStep = lambda: None,
) -> Rewritten:
    """Translate a text, and the text with a word replaced: by MASK, by another word, or by "" which deletes it.

    target, on_step : as in `run`. Errors as of `replaced` and `trace`.

    >>> intervene.rewrite(model, "The black dog runs.", intervene.words(trace)[1], "white").free.translation
    'Le chien blanc court.'
    """
    other = replaced(text, word, new)
    target = own_text(model, text) if target is None else target
    before, plain = forced_with_logits(model, text, target, Identity(), Scope(), None, on_step)
    forced, changed = forced_with_logits(model, other, target, Identity(), Scope(), None, on_step)
    free = free_text(model, other, Identity(), Scope(), on_step)
    return Rewritten(before, forced, free, total_variation_of(plain, changed))


@checked
@torch.inference_mode()
def written(
    model: WritesOn,
    trace: Trace,
    change: Change,
    scope: Scope = Scope(),
    how: Sampling = _GREEDY,
    choices: Mapping[int, int] | None = None,
    on_step: OnStep = lambda: None,
) -> Outcome:
    """A text that a model wrote, under a change of its self-attention: `before` and `forced` are the same text, read
    without and with the change; `free` is what it writes after the prompt under the change, as many tokens, with the
    same sampling and choices (as in `Writer.write`).

    Row t of a map is the step that produces token t. ValueError as in `run`, and for a trace of another model.

    >>> intervene.written(writer, writer.write("The dog", steps=3), intervene.Uniform()).total_variation.shape
    (4,)
    """
    before, plain = model.again(trace)
    count = len(before.target)
    if scope.steps and max(scope.steps) >= count:
        raise ValueError(f"steps must be from 0 to {count - 1}, as the text has tokens; got {max(scope.steps)}")
    changed = writing_under(model, change, scope, on_step)
    forced, logits = changed.again(trace)
    free, wrote = forced, count - trace.given
    if wrote:
        free = changed.write(
            trace.text, wrote, how.temperature, top_k=how.top_k, top_p=how.top_p, seed=how.seed, choices=choices
        )
    steps = np.isin(np.arange(count), range(count) if scope.steps is None else scope.steps)
    return Outcome(change, scope, before, forced, free, total_variation_of(plain, logits), steps)


@checked
@torch.inference_mode()
def written_after(model: WritesOn, trace: Trace, word: Word, new: str = MASK, how: Sampling = _GREEDY) -> Rewritten:
    """A text that a model wrote, with another word in its prompt: `forced` has the same tokens after the other prompt,
    `free` is what the model writes there by itself. total_variation : of the tokens that were written, the last ones.

    Errors as in `replaced` and `Writer.write`; ValueError if nothing was written.

    >>> text = writer.write("The dog", steps=3, temperature=0)
    >>> after = intervene.written_after(writer, text, intervene.words(text)[1], "cat")
    >>> after.free.text, after.total_variation.shape  # the new prompt, and a number for each token that was written
    ('The cat', (3,))
    """
    count = len(trace.target) - trace.given
    if not count:
        raise ValueError("trace must have tokens that the model wrote after the prompt; let it write one")
    other = replaced(trace.text, word, new)
    before, plain = model.again(trace)
    forced, logits = model.again(trace, other)
    free = model.write(other, count, how.temperature, top_k=how.top_k, top_p=how.top_p, seed=how.seed)
    return Rewritten(before, forced, free, total_variation_of(plain[-count:], logits[-count:]))


@checked
@torch.inference_mode()  # of a generator: only while it runs
def written_effects(
    model: WritesOn, trace: Trace, change: Change, scope: Scope = Scope(), rows: int = 1, first: int = 0
) -> Iterator[StepEffect]:
    """`effects` for a text that a model wrote: self-attention is changed in the row of each token alone; earlier rows
    are unchanged. weights (H, t) of each layer. first : the first row that is changed.

    >>> len(list(intervene.written_effects(writer, writer.write("The dog", steps=3), intervene.Uniform())))
    4
    """
    plainly, ids = network_of(model), model.read_for(trace)
    network = ChangedWriter(plainly, change, scope)
    state = plainly.read(torch.tensor([ids[:first]])).state if first else ()
    for step in range(first, len(ids)):
        token = torch.tensor([[ids[step]]])
        plain = plainly.read(token, state)
        changed = network.read(token.expand(rows, 1), widened(state, rows))
        weights = tuple(layer[0, :, 0] for layer in plain.maps)
        both = (plainly.logits(reading.readouts[:, -1]) for reading in (plain, changed))
        yield StepEffect(step, weights, next(both)[0], next(both))
        state = plain.state
