"""What a person can choose, as one frozen value, with the words that the page and the URL use for it. No Streamlit here."""

from dataclasses import asdict, dataclass

from attnviz.data.limits import LONGEST
from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs

LIMIT = 500  # characters of a sentence
PIECES = LONGEST  # of a sentence
MOST = 4  # mechanisms side by side
OWN, TYPED, FROM = "own", "typed", "from-"  # FROM + mechanism
BEAMS = {1: "greedy", 5: "beam of 5"}
KINDS = {
    "cross": "Cross-attention (to source)",
    "encoder": "Self-attention of the encoder",
    "decoder": "Self-attention of the decoder",
}


@dataclass(frozen=True)
class Settings:
    """All that the person chose but the place in the picture (step, difference), which has its own controls."""

    text: str
    mechanisms: tuple[str, ...]
    pair: str = pairs.DEFAULT
    target: str = OWN  # OWN, TYPED or FROM + mechanism
    forced: str = ""  # the typed target
    beam: int = 1
    words: bool = False
    special: bool = True
    kind: str = "cross"  # kind, layer and head apply to models that have several
    layer: int = -1  # from 0; -1: the last
    head: int | None = None  # from 0; None: the mean of heads
    tables: bool = False  # the numbers of each chart below it
    gold: str = ""  # the sentence with links by hand that was chosen
    links: bool = True  # laid over the maps, where text and target are those of such a sentence

    def to_dict(self) -> dict:
        return asdict(self)

    def query(self) -> dict[str, str | list[str]]:
        """The URL parameters that reopen this view: Streamlit writes options there in the words of the page."""
        chosen = {
            "pair": pairs.of(self.pair).title,
            "text": self.text,
            "show": [title(name) for name in self.mechanisms],
            "target": target_title(self.target),
            "force": self.forced,
            "beam": BEAMS[self.beam],
            "units": "words" if self.words else "pieces",
            "special": str(self.special).lower(),
            "kind": KINDS[self.kind],
            "head": head_title(self.head),
            "tables": str(self.tables).lower(),
            "links": str(self.links).lower(),
        }
        some = {"layer": number(self.layer)} if self.layer >= 0 else {}
        return chosen | some | ({"gold": self.gold} if self.gold else {})


def model(pair: str, mechanism: str) -> str:
    """The name of a checkpoint."""
    return f"{pair}/{mechanism}"


def title(mechanism: str) -> str:
    """A mechanism's short name, its own alone: `Bahdanau`, but `Luong general`, for there are several of Luong's."""
    family, _, variant = MECHANISMS[mechanism].title.partition(" · ")
    alone = sum(other.title.partition(" · ")[0] == family for other in MECHANISMS.values()) == 1
    return family if alone else f"{family} {variant}"


def target_title(option: str) -> str:
    if option == OWN:
        return "Each model's own translation"
    return "One text for all: typed" if option == TYPED else f"One text for all: {title(option.removeprefix(FROM))}'s"


def head_title(head: int | None) -> str:
    return "mean of heads" if head is None else number(head)


def number(index: int) -> str:
    """Layers, heads and steps are counted from 1 on the page."""
    return str(index + 1)
