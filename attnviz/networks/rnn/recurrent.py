"""Recurrent translators: a bidirectional encoder, and decoders that read one fixed context or attend before they step.

Cho et al. 2014 give the decoder the same summary of the sentence at every step. Bahdanau et al. 2015 attend with the
*previous* state s_{t-1} instead, and then step; Luong et al. 2015 (luong.py) step and then attend with the *current*
state s_t. That order is the mechanism: a score function swapped into the other's decoder is neither.
Letters: B batch, T target positions, S source positions, E embedding width, W state width, V vocabulary.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnviz.attention import Additive, Attention, Reweigh
from attnviz.networks.decode import DecoderStep
from attnviz.networks.dropout import Dropout
from attnviz.networks.rnn.cells import CELLS, Cell


class RecurrentMemory(NamedTuple):
    """What the encoder leaves for the decoder."""

    # (B, S, 2W) annotations: forward and backward states, concatenated; (B, S, W) summed; (B, 2W) a fixed context
    values: Tensor
    prepared: Tensor | None  # (B, S, ...) the annotations as the score function wants them; None without attention
    mask: Tensor | None  # (B, 1, S) True = visible; None when nothing is padded
    state: tuple  # the decoder's state before its first step
    maps: tuple = ()  # encoder self-attention: none here


class Encoder(nn.Module):
    """Bidirectional; padded positions are never read, so a batch gives what each sentence gives alone."""

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


class Recurrent(nn.Module):
    """What all decoders share: embeddings, encoder, and the loop over target positions.

    A decoder says how it goes from one position to the next (`advance`) and what it reads its words from (`readout`);
    one that attends has an `attention`. The source, target and output embeddings are one matrix: the vocabulary is
    joint (Press & Wolf 2017).

    summary : width of what the first state is made from. extra : width of what the decoder's cell reads beside the word
    before. cell : gru or lstm, of encoder and decoder.
    """

    attention: Attention

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

    def embed(self, tokens: Tensor) -> Tensor:
        """tokens (...) -> (..., E), scaled so that the tied output matrix keeps a small variance."""
        return self.scale(self.embedding(tokens))

    def scale(self, vectors: Tensor) -> Tensor:
        """Rows of the embedding (..., E) as encoder and decoder read them."""
        return self.dropout(vectors * self.embedding.embedding_dim**0.5)

    def logits(self, readout: Tensor) -> Tensor:
        """readout (..., E) -> (..., V)."""
        return nn.functional.linear(self.dropout(readout), self.embedding.weight, self.output_bias)

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
        """The encoder's states (B, S, 2W) -> annotations to read, and the same as the score function wants them."""
        annotations = self.dropout(directions)
        return annotations, self.attention.prepare(annotations)

    def step(
        self, memory: RecurrentMemory, state: tuple, token: Tensor, reweigh: Sequence = (None,), project: bool = True
    ) -> DecoderStep:
        """state, token (B,) the token before this position -> DecoderStep. reweigh : changes the weights of the one
        layer. project : False leaves the logits out."""
        embedded = self.embed(token)
        outputs, state, cross = self.advance(memory, state, embedded, reweigh[0])
        readout = self.readout(outputs, embedded)
        return DecoderStep(self.logits(readout) if project else None, state, cross, readout=readout)

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """source (B, S), target inputs (B, T) from <bos> on, mask (B, S) -> logits (B, T, V), weights (B, T, S).

        None for the weights where there is no attention.
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
        """target inputs (B, T) from <bos> on -> readouts (B, T, E), cross weights (B, 1, T, S) of each layer, and () of
        none: what `step` gives position by position, in evaluation mode."""
        readouts, cross = self._force(memory, target)
        weights = tuple(torch.stack(layer, dim=2) for layer in zip(*cross))
        return readouts, weights, ()

    def readouts(self, memory: RecurrentMemory, target: Tensor) -> Tensor:
        """target inputs (B, T) from <bos> on -> what logits are made of (B, T, E)."""
        return self._force(memory, target)[0]

    def _force(self, memory: RecurrentMemory, target: Tensor) -> tuple[Tensor, list]:
        """Readouts, and weights step by step. Every product that needs no state is outside the loop."""
        embedded = self.embed(target)
        read, cell = embedded.shape[-1], self.cell
        words = nn.functional.linear(embedded, cell.weight_ih[:, :read].contiguous(), cell.bias_ih)  # (B, T, G)
        outputs, cross = self.unfold(memory, words, cell.weight_ih[:, read:].contiguous())
        return self.readout(outputs, embedded), cross


class DeepOutput(Recurrent):
    """A decoder that steps with a context, and reads its words from state, context and the word before through maxout.

    s_t = GRU([y_{t-1}; c_t], s_{t-1})     p(y_t) from maxout(U_o s_t + V_o y_{t-1} + C_o c_t)

    Cho et al. 2014, A.1.2; Bahdanau et al. 2015, eq. 4 and A.2. Where c_t comes from (`look`) is what tells them apart.
    """

    def __init__(self, vocabulary: int, width: int, embedding_width: int, dropout: float, cell: str, summary: int):
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary, extra=2 * width)
        self.deep = nn.Linear(3 * width + embedding_width, 2 * embedding_width)  # U_o, C_o, V_o

    def advance(self, memory: RecurrentMemory, state: tuple, embedded: Tensor, reweigh: Reweigh | None = None):
        """state s_{t-1}, embedded y_{t-1} (B, E) -> [s_t; c_t] (B, 3W), state s_t, weights (B, 1, S) or none."""
        context, cross = self.look(memory, state[0], reweigh)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        return torch.cat([state[0], context], dim=-1), state, cross

    def unfold(self, memory: RecurrentMemory, words: Tensor, more: Tensor) -> tuple[Tensor, list]:
        """words (B, T, G) as the cell reads them, more (G, 2W) for what it reads of c_t -> [s_t; c_t] (B, T, 3W),
        weights.

        W_c c_t = W_c sum_j a_tj h_j = sum_j a_tj (W_c h_j): the products with the annotations come first.
        """
        through = memory._replace(values=nn.functional.linear(memory.values, more))
        state, states, cross = memory.state, [], []
        for word in words.unbind(1):
            context, rows = self.look(through, state[0])
            state = self.cell.follow(word + context, state)
            states.append(state[0])
            cross.append(rows)
        weights = [torch.cat(layer, dim=1) for layer in zip(*cross)]
        contexts = weights[0] @ memory.values if weights else memory.values.unsqueeze(1).expand(-1, len(states), -1)
        return torch.cat([torch.stack(states, dim=1), contexts], dim=-1), cross

    def readout(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """[s_t; c_t] (..., 3W), y_{t-1} (..., E) -> maxout over pairs (..., E).

        Bahdanau et al. print s_{i-1} in A.2.2, where their eq. 4 and Cho et al. have s_i; the latter is followed.
        """
        return self.deep(torch.cat([outputs, embedded], dim=-1)).unflatten(-1, (-1, 2)).amax(dim=-1)


class FixedContext(DeepOutput):
    """No attention: one context, made from the encoder's last states, at every step. Cho et al. 2014, sec. 2.2, A.1.

    c = tanh(V [forward_S; backward_1])     s_0 = tanh(V' c)     c_t = c

    Their encoder reads in one direction, c = tanh(V h_N). Here the encoder is bidirectional, as in the other
    mechanisms, and c has the width of Bahdanau's c_t. So only attention differs.
    """

    def __init__(
        self, vocabulary: int, width: int = 256, embedding_width: int = 256, dropout: float = 0.0, cell: str = "gru"
    ):
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary=2 * width)
        self.summary = nn.Linear(2 * width, 2 * width)  # V

    def encode_vectors(self, vectors: Tensor, mask: Tensor | None = None) -> RecurrentMemory:
        """As in the other decoders, but the RecurrentMemory's values are c (B, 2W)."""
        _, forward, backward = self.encoder(self.scale(vectors), mask)
        context = torch.tanh(self.summary(torch.cat([forward, backward], dim=-1)))
        return RecurrentMemory(self.dropout(context), None, None, self.first(context))

    def look(self, memory: RecurrentMemory, previous: Tensor, reweigh: Reweigh | None = None) -> tuple[Tensor, tuple]:
        """-> c (B, 2W), whatever the state, and no weights, so nothing to reweigh."""
        return memory.values, ()


class Bahdanau(DeepOutput):
    """Additive attention that looks first and steps second. Bahdanau et al. 2015, sec. 3 and appendix A.

    e_tj = v . tanh(W s_{t-1} + U h_j)      c_t = sum_j a_tj h_j
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 256,
        embedding_width: int = 256,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        cell: str = "gru",
    ):
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary=width)
        self.attention = Additive(width, 2 * width, width, attention_dropout)

    def look(self, memory: RecurrentMemory, previous: Tensor, reweigh: Reweigh | None = None) -> tuple[Tensor, tuple]:
        """s_{t-1} (B, W) -> c_t (B, 2W), weights (B, 1, S)."""
        query = previous.unsqueeze(1)
        context, weights = self.attention.read(query, memory.prepared, memory.values, memory.mask, reweigh)
        return context.squeeze(1), (weights,)
