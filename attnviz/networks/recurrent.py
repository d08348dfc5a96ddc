"""The base of recurrent translators: a bidirectional encoder, the loop over target positions, and the output.

The decoders are in decoders.py.
Letters: B batch, T target positions, S source positions, E embedding width, W state width, V vocabulary. G the gates'
width: 3W for a GRU, 4W for an LSTM.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnviz.attention import Attention, Reweigh
from attnviz.networks import ReadoutStep, Steps, Walk
from attnviz.networks.cpu import Dropout, Packed, columns, gru_step


class GRUCell(nn.GRUCell):
    """torch's GRUCell with its state in a tuple (h,), like (h, c) of LSTMCell."""

    def __call__(self, x, state):
        """At once: a decoder calls it at every step, and torch's look for hooks takes a tenth of that time."""
        return self.forward(x, state)

    def forward(self, x, state):  # type: ignore[override]  # a tuple in place of torch's tensor
        return (torch.gru_cell(x, state[0], self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh),)

    def follow(self, read: Tensor, state: tuple) -> tuple:
        """read (B, G), which is W_ih x + b_ih, and the state before -> the state after."""
        return (gru_step(read, F.linear(state[0], self.weight_hh, self.bias_hh), state[0]),)


class LSTMCell(nn.LSTMCell):
    """torch's LSTMCell, with `follow`."""

    def follow(self, read: Tensor, state: tuple) -> tuple:
        """read (B, G), which is W_ih x + b_ih, and the state before, (h, c) -> the state after."""
        gates = read + F.linear(state[0], self.weight_hh, self.bias_hh)
        enter, keep, new, leave = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(keep) * state[1] + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(cell), cell


class LSTM(nn.LSTM):
    """torch's LSTM, returning only the last h, as GRU does."""

    def forward(self, x, hx=None):
        outputs, (last, _) = super().forward(x, hx)
        return outputs, last


class Cell(NamedTuple):
    """A kind of recurrence.

    torch's GRU applies the reset gate r to the product, r * (U s); the papers have U (r * s).
    """

    encoder: type
    decoder: type
    parts: int  # tensors (B, W) in a state; the first is what others read


CELLS = {"gru": Cell(nn.GRU, GRUCell, 1), "lstm": Cell(LSTM, LSTMCell, 2)}


class RecurrentMemory(NamedTuple):
    """The encoder's output for the decoder."""

    # (B, S, 2W) annotations: forward and backward states, concatenated; (B, S, W) summed; (B, 2W) a fixed context
    values: Tensor
    prepared: Tensor  # (B, S, ...) the annotations as the score function wants them; the values without attention
    mask: Tensor | None  # (B, 1, S) True = visible; None when nothing is padded
    state: tuple  # the decoder's state before its first step
    maps: tuple = ()  # encoder self-attention: none here


class Encoder(nn.Module):
    """Bidirectional; padded positions are never read, so sentences in a batch give the same results as alone."""

    def __init__(self, embedding_width: int, width: int, cell: Cell):
        super().__init__()
        self.rnn = cell.encoder(embedding_width, width, batch_first=True, bidirectional=True)

    def forward(self, embedded: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """embedded (B, S, E), mask (B, S) -> annotations (B, S, 2W), last forward and first backward state (B, W)."""
        if mask is None:
            annotations, last = self.rnn(embedded)
            return annotations, last[0], last[1]
        lengths = mask.sum(dim=1).cpu()
        packed = pack_padded_sequence(embedded, lengths, batch_first=True, enforce_sorted=False)
        outputs, last = self.rnn(packed)
        annotations, _ = pad_packed_sequence(outputs, batch_first=True, total_length=embedded.shape[1])
        return annotations, last[0], last[1]


class Recurrent(Steps, nn.Module):
    """The base of all decoders: embeddings, encoder, and the loop over target positions. Hooks of `embedding` and of a
    GRU's `cell` are not called, because they would be looked for at every step.

    A decoder defines its step (`advance`) and its output vector (`readout`); one with attention has `attention`. The
    source, target and output embeddings are one matrix: the vocabulary is joint (Press & Wolf 2017). For a forced
    target, everything that does not depend on the state is computed for all positions at once (`unfold`).

    summary : width of the input of the first state. extra : width of the cell's input besides the previous word. cell :
    gru or lstm, of encoder and decoder. summed : an annotation is the sum of the encoder's two directions (B, S, W), as
    a score between vectors of one width needs it; else both, concatenated (B, S, 2W).
    """

    attention: Attention
    summed = False

    def __init__(
        self, vocabulary: int, width: int, embedding_width: int, dropout: float, cell: str, summary: int, extra: int
    ):
        super().__init__()
        if cell not in CELLS:
            raise ValueError(f"cell must be one of {', '.join(CELLS)}; got {cell!r:.80}")
        kind = CELLS[cell]
        self.embedding = nn.Embedding(vocabulary, embedding_width)
        nn.init.normal_(self.embedding.weight, std=embedding_width**-0.5)
        self.encoder = Encoder(embedding_width, width, kind)
        self.parts = kind.parts
        self.start = nn.Linear(summary, kind.parts * width)
        self.cell = kind.decoder(embedding_width + extra, width)
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))
        self.dropout = Dropout(dropout)
        self.output = Packed()

    def embed(self, tokens: Tensor) -> Tensor:
        """tokens (...) -> (..., E), scaled so that the tied output matrix keeps a small variance."""
        return self.scale(F.embedding(tokens, self.embedding.weight))

    def scale(self, vectors: Tensor) -> Tensor:
        """Rows of the embedding (..., E) as encoder and decoder read them."""
        return self.dropout(vectors * vectors.shape[-1] ** 0.5)

    def logits(self, readout: Tensor) -> Tensor:
        """readout (..., E) -> (..., V)."""
        return self.output.product(self.dropout(readout), self.embedding.weight, self.output_bias)

    def first(self, summary: Tensor) -> tuple:
        """s_0 = tanh(V summary), and so an LSTM's c_0. Cho et al. 2014, A.1.2; Bahdanau et al. 2015, A.2.2."""
        return torch.tanh(self.start(summary)).chunk(self.parts, dim=-1)

    def encode(self, source: Tensor, mask: Tensor | None = None) -> RecurrentMemory:
        """source (B, S) token ids, mask (B, S) True = a real token -> RecurrentMemory."""
        return self.encode_vectors(self.embedding(source), mask)

    def encode_vectors(self, vectors: Tensor, mask: Tensor | None = None) -> RecurrentMemory:
        """`encode` from rows of the embedding (B, S, E). The first state is made from backward_1."""
        directions, _, backward = self.encoder(self.scale(vectors), mask)
        values, prepared = self.annotate(directions)
        visible = None if mask is None else mask.unsqueeze(1)
        return RecurrentMemory(values, prepared, visible, self.first(backward))

    def annotate(self, directions: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's states (B, S, 2W) -> annotations (values), and the same prepared for the score function
        (keys)."""
        annotations = self.dropout(self.join(directions))
        return annotations, self.attention.prepare(annotations)

    def advance(
        self, memory: RecurrentMemory, state: tuple, embedded: Tensor, reweigh: Reweigh = None
    ) -> tuple[Tensor, tuple, tuple]:
        """state, embedded previous word (B, E) -> input of `readout` (B, ...), next state, weights."""
        raise TypeError(f"{type(self).__name__} must define advance()")

    def unfold(self, memory: RecurrentMemory, words: Tensor, more: Tensor) -> tuple[Tensor, list, list]:
        """words (B, T, G) multiplied by the cell's input weights, more (G, ...) the other input weights -> input of
        `readout` (B, T, ...), weights and states step by step."""
        raise TypeError(f"{type(self).__name__} must define unfold()")

    def readout(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """Result of `advance` or `unfold`, embedded previous word (..., E) -> input of the logits (..., E)."""
        raise TypeError(f"{type(self).__name__} must define readout()")

    def join(self, directions: Tensor) -> Tensor:
        """The encoder's states (B, S, 2W) -> annotations (B, S, 2W), or (B, S, W) if `summed`."""
        return directions.unflatten(-1, (2, -1)).sum(dim=-2) if self.summed else directions

    def step_readout(
        self, memory: RecurrentMemory, state: tuple, token: Tensor, reweigh: Sequence[Reweigh] = ()
    ) -> ReadoutStep:
        """state, token (B,) the token before this position. reweigh : changes the weights of the one layer."""
        embedded = self.embed(token)
        outputs, state, cross = self.advance(memory, state, embedded, *reweigh)
        return ReadoutStep(self.readout(outputs, embedded), state, cross)

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """source (B, S), target inputs (B, T) from <bos> on, mask (B, S) -> logits (B, T, V), weights (B, T, S).

        The weights are None without attention.
        """
        memory = self.encode(source, mask)
        embedded = self.embed(target)
        state, outputs, cross = memory.state, [], []
        for word in embedded.unbind(1):
            here, state, rows = self.advance(memory, state, word)
            outputs.append(here)
            cross.append(rows)
        readout = self.readout(torch.stack(outputs, dim=1), embedded)  # needs no loop: once for all positions
        weights = [torch.cat(layer, dim=1) for layer in zip(*cross)]
        return self.logits(readout), weights[0] if weights else None

    def force(self, memory: RecurrentMemory, target: Tensor) -> tuple[Tensor, tuple, tuple]:
        """target inputs (B, T) from <bos> on -> readouts (B, T, E), cross weights (B, 1, T, S) of each layer, and ()
        for the decoder weights: what `step` returns position by position, in evaluation mode."""
        readouts, cross, _ = self.follow(memory, target)
        weights = tuple(torch.stack(layer, dim=2) for layer in zip(*cross))
        return readouts, weights, ()

    def readouts(self, memory: RecurrentMemory, target: Tensor) -> Tensor:
        """target inputs (B, T) from <bos> on -> what logits are made of (B, T, E)."""
        return self.follow(memory, target)[0]

    def follow(self, memory: RecurrentMemory, target: Tensor) -> tuple[Tensor, list, list]:
        """Readouts, and weights and states step by step. Products that do not need the state are outside the loop."""
        embedded = self.embed(target)
        read, cell = embedded.shape[-1], self.cell
        of_word, more = (
            columns(cell.weight_ih, first, last, rows=target.numel()) for first, last in ((0, read), (read, None))
        )
        words = F.linear(embedded, of_word, cell.bias_ih)  # (B, T, G)
        outputs, cross, states = self.unfold(memory, words, more)
        return self.readout(outputs, embedded), cross, states

    def walk(self, memory: RecurrentMemory) -> Walk:
        """All its steps, one after the other."""
        return RecurrentWalk(self, memory)


class RecurrentWalk(Walk):
    """Keeps all states, so that it can go back, and reads several tokens at once like `Recurrent.follow`."""

    goes_back = True
    _network: Recurrent
    _memory: RecurrentMemory

    def __init__(self, network: Recurrent, memory: RecurrentMemory):
        super().__init__(network, memory)
        self._states = [memory.state]

    def __call__(self, tokens: Tensor) -> Tensor:
        if tokens.shape[1] == 1:
            logits = self._step(tokens[:, 0])
            self._states.append(self._state)
            return logits.unsqueeze(1)
        readouts, cross, states = self._network.follow(self._memory._replace(state=self._state), tokens)
        self._cross += cross
        self._decoder += [()] * len(states)
        self._states += states
        self._state = states[-1]
        return self._network.logits(readouts)

    def forget(self, count: int) -> None:
        for steps in (self._states, self._cross, self._decoder):
            del steps[len(steps) - count :]
        self._state = self._states[-1]
