"""The recurrences of encoders and decoders: torch's GRU and LSTM, with states in tuples.

A decoder's cell reads the word before and another vector, joined. For a forced target, the products with its words (and
everything else that needs no state) are computed for all positions at once; `follow` does the rest of a step.
Letters: B batch, W state width, G the gates' width: 3W for a GRU, 4W for an LSTM.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class GRUCell(nn.GRUCell):
    """torch's, with its state in a tuple: (h,), as LSTMCell has (h, c)."""

    def forward(self, x: Tensor, state: tuple) -> tuple:
        return (super().forward(x, state[0]),)

    def follow(self, read: Tensor, state: tuple) -> tuple:
        """read (B, G), which is W_ih x + b_ih, and the state before -> the state after."""
        reset, update, new = read.chunk(3, dim=-1)
        of_reset, of_update, of_new = F.linear(state[0], self.weight_hh, self.bias_hh).chunk(3, dim=-1)
        new = torch.tanh(new + torch.sigmoid(reset + of_reset) * of_new)
        return (torch.lerp(new, state[0], torch.sigmoid(update + of_update)),)


class LSTMCell(nn.LSTMCell):
    """torch's, with `follow`."""

    def follow(self, read: Tensor, state: tuple) -> tuple:
        """read (B, G), which is W_ih x + b_ih, and the state before, (h, c) -> the state after."""
        gates = read + F.linear(state[0], self.weight_hh, self.bias_hh)
        enter, keep, new, leave = gates.chunk(4, dim=-1)
        cell = torch.sigmoid(keep) * state[1] + torch.sigmoid(enter) * torch.tanh(new)
        return torch.sigmoid(leave) * torch.tanh(cell), cell


class LSTM(nn.LSTM):
    """torch's, which gives the last h alone, as GRU does."""

    def forward(self, x):
        outputs, (last, _) = super().forward(x)
        return outputs, last


class Cell(NamedTuple):
    """A kind of recurrence.

    torch's GRU applies the reset gate r to the product, r * (U s); the papers have U (r * s).
    """

    encoder: type
    decoder: type
    parts: int  # tensors (B, W) in a state; the first is what others read


CELLS = {"gru": Cell(nn.GRU, GRUCell, 1), "lstm": Cell(LSTM, LSTMCell, 2)}
