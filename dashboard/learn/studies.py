"""The stored studies of the shipped models as tables for the chapters. No Streamlit here."""

from dataclasses import dataclass

from attnviz.mechanisms import ALL
from attnviz.models.checks import values
from dashboard.browser.plot import Cell
from dashboard.choices.options import title
from dashboard.markup import tables
from dashboard.session import caches


@dataclass(frozen=True)
class Column:
    """A number of a study's rows. form : how it is printed; share : what it is divided by first."""

    key: str
    title: str
    form: str = ".1f"
    share: float = 1


@dataclass(frozen=True)
class StudyTable:
    """A study as a chapter shows it. label : the key of a second name of its rows, such as the rate of dropout."""

    name: str
    heading: str
    words: str
    columns: tuple[Column, ...]
    label: str = ""


MECHANISMS = StudyTable(
    "mechanisms",
    "What each mechanism costs and gives",
    "Measured: the models of English to French that ship here, on captions. They were trained for different times, in "
    "one run each, so small differences may be chance. BLEU (0 to 100) says how much a translation agrees with one "
    "by a person.",
    (
        Column("bleu_lc", "BLEU"),
        Column("error_rate", "alignment error", ".2f"),
        Column("parameters", "parameters (millions)", ".1f", 1e6),
        Column("seconds", "training (minutes)", ".0f", 60),
        Column("peak_memory_mb", "memory in training (MB)", ".0f"),
        Column("ms_per_sentence", "ms a sentence", ".1f"),
    ),
)
DROPOUT = StudyTable(
    "dropout",
    "Dropout of attention weights in training",
    "Measured: a share of the weights is set to 0 at random in each step of training, and never afterwards. The gap is "
    "the loss on validation minus that on training sentences.",
    (
        Column("test_bleu_lc", "BLEU"),
        Column("entropy_nats", "entropy (nats)", ".2f"),
        Column("max_weight", "largest weight", ".2f"),
        Column("gap", "gap of the losses", ".2f"),
    ),
    "attention_dropout",
)


def cell(study: StudyTable) -> list[Cell]:
    """The study as a table under its heading; none where it has not been run."""
    read = [row for row in caches.study(study.name).get("rows", ()) if row.get("mechanism") in ALL]
    rows = [(_name(study, row), _numbers(study, row)) for row in read]
    if not rows:
        return []
    table = tables.table(study.heading, [column.title for column in study.columns], rows)
    return [Cell(f'<h4>{study.heading}</h4><p class="small">{study.words}</p>{table}', None)]


def _name(study: StudyTable, row: dict) -> str:
    more = f", {row[study.label]:.0%}" if study.label and values.numbers(row, study.label) else ""
    return title(row["mechanism"]) + more


def _numbers(study: StudyTable, row: dict) -> list[str]:
    return [
        tables.cell(row[column.key] / column.share, column.form) if values.numbers(row, column.key) else "–"
        for column in study.columns
    ]
