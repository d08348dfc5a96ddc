"""The general score in a window around a place that the decoder predicts."""

from attnviz.mechanisms import RECURRENT, STATES, Mechanism

LUONG_LOCAL = Mechanism(
    name="luong-local",
    title="Luong · local",
    formula=r"\begin{aligned} &a_{tj} \propto \exp\!\left(s_t^\top W h_j - \tfrac{(j - p_t)^2}{2 (D/2)^2}\right) \\"
    r" &|j - p_t| \le D \\ &p_t = S\,\mathrm{sigmoid}(v_p^\top \tanh(W_p s_t)) \end{aligned}",
    paper="Luong, Pham & Manning 2015, section 3.2, eq. 9 and 10",
    words="The decoder's new state s predicts a position p in the source. Only the D tokens on either side of p get "
    "weight: the general score, with a learned matrix W, and a Gaussian that favours tokens near p.",
    local=True,
    terms=r"\sum_i s_{t,i} \, (W h_j)_i + \ln g_j",
    letters=f"{STATES}; W is learnt; i counts dimensions; g is the Gaussian of the window",
    asks="after",
    score="attnviz.attention:Local",
    # At the full learning rate the bilinear score saturates. A key outside the window gives no gradient that would move
    # the window to it, so the predicted place must not move before the decoder's state says where it is.
    training=RECURRENT
    | {
        "rates": {
            "attention.key.weight": 0.1,
            "attention.hidden.weight": 0.03,
            "attention.place.weight": 0.03,
        }
    },
    color="violet",
    dash="5px,2px",
    marker="star",
    rank=5,
)
