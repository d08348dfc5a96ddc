"""Forced, greedy, beam and random decoding over `encode` and `step`: the same for every model.

Letters: B batch, T steps, S source positions, V vocabulary, H heads. A step is one target position.
"""

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional as F

from attnviz.data import loops
from attnviz.data.tokenizer import BOS, EOS, PAD, UNK
from attnviz.networks import Network, Walk

NEVER = (PAD, BOS, UNK)  # produced by no decoder: there is nothing a reader could do with them


@dataclass(frozen=True)
class Unrolled:
    """All steps of a batch. Steps after a sentence's <eos> carry no meaning.

    Either logits or readouts are present, as requested; the model's `logits` turns readouts into logits.
    """

    tokens: Tensor  # (B, T) token chosen at each step
    logits: Tensor | None  # (B, T, V) over the whole vocabulary, as the model gave them
    cross: list[Tensor]  # (B, H, T, S) of each layer
    encoder: list[Tensor]  # (B, H, S, S) of each layer
    decoder: list[Tensor]  # (B, H, T, T) of each layer, 0 above the diagonal
    readouts: Tensor | None = None  # (B, T, D)

    def rows(self) -> Tensor:
        """The logits, or the readouts if those were requested."""
        rows = self.readouts if self.logits is None else self.logits
        if rows is None:
            raise ValueError("neither logits nor readouts are there")
        return rows

    def lengths(self) -> list[int]:
        """Steps of each sentence up to and including its first <eos>, or all of them."""
        return lengths(self.tokens)

    def sentence(self, i: int, steps: int, size: int) -> "Unrolled":
        """Sentence i alone, a batch of one without padding: its first `steps` steps and `size` source positions."""
        part = slice(i, i + 1)
        logits, readouts = (None if rows is None else rows[part, :steps] for rows in (self.logits, self.readouts))
        return Unrolled(
            self.tokens[part, :steps],
            logits,
            [weights[part, :, :steps, :size] for weights in self.cross],
            [weights[part, :, :size, :size] for weights in self.encoder],
            [weights[part, :, :steps, :steps] for weights in self.decoder],
            readouts,
        )


def lengths(tokens: Tensor) -> list[int]:
    """tokens (B, T) -> the length of each row up to and including its first <eos>; T without one."""
    return [row.index(EOS) + 1 if EOS in row else len(row) for row in tokens.tolist()]


Choose = Callable[[int, Tensor], Tensor]  # step, logits (B, V) -> tokens (B,)
Guesses = Sequence[Sequence[int]]


def limit(source_length: int) -> int:
    """The largest number of steps in decoding: twice the number of source pieces, and a few more."""
    return 2 * source_length + 10


def best(step: int, logits: Tensor) -> Tensor:
    """The most probable of the tokens that may be produced, for each row."""
    tokens = logits.argmax(dim=-1)  # mostly one that may be: the copy without the others costs twice the argmax
    return without(NEVER, logits).argmax(dim=-1) if any(map(NEVER.__contains__, tokens.tolist())) else tokens


def without(tokens: Sequence[int], scores: Tensor) -> Tensor:
    """scores (B, V) with -inf for some tokens, in a copy."""
    return scores.index_fill(1, _places(tuple(tokens), scores.device), -torch.inf)


@functools.lru_cache(64)  # making it takes longer than filling in
def _places(tokens: tuple[int, ...], device: torch.device) -> Tensor:
    with torch.inference_mode(False):  # it may be used where gradients are wanted
        return torch.tensor(tokens, device=device)


@torch.inference_mode()
def unroll(
    model: Network, source: Tensor, mask: Tensor | None, choose: Choose, steps: int, guesses: Guesses = ()
) -> Unrolled:
    """Step a model from <bos> until every sentence has its <eos>, or `steps` times, recording all attention.

    source : (B, S) ids. mask : (B, S), True = a real token; None when nothing is padded.
    guesses : likely outputs for one sentence, the likeliest first, each as ids without <eos>. Guessed steps are
    computed together, and steps after a wrong guess are discarded. So the tokens are the same, and all else is the same
    up to rounding (Leviathan et al. 2023, without sampling).
    """
    memory = model.encode(source, mask)
    walk = getattr(model, "walk", partial(Walk, model))(memory)
    if not walk.goes_back or len(source) > 1:
        guesses = ()
    token, open_rows = source.new_full((len(source),), BOS), set(range(len(source)))
    tokens: list[Tensor] = []
    logits: list[Tensor] = []
    while open_rows and len(tokens) < steps:
        ahead = list(_what_follows(guesses, tokens)[: steps - len(tokens) - 1])
        rows = walk(torch.cat([token, token.new_tensor(ahead)])[None] if ahead else token[:, None])
        for place, row in enumerate(rows.unbind(1)):
            token = choose(len(tokens), row)
            tokens.append(token)
            logits.append(row)
            open_rows -= {row for row, number in enumerate(token.tolist()) if number == EOS}
            if not open_rows or place == len(ahead) or int(token) != ahead[place]:
                break
        walk.forget(len(ahead) - place)
    cross, decoder = walk.maps()
    return Unrolled(torch.stack(tokens, dim=1), torch.stack(logits, dim=1), cross, list(memory.maps), decoder)


def _what_follows(guesses: Guesses, tokens: Sequence[Tensor]) -> Sequence[int]:
    """What stands in a guess after the last chosen token, where most of the tokens before it are the same too, and then
    nearest to its position; at the beginning the first guess."""
    if not guesses or not tokens:
        return guesses[0] if guesses else ()
    written = [int(token) for token in reversed(tokens)]

    def likeness(place: tuple[Sequence[int], int]) -> tuple[int, int]:
        guess, end = place
        pairs = zip(reversed(guess[:end]), written)
        return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs)), -abs(end - len(tokens))

    ends = ((guess, end) for guess in guesses for end, number in enumerate(guess, 1) if number == written[0])
    guess, end = max(ends, key=likeness, default=((), 0))
    return guess[end:]


def greedy(
    model: Network, source: Tensor, mask: Tensor | None = None, end_loops: bool = False, guesses: Guesses = ()
) -> Unrolled:
    """The most probable token at every step. source (B, S), mask (B, S). end_loops : <eos> after a loop, see `Loop`.
    guesses : as in `unroll`."""
    choose = best_or_end(len(source)) if end_loops else best
    return unroll(model, source, mask, choose, limit(source.shape[1]), guesses)


def best_or_end(rows: int) -> Choose:
    """`best`, but <eos> after a loop (`data/loops.py`). For one batch with this number of rows, from its first step
    on."""
    produced: list[list[int]] = [[] for _ in range(rows)]

    def choose(step: int, logits: Tensor) -> Tensor:
        ended = [loops.loop_at_end(pieces) is not None for pieces in produced]
        tokens = best(step, logits)
        if any(ended):
            tokens = tokens.masked_fill(torch.tensor(ended, device=logits.device), EOS)
        for pieces, number in zip(produced, tokens.tolist()):
            pieces.append(number)
        return tokens

    return choose


@torch.inference_mode()
def forced(
    model: Network, source: Tensor, target: Tensor, mask: Tensor | None = None, project: bool = True
) -> Unrolled:
    """The given targets (B, T), <eos> included, in one pass, without a loop over steps.

    source : (B, S) ids. mask : (B, S), True = a real token; None when nothing is padded. A shorter target
    has any ids after its <eos>; columns after the last <eos> of all are left out. project : False gives readouts in
    place of logits.
    """
    target = target[:, : max(lengths(target))]
    memory = model.encode(source, mask)
    readouts, cross, decoder = model.force(memory, F.pad(target[:, :-1], (1, 0), value=BOS))
    maps = list(cross), list(memory.maps), list(decoder)
    return Unrolled(target, model.logits(readouts), *maps) if project else Unrolled(target, None, *maps, readouts)


@torch.inference_mode()
def beam(model: Network, source: Tensor, width: int, penalty: float = 1.0, end_loops: bool = False) -> list[int]:
    """Ids of the best of `width` hypotheses for one sentence (1, S), <eos> included: the first of `beams`."""
    return beams(model, source, width, penalty, end_loops)[0][1]


@torch.inference_mode()
def beams(
    model: Network, source: Tensor, width: int, penalty: float = 1.0, end_loops: bool = False
) -> list[tuple[float, list[int]]]:
    """At most `width` hypotheses for one sentence (1, S), the best first: log-probability in nats, and ids, <eos>
    included. If none ended, the only result is a hypothesis that was cut off, without <eos>.

    Hypotheses are compared by log-probability / length ** penalty (Wu et al. 2016, sec. 7, without its constant). The
    search ends when `width` hypotheses have ended and no open one scores better at that point. This is a heuristic:
    with the penalty, an open one could still become better. end_loops : a hypothesis ends after a loop
    (`data/loops.py`).
    """
    memory = take_rows(model.encode(source), torch.zeros(width, dtype=torch.long, device=source.device))
    state, token = memory.state, source.new_full((width,), BOS)
    scores = torch.full((width,), -torch.inf, device=source.device)
    scores[0] = 0.0  # all rows start alike: only one may be extended
    hypotheses: list[list[int]] = [[] for _ in range(width)]
    finished: list[tuple[float, float, list[int]]] = []  # score, log-probability, ids
    for t in range(1, limit(source.shape[1]) + 1):
        step = model.step(memory, state, token)
        total = scores.unsqueeze(1) + without(NEVER, torch.log_softmax(step.logits, dim=-1))  # (width, V)
        if end_loops:
            _allow_only_end(total, [row for row, pieces in enumerate(hypotheses) if loops.loop_at_end(pieces)])
        values, places = total.flatten().topk(2 * width)
        rows, words = places // total.shape[1], places % total.shape[1]
        alive: list[tuple[float, int, int]] = []
        for rank, (value, row, word) in enumerate(zip(values.tolist(), rows.tolist(), words.tolist())):
            if word == EOS and rank < width:  # an end further down would not be in the beam: a beam of 1 is greedy
                finished.append((value / t**penalty, value, [*hypotheses[row], EOS]))
            elif word != EOS and len(alive) < width:
                alive.append((value, row, word))
        finished = sorted(finished, key=lambda hypothesis: hypothesis[0], reverse=True)[:width]
        if len(finished) == width and finished[-1][0] >= alive[0][0] / t**penalty:
            break
        hypotheses = [[*hypotheses[row], word] for _, row, word in alive]
        scores = torch.tensor([value for value, _, _ in alive], device=source.device)
        token = torch.tensor([word for _, _, word in alive], device=source.device)
        state = take_rows(step.state, torch.tensor([row for _, row, _ in alive], device=source.device))
    if not finished:
        return [(scores[0].item(), hypotheses[0])]
    return [(log_prob, ids) for _, log_prob, ids in finished if math.isfinite(log_prob)]  # a row that never began


def _allow_only_end(scores: Tensor, rows: list[int]) -> None:
    """Give every token but <eos> the score -inf in some rows of scores (width, V), in place."""
    ends = scores[rows, EOS]
    scores[rows] = -torch.inf
    scores[rows, EOS] = ends


def take_rows(tree, index: Tensor):
    """Take batch rows of every tensor in nested tuples."""
    if tree is None:
        return None
    if isinstance(tree, Tensor):
        return tree.index_select(0, index)
    branches = [take_rows(branch, index) for branch in tree]
    return type(tree)(*branches) if hasattr(tree, "_fields") else tuple(branches)


LONGEST_SAMPLE = 60  # tokens: at a text much longer than those of training, translations may go on and on


TEMPERATURE = 0.75  # the models are trained with smoothed labels, which leave too much to improbable tokens


@torch.inference_mode()
def sample(
    model: Network, source: Tensor, count: int, temperature: float = TEMPERATURE, seed: int = 0
) -> list[list[int]]:
    """Ids of `count` translations of one sentence (1, S), each with its <eos> unless it was cut off (LONGEST_SAMPLE).

    temperature : the logits are divided by it; below 1, probable tokens become more probable. The same seed gives the
    same translations.
    """
    generator = np.random.default_rng(seed)  # the process of the models has no torch.Generator
    open_rows = torch.arange(count, device=source.device)  # translations that have not ended
    memory = take_rows(model.encode(source), torch.zeros_like(open_rows))
    state, token = memory.state, source.new_full((count,), BOS)
    texts: list[list[int]] = [[] for _ in range(count)]
    for _ in range(min(LONGEST_SAMPLE, limit(source.shape[1]))):
        step = model.step(memory, state, token)
        token = drawn(without(NEVER, step.logits / temperature), generator)
        for row, number in zip(open_rows.tolist(), token.tolist()):
            texts[row].append(number)
        left = (token != EOS).nonzero()[:, 0]
        if not len(left):
            break
        open_rows, token = open_rows[left], token[left]
        memory, state = take_rows(memory, left), take_rows(step.state, left)
    return texts


def drawn(scores: Tensor, generator: np.random.Generator) -> Tensor:
    """A token per row, drawn from the softmax of scores (B, V): the first at which the cumulative sum exceeds a random
    number."""
    sums = scores.double().softmax(dim=-1).cumsum(dim=-1)
    places = torch.from_numpy(generator.random((len(scores), 1))).to(scores.device) * sums[:, -1:]
    return torch.searchsorted(sums, places, right=True)[:, 0]
