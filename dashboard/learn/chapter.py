"""A chapter of the page Learn, and its contents: models, sentences, stored studies. No Streamlit here."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlencode

from attnviz.data.tasks import TASKS
from attnviz.mechanisms import ALL
from attnviz.models import checkpoint_values
from attnviz.models.names import ModelName
from attnviz.trace import Trace
from dashboard.browser.plot import Cell
from dashboard.choices import pairs
from dashboard.choices.options import CHAPTER_TITLES, TYPED, model, target_title, title
from dashboard.inside.scene import Column
from dashboard.markup import tables, terms
from dashboard.markup.text import escape
from dashboard.session import caches

PAIR = "en-fr"
SENTENCE = TASKS[PAIR].first
TRANSLATION = TASKS[PAIR].forced  # of SENTENCE
FORCED = {"target": target_title(TYPED), "force": TRANSLATION}  # of the address: all models write it
SHORT = "Two boys play with a yellow ball."
LONG = (
    "A young woman in a red dress sits on a bench in front of a brick house and reads a book while two small dogs "
    "sleep in the shade of a tall tree."
)
_FOLDER = Path(__file__).with_name("chapters")
_PARTS = ["", "Symbols", "Think about it", "Answer", "Try it"]  # headings of a chapter's words
_SYMBOL = re.compile(r"[^:\n]+: .+(\n[^:\n]+)*")  # a further line with a colon is the next symbol


def _symbols(text: str) -> str:
    """Text with `x_tj` and `W^Q` as HTML with subscripts and superscripts."""
    subscripts = re.sub(r"_([\w−]+)", r"<sub>\1</sub>", escape(text))
    return re.sub(r"\^(\w)", r"<sup>\1</sup>", subscripts)


@dataclass(frozen=True, eq=False)
class Drawn:
    """The live pictures of a chapter, and their text equivalents as HTML."""

    cells: list[Cell]
    tables: str = ""


@dataclass(frozen=True)
class Chapter:
    """key : in the address. story : paragraphs, HTML. symbols : each symbol of the chapter and its meaning, as text
    with `_` before a subscript and `^` before a superscript. question, answer : HTML. path, query : the page that the
    link opens, and its state; ask : what to do there. draw : dark -> the pictures; called when the chapter is open.
    ValueError if a model is missing.
    """

    key: str
    story: tuple[str, ...]
    symbols: Mapping[str, str]
    question: str
    answer: str
    path: str
    query: Mapping[str, str | list[str]]
    ask: str
    draw: Callable[[bool], Drawn]

    @property
    def title(self) -> str:
        return CHAPTER_TITLES[self.key]

    @property
    def address(self) -> str:
        """The address of the page that the link opens, relative to this page."""
        return f"./{self.path}?" + urlencode(self.query, doseq=True)

    def words(self) -> str:
        """The story and its symbols, HTML."""
        paragraphs = "".join(f"<p>{paragraph}</p>" for paragraph in self.story)
        terms = "".join(f"<dt>{_symbols(name)}</dt><dd>{_symbols(words)}</dd>" for name, words in self.symbols.items())
        return f'<div class="story">{paragraphs}<dl class="symbols">{terms}</dl></div>'

    def ask_first(self) -> str:
        """The question, HTML; it comes before the pictures, so that a reader can guess first."""
        return f'<div class="exercise"><p><b>Think about it.</b> {self.question}</p></div>'

    def exercise(self) -> str:
        """The answer behind a click, and the link, HTML."""
        return (
            '<div class="exercise">'
            f'<details class="answer"><summary>Show the answer</summary><p>{self.answer}</p></details>'
            f'<p class="open-step"><b>Try it.</b> {escape(self.ask)} '
            f'<a href="{escape(self.address)}" target="_self">Open the page in this state ›</a></p></div>'
        )


def read(key: str, path: str, query: Mapping[str, str | list[str]], draw: Callable[[bool], Drawn]) -> Chapter:
    """The chapter whose words are in KEY.md beside its code. ValueError for words of another form."""
    file = _FOLDER / f"{key}.md"
    parts = terms.sections(file)
    if [*parts] != _PARTS or not parts[""] or any(len(parts[name]) != 1 for name in _PARTS[2:]):
        raise ValueError(
            f"{file.name} must have paragraphs, then the headings {', '.join(_PARTS[1:])}; below the first, `symbol: "
            "meaning` in paragraphs, below each other one paragraph"
        )
    if wrong := [symbol for symbol in parts["Symbols"] if not _SYMBOL.fullmatch(symbol)]:
        raise ValueError(f"{file.name}: write “{wrong[0]}” as `symbol: meaning`, with an empty line before each symbol")
    story, symbols, *others = ([terms.filled(paragraph, file.name) for paragraph in parts[name]] for name in _PARTS)
    meanings = [line.split(": ", 1) for line in symbols]
    terms.once([symbol for symbol, _ in meanings], f"{file.name} has the symbol")
    question, answer, ask = (part[0] for part in others)
    return Chapter(key, tuple(story), dict(meanings), question, answer, path, query, ask, draw)


def trace(mechanism: str, text: str, target: str | None = None) -> Trace:
    """The trace of a sentence. Raises ValueError if the model is missing."""
    return caches.trace(model(PAIR, mechanism), text, target, 1)


def column(mechanism: str, text: str, target: str | None = None, layer: int = 0, head: int = 0) -> Column:
    """A model as a column of the page of one step."""
    return Column(trace(mechanism, text, target), layer, head, target)


def state(*mechanisms: str, text: str = SENTENCE, **others: str) -> dict[str, str | list[str]]:
    """The parameters that open the first page, or the page of one step, with these mechanisms."""
    return {"pair": pairs.task(PAIR).title, "text": text, "show": [title(name) for name in mechanisms]} | others


def heads_state(text: str = SENTENCE, **others: str) -> dict[str, str]:
    """The parameters that open the page of heads with the Transformer."""
    return {"model": f"{ModelName.parse(model(PAIR, 'transformer')).task.title} · Transformer", "text": text} | others


@dataclass(frozen=True)
class StudyColumn:
    """A number of a study's rows. form : its format; share : the number that it is divided by first."""

    key: str
    title: str
    form: str = ".1f"
    share: float = 1


@dataclass(frozen=True)
class StudyTable:
    """A study in a chapter. label : the key of a second name of its rows, such as the rate of dropout."""

    name: str
    heading: str
    words: str
    columns: tuple[StudyColumn, ...]
    label: str = ""


MECHANISMS_STUDY = StudyTable(
    "mechanisms",
    "What each mechanism costs and gives",
    "Measured: the models of English to French that ship here, on captions. They were trained for different times, in "
    "one run each, so small differences may be chance. BLEU (0 to 100) says how much a translation agrees with one "
    "by a person.",
    (
        StudyColumn("bleu_lc", "BLEU"),
        StudyColumn("error_rate", "alignment error", ".2f"),
        StudyColumn("parameters", "parameters (millions)", ".1f", 1e6),
        StudyColumn("seconds", "training (minutes)", ".0f", 60),
        StudyColumn("peak_memory_mb", "memory in training (MB)", ".0f"),
        StudyColumn("ms_per_sentence", "ms a sentence", ".1f"),
    ),
)
DROPOUT_STUDY = StudyTable(
    "dropout",
    "Dropout of attention weights in training",
    "Measured: a share of the weights is set to 0 at random in each step of training, and never afterwards. The gap is "
    "the loss on validation minus that on training sentences.",
    (
        StudyColumn("test_bleu_lc", "BLEU"),
        StudyColumn("entropy_nats", "entropy (nats)", ".2f"),
        StudyColumn("max_weight", "largest weight", ".2f"),
        StudyColumn("gap", "gap of the losses", ".2f"),
    ),
    "attention_dropout",
)


def study_table(study: StudyTable) -> list[Cell]:
    """The study as a table under its heading; none if it has not been run."""
    read = [row for row in caches.study(study.name).get("rows", ()) if row.get("mechanism") in ALL]
    rows = [(_name(study, row), _numbers(study, row)) for row in read]
    if not rows:
        return []
    table = tables.table(study.heading, [column.title for column in study.columns], rows)
    return [Cell(f'<h4>{study.heading}</h4><p class="small">{study.words}</p>{table}', None)]


def _name(study: StudyTable, row: dict) -> str:
    more = f", {row[study.label]:.0%}" if study.label and checkpoint_values.numbers(row, study.label) else ""
    return title(row["mechanism"]) + more


def _numbers(study: StudyTable, row: dict) -> list[str]:
    return [
        tables.cell(row[column.key] / column.share, column.form) if checkpoint_values.numbers(row, column.key) else "–"
        for column in study.columns
    ]
