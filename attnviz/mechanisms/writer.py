"""Causal self-attention with rotated queries and keys: a model that continues a text."""

from attnviz.mechanisms import Mechanism

WRITER = Mechanism(
    name="writer",
    title="Self-attention · writer",
    formula=r"A = \mathrm{softmax}\!\left(\frac{Q_t R_{t-s} K_s^\top}{\sqrt{d}}\right),\; s \le t",
    paper="Vaswani et al. 2017, eq. 1 and section 3.2.3; Su et al. 2021, eq. 16",
    words="Every token attends to itself and to the tokens before it, and never to a later one. Query and key are "
    "rotated by angles that grow with their positions, so that their dot product also depends on how far apart "
    "they are. From the last layer the model gives each possible next token a probability.",
    kinds=("decoder",),
    writes=True,
    multi_head=True,
    asks="text",
    terms=r"\sum_i q_{t,i} \, k_{j,i} / \sqrt{d}",
    letters="q is the query, k a key, both rotated by their positions; d is the width of both; i counts dimensions",
    network="attnviz.networks.decoder_only:DecoderOnly",
    training={
        "epochs": 5,
        "batch_tokens": 2048,
        "learning_rate": 2e-3,
        "warmup": 100,
        "label_smoothing": 0.0,
        "weight_decay": 0.05,
        "beta2": 0.98,
        "average": 0.99,
        "decay": 0.3,
        "muon": 1.0,
        "vocabulary": 4000,
        "options": {"width": 192, "heads": 6, "layers": 5, "hidden": 512, "dropout": 0.1, "longest": 512},
    },
    rank=9,
)
