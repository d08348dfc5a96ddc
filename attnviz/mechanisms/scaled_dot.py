"""Dot products divided by the root of their width, in Luong's decoder."""

from attnviz.mechanisms import STATES, Mechanism

SCALED_DOT = Mechanism(
    name="scaled-dot",
    title="Scaled dot · recurrent",
    formula=r"e_{tj} = s_t^\top h_j / \sqrt{d}",
    paper="Vaswani et al. 2017, eq. 1, in the decoder of Luong, Pham & Manning 2015",
    words="The decoder first makes its new state s. The score of each source token is the dot product of s and the "
    "token's encoder state h, divided by the square root of their width d, so that the softmax does not saturate. "
    "h is the sum of the encoder's two directions, so that s and h have the same width.",
    terms=r"\sum_i s_{t,i} \, h_{j,i} / \sqrt{d}",
    letters=f"{STATES}; d is the width of both; i counts dimensions",
    asks="after",
    score="attnviz.attention:ScaledDot",
    summed=True,
    color="ink",
    dash="8px,2px,2px,2px",
    marker="cross",
    rank=6,
)
