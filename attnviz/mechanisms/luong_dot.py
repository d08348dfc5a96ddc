"""Dot products; the query is the decoder's state after the step."""

from attnviz.mechanisms import RECURRENT, STATES, Mechanism

# The dot product saturates once the GRU units do: all weights become 0 or 1, and little is learnt. So the input weights
# of the GRUs learn more slowly.
_INPUTS = ("encoder.rnn.weight_ih_l0", "encoder.rnn.weight_ih_l0_reverse", "cell.weight_ih")
LUONG_DOT = Mechanism(
    name="luong-dot",
    title="Luong · dot",
    formula=r"e_{tj} = s_t^\top h_j",
    paper="Luong, Pham & Manning 2015, section 3.1",
    words="The decoder first makes its new state s. The score of each source token is the dot product of s and the "
    "token's encoder state h, without parameters. Softmax over the tokens j gives the weights. h is the sum of the "
    "encoder's two directions, so that s and h have the same width.",
    terms=r"\sum_i s_{t,i} \, h_{j,i}",
    letters=f"{STATES}; i counts dimensions",
    asks="after",
    score="attnviz.attention:Dot",
    summed=True,
    start="attnviz.networks.decoders:smaller_states",
    training=RECURRENT | {"rates": dict.fromkeys(_INPUTS, 0.2)},
    color="pink",
    dash="longdash",
    marker="triangle-up",
    rank=2,
)
