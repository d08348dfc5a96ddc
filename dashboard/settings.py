"""What a person can choose, as one frozen value, with the words that the page and the URL use for it. No Streamlit here."""

from dataclasses import asdict, dataclass

from attnviz.mechanisms import MECHANISMS

LIMIT = 500  # characters of a sentence
PIECES = 200  # of a sentence: attnviz.translator.LONGEST, which this page must not wait for torch to know
OWN, TYPED, FROM = "own", "typed", "from-"  # FROM + mechanism
BEAMS = {1: "greedy", 5: "beam of 5"}
KINDS = {"cross": "Cross-attention (to source)", "encoder": "Self-attention of the encoder",
         "decoder": "Self-attention of the decoder"}  # fmt: skip


@dataclass(frozen=True)
class Settings:
    """All that the person chose but the place in the picture (step, difference), which has its own controls."""

    text: str
    mechanisms: tuple[str, ...]
    target: str = OWN  # OWN, TYPED or FROM + mechanism
    forced: str = ""  # the typed target
    beam: int = 1
    words: bool = False
    special: bool = True
    kind: str = "cross"  # kind, layer and head apply to models that have several
    layer: int = -1  # from 0; -1: the last
    head: int | None = None  # from 0; None: the mean of heads
    tables: bool = False  # the numbers of each chart below it

    def to_dict(self) -> dict:
        return asdict(self)

    def query(self) -> dict[str, str | list[str]]:
        """The URL parameters that reopen this view: Streamlit writes options there in the words of the page."""
        chosen = {
            "text": self.text, "show": [title(name) for name in self.mechanisms], "target": target_title(self.target),
            "force": self.forced, "beam": BEAMS[self.beam], "units": "words" if self.words else "pieces",
            "special": str(self.special).lower(), "kind": KINDS[self.kind], "head": head_title(self.head),
            "tables": str(self.tables).lower(),
        }  # fmt: skip
        return chosen if self.layer < 0 else chosen | {"layer": number(self.layer)}


def title(mechanism: str) -> str:
    return MECHANISMS[mechanism].title.split(" · ")[0]


def target_title(option: str) -> str:
    if option == OWN:
        return "Each model's own translation"
    return "One text for all: typed" if option == TYPED else f"One text for all: {title(option.removeprefix(FROM))}'s"


def head_title(head: int | None) -> str:
    return "mean of heads" if head is None else number(head)


def number(index: int) -> str:
    """Layers, heads and steps are counted from 1 on the page."""
    return str(index + 1)
