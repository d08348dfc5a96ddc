"""A classifier: self-attention, then one learned query over the tokens."""

from attnviz.mechanisms import Mechanism

# At the full learning rate the self-attention overfits the few training sentences: the dev loss rises from epoch 2 on.
_RATES = {f"encoder.0.{part}.{kind}": 0.05 for part in ("query", "memory", "output") for kind in ("weight", "bias")}
SELF_ATTENTION = Mechanism(
    name="self-attention",
    title="Self-attention · classifier",
    formula=r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right), \; \alpha_i \propto "
    r"\exp(v^\top \tanh(W h_i + b))",
    paper="Vaswani et al. 2017, eq. 1; Yang et al. 2016, eq. 5 to 7",
    words="In every head, each token attends to all tokens of the sentence. Then one learned query, the same for all "
    "sentences, weights the tokens' states h. Their weighted sum is the vector that gives the label.",
    kinds=("cross", "encoder"),
    classifies=True,
    multi_head=True,
    terms=r"\sum_i v_i \tanh(W h_j + b)_i",
    letters="h is a token’s state; W, b and v are learnt; i counts hidden units",
    asks="always",
    network="attnviz.networks.classifier:SelfAttention",
    training={
        "epochs": 8,
        "learning_rate": 2e-3,
        "warmup": 100,
        "average": 0.98,
        "weight_decay": 0.2,
        "consistency": 6.0,
        "word_dropout": 0.4,
        "vocabulary": 8000,
        "rates": _RATES,
        "options": {"attention_dropout": 0.3},
    },
    rank=8,
)
