"""The registry: a mechanism's name to the class that implements it, and its settings to a model."""

from dataclasses import asdict, dataclass, field

from torch import nn

from attnviz.recurrent import Bahdanau, LuongGeneral
from attnviz.transformer import Transformer


@dataclass(frozen=True)
class Mechanism:
    """What a reader is told about a mechanism: its name, its score or rule in LaTeX, its paper."""

    build: type[nn.Module]
    title: str
    formula: str
    paper: str
    kinds: tuple[str, ...] = ("cross",)


MECHANISMS = {
    "bahdanau": Mechanism(
        Bahdanau, "Bahdanau · additive",
        r"e_{tj} = v^\top \tanh(W s_{t-1} + U h_j)",
        "Bahdanau, Cho & Bengio 2015, appendix A.1.2",
    ),
    "luong-general": Mechanism(
        LuongGeneral, "Luong · general",
        r"e_{tj} = s_t^\top W h_j",
        "Luong, Pham & Manning 2015, eq. 8",
    ),
    "transformer": Mechanism(
        Transformer, "Transformer · multi-head",
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


def build(config: Config) -> nn.Module:
    """The untrained model of a config, in training mode."""
    return MECHANISMS[config.mechanism].build(config.vocabulary, **config.options)
