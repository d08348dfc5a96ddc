"""A description of each mechanism, and the configuration that a checkpoint is built from. No torch here."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Mechanism:
    """What a reader is told: name, formula in LaTeX, paper, formula in words, and the kinds of attention."""

    title: str
    formula: str
    paper: str
    words: str  # the formula in plain words
    kinds: tuple[str, ...] = ("cross",)
    classifies: bool = False  # gives a sentence a label, rather than a translation
    writes: bool = False  # writes on after a text, rather than translates it
    multi_head: bool = False  # its layers have several heads
    local: bool = False  # looks at a window round a place that it predicts
    terms: str = ""  # the score as a sum, in LaTeX, with i for the dimension or hidden unit; "" without attention
    letters: str = ""  # what the letters of that sum stand for

    @property
    def head_kinds(self) -> tuple[str, ...]:
        """Kinds of attention that have heads to show: a classifier's cross-attention is one pooling query."""
        return tuple(kind for kind in self.kinds if not (self.classifies and kind == "cross"))


_RECURRENT = "s is the decoder’s state, h an annotation (the encoder’s state)"
ALL = {
    "fixed-context": Mechanism(
        "Fixed context · no attention",
        r"c_t = c = \tanh(V [\overrightarrow{h}_S; \overleftarrow{h}_1])",
        "Cho et al. 2014, section 2.2 and appendix A.1",
        "No attention. The last states of the encoder, forwards and backwards, become one vector c. Every step of the "
        "decoder gets the same vector, however long the sentence is.",
        kinds=(),
    ),
    "bahdanau": Mechanism(
        "Bahdanau · additive",
        r"e_{tj} = v^\top \tanh(W s_{t-1} + U h_j)",
        "Bahdanau, Cho & Bengio 2015, appendix A.1.2",
        "A small network compares the decoder's previous state s with the encoder's state h of each source token. "
        "Softmax over the tokens j gives the weights.",
        terms=r"\sum_i v_i \tanh(W s_{t-1} + U h_j)_i",
        letters=f"{_RECURRENT}; W, U and v are learnt; i counts hidden units",
    ),
    "luong-dot": Mechanism(
        "Luong · dot",
        r"e_{tj} = s_t^\top h_j",
        "Luong, Pham & Manning 2015, section 3.1",
        "The decoder first makes its new state s. The score of each source token is the dot product of s and the "
        "token's encoder state h, without parameters. Softmax over the tokens j gives the weights. h is the sum of the "
        "encoder's two directions, so that s and h have the same width.",
        terms=r"\sum_i s_{t,i} \, h_{j,i}",
        letters=f"{_RECURRENT}; i counts dimensions",
    ),
    "luong-general": Mechanism(
        "Luong · general",
        r"e_{tj} = s_t^\top W h_j",
        "Luong, Pham & Manning 2015, section 3.1",
        "The decoder first makes its new state s. The score of each source token is the product of s, a learned matrix "
        "W and the token's encoder state h. Softmax over the tokens j gives the weights.",
        terms=r"\sum_i s_{t,i} \, (W h_j)_i",
        letters=f"{_RECURRENT}; W is learnt; i counts dimensions",
    ),
    "luong-concat": Mechanism(
        "Luong · concat",
        r"e_{tj} = v^\top \tanh(W [s_t; h_j])",
        "Luong, Pham & Manning 2015, section 3.1",
        "A small network as in Bahdanau's attention, but it reads the decoder's new state s, joined with the encoder's "
        "state h of each source token. Softmax over the tokens j gives the weights.",
        terms=r"\sum_i v_i \tanh(W [s_t; h_j])_i",
        letters=f"{_RECURRENT}; [s; h] is both, one after the other; W and v are learnt; i counts hidden units",
    ),
    "luong-local": Mechanism(
        "Luong · local",
        r"\begin{aligned} &a_{tj} \propto \exp\!\left(s_t^\top W h_j - \tfrac{(j - p_t)^2}{2 (D/2)^2}\right) \\"
        r" &|j - p_t| \le D \\ &p_t = S\,\mathrm{sigmoid}(v_p^\top \tanh(W_p s_t)) \end{aligned}",
        "Luong, Pham & Manning 2015, section 3.2, eq. 9 and 10",
        "The decoder's new state s predicts a position p in the source. Only the D tokens on either side of p get "
        "weight: the general score, with a learned matrix W, and a Gaussian that favours tokens near p.",
        local=True,
        terms=r"\sum_i s_{t,i} \, (W h_j)_i + \ln g_j",
        letters=f"{_RECURRENT}; W is learnt; i counts dimensions; g is the Gaussian of the window",
    ),
    "scaled-dot": Mechanism(
        "Scaled dot · recurrent",
        r"e_{tj} = s_t^\top h_j / \sqrt{d}",
        "Vaswani et al. 2017, eq. 1, in the decoder of Luong, Pham & Manning 2015",
        "The decoder first makes its new state s. The score of each source token is the dot product of s and the "
        "token's encoder state h, divided by the square root of their width d, so that the softmax does not saturate. "
        "h is the sum of the encoder's two directions, so that s and h have the same width.",
        terms=r"\sum_i s_{t,i} \, h_{j,i} / \sqrt{d}",
        letters=f"{_RECURRENT}; d is the width of both; i counts dimensions",
    ),
    "transformer": Mechanism(
        "Transformer · multi-head",
        r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right)",
        "Vaswani et al. 2017, eq. 1",
        "Each row of Q is a query and each row of K a key. Their dot products, divided by the square root of a head's "
        "width d, go through softmax and become the weights. Every head of every layer does this at once.",
        ("cross", "encoder", "decoder"),
        multi_head=True,
        terms=r"\sum_i q_{t,i} \, k_{j,i} / \sqrt{d}",
        letters="q is the query, k a key; d is the width of both; i counts dimensions",
    ),
    "self-attention": Mechanism(
        "Self-attention · classifier",
        r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right), \; \alpha_i \propto \exp(v^\top \tanh(W h_i + b))",
        "Vaswani et al. 2017, eq. 1; Yang et al. 2016, eq. 5 to 7",
        "In every head, each token attends to all tokens of the sentence. Then one learned query, the same for all "
        "sentences, weights the tokens' states h. Their weighted sum is the vector that gives the label.",
        ("cross", "encoder"),
        classifies=True,
        multi_head=True,
        terms=r"\sum_i v_i \tanh(W h_j + b)_i",
        letters="h is a token’s state; W, b and v are learnt; i counts hidden units",
    ),
    "writer": Mechanism(
        "Self-attention · writer",
        r"A = \mathrm{softmax}\!\left(\frac{Q_t R_{t-s} K_s^\top}{\sqrt{d}}\right),\; s \le t",
        "Vaswani et al. 2017, eq. 1 and section 3.2.3; Su et al. 2021, eq. 16",
        "Every token attends to itself and to the tokens before it, and never to a later one. Query and key are "
        "rotated by angles that grow with their positions, so that their dot product also depends on how far apart "
        "they are. From the last layer the model gives each possible next token a probability.",
        ("decoder",),
        writes=True,
        multi_head=True,
    ),
}
MECHANISMS = {  # these translate
    name: mechanism for name, mechanism in ALL.items() if not (mechanism.classifies or mechanism.writes)
}


def find(name: str) -> Mechanism:
    """The mechanism of this name. ValueError for an unknown one."""
    if name not in ALL:
        raise ValueError(f"unknown mechanism {name!r:.80}; choose one of {', '.join(ALL)}")
    return ALL[name]


@dataclass(frozen=True)
class Config:
    """What a checkpoint's network is built from. options : the arguments of the mechanism's class."""

    mechanism: str
    vocabulary: int
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        find(self.mechanism)
        if not isinstance(self.options, dict):
            raise ValueError(f"options must be a dict of settings; got {type(self.options).__name__}")
        if self.vocabulary < 5:
            raise ValueError(f"vocabulary must hold more than the four special tokens; got {self.vocabulary}")

    def to_dict(self) -> dict:
        return asdict(self)
