"""What each mechanism is, for readers; and what a checkpoint says so that it can be built again. No torch here."""

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Mechanism:
    """What a reader is told: its name, its score or rule in LaTeX, its paper, and the kinds of attention it has."""

    title: str
    formula: str
    paper: str
    kinds: tuple[str, ...] = ("cross",)


MECHANISMS = {
    "fixed-context": Mechanism(
        "Fixed context · no attention",
        r"c_t = c = \tanh(V [\overrightarrow{h}_S; \overleftarrow{h}_1])",
        "Cho et al. 2014, section 2.2 and appendix A.1",
        kinds=(),
    ),
    "bahdanau": Mechanism(
        "Bahdanau · additive",
        r"e_{tj} = v^\top \tanh(W s_{t-1} + U h_j)",
        "Bahdanau, Cho & Bengio 2015, appendix A.1.2",
    ),
    "luong-dot": Mechanism(
        "Luong · dot",
        r"e_{tj} = s_t^\top h_j",
        "Luong, Pham & Manning 2015, eq. 8",
    ),
    "luong-general": Mechanism(
        "Luong · general",
        r"e_{tj} = s_t^\top W h_j",
        "Luong, Pham & Manning 2015, eq. 8",
    ),
    "luong-concat": Mechanism(
        "Luong · concat",
        r"e_{tj} = v^\top \tanh(W [s_t; h_j])",
        "Luong, Pham & Manning 2015, eq. 8",
    ),
    "luong-local": Mechanism(
        "Luong · local",
        r"a_{tj} \propto \exp\!\left(s_t^\top W h_j - \frac{(j - p_t)^2}{2 (D/2)^2}\right), \;"
        r" |j - p_t| \le D, \; p_t = S\,\mathrm{sigmoid}(v_p^\top \tanh(W_p s_t))",
        "Luong, Pham & Manning 2015, eq. 9 and 10",
    ),
    "scaled-dot": Mechanism(
        "Scaled dot · recurrent",
        r"e_{tj} = s_t^\top h_j / \sqrt{d}",
        "Vaswani et al. 2017, eq. 1, in the decoder of Luong, Pham & Manning 2015",
    ),
    "transformer": Mechanism(
        "Transformer · multi-head",
        r"A = \mathrm{softmax}\!\left(QK^\top / \sqrt{d}\right)",
        "Vaswani et al. 2017, eq. 1",
        ("cross", "encoder", "decoder"),
    ),
}


@dataclass(frozen=True)
class Config:
    """What a checkpoint needs to be built again. options : the arguments of the mechanism's class."""

    mechanism: str
    vocabulary: int
    options: dict = field(default_factory=dict)

    def __post_init__(self):
        if self.mechanism not in MECHANISMS:
            raise ValueError(f"unknown mechanism {self.mechanism!r}; choose one of {', '.join(MECHANISMS)}")
        if self.vocabulary < 5:
            raise ValueError(f"vocabulary must hold more than the four special tokens; got {self.vocabulary}")

    def to_dict(self) -> dict:
        return asdict(self)
