"""Where attention is changed (which steps, and in a Transformer which layer and head of cross-attention), and a
translator's network with changed attention, which decode.py can use like any other network; the same for a network that
writes; and replacing a word of a text.

The change is an argument of the network's `step`; the number of the step is a part of the decoder's state. So the
network itself never changes, even if a change raises.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor

from attnviz.arguments import Checked, checked
from attnviz.attention import Reweigh
from attnviz.data.tokenizer import BOS
from attnviz.function_words import CONTENT, FUNCTION
from attnviz.intervene.changes import Change, Hide, Identity, Place
from attnviz.models.huggingface.encoder_decoder import EncoderDecoderModel
from attnviz.models.huggingface.opened import Opened, Rows
from attnviz.models.huggingface.single_stack import OpenedWriter
from attnviz.models.huggingface.writing import WritingModel
from attnviz.models.translator import Translator
from attnviz.models.writer import Writer
from attnviz.networks import DecoderStep, Memory, Network, Walk, decode
from attnviz.networks.decoder_only import DecoderOnly, Reading
from attnviz.networks.transformer import Transformer
from attnviz.trace import Trace

MASK = "□"  # in no vocabulary of this project: the model reads one unknown piece
OnStep = Callable[[], None]
WritesOn = Writer | WritingModel  # the second where its family can be opened (`why_closed`)
Chosen = Callable[[int, Callable[[], Tensor]], bool]  # step, what the unchanged network says there (V,) -> change it?


@dataclass(frozen=True)
class Scope(Checked):
    """steps : from 0; None for all. words : only steps that produce a "function" or a "content" word.
    layer, head : of a Transformer, from 0; None for all layers, all heads of a layer.

    >>> third = intervene.Scope(steps=(2,))
    >>> intervene.run(model, "The black dog runs.", intervene.Uniform(), third).steps.tolist()
    [False, False, True, False, False, False]
    """

    steps: tuple[int, ...] | None = None
    words: str | None = None
    layer: int | None = None
    head: int | None = None

    def __post_init__(self):
        super().__post_init__()
        if self.words not in (None, FUNCTION, CONTENT):
            raise ValueError(f"words must be {FUNCTION}, {CONTENT} or None; got {self.words!r:.80}")
        if self.steps is not None and (not self.steps or min(self.steps) < 0):
            raise ValueError(f"steps must be places of target tokens, from 0, or None for all; got {self.steps}")


def cross_layers(network: Network) -> int:
    """How many layers of cross-attention a translator's network has."""
    if isinstance(network, Opened):
        return network.cross_layers
    return len(network.decoder) if isinstance(network, Transformer) else int(hasattr(network, "attention"))


def cross_heads(network: Network) -> int:
    """How many heads each of them has."""
    if isinstance(network, Opened):
        return network.cross_heads
    return network.decoder[0].cross.heads if isinstance(network, Transformer) else 1


def check_scope(network: Network, scope: Scope) -> None:
    """ValueError if the network has no attention, or not that layer or head."""
    count = cross_layers(network)
    if not count:
        raise ValueError("model must have attention; a fixed context has none to change")
    for name, number, most in (("layer", scope.layer, count), ("head", scope.head, cross_heads(network))):
        if number is not None and not 0 <= number < most:
            raise ValueError(f"{name} must be None or from 0 to {most - 1}; got {number}")


def reweigh_layers(network: Network, change: Change, scope: Scope, step: int) -> tuple[Reweigh, ...]:
    """The argument `reweigh` of a network's `step` where the change applies: one per layer, None for no change."""
    if isinstance(change, Identity):
        return (None,) * cross_layers(network)
    return tuple(
        partial(_apply, change, scope.head, Place(step, layer)) if scope.layer in (None, layer) else None
        for layer in range(cross_layers(network))
    )


def first_id(network: Network) -> int:
    """The id that the decoder reads first."""
    return network.bos if isinstance(network, Opened) else BOS


def changed_name(name: str, change: Change) -> str:
    """The name of a model under a change."""
    return name if isinstance(change, Identity) else f"{name} ({change.title})"


def opened_under(
    model: EncoderDecoderModel,
    change: Change,
    scope: Scope,
    steps: Sequence[int] | None,
    on_step: OnStep,
    is_such: Callable[[str], bool] | None = None,
) -> EncoderDecoderModel:
    """A model of the transformers library, with its attention changed. is_such : only at steps at which the unchanged
    model, after the same text, would choose a piece of this sort. ValueError if its family cannot be opened."""
    network = model.opened_network()
    check_scope(network, scope)
    network.rows, network.on_step = rows_of(change, scope, steps), on_step
    changed = replace(model, name=changed_name(model.name, change), model=network.network)
    if is_such is None or network.rows is None:
        return changed
    network.choose_rows(lambda piece: is_such(model.tokenizer.decode([piece])))
    return replace(changed, whole=True)


def rows_of(change: Change, scope: Scope, steps: Sequence[int] | None) -> Rows | None:
    """The same for all steps of a pass of an opened network. steps : at which it applies; None for all."""
    if isinstance(change, Identity):
        return None

    def rows(layer: int, first: int, weights: Tensor) -> Tensor:
        if scope.layer not in (None, layer):
            return weights
        places = [Place(first + row, layer) for row in range(weights.shape[2])]
        changed = [
            _apply(change, scope.head, place, row, None) if steps is None or place.step in steps else row
            for place, row in zip(places, weights.split(1, dim=2))
        ]
        return torch.cat(changed, dim=2)

    return rows


def _apply(change: Change, head: int | None, place: Place, weights: Tensor, mask: Tensor | None) -> Tensor:
    """weights (B, H, T, S), or (B, 1, S) of a recurrent network; mask as the network has it, None when all is
    visible."""
    visible = weights.new_ones(weights.shape, dtype=torch.bool) if mask is None else mask.expand_as(weights)
    changed = change(weights, visible, place)
    if head is None:
        return changed
    mixed = weights.clone()
    mixed[:, head] = changed[:, head]
    return mixed


class Changed:
    """A network whose attention is changed, as `decode` needs it.

    chosen : the steps that are changed. on_step : called before each step; an exception that it raises ends the
    decoding. step_logits : logits (V,) of the steps so far, of the first row of the batch, for the caller.
    """

    def __init__(self, network: Network, change: Change, scope: Scope, chosen: Chosen, on_step: OnStep = lambda: None):
        check_scope(network, scope)
        self.network, self.change, self.scope, self.chosen = network, change, scope, chosen
        self.on_step = on_step
        self.step_logits: list[Tensor] = []

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Memory:
        memory: Any = self.network.encode(source, mask)
        return memory._replace(state=(source.new_zeros(len(source)), memory.state))

    def step(self, memory: Any, state: tuple, token: Tensor) -> DecoderStep:
        """Like the `step` of the network; the state also has the number of the step."""
        self.on_step()
        numbers, inner = state
        number = int(numbers[0])
        reweighs: tuple[Reweigh, ...] = ()
        if self.chosen(number, lambda: self.network.step(memory, inner, token).logits[0]):
            reweighs = reweigh_layers(self.network, self.change, self.scope, number)
        step = self.network.step(memory, inner, token, reweighs)
        self.step_logits.append(step.logits[0])
        return step._replace(state=(numbers + 1, step.state))

    def force(self, memory: Any, target: Tensor) -> tuple[Tensor, tuple, tuple]:
        """Like the `force` of the network, but step by step, because a change may depend on the step. Its readouts are
        the logits of these steps."""
        walk = Walk(cast(Network, self), memory)
        logits, (cross, own) = walk(target), walk.maps()
        return logits, tuple(cross), tuple(own)

    def logits(self, readouts: Tensor) -> Tensor:
        """The readouts of `force` are logits already."""
        return readouts


class ChangedWriter:
    """A network that writes, whose self-attention is changed, as `networks.writing` needs it.

    The row of a map that produces a token is the step of that token. Every row is changed by itself, over the tokens
    that it sees, so reading a text at once or token by token gives the same result. ValueError for a layer or head that
    the network does not have, and for a scope of kinds of words.
    """

    def __init__(
        self, network: DecoderOnly | OpenedWriter, change: Change, scope: Scope, on_step: OnStep = lambda: None
    ):
        if scope.words is not None:
            raise ValueError("words must be None for a model that writes: it has no steps of kinds of words")
        self.layers, heads = network.layers, network.heads
        for name, number, count in (("layer", scope.layer, self.layers), ("head", scope.head, heads)):
            if number is not None and not 0 <= number < count:
                raise ValueError(f"{name} must be None or from 0 to {count - 1}; got {number}")
        self.network, self.change, self.scope, self.on_step = network, change, scope, on_step
        self.longest, self.logits = network.longest, network.logits

    def read(self, tokens: Tensor, state: Sequence = ()) -> Reading:
        """Like the `read` of the network."""
        self.on_step()
        first = state[0][0].shape[2] if state else 0
        return self.network.read(tokens, state, self.changes(lambda: first))

    def changes(self, first: Callable[[], int]) -> list[Reweigh]:
        """The change of each layer's weights; None where there is none. first : the place of a pass's first token."""
        return [
            partial(self._rows, layer, first) if self.scope.layer in (None, layer) else None
            for layer in range(self.layers)
        ]

    def _rows(self, layer: int, first: Callable[[], int], weights: Tensor, mask: Tensor | None) -> Tensor:
        """weights (B, H, T, t), the rows those of the tokens from `first` on. The columns are the last t tokens; a
        cache with a window has dropped those before."""
        result, heads = weights.clone(), slice(None) if self.scope.head is None else [self.scope.head]
        count, columns = weights.shape[2:]
        for row in range(count):
            step, end = first() + row, columns - count + row + 1
            if self.scope.steps is None or step in self.scope.steps:
                seen = weights[:, heads, row, :end]
                visible = torch.ones_like(seen, dtype=torch.bool) if mask is None else mask[..., row, :end]
                result[:, heads, row, :end] = self._row(seen, visible.expand_as(seen), Place(step, layer))
        return result

    def _row(self, seen: Tensor, visible: Tensor, place: Place) -> Tensor:
        """seen (B, H, t): a row over the tokens up to its own; visible : those in its window. A row that sees none of
        the tokens to hide, or no others, is unchanged."""
        change = self.change
        if isinstance(change, Hide):
            before = place.step + 1 - seen.shape[-1]
            in_view = visible.flatten(0, -2).all(0)
            tokens = [at for token in change.tokens if 0 <= (at := token - before) < len(in_view) and in_view[at]]
            if len(tokens) in (0, int(in_view.sum())):
                return seen
            change = Hide(tuple(tokens))
        return change(seen, visible, place)


def network_of(model: WritesOn) -> DecoderOnly | OpenedWriter:
    """The network that writes. ValueError, with the reason, if that of a family cannot be opened."""
    return model.opened_network() if isinstance(model, WritingModel) else model.model


def writing_under(model: WritesOn, change: Change, scope: Scope, on_step: OnStep) -> WritesOn:
    """A model that writes, with its attention changed. ValueError as of `network_of` and `ChangedWriter`."""
    network, name = network_of(model), f"{model.name} ({change.title})"
    changed = ChangedWriter(network, change, scope, on_step)
    if isinstance(network, OpenedWriter):
        network.reweigh, network.on_step = changed.changes(lambda: network.first), on_step
        return replace(model, name=name, model=network.network)
    return replace(model, name=name, model=changed)


def at_steps(steps: Sequence[int] | None) -> Chosen:
    """These steps, or all."""
    return lambda number, _logits: steps is None or number in steps


def where_first_choice(steps: Sequence[int] | None, is_such: Callable[[int], bool]) -> Chosen:
    """The steps, among those given, at which `is_such` holds for the first choice of the unchanged network."""

    def chosen(number: int, logits: Callable[[], Tensor]) -> bool:
        return (steps is None or number in steps) and is_such(int(decode.best(number, logits()[None])))

    return chosen


def target_language(model: Translator | EncoderDecoderModel) -> str:
    """The language that a model translates into. ValueError if unknown."""
    language = model.task.target if isinstance(model, Translator) else model.language
    if not language:
        why = 'nothing says in which language its words are; model.producing("fr") does'
        raise ValueError(f"words must be None for {model.name}: {why}")
    return language


class Word(NamedTuple):
    """A word of a source text: text[start:end].

    >>> intervene.words(trace)[1]
    Word(text='black', start=4, end=9)
    """

    text: str
    start: int
    end: int


@checked
def words(trace: Trace) -> tuple[Word, ...]:
    """The words of a trace's source, in order; special tokens and white space are not words.

    >>> [word.text for word in intervene.words(trace)]
    ['The', 'black', 'dog', 'runs', '.']
    """
    spans: dict[int, tuple[int, int]] = {}
    for token in trace.source:
        if token.word is not None and token.end > token.start:
            start, end = spans.get(token.word, (token.start, token.end))
            spans[token.word] = min(start, token.start), max(end, token.end)
    listed = (Word(trace.text[start:end], start, end) for start, end in spans.values())
    return tuple(word for word in listed if word.text.strip())


@checked
def replaced(text: str, word: Word, new: str = MASK) -> str:
    """The text with the word replaced. ValueError if the word is not at its place, or nothing changes.

    >>> intervene.replaced("The black dog runs.", intervene.words(trace)[1], "white")
    'The white dog runs.'
    """
    if text[word.start : word.end] != word.text:
        raise ValueError(f"word must stand at {word.start} of the text; got {word.text!r:.80}")
    if new.strip() == word.text.strip():
        raise ValueError(f"the new word must be another one; got {new!r:.80}")
    changed = text[: word.start] + new.strip() + text[word.end :]
    return changed if new.strip() else " ".join(changed.split())


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
    """Logits (..., V) and (B, ..., V) -> (B, ...): half the sum of the differences of both distributions, 0 to 1.

    >>> intervene.total_variation(torch.tensor([0.5, 0.5]).log(), torch.tensor([[0.9, 0.1]]).log())
    tensor([0.4000])
    """
    return changed.softmax(-1).sub_(plain.softmax(-1)).abs_().sum(-1) / 2


def total_variation_of(plain: Tensor, changed: Tensor) -> np.ndarray:
    """Logits (T, V) twice -> (T,): as of `total_variation`, row by row."""
    return ((plain.softmax(-1) - changed.softmax(-1)).abs().sum(-1) / 2).numpy()
