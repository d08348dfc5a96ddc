"""Multi-head attention: to the source, within the source, and within the target."""

from attnviz.mechanisms import Mechanism

TRANSFORMER = Mechanism(
    name="transformer",
    title="Transformer · multi-head",
    formula=r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right)",
    paper="Vaswani et al. 2017, eq. 1",
    words="Each row of Q is a query and each row of K a key. Their dot products, divided by the square root of a "
    "head's width d, go through softmax and become the weights. Every head of every layer does this at once.",
    kinds=("cross", "encoder", "decoder"),
    multi_head=True,
    terms=r"\sum_i q_{t,i} \, k_{j,i} / \sqrt{d}",
    letters="q is the query, k a key; d is the width of both; i counts dimensions",
    asks="layer",
    network="attnviz.networks.transformer:Transformer",
    training={
        "epochs": 55,
        "learning_rate": 2e-3,
        "options": {"width": 192, "hidden": 768, "layers": 3, "heads": 4, "dropout": 0.3},
    },
    training_on={
        "reverse": {
            "epochs": 12,
            "learning_rate": 2e-3,
            "warmup": 200,
            "options": {"width": 64, "hidden": 256, "layers": 2, "heads": 4},
        }
    },
    color="green",
    dash="dashdot",
    marker="square",
    rank=7,
)
