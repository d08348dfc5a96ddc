"""What the page says of each pair of languages: its name, its examples, what its texts are called. No Streamlit here."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from attnviz import gold


@dataclass(frozen=True)
class Pair:
    """title : in the control and in the URL. output : what its models produce, in words. source, target : language tags."""

    title: str
    output: str
    source: str
    target: str
    examples: tuple[str, ...] = ()
    forced: str = ""  # an example of a text that all models are made to produce
    ask: str = "Your English sentence"
    hint: str = "Type an English sentence and press Enter"
    note: str = ""  # what the task is, where its name does not say it

    @property
    def first(self) -> str:
        """The sentence that stands there before one is typed."""
        return self.examples[0] if self.examples else ""


DEFAULT = "en-fr"
FIRST = ("bahdanau", "luong-general", "transformer")  # shown before anything is chosen
PAIRS = {
    "en-fr": Pair(
        "English → French",
        "French text",
        "en",
        "fr",
        (
            "The black dog is running across the green grass.",
            "A young woman in a red dress sits on a bench.",
            "Two boys play with a yellow ball.",
            "I don't know where he lives.",
        ),
        "Le chien noir court dans l'herbe verte.",
    ),
    "en-de": Pair(
        "English → German",
        "German text",
        "en",
        "de",
        (
            "A man in a blue shirt is standing on a ladder.",
            "Two young girls are playing in the snow.",
            "A brown dog has caught a red ball.",
            "A woman is sitting on a bench and reading a book.",
        ),
        "Ein Mann in einem blauen Hemd steht auf einer Leiter.",
    ),
    "en-ja": Pair(
        "English → Japanese",
        "Japanese text",
        "en",
        "ja",
        (
            "My father goes to work by car every day.",
            "She is reading a book in the library.",
            "I don't know where he lives.",
            "What time did you get up?",
        ),
        "父は毎日車で仕事に行きます。",
    ),
    "reverse": Pair(
        "Reverse the sequence",
        "reversed text",
        "zxx",
        "zxx",
        ("a b c d e f", "k k k a b b", "m o t o r", "q w e r t y u i o p a s"),
        "f e d c b a",
        "Your sequence of letters",
        "Type letters with spaces between them and press Enter",
        "A made task: say the same letters backwards. The right alignment is known, the diagonal from top right to bottom "
        "left: check it by eye. Where a model looks when it ends, in the row of <eos>, is its own affair.",
    ),
}
TASKS = {
    "sst2": Pair(
        "Sentiment of a sentence",
        "label",
        "en",
        "en",
        (
            "A funny, moving film that never gets dull.",
            "The plot is thin and the jokes are not funny.",
            "It is not without charm.",
            "An hour of beautiful pictures and not one idea.",
        ),
        ask="Your sentence about a film",
        hint="Type a sentence about a film and press Enter",
    ),
}  # what models do that are no pair of languages


ANY = Pair(  # of a model of one's own: nobody knows which languages
    "",
    "text",
    "",
    "",
    PAIRS[DEFAULT].examples[:1],
    ask="Your text",
    hint="Type a text and press Enter",
)


def of(name: str) -> Pair:
    """The facts of a pair; of one that a person trained (`nl-en`), what its name says."""
    if name in PAIRS or name in TASKS:
        return (PAIRS | TASKS)[name]
    source, _, target = name.partition("-")
    return Pair(
        f"{source} → {target}",
        f"text in “{target}”",
        source,
        target,
        ask="Your sentence",
        hint="Type a sentence and press Enter",
    )


def translates(name: str) -> bool:
    """Is a folder of checkpoints a pair for this page? Another task (sst2) is not."""
    return name in PAIRS or "-" in name


def ordered(names: Sequence[str]) -> list[str]:
    """The known pairs in the order of the table, then the others as they come."""
    return [name for name in PAIRS if name in names] + [name for name in names if name not in PAIRS]


def first(mechanisms: Sequence[str]) -> list[str]:
    """What is shown before anything is chosen, of the mechanisms on offer."""
    return [name for name in FIRST if name in mechanisms] or list(mechanisms[:3])


linked = functools.cache(gold.shipped)  # pair -> its sentences with links set by hand
