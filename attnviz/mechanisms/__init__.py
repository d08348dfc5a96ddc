"""The mechanisms: one file per mechanism, with everything specific to it. No torch here, so that a stored trace can be
drawn.

A mechanism names its score and its network; `networks.registry` imports them when it builds a model. Add one of your
own with `add`, or with the environment variable ATTNVIZ_MECHANISMS=FILE.py:NAME, several separated by commas. An
installed package adds its own with entry points of the group `attnviz.mechanisms`.
"""

import importlib
import os
import pkgutil
import re
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from attnviz import python_file
from attnviz.arguments import guess

__all__ = ["ALL", "MECHANISMS", "Config", "Mechanism", "add", "find", "read", "remove"]

SETTING, GROUP = "ATTNVIZ_MECHANISMS", "attnviz.mechanisms"
ASKS = ("", "before", "after", "layer", "text", "always")
# How recurrent translators are trained, where it differs from TrainingConfig.
RECURRENT = {"epochs": 20, "options": {"dropout": 0.3}}
STATES = "s is the decoder’s state, h an annotation (the encoder’s state)"  # letters of recurrent translators


@dataclass(frozen=True)
class Mechanism:
    """A mechanism: its description for readers, its network, its training, and its style in figures.

    name : in the names of its models. title : `family · variant`. formula : in LaTeX. words : the formula in plain
        words. kinds : of attention.
    classifies : gives a sentence a label, rather than a translation. writes : continues a text. multi_head : its
        layers have several heads. local : looks at a window around a place that it predicts.
    terms : the score as a sum, in LaTeX, with i for the dimension or hidden unit; "": the score is one term.
    letters : what the letters of that sum stand for.

    asks : which state is the query: the one "before" the decoder's step or "after" it, what a "layer" reads, what a
        layer reads of the "text" that it looks back at, or "always" the same. "" without a step to open.
    score : of a recurrent translator: a class of `attention.Attention`, a function that makes one, or `module:name` of
        either. It is called with those of query_width, key_width, width and dropout that are among its parameters. Its
        other parameters are options of the model.
    summed : a recurrent translator's annotations are the sum of the encoder's two directions, as wide as the query;
        else both directions, one after the other, which is twice as wide.
    network : a class, or `module:name` of one; "": the recurrent translator that fits `asks`.
    start : `module:name` of a function that changes the weights of a new network; "" for none.

    training : its changes of TrainingConfig. training_on : task -> further changes.
    color, dash, marker : of its lines, from `figures.theme`; a colour may also be a pair, for light and dark pages. "":
        for one that ships the first that is free in a picture, for one of your own the same in all.
    rank : sorts lists, lowest first.

    >>> mine = mechanisms.Mechanism("mine", "Mine · dot product", asks="after", score="attnviz.attention:Dot")
    >>> mine.translates
    True
    """

    name: str
    title: str
    formula: str = ""
    paper: str = ""
    words: str = ""
    kinds: tuple[str, ...] = ("cross",)
    classifies: bool = False
    writes: bool = False
    multi_head: bool = False
    local: bool = False
    terms: str = ""
    letters: str = ""
    asks: str = ""
    score: Callable | str = ""
    summed: bool = False
    network: Callable | str = ""
    start: Callable | str = ""
    training: Mapping[str, Any] = field(default_factory=lambda: RECURRENT)
    training_on: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    color: str | tuple[str, str] = ""
    dash: str = ""
    marker: str = ""
    rank: int = 100

    def __post_init__(self):
        if not re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", self.name):
            raise ValueError(f"name must be of small letters, digits and hyphens; got {self.name!r:.80}")
        if self.asks not in ASKS:
            raise ValueError(f"asks must be one of {', '.join(filter(None, ASKS))}; got {self.asks!r:.80}")
        if not self.network and not (self.score and self.asks in ("before", "after")):
            raise ValueError(f"{self.name} must have a network, or a score and asks='before' or asks='after'")

    @property
    def translates(self) -> bool:
        return not (self.classifies or self.writes)

    @property
    def head_kinds(self) -> tuple[str, ...]:
        """Kinds of attention that have heads to show: a classifier's cross-attention is one pooling query."""
        return tuple(kind for kind in self.kinds if not (self.classifies and kind == "cross"))

    @property
    def lends_its_score(self) -> bool:
        """Can its score be applied to the query of another model? False for local attention, and for scores between
        vectors of one width, which have no parameters."""
        return bool(self.score) and not self.summed and not self.local


ALL: dict[str, Mechanism] = {}
MECHANISMS: dict[str, Mechanism] = {}  # these translate
_SHIPPED: set[str] = set()
_problems: list[str] = []  # why mechanisms of SETTING or GROUP are not here


def add(mechanism: Mechanism) -> Mechanism:
    """Add a mechanism of your own, and return it. It replaces an added mechanism of the same name.

    ValueError for the name of a shipped mechanism.

    >>> mine = mechanisms.Mechanism("mine", "Mine · dot product", asks="after", score="attnviz.attention:Dot")
    >>> mechanisms.add(mine) == mechanisms.find("mine")
    True
    >>> mechanisms.remove("mine")
    """
    if not isinstance(mechanism, Mechanism):
        raise ValueError(f"mechanism must be a Mechanism; got {type(mechanism).__name__}")
    if mechanism.name in _SHIPPED:
        raise ValueError(f"the name {mechanism.name} belongs to a mechanism that ships; choose another")
    _put(mechanism)
    return mechanism


def remove(name: str) -> None:
    """Take away a mechanism that was added.

    >>> mechanisms.remove("bahdanau")
    Traceback (most recent call last):
        ...
    ValueError: no mechanism 'bahdanau' was added
    """
    if name in _SHIPPED or name not in ALL:
        raise ValueError(f"no mechanism {name!r:.80} was added")
    del ALL[name]
    MECHANISMS.pop(name, None)


def was_added(name: str) -> bool:
    """Is it a user's mechanism, which does not ship?"""
    return name in ALL and name not in _SHIPPED


def _put(mechanism: Mechanism) -> None:
    ALL[mechanism.name] = mechanism
    if mechanism.translates:
        MECHANISMS[mechanism.name] = mechanism


def find(name: str) -> Mechanism:
    """The mechanism of this name. ValueError for an unknown one.

    >>> mechanisms.find("bahdanau").paper
    'Bahdanau, Cho & Bengio 2015, appendix A.1.2'
    """
    if name not in ALL:
        if str(name).endswith(".py"):
            raise ValueError(f"name the mechanism in the file too, as {name}:NAME")
        problems = "".join(f" ({problem})" for problem in _problems)
        wanted = f"for your own set {SETTING}=FILE.py:NAME; else choose one of {', '.join(ALL)}{problems}"
        raise ValueError(f"unknown mechanism {name!r:.80}{guess(name, [*ALL])}; {wanted}")
    return ALL[name]


def read(text: str) -> Mechanism:
    """Run a Python file and add the mechanism that it defines. text : FILE.py:NAME.

    This runs the code of the file. Only the person who starts the program may name it: never a link, an upload or a
    checkpoint. ValueError if the file or name does not exist, or the file fails or ends the program.

    >>> mine = "MINE = Mechanism('mine', 'Mine', asks='after', score='attnviz.attention:Dot')"
    >>> Path("mine.py").write_text(f"from attnviz.mechanisms import Mechanism; {mine}")
    >>> mechanisms.read("mine.py:MINE").title
    'Mine'
    >>> mechanisms.remove("mine")
    """
    file, _, name = text.rpartition(":")
    path = Path(file)
    if not (file.endswith(".py") and name.isidentifier()):
        raise ValueError(f"a mechanism of your own must be FILE.py:NAME; got {text!r:.200}")
    loaded = python_file.run(path)
    value = getattr(loaded, name, None)
    if not isinstance(value, Mechanism):
        names = [other for other, value in vars(loaded).items() if isinstance(value, Mechanism)]
        reason = f"its mechanisms are {', '.join(names)}" if names else "it defines no Mechanism"
        if callable(value):
            reason += f"; `python -m attnviz try {text}` trains a module, and own.wrap makes a mechanism of it"
        raise ValueError(f"{file} has no mechanism {name}; {reason}")
    return add(value)


def check() -> None:
    """ValueError if a mechanism of ATTNVIZ_MECHANISMS or of an installed package could not be added."""
    if _problems:
        raise ValueError("; ".join(_problems))


def _read_shipped() -> None:
    """Read the mechanisms of this folder, sorted by rank."""
    shipped = []
    for file in pkgutil.iter_modules(__path__):
        module = importlib.import_module(f"{__name__}.{file.name}")
        shipped += [value for value in vars(module).values() if isinstance(value, Mechanism)]
    for mechanism in sorted(shipped, key=lambda mechanism: (mechanism.rank, mechanism.name)):
        _put(mechanism)
        _SHIPPED.add(mechanism.name)


def _read_own() -> None:
    """Read the mechanisms of SETTING and of installed packages. Failures are collected in `_problems`, so that the
    import does not fail."""
    for text in filter(None, (text.strip() for text in os.environ.get(SETTING, "").split(","))):
        try:
            read(text)
        except ValueError as error:
            _problems.append(f"{SETTING}: {error}")
    if not _some_package_has_entries():
        return
    from importlib.metadata import entry_points

    for entry in entry_points(group=GROUP):
        try:
            add(entry.load())
        except Exception as error:  # whatever another package raises
            _problems.append(f"the entry point {entry.name} = {entry.value}: {python_file.in_words(error)}")


def _some_package_has_entries() -> bool:
    """Does an installed package have entry points of GROUP? Checked first, because importlib.metadata takes .1 s,
    mostly for its import."""
    for folder in sys.path:
        for file in Path(folder or ".").glob("*-info/entry_points.txt"):
            with suppress(OSError):  # a folder of another user
                if f"[{GROUP}]".encode() in file.read_bytes():
                    return True
    return False


@dataclass(frozen=True)
class Config:
    """The configuration of a checkpoint's network. options : of the network and of its score.

    >>> mechanisms.Config("bahdanau", vocabulary=8000, options={"width": 256}).to_dict()
    {'mechanism': 'bahdanau', 'vocabulary': 8000, 'options': {'width': 256}}
    """

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


_read_shipped()
_read_own()
