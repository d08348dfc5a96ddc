"""Recurrent translators: a bidirectional encoder, and decoders that attend before or after they step.

Bahdanau et al. 2015 attend with the *previous* state s_{t-1} and then step; Luong et al. 2015 step and then attend
with the *current* state s_t. That order is the mechanism: a score function swapped into the other's decoder is
neither. Letters: B batch, T target positions, S source positions, E embedding width, W state width, V vocabulary.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from attnviz.attention import Additive, Attention, General
from attnviz.dropout import Dropout


class Memory(NamedTuple):
    """What the encoder leaves for the decoder."""

    values: Tensor  # (B, S, 2W) annotations: forward and backward states, laid end to end
    prepared: Tensor  # (B, S, ...) the annotations as the score function wants them
    mask: Tensor | None  # (B, 1, S) True = visible; None when nothing is padded
    state: tuple  # the decoder's state before its first step
    maps: tuple = ()  # encoder self-attention: none here


class Step(NamedTuple):
    """One target position."""

    logits: Tensor  # (B, V)
    state: tuple
    cross: tuple  # (B, H, S) of each layer; one layer, one head here
    decoder: tuple = ()  # decoder self-attention: none here


class Encoder(nn.Module):
    """Bidirectional GRU; padded positions are never read, so a batch gives what each sentence gives alone."""

    def __init__(self, embedding_width: int, width: int):
        super().__init__()
        self.rnn = nn.GRU(embedding_width, width, batch_first=True, bidirectional=True)

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
    """What both decoders share: embeddings, encoder, and the loop over target positions.

    The source, target and output embeddings are one matrix: the vocabulary is joint (Press & Wolf 2017).
    """

    def __init__(self, vocabulary: int, width: int, embedding_width: int, dropout: float, attention: Attention):
        super().__init__()
        self.embedding = nn.Embedding(vocabulary, embedding_width)
        nn.init.normal_(self.embedding.weight, std=embedding_width**-0.5)
        self.encoder = Encoder(embedding_width, width)
        self.start = nn.Linear(width, width)
        self.attention = attention
        self.output_bias = nn.Parameter(torch.zeros(vocabulary))
        self.dropout = Dropout(dropout)

    def embed(self, tokens: Tensor) -> Tensor:
        """tokens (...) -> (..., E), scaled so that the tied output matrix keeps a small variance."""
        return self.dropout(self.embedding(tokens) * self.embedding.embedding_dim**0.5)

    def logits(self, readout: Tensor) -> Tensor:
        """readout (..., E) -> (..., V)."""
        return nn.functional.linear(self.dropout(readout), self.embedding.weight, self.output_bias)

    def encode(self, source: Tensor, mask: Tensor | None = None) -> Memory:
        """source (B, S) token ids, mask (B, S) True = a real token -> Memory."""
        annotations, _, backward = self.encoder(self.embed(source), mask)
        annotations = self.dropout(annotations)
        state = self.initial(torch.tanh(self.start(backward)))  # Bahdanau et al. 2015, A.2.2
        visible = None if mask is None else mask.unsqueeze(1)
        return Memory(annotations, self.attention.prepare(annotations), visible, state)

    def step(self, memory: Memory, state: tuple, token: Tensor) -> Step:
        """state, token (B,) the token before this position -> Step."""
        embedded = self.embed(token)
        found, state, weights = self.advance(memory, state, embedded)
        return Step(self.logits(self.readout(found, embedded)), state, (weights,))

    def forward(self, source: Tensor, target: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor]:
        """source (B, S), target inputs (B, T) from <bos> on, mask (B, S) -> logits (B, T, V), weights (B, T, S)."""
        memory = self.encode(source, mask)
        embedded = self.embed(target)
        state, found, weights = memory.state, [], []
        for word in embedded.unbind(1):
            here, state, row = self.advance(memory, state, word)
            found.append(here)
            weights.append(row)
        readout = self.readout(torch.stack(found, dim=1), embedded)  # needs no loop: once for all positions
        return self.logits(readout), torch.cat(weights, dim=1)


class Bahdanau(Recurrent):
    """Additive attention that looks first and steps second. Bahdanau et al. 2015, sec. 3 and appendix A.

    e_tj = v . tanh(W s_{t-1} + U h_j)      c_t = sum_j a_tj h_j
    s_t  = GRU([y_{t-1}; c_t], s_{t-1})     p(y_t) from maxout(U_o s_t + V_o y_{t-1} + C_o c_t), eq. 4
    """

    def __init__(self, vocabulary: int, width: int = 256, embedding_width: int = 256, dropout: float = 0.0,
                 attention_dropout: float = 0.0):
        attention = Additive(width, 2 * width, width, attention_dropout)
        super().__init__(vocabulary, width, embedding_width, dropout, attention)
        self.cell = nn.GRUCell(embedding_width + 2 * width, width)
        self.deep = nn.Linear(3 * width + embedding_width, 2 * embedding_width)  # U_o, C_o, V_o

    def initial(self, state: Tensor) -> tuple:
        return (state,)

    def advance(self, memory: Memory, state: tuple, embedded: Tensor):
        """state (s_{t-1},), embedded y_{t-1} (B, E) -> [s_t; c_t] (B, 3W), state (s_t,), weights (B, 1, S)."""
        (previous,) = state
        context, weights = self.attention.read(previous.unsqueeze(1), memory.prepared, memory.values, memory.mask)
        context = context.squeeze(1)
        current = self.cell(torch.cat([embedded, context], dim=-1), previous)
        return torch.cat([current, context], dim=-1), (current,), weights

    def readout(self, found: Tensor, embedded: Tensor) -> Tensor:
        """[s_t; c_t] (..., 3W), y_{t-1} (..., E) -> maxout over pairs (..., E), A.2.2.

        A.2.2 prints s_{i-1} here, where eq. 4 has s_i; eq. 4 is followed. The GRU is torch's, which applies the reset
        gate r to the product, r * (U s), where A.1.1 has U (r * s).
        """
        return self.deep(torch.cat([found, embedded], dim=-1)).unflatten(-1, (-1, 2)).amax(dim=-1)


class LuongGeneral(Recurrent):
    """Global attention that steps first and looks second, with input feeding. Luong et al. 2015, sec. 3.1 and 3.3.

    s_t = GRU([y_{t-1}; h~_{t-1}], s_{t-1})     a_tj = softmax_j(s_t . W h_j)     h~_t = tanh(W_c [c_t; s_t]), eq. 5
    """

    def __init__(self, vocabulary: int, width: int = 256, embedding_width: int = 256, dropout: float = 0.0,
                 attention_dropout: float = 0.0):
        super().__init__(vocabulary, width, embedding_width, dropout, General(width, 2 * width, attention_dropout))
        self.cell = nn.GRUCell(2 * embedding_width, width)
        self.attentional = nn.Linear(3 * width, embedding_width, bias=False)

    def initial(self, state: Tensor) -> tuple:
        return state, state.new_zeros(state.shape[0], self.embedding.embedding_dim)

    def advance(self, memory: Memory, state: tuple, embedded: Tensor):
        """state (s_{t-1}, h~_{t-1}), embedded y_{t-1} (B, E) -> h~_t (B, E), state (s_t, h~_t), weights."""
        previous, fed = state
        current = self.cell(torch.cat([embedded, fed], dim=-1), previous)
        context, weights = self.attention.read(current.unsqueeze(1), memory.prepared, memory.values, memory.mask)
        vector = torch.tanh(self.attentional(torch.cat([context.squeeze(1), current], dim=-1)))
        return vector, (current, vector), weights

    def readout(self, found: Tensor, embedded: Tensor) -> Tensor:
        """h~_t goes to the output as it is, eq. 6."""
        return found
