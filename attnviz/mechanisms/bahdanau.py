"""Additive attention; the query is the decoder's state before the step."""

from attnviz.mechanisms import STATES, Mechanism

BAHDANAU = Mechanism(
    name="bahdanau",
    title="Bahdanau · additive",
    formula=r"e_{tj} = v^\top \tanh(W s_{t-1} + U h_j)",
    paper="Bahdanau, Cho & Bengio 2015, appendix A.1.2",
    words="A small network compares the decoder's previous state s with the encoder's state h of each source token. "
    "Softmax over the tokens j gives the weights.",
    terms=r"\sum_i v_i \tanh(W s_{t-1} + U h_j)_i",
    letters=f"{STATES}; W, U and v are learnt; i counts hidden units",
    asks="before",
    score="attnviz.attention:Additive",
    # At a higher rate it learns as well, but attends to the neighbour of the letter that it produces.
    training_on={"reverse": {"epochs": 6, "learning_rate": 5e-4}},
    color="blue",
    dash="solid",
    marker="circle",
    rank=1,
)
