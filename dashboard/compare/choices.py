"""What a person chose on the page that compares mechanisms, as one frozen value. No Streamlit here."""

from dataclasses import asdict, dataclass

from dashboard.choices import pairs
from dashboard.choices.options import BEAMS, KINDS, OWN, head_title, number, target_title, title


@dataclass(frozen=True)
class CompareChoices:
    """All choices except the step and the difference, whose controls stand beside their charts."""

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
    gold: str = ""  # the sentence with gold links that was chosen
    present: bool = False  # in large type, without the sidebar
    sentences: tuple[str, ...] = ()  # of the long text that `text` is a sentence of
    links: bool = True  # gold links over the maps, where text and target are those of such a sentence

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
