"""Bahdanau's small network; the query is the decoder's state after the step."""

from attnviz.mechanisms import STATES, Mechanism

LUONG_CONCAT = Mechanism(
    name="luong-concat",
    title="Luong · concat",
    formula=r"e_{tj} = v^\top \tanh(W [s_t; h_j])",
    paper="Luong, Pham & Manning 2015, section 3.1",
    words="A small network as in Bahdanau's attention, but it reads the decoder's new state s, joined with the "
    "encoder's state h of each source token. Softmax over the tokens j gives the weights.",
    terms=r"\sum_i v_i \tanh(W [s_t; h_j])_i",
    letters=f"{STATES}; [s; h] is both, one after the other; W and v are learnt; i counts hidden units",
    asks="after",
    score="attnviz.attention:Concat",
    color="brown",
    dash="longdashdot",
    marker="x",
    rank=4,
)
