"""The decoders of recurrent translators: one fixed context, attention before the step, attention after it.

Cho et al. 2014 give the decoder the same summary of the sentence at every step. Bahdanau et al. 2015 attend with the
*previous* state s_{t-1} and then step. Luong et al. 2015 step and then attend with the *current* state s_t. That order
is the mechanism: a score function swapped into the other's decoder is neither.
Letters: B batch, T target positions, S source positions, E embedding width, W state width, C annotation width, V
vocabulary, G the gates' width.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import Attention, Reweigh
from attnviz.networks.cpu import columns
from attnviz.networks.recurrent import Recurrent, RecurrentMemory

# (query width, key width, state width, dropout of the weights) -> the score; made in registry.py.
Score = Callable[[int, int, int, float], Attention]


class DeepOutput(Recurrent):
    """A decoder that steps with a context, and predicts words from state, context and previous word through maxout.

    s_t = GRU([y_{t-1}; c_t], s_{t-1})     p(y_t) from maxout(U_o s_t + V_o y_{t-1} + C_o c_t)

    Cho et al. 2014, A.1.2; Bahdanau et al. 2015, eq. 4 and A.2. The subclasses differ in the source of c_t (`look`).
    context : the width of c_t.
    """

    def __init__(
        self, vocabulary: int, width: int, embedding_width: int, dropout: float, cell: str, summary: int, context: int
    ):
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary, extra=context)
        self.deep = nn.Linear(width + context + embedding_width, 2 * embedding_width)  # U_o, C_o, V_o

    def look(self, memory: RecurrentMemory, previous: Tensor, reweigh: Reweigh = None) -> tuple[Tensor, tuple]:
        """s_{t-1} (B, W) -> c_t (B, C), weights (B, 1, S) or none."""
        raise TypeError(f"{type(self).__name__} must define look()")

    def advance(self, memory, state, embedded, reweigh=None):
        """state s_{t-1}, embedded y_{t-1} (B, E) -> [s_t; c_t] (B, W + C), state s_t, weights (B, 1, S) or none."""
        context, cross = self.look(memory, state[0], reweigh)
        state = self.cell(torch.cat([embedded, context], dim=-1), state)
        return torch.cat([state[0], context], dim=-1), state, cross

    def unfold(self, memory: RecurrentMemory, words: Tensor, more: Tensor) -> tuple[Tensor, list, list]:
        """words (B, T, G) multiplied by the cell's input weights, more (G, C) the input weights of c_t -> [s_t; c_t]
        (B, T, W + C), weights, states.

        W_c c_t = W_c sum_j a_tj h_j = sum_j a_tj (W_c h_j): the products with the annotations come first.
        """
        through = memory._replace(values=F.linear(memory.values, more))
        state, states, cross = memory.state, [], []
        for word in words.unbind(1):
            context, rows = self.look(through, state[0])
            state = self.cell.follow(word + context, state)
            states.append(state)
            cross.append(rows)
        weights = [torch.cat(layer, dim=1) for layer in zip(*cross)]
        contexts = weights[0] @ memory.values if weights else memory.values.unsqueeze(1).expand(-1, len(states), -1)
        after = torch.stack([state[0] for state in states], dim=1)
        return torch.cat([after, contexts], dim=-1), cross, states

    def readout(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """[s_t; c_t] (..., W + C), y_{t-1} (..., E) -> maxout over pairs (..., E).

        Bahdanau et al. print s_{i-1} in A.2.2, where their eq. 4 and Cho et al. have s_i, which is used here.
        """
        pairs = self.deep(torch.cat([outputs, embedded], dim=-1))
        return pairs.view(*pairs.shape[:-1], -1, 2).amax(dim=-1)


class FixedContext(DeepOutput):
    """No attention: one context, made from the encoder's last states, at every step. Cho et al. 2014, sec. 2.2, A.1.

    c = tanh(V [forward_S; backward_1])     s_0 = tanh(V' c)     c_t = c

    Their encoder reads in one direction, c = tanh(V h_N). Here the encoder is bidirectional, as in the other
    mechanisms, and c has the width of Bahdanau's c_t. So only attention differs.
    """

    def __init__(
        self, vocabulary: int, width: int = 256, embedding_width: int = 256, dropout: float = 0.0, cell: str = "gru"
    ):
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary=2 * width, context=2 * width)
        self.summary = nn.Linear(2 * width, 2 * width)  # V

    def encode_vectors(self, vectors: Tensor, mask: Tensor | None = None) -> RecurrentMemory:
        """As in the other decoders, but the RecurrentMemory's values are c (B, 2W)."""
        _, forward, backward = self.encoder(self.scale(vectors), mask)
        context = torch.tanh(self.summary(torch.cat([forward, backward], dim=-1)))
        values = self.dropout(context)
        return RecurrentMemory(values, values, None, self.first(context))

    def look(self, memory: RecurrentMemory, previous: Tensor, reweigh: Reweigh = None) -> tuple[Tensor, tuple]:
        """-> c (B, 2W), independent of the state; there are no weights to reweigh."""
        return memory.values, ()


class Bahdanau(DeepOutput):
    """Attention before the decoder's step. Bahdanau et al. 2015, sec. 3 and appendix A.

    a_tj = softmax_j(score(s_{t-1}, h_j))      c_t = sum_j a_tj h_j
    """

    def __init__(
        self,
        vocabulary: int,
        score: Score,
        summed: bool = False,
        width: int = 256,
        embedding_width: int = 256,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        cell: str = "gru",
    ):
        annotation_width = width if summed else 2 * width
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary=width, context=annotation_width)
        self.summed = summed
        self.attention = score(width, annotation_width, width, attention_dropout)

    def look(self, memory: RecurrentMemory, previous: Tensor, reweigh: Reweigh = None) -> tuple[Tensor, tuple]:
        """s_{t-1} (B, W) -> c_t (B, C), weights (B, 1, S)."""
        query = previous.unsqueeze(1)
        context, weights = self.attention.read(query, memory.prepared, memory.values, memory.mask, reweigh)
        return context.squeeze(1), (weights,)


class Luong(Recurrent):
    """Attention after the decoder's step, with input feeding. Luong et al. 2015, sec. 3.1 and 3.3.

    s_t = GRU([y_{t-1}; h~_{t-1}], s_{t-1})     a_tj = softmax_j(score(s_t, h_j))     h~_t = tanh(W_c [c_t; s_t]), eq. 5
    """

    def __init__(
        self,
        vocabulary: int,
        score: Score,
        summed: bool = False,
        width: int = 256,
        embedding_width: int = 256,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        cell: str = "gru",
    ):
        annotation_width = width if summed else 2 * width
        attention = score(width, annotation_width, width, attention_dropout)
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary=width, extra=embedding_width)
        self.summed = summed
        self.attention = attention
        self.attentional = nn.Linear(annotation_width + width, embedding_width, bias=False)

    def annotate(self, directions: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's states (B, S, 2W) -> annotations to read, and the same for the score, without dropout.

        Dropout noise, summed over the width, would favour rows with all weight on one key.
        """
        annotations = self.join(directions)
        return self.dropout(annotations), self.attention.prepare(annotations)

    def first(self, summary: Tensor) -> tuple:
        """s_0 as in the other decoders, and an h~_0 of zeros: nothing has been attended to."""
        return *super().first(summary), summary.new_zeros(summary.shape[0], self.embedding.embedding_dim)

    def advance(self, memory, state, embedded, reweigh=None):
        """state (s_{t-1}, h~_{t-1}), embedded y_{t-1} (B, E) -> h~_t (B, E), state (s_t, h~_t), weights (B, 1, S).

        With an LSTM the state is (s, its c, h~).
        """
        *previous, fed = state
        current = self.cell(torch.cat([embedded, fed], dim=-1), tuple(previous))
        query = current[0].unsqueeze(1)
        context, weights = self.attention.read(query, memory.prepared, memory.values, memory.mask, reweigh)
        vector = torch.tanh(self.attentional(torch.cat([context.squeeze(1), current[0]], dim=-1)))
        return vector, (*current, vector), (weights,)

    def unfold(self, memory: RecurrentMemory, words: Tensor, more: Tensor) -> tuple[Tensor, list, list]:
        """words (B, T, G) times the cell's input weights, more (G, E) the input weights of h~_{t-1} -> h~_t (B, T, E),
        weights, states.

        W_c [c_t; s_t] = sum_j a_tj (W h_j) + W' s_t: the products with the annotations come first.
        """
        width, weight = memory.values.shape[-1], self.attentional.weight
        values = F.linear(memory.values, columns(weight, 0, width, rows=len(memory.values) * memory.values.shape[1]))
        of_state = weight[:, width:]
        *state, fed = memory.state
        states, cross = [], []
        for word in words.unbind(1):
            state = self.cell.follow(word + F.linear(fed, more), state)
            context, rows = self.attention.read(state[0].unsqueeze(1), memory.prepared, values, memory.mask)
            fed = torch.tanh(context.squeeze(1) + F.linear(state[0], of_state))
            states.append((*state, fed))
            cross.append((rows,))
        return torch.stack([fed for *_, fed in states], dim=1), cross, states

    def readout(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """h~_t itself is the readout, eq. 6."""
        return outputs


def smaller_states(network: Luong) -> None:
    """Scale the initial states and annotations of a new network down by width^(1/4), and so their products by
    sqrt(width).

    Otherwise dot products saturate the softmax before anything is learnt: at width 256 half the
    weight of 16 keys is on one.
    """
    with torch.no_grad():
        for name, parameter in [*network.encoder.rnn.named_parameters(), *network.cell.named_parameters()]:
            if "weight_hh" not in name:
                parameter.mul_(network.cell.hidden_size**-0.25)
