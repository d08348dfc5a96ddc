"""Translation against classification: the models on show beside the sentiment classifier, on this sentence and in the
study of many (Vashishth et al. 2019)."""

import html
from dataclasses import dataclass

from attnviz.data.tasks.sst2 import SST2
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName
from dashboard.inside.faithfulness import RunningTests
from dashboard.inside.studied.placed import Tested, study
from dashboard.inside.scene import Column
from dashboard.markup import tables
from dashboard.markup.papers import says

CLASSIFIER = str(ModelName(SST2.name, "self-attention"))
MEASURES = {  # measure -> its words, and the form of its values
    "preserved uniform all": ("tokens, or the label, that stay under uniform attention (share)", ".2f"),
    "preserved last-only all": ("… with attention on the last state only (share)", ".2f"),
    "variation median": ("total variation under permuted attention", ".3f"),
    "variation uniform": ("total variation under uniform attention", ".3f"),
    "comprehensiveness attention": ("probability lost without the most attended tokens", ".2f"),
}


@dataclass(frozen=True)
class ClassifiedText:
    """The classifier as `caches.testing` takes a model: its own label of the text."""

    text: str
    model: str = CLASSIFIER
    target: None = None


def classifier(column: Column) -> ClassifiedText | None:
    """The classifier, asked about the text of a column; None where it does not ship or cannot read the language."""
    ships = CLASSIFIER in checkpoint_files.names()
    return ClassifiedText(column.text) if ships and column.languages.source == "en" else None


def beside(tested: list[Tested], classified: ClassifiedText, running: RunningTests) -> str:
    """What the panel says of both tasks; HTML. running : the tests of the classifier, finished."""
    if running.tests is None:
        return ""
    rows = [(column.title, column.model, tests.tested.sums) for column, tests in tested]
    rows.append(("Sentiment classifier", classified.model, running.tests.tested.sums))
    columns = [name for title, *_ in rows for name in (title, "many sentences")]
    cells = [
        (words, [text for _, model, sums in rows for text in _cells(sums.get(measure), study(model), measure, form)])
        for measure, (words, form) in MEASURES.items()
    ]
    caption = "Translation against classification: this sentence, and the mean of the study with its 95% interval"
    return f'<p class="what">{_verdict(tested, running)}</p>' + tables.table(caption, columns, cells)


def _cells(sums: tuple[float, int] | None, rows: dict[str, dict], measure: str, form: str) -> list[str]:
    here = format(sums[0] / sums[1], form) if sums and sums[1] else "–"
    row = rows.get(measure, {})
    if row.get("value") is None:
        return [here, "–"]
    value, low, high = (format(row[key], form) for key in ("value", "low", "high"))
    return [here, f"{value} ({low} to {high})"]


def _verdict(tested: list[Tested], running: RunningTests) -> str:
    """Plain sentences on this text, and what they do not show."""
    label = html.escape(running.tests.subject.trace.translation)
    stays = running.tests.tested.sums["preserved uniform all"][0] == 1
    shares = []
    for column, tests in tested:
        kept, count = tests.tested.sums["preserved uniform all"]
        shares.append(f"{html.escape(column.title)} keeps {kept:.0f} of {count} tokens")
    return (
        f"<b>Translation against classification.</b> {says('vashishth')} expect attention to matter in translation, "
        f"and less in the classification of one sentence. Under uniform attention, {'; '.join(shares)}. The sentiment "
        f"classifier reads the same sentence as a review, and its label “{label}” {'stays' if stays else 'changes'}. "
        "One sentence and one classifier do not decide it: that model also has only two possible outputs, and layers "
        "that mix the tokens before its attention is changed."
    )
