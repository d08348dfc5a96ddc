"""A learned bilinear form; the query is the decoder's state after the step."""

from attnviz.mechanisms import RECURRENT, STATES, Mechanism

LUONG_GENERAL = Mechanism(
    name="luong-general",
    title="Luong · general",
    formula=r"e_{tj} = s_t^\top W h_j",
    paper="Luong, Pham & Manning 2015, section 3.1",
    words="The decoder first makes its new state s. The score of each source token is the product of s, a learned "
    "matrix W and the token's encoder state h. Softmax over the tokens j gives the weights.",
    terms=r"\sum_i s_{t,i} \, (W h_j)_i",
    letters=f"{STATES}; W is learnt; i counts dimensions",
    asks="after",
    score="attnviz.attention:General",
    # At the full learning rate the bilinear score saturates within one epoch: all weights become 0 or 1, and little is
    # learnt.
    training=RECURRENT | {"rates": {"attention.key.weight": 0.1}},
    training_on={"reverse": {"epochs": 8, "learning_rate": 2e-3}},
    color="orange",
    dash="dash",
    marker="diamond",
    rank=3,
)
