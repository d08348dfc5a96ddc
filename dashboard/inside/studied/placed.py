"""The sentence at hand among those of the study of the shipped models: what it measures, and its percentile."""

import html

from attnviz.faithfulness.sentence import percentile
from attnviz.models.names import ModelName
from dashboard.inside.scene import Column
from dashboard.inside.faithfulness import FaithfulnessTests
from dashboard.markup import tables
from dashboard.session import caches

Tested = tuple[Column, FaithfulnessTests]
MEASURES = {
    "variation median": "total variation under permuted attention",
    "variation uniform": "total variation under uniform attention",
    "preserved uniform function": "function words preserved under uniform attention",
    "preserved uniform content": "content words preserved under uniform attention",
    "tau gradient": "Kendall’s τ-b of attention and gradient × input",
    "tau leave-one-out": "Kendall’s τ-b of attention and leave one out",
    "comprehensiveness attention": "probability lost without the most attended tokens",
}


def placed(tested: list[Tested]) -> str:
    """A table, HTML: one row per measure, each model's value for the sentence and its percentile; and the source."""
    study_rows = [(column, tests.tested.sums, study(column.model)) for column, tests in tested]
    columns = [name for column, _, _ in study_rows for name in (column.title, "percentile")]
    rows = [
        (title, [text for _, sums, rows in study_rows for text in _cells(sums.get(name), rows.get(name, {}))])
        for name, title in MEASURES.items()
    ]
    caption = "This sentence, and how many per cent of the study’s sentences have a smaller value"
    return tables.table(caption, columns, rows) + f'<p class="small">{_source(study_rows)}</p>'


def _cells(sums: tuple[float, int] | None, row: dict) -> list[str]:
    if not sums or not sums[1]:
        return ["–", "–"]
    value, quantiles = sums[0] / sums[1], row.get("quantiles")
    rising = isinstance(quantiles, list) and all(isinstance(number, int | float) for number in quantiles)
    place = percentile(quantiles if rising else (), round(value, 4))
    return [f"{value:.2f}", "–" if place is None else f"{place:.0f}"]


def study(model: str) -> dict[str, dict]:
    """measure -> its row, of the study of this very model; {} when there is none: its weights may be newer."""
    results = caches.study("faithfulness")
    models = [entry.get("weights_sha256") for entry in results.get("models", ())]
    name = ModelName.parse(model)
    if caches.fingerprint(model) not in models:
        return {}
    return {
        row.get("measure"): row
        for row in results.get("rows", ())
        if (row.get("pair"), row.get("mechanism")) == (name.pair, name.mechanism) and type(row.get("measure")) is str
    }


def _counts(study_rows: list) -> str:
    """`500`, or `498 to 500` where a measure has no value for some, such as of function words."""
    counts = {rows[name].get("sentences", "?") for _, _, rows in study_rows for name in MEASURES if name in rows}
    ends = sorted({min(counts, default="?"), max(counts, default="?")})
    return " to ".join(html.escape(str(count)) for count in ends)


def _source(study_rows: list) -> str:
    """Which study the percentiles are from, or why there are none."""
    missing = [column.title for column, _, rows in study_rows if not rows]
    notes = []
    if len(missing) < len(study_rows):
        command = html.escape(str(caches.study("faithfulness").get("command", "?")))
        notes.append(f"Percentiles are measured among {_counts(study_rows)} test sentences (<code>{command}</code>).")
    if missing:
        notes.append(
            f"No percentile for {html.escape(', '.join(missing))}: the study has not been run on these weights."
        )
    return " ".join(notes)
