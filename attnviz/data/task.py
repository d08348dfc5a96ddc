"""A task: a language pair such as en-fr, or another task such as sst2, with all its settings."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from attnviz import mechanisms
from attnviz.data.readers import Pairs
from attnviz.mechanisms import Mechanism

Letter = tuple[str, tuple[int, ...]]  # a letter of a toy task's target, and the places of the letters it is made from
# Metrics of target languages that are written without spaces; other languages have the default ones.
LANGUAGE_METRICS = {
    "ja": ("bleu_morphemes", "bleu_char", "chrf"),
    "zh": ("bleu_words", "bleu_char", "chrf"),
}
# Languages that write names of other languages in a script of their own.
OTHER_SCRIPTS = frozenset("ar bg el he hi ja ko ru th uk zh".split())


class Splits(NamedTuple):
    """The sentences of a task. tests : name -> pairs. files : name -> SHA-256 of each file that was read.

    parts : the part of the data that each pair of val is from; () when there is one part.
    """

    train: Pairs
    val: Pairs
    tests: dict[str, Pairs]
    files: dict[str, str]
    parts: tuple[str, ...] = ()


@dataclass(frozen=True)
class Everyday:
    """How a task's own corpus and everyday sentences are read together (data/corpora.py).

    own_part : the name of the task's own sentences beside everyday ones. repeat : how often an epoch reads each of the
    task's own pairs. validation_metric : chooses the best epoch when both are there. divided : everyday targets are
    divided into words like the task's own. same_source : both come from one collection, so that pairs in both are read
    once.
    """

    own_part: str
    repeat: int = 1
    validation_metric: str = "bleu_lc"
    divided: bool = False
    same_source: bool = False


@dataclass(frozen=True)
class Download:
    """A public file. name : below the data folder. urls : its parts, in order. sha256 : of its text, unpacked.
    lines : the number of lines that are used; None for all."""

    name: str
    urls: tuple[str, ...]
    sha256: str
    lines: int | None = None


@dataclass(frozen=True)
class Task:
    """One entry of the table of tasks.

    name : as in `--pair` and in the folder of its checkpoints. source, target : language tags (BCP 47; zxx: no
        language).

    Data
    read : data folder (None if `generated`) -> Splits; None for a pair without known corpora. generated :
        `read` needs no data folder.
    everyday : how everyday sentences are added if the data folder has them; None: never.
    downloads : the public files of the data folder, where there are any.
    style : how the texts are written, one of styles.STYLES. labels : of a classification task, by their number in the
    data; () where text is translated. writes : its models continue a text; `target` is "".

    Training and evaluation
    recipe_changes : of the recipe of every mechanism, as fields of the training settings. What changes for one
    mechanism alone is in its `training_on`.
    validation_metric : chooses the best epoch; a key of metrics.METRICS, or bits_a_character where a model writes.
    metrics : keys of metrics.METRICS; () for those of the target language.
    attention_metrics : attention metrics beside entropy and maximum weight; keys of
        attention_metrics.ATTENTION_METRICS.
    trained_like : another task, whose entry in `training_on` of a mechanism holds for this one too.
    answer : of a toy task, letters of a source -> the letters to write, each with the places of the source letters that
        it is made from (the correct alignment; () if made from none); None if unknown.
    samplers : mechanisms whose models draw random translations for the confidence, needed where faster signs flag too
        few poor translations; () for none.

    Page
    title : in the control and in the URL. output : what the models produce, in words. ask, hint : label and placeholder
    of the text field. examples : sentences one click away. failing : one more that the models get wrong, marked as such
    on the page; "" for none. forced : an example of a text that all models are forced to produce.
    note : an explanation of the task, if its title is not enough. unit : the noun for a word of its texts.
    """

    name: str
    source: str
    target: str
    title: str
    output: str

    read: Callable[[Any], Splits] | None = None
    generated: bool = False
    everyday: Everyday | None = None
    downloads: tuple[Download, ...] = ()
    style: str = "written"
    labels: tuple[str, ...] = ()
    writes: bool = False

    recipe_changes: Mapping[str, Any] = field(default_factory=dict)
    validation_metric: str = "bleu_lc"
    metrics: tuple[str, ...] = ()
    attention_metrics: tuple[str, ...] = ()
    trained_like: str = ""
    answer: Callable[[Sequence[str]], list[Letter]] | None = None
    samplers: tuple[str, ...] = ()

    ask: str = "Your sentence"
    hint: str = "Type a sentence and press Enter"
    examples: tuple[str, ...] = ()
    failing: str = ""
    forced: str = ""
    note: str = ""
    unit: str = "word"

    @property
    def piece(self) -> str:
        """The noun for a token of its texts: a piece of a word, or a letter if every letter is a token."""
        return "letter" if self.unit == "letter" else "piece"

    @property
    def classifies(self) -> bool:
        """Do its models give a sentence a label, rather than a translation?"""
        return bool(self.labels)

    @property
    def translates(self) -> bool:
        """Do its models produce a text? False too for a name that is no language pair."""
        return not self.labels and bool(self.target)

    @property
    def copies_names(self) -> bool:
        """Does a name keep its Latin letters in the target? Not in Japanese, which writes Tom as トム."""
        return self.target not in OTHER_SCRIPTS

    @property
    def mechanisms(self) -> dict[str, Mechanism]:
        """The mechanisms that its models can have."""
        return {name: kind for name, kind in mechanisms.ALL.items() if self._fits(kind)}

    def _fits(self, mechanism: Mechanism) -> bool:
        return (mechanism.classifies, mechanism.writes) == (self.classifies, self.writes)

    @property
    def metric_keys(self) -> tuple[str, ...]:
        """Keys of its metrics; () for the default ones of its target language."""
        return self.metrics or LANGUAGE_METRICS.get(self.target, ())

    @property
    def offered(self) -> tuple[str, ...]:
        """Every sentence one click away."""
        return (*self.examples, *filter(None, [self.failing]))

    @property
    def first(self) -> str:
        """The example shown before anything is typed; "" when there is none."""
        return self.examples[0] if self.examples else ""
