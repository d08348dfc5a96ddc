"""Luong et al. 2015: recurrent translators that step first and look second, one class for each score.

Letters: B batch, S source positions, E embedding width, W state width, V vocabulary; the encoder is recurrent.py's.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from attnviz.attention import Attention, Concat, Dot, General, Local, Reweigh, ScaledDot
from attnviz.networks.rnn.recurrent import RecurrentMemory, Recurrent


class Luong(Recurrent):
    """Attention that steps first and looks second, with input feeding. Luong et al. 2015, sec. 3.1 and 3.3.

    s_t = GRU([y_{t-1}; h~_{t-1}], s_{t-1})     a_tj = softmax_j(score(s_t, h_j))     h~_t = tanh(W_c [c_t; s_t]), eq. 5

    attention : the score, for queries of `width` and annotations as keys.
    """

    def __init__(
        self, vocabulary: int, attention: Attention, width: int, embedding_width: int, dropout: float, cell: str
    ):
        super().__init__(vocabulary, width, embedding_width, dropout, cell, summary=width, extra=embedding_width)
        self.attention = attention
        self.attentional = nn.Linear(self.annotation_width(width) + width, embedding_width, bias=False)

    @staticmethod
    def annotation_width(width: int) -> int:
        """Of an annotation: both directions of the encoder, concatenated."""
        return 2 * width

    @staticmethod
    def join(directions: Tensor) -> Tensor:
        """The encoder's states (B, S, 2W) -> annotations (B, S, annotation_width)."""
        return directions

    def annotate(self, directions: Tensor) -> tuple[Tensor, Tensor]:
        """The encoder's states (B, S, 2W) -> annotations to read, and the same for the score, without dropout.

        The noise of dropout, summed over the width, would favour rows with all the weight on one key.
        """
        annotations = self.join(directions)
        return self.dropout(annotations), self.attention.prepare(annotations)

    def first(self, summary: Tensor) -> tuple:
        """s_0 as in the other decoders, and an h~_0 of zeros: nothing has been attended to."""
        return *super().first(summary), summary.new_zeros(summary.shape[0], self.embedding.embedding_dim)

    def advance(self, memory: RecurrentMemory, state: tuple, embedded: Tensor, reweigh: Reweigh | None = None):
        """state (s_{t-1}, h~_{t-1}), embedded y_{t-1} (B, E) -> h~_t (B, E), state (s_t, h~_t), weights (B, 1, S).

        With an LSTM the state is (s, its c, h~).
        """
        *previous, fed = state
        current = self.cell(torch.cat([embedded, fed], dim=-1), tuple(previous))
        query = current[0].unsqueeze(1)
        context, weights = self.attention.read(query, memory.prepared, memory.values, memory.mask, reweigh)
        vector = torch.tanh(self.attentional(torch.cat([context.squeeze(1), current[0]], dim=-1)))
        return vector, (*current, vector), (weights,)

    def unfold(self, memory: RecurrentMemory, words: Tensor, more: Tensor) -> tuple[Tensor, list]:
        """words (B, T, G) as the cell reads them, more (G, E) for what it reads of h~_{t-1} -> h~_t (B, T, E), weights.

        W_c [c_t; s_t] = sum_j a_tj (W h_j) + W' s_t: the products with the annotations come first.
        """
        of_context, of_state = self.attentional.weight.split([memory.values.shape[-1], self.cell.hidden_size], dim=1)
        values = F.linear(memory.values, of_context.contiguous())
        *state, fed = memory.state
        vectors, cross = [], []
        for word in words.unbind(1):
            state = self.cell.follow(word + F.linear(fed, more), state)
            context, rows = self.attention.read(state[0].unsqueeze(1), memory.prepared, values, memory.mask)
            fed = torch.tanh(context.squeeze(1) + F.linear(state[0], of_state))
            vectors.append(fed)
            cross.append((rows,))
        return torch.stack(vectors, dim=1), cross

    def readout(self, outputs: Tensor, embedded: Tensor) -> Tensor:
        """h~_t goes to the output as it is, eq. 6."""
        return outputs


class Plain(Luong):
    """A Luong decoder whose score has no options of its own. A subclass returns the score from `score`."""

    def __init__(
        self,
        vocabulary: int,
        width: int = 256,
        embedding_width: int = 256,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        cell: str = "gru",
    ):
        super().__init__(vocabulary, self.score(width, attention_dropout), width, embedding_width, dropout, cell)
        self.begin(width)

    @staticmethod
    def score(width: int, dropout: float) -> Attention:
        """The score of a decoder of this width. dropout : of the weights."""
        raise TypeError("a subclass must say which score it has")

    def begin(self, width: int) -> None:
        """Change the weights with which training begins; by default they stay."""


class Product(Plain):
    """What dot and scaled dot share: a state meets an annotation without a matrix between, so both are of one width.

    h_j is therefore the sum of the encoder's two directions, not their concatenation.
    """

    @staticmethod
    def annotation_width(width: int) -> int:
        """Of an annotation: the sum of both directions."""
        return width

    @staticmethod
    def join(directions: Tensor) -> Tensor:
        return directions.unflatten(-1, (2, -1)).sum(dim=-2)


class LuongDot(Product):
    """s_t . h_j, sec. 3.1, *dot*.

    A sum of so many products saturates the softmax before anything is learnt (at width 256 half the weight of 16 keys
    is on one). So states and annotations begin smaller by width^(1/4) each, and their products by sqrt(width).
    """

    @staticmethod
    def score(width, dropout):
        return Dot(dropout)

    def begin(self, width):
        with torch.no_grad():
            for name, parameter in [*self.encoder.rnn.named_parameters(), *self.cell.named_parameters()]:
                if "weight_hh" not in name:
                    parameter.mul_(width**-0.25)


class LuongGeneral(Plain):
    """s_t . W h_j, sec. 3.1, *general*."""

    @staticmethod
    def score(width, dropout):
        return General(width, 2 * width, dropout)


class LuongConcat(Plain):
    """v . tanh(W [s_t; h_j]), sec. 3.1, *concat*: Bahdanau's score, asked with the state after the step."""

    @staticmethod
    def score(width, dropout):
        return Concat(width, 2 * width, width, dropout)


class ScaledDotRNN(Product):
    """s_t . h_j / sqrt(W), the score of Vaswani et al. 2017, eq. 1, in this decoder."""

    @staticmethod
    def score(width, dropout):
        return ScaledDot(dropout)


class LuongLocal(Luong):
    """*local-p*, sec. 3.2: the general score in a window of `reach` (the paper's D) either side of a predicted place.

    Rows are divided by their sum, which the paper does not do: see attention.Local.
    """

    def __init__(
        self,
        vocabulary: int,
        width: int = 256,
        embedding_width: int = 256,
        dropout: float = 0.0,
        attention_dropout: float = 0.0,
        cell: str = "gru",
        reach: float = 10,
    ):
        attention = Local(width, 2 * width, reach, attention_dropout)
        super().__init__(vocabulary, attention, width, embedding_width, dropout, cell)
