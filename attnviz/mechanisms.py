"""What each mechanism is, for readers; and what a checkpoint says so that it can be built again. No torch here."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Mechanism:
    """What a reader is told: its name, its score or rule in LaTeX, its paper, and the kinds of attention it has."""

    title: str
    formula: str
    paper: str
    words: str  # the formula in a sentence
    kinds: tuple[str, ...] = ("cross",)
    classifies: bool = False  # gives a sentence a label, rather than a translation


ALL = {
    "fixed-context": Mechanism(
        "Fixed context · no attention",
        r"c_t = c = \tanh(V [\overrightarrow{h}_S; \overleftarrow{h}_1])",
        "Cho et al. 2014, section 2.2 and appendix A.1",
        "No attention: the last states of the encoder, forwards and backwards, become one vector c, and every step of the "
        "decoder gets that same vector, however long the sentence.",
        kinds=(),
    ),
    "bahdanau": Mechanism(
        "Bahdanau · additive",
        r"e_{tj} = v^\top \tanh(W s_{t-1} + U h_j)",
        "Bahdanau, Cho & Bengio 2015, appendix A.1.2",
        "A small network compares the decoder's last state s with what the encoder made of each source token, h; softmax "
        "over the tokens j gives the weights.",
    ),
    "luong-dot": Mechanism(
        "Luong · dot",
        r"e_{tj} = s_t^\top h_j",
        "Luong, Pham & Manning 2015, section 3.1",
        "The decoder steps first; its new state s is compared with each source token's h by their product alone, with "
        "nothing to learn; softmax over the tokens j gives the weights. So that s and h are of one width, h is the sum of the "
        "encoder's two directions.",
    ),
    "luong-general": Mechanism(
        "Luong · general",
        r"e_{tj} = s_t^\top W h_j",
        "Luong, Pham & Manning 2015, section 3.1",
        "The decoder steps first; its new state s is compared with each source token's h by a product through a learned "
        "matrix W; softmax over the tokens j gives the weights.",
    ),
    "luong-concat": Mechanism(
        "Luong · concat",
        r"e_{tj} = v^\top \tanh(W [s_t; h_j])",
        "Luong, Pham & Manning 2015, section 3.1",
        "Bahdanau's small network, but asked with the decoder's new state s, laid end to end with each source token's h; "
        "softmax over the tokens j gives the weights.",
    ),
    "luong-local": Mechanism(
        "Luong · local",
        r"\begin{aligned} &a_{tj} \propto \exp\!\left(s_t^\top W h_j - \tfrac{(j - p_t)^2}{2 (D/2)^2}\right) \\"
        r" &|j - p_t| \le D \\ &p_t = S\,\mathrm{sigmoid}(v_p^\top \tanh(W_p s_t)) \end{aligned}",
        "Luong, Pham & Manning 2015, section 3.2, eq. 9 and 10",
        "The decoder's new state s predicts a place p in the source and looks only at the D tokens on either side of it, "
        "the nearer the more, by the product with a matrix W.",
    ),
    "scaled-dot": Mechanism(
        "Scaled dot · recurrent",
        r"e_{tj} = s_t^\top h_j / \sqrt{d}",
        "Vaswani et al. 2017, eq. 1, in the decoder of Luong, Pham & Manning 2015",
        "The decoder steps first; its new state s is compared with each source token's h by their product, divided by "
        "the root of their width d, which keeps the softmax soft. So that s and h are of one width, h is the sum of the encoder's "
        "two directions.",
    ),
    "transformer": Mechanism(
        "Transformer · multi-head",
        r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right)",
        "Vaswani et al. 2017, eq. 1",
        "Each row of Q asks and each row of K answers: their products, divided by the root of a head's width d, become weights in every head "
        "of every layer at once.",
        ("cross", "encoder", "decoder"),
    ),
    "self-attention": Mechanism(
        "Self-attention · classifier",
        r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right), \; \alpha_i \propto \exp(v^\top \tanh(W h_i + b))",
        "Vaswani et al. 2017, eq. 1; Yang et al. 2016, eq. 8 to 10",
        "Each token asks all tokens of the sentence, in every head; then one query, the same for all sentences, says how much "
        "of each token's h goes into the vector that decides.",
        ("cross", "encoder"),
        classifies=True,
    ),
}
MECHANISMS = {name: mechanism for name, mechanism in ALL.items() if not mechanism.classifies}  # those that translate
CLASSIFIERS = {name: mechanism for name, mechanism in ALL.items() if mechanism.classifies}
LABELS = ("negative", "positive")  # of a review, by their number in the data


def find(name: str) -> Mechanism:
    """The mechanism of this name. ValueError for an unknown one."""
    if name not in ALL:
        raise ValueError(f"unknown mechanism {name!r}; choose one of {', '.join(ALL)}")
    return ALL[name]


@dataclass(frozen=True)
class Config:
    """What a checkpoint needs to be built again. options : the arguments of the mechanism's class."""

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
