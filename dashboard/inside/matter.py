"""Does attention matter for this sentence? Permutations, preserved words, gradients beside attention, erased tokens;
the sentence beside the stored study, and translation against classification (Vashishth et al. 2019).

The tests run a stage at a time; in between, the page shows progress and can be stopped.
"""

from dataclasses import dataclass
from functools import partial

import streamlit as st

from attnviz.data.tasks import SST2, Task
from attnviz.faithfulness.sentence import percentile
from attnviz.models import checkpoint_files
from attnviz.models.names import ModelName, is_hugging_face
from dashboard.browser.plot import plots
from dashboard.inside import caches, downloads, faithfulness
from dashboard.inside.scene import Column, InsideScene
from dashboard.markup import tables
from dashboard.markup.terms import says
from dashboard.markup.text import escape, markdown
from dashboard.session import address
from dashboard.session import caches as session_caches
from dashboard.shell import turns
from dashboard.shell.problems import sentence
from dashboard.shell.turns import Steps

TITLE = "Does it matter?"

DEBATE = (
    f"<b>Attention is not by itself an explanation.</b> {says('jain')} permuted the attention of classifiers and often "
    f"changed nothing. {says('wiegreffe')} answered that an explanation need not be the only one. {says('vashishth')} "
    f"expect attention to matter more in translation than in classification. {says('moradi')} tested translation, and "
    "found content words to depend on it more than function words."
)
TestedColumn = tuple[Column, faithfulness.FaithfulnessTests]
MEASURES = {
    "variation median": "total variation under permuted attention",
    "variation uniform": "total variation under uniform attention",
    "preserved uniform function": "function words preserved under uniform attention",
    "preserved uniform content": "content words preserved under uniform attention",
    "tau gradient": "Kendall’s τ-b of attention and gradient × input",
    "tau leave-one-out": "Kendall’s τ-b of attention and leave one out",
    "comprehensiveness attention": "probability lost without the most attended tokens",
}
CLASSIFIER = str(ModelName(SST2.name, "self-attention"))
BOTH_TASKS = {  # measure -> its words, and the form of its values
    "preserved uniform all": ("tokens, or the label, that stay under uniform attention (share)", ".2f"),
    "preserved last-only all": ("… with attention on the last state only (share)", ".2f"),
    "variation median": ("total variation under permuted attention", ".3f"),
    "variation uniform": ("total variation under uniform attention", ".3f"),
    "comprehensiveness attention": ("probability lost without the most attended tokens", ".2f"),
}


@address.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader(TITLE, divider="gray")
    st.html(f'<p class="small caveat">{DEBATE}</p>')
    if not st.toggle(
        "Test attention on this sentence",
        key="tests",
        bind="query-params",
        help="The tests take a second or two for each model. Switch them off to stop; what is done so far is kept.",
    ):
        downloads.drop("tests")
        downloads.drop("agreement")
        return
    with turns.errors_shown():
        _test(current, dark)


def _test(current: InsideScene, dark: bool) -> None:
    under_way = [(column, caches.testing(column)) for column in current.columns]
    other = classifier(current.columns[0])
    judged = caches.testing(other) if other else None
    _finish([testing for _, testing in under_way] + [judged] * bool(judged))
    for column, testing in under_way:
        if testing.problem:
            st.error(markdown(f"{column.title}: {sentence(testing.problem)}"), icon=":material/info:")
    tested_columns = [(column, testing.tests) for column, testing in under_way if testing.tests]
    if tested_columns:
        _results(current, tested_columns, both_tasks(tested_columns, other, judged) if other else "", dark)


def _finish(testings: list[faithfulness.RunningTests]) -> None:
    """Do the remaining stages, and show progress.

    A run of this panel alone does one stage and requests the next run, because only a new run sees that the switch was
    moved. A run of the whole page, or of what is around this panel, does all stages; it ends when anything is moved.
    """
    if all(testing.finished for testing in testings):
        return
    bar = st.empty()
    while waiting := [testing for testing in testings if not testing.finished]:
        done, count = sum(testing.done for testing in testings), faithfulness.STAGES * len(testings)
        bar.progress(done / count, f"Tests: {done} of {count} stages done. Switch the tests off to stop.")
        with turns.long_turn([waiting[0].model]):
            waiting[0].advance(turns.end_if_superseded)
        if address.runs_alone():
            st.rerun(scope="fragment")
    bar.empty()


def _results(current: InsideScene, tested_columns: list[TestedColumn], of_tasks: str, dark: bool) -> None:
    """of_tasks : the comparison with the classifier, HTML."""
    above = st.container()
    method = st.segmented_control(
        "Beside attention",
        faithfulness.OFFERED,
        default=faithfulness.GRADIENT,
        required=True,
        format_func=faithfulness.TITLES.get,
        key="method",
        bind="query-params",
        help="Integrated gradients of all target tokens take a second or two for each model.",
    )
    shown = _attributed(tested_columns, method)
    with above:
        st.html("".join(faithfulness.verdict(result.column, result.tests, result.attributed) for result in shown))
        st.html(f'<p class="small caveat">{faithfulness.LIMITS}</p>')
        st.html(percentiles(tested_columns))
        st.html(of_tasks or "<p></p>")
    cells = faithfulness.results_cells(shown, dark)
    with st.container(key=f"tested{len(shown)}"):  # style.css: a column for each model
        plots(cells, "tests")
    st.html(faithfulness.tables_of(shown, current.choices.tables))
    downloads.offer("tests", cells, [faithfulness.means_frame(result) for result in shown])
    downloads.offer("agreement", (), [faithfulness.tokens_frame(result) for result in shown])
    downloads.csv_button("tests")


def _attributed(tested_columns: list[TestedColumn], method: str) -> list[faithfulness.FaithfulnessResults]:
    """The tests with the attributions of the chosen method; the page shows progress."""
    count = sum(-(-len(tests.subject.target) // faithfulness.AT_ONCE) for _, tests in tested_columns)
    stop = partial(st.session_state.update, method=faithfulness.GRADIENT)
    steps = Steps("Integrated gradients", count, "stop-gradients", stop)
    shown = [
        faithfulness.FaithfulnessResults(column, tests, faithfulness.attribution(column, tests, method, steps))
        for column, tests in tested_columns
    ]
    steps.end()
    return shown


def percentiles(tested_columns: list[TestedColumn]) -> str:
    """A table, HTML: one row per measure, each model's value for the sentence and its percentile; and the source."""
    study_rows = [(column, tests.results.sums, measured(column.model)) for column, tests in tested_columns]
    columns = [name for column, _, _ in study_rows for name in (column.title, "percentile")]
    rows = [
        (
            title,
            [text for _, sums, rows in study_rows for text in _percentile_cells(sums.get(name), rows.get(name, {}))],
        )
        for name, title in MEASURES.items()
    ]
    caption = "This sentence, and how many per cent of the study’s sentences have a smaller value"
    return tables.table(caption, columns, rows) + f'<p class="small">{_source(study_rows)}</p>'


def _percentile_cells(sums: tuple[float, int] | None, row: dict) -> list[str]:
    if not sums or not sums[1]:
        return ["–", "–"]
    value, quantiles = sums[0] / sums[1], row.get("quantiles")
    rising = isinstance(quantiles, list) and all(isinstance(number, int | float) for number in quantiles)
    place = percentile(quantiles if rising else (), round(value, 4))
    return [f"{value:.2f}", "–" if place is None else f"{place:.0f}"]


def measured(model: str) -> dict[str, dict]:
    """measure -> its row in the study of exactly these weights; {} if there is none."""
    results = session_caches.study("faithfulness")
    models = [entry.get("weights_sha256") for entry in results.get("models", ())]
    if is_hugging_face(model):
        return {}
    name = ModelName.parse(model)
    if session_caches.fingerprint(model) not in models:
        return {}
    return {
        row.get("measure"): row
        for row in results.get("rows", ())
        if (row.get("pair"), row.get("mechanism")) == (name.pair, name.mechanism) and type(row.get("measure")) is str
    }


def _counts(study_rows: list) -> str:
    """`500`, or `498 to 500` if a measure (such as of function words) has no value for some sentences."""
    counts = {rows[name].get("sentences", "?") for _, _, rows in study_rows for name in MEASURES if name in rows}
    ends = sorted({min(counts, default="?"), max(counts, default="?")})
    return " to ".join(escape(str(count)) for count in ends)


def _source(study_rows: list) -> str:
    """The study of the percentiles, or why there are none."""
    missing = [column.title for column, _, rows in study_rows if not rows]
    notes = []
    if len(missing) < len(study_rows):
        command = escape(str(session_caches.study("faithfulness").get("command", "?")))
        notes.append(f"Percentiles are measured among {_counts(study_rows)} test sentences (<code>{command}</code>).")
    if missing:
        notes.append(f"No percentile for {escape(', '.join(missing))}: the study has not been run on these weights.")
    return " ".join(notes)


@dataclass(frozen=True)
class ClassifiedText:
    """The classifier in the form of a column for `caches.testing`, with its own label of the text."""

    text: str
    model: str = CLASSIFIER
    target: None = None
    languages: Task = SST2
    writes = False


def classifier(column: Column) -> ClassifiedText | None:
    """The classifier for the text of a column that translates; None if it does not ship or cannot read the language."""
    fits = CLASSIFIER in checkpoint_files.names() and column.languages.source == "en" and not column.writes
    return ClassifiedText(column.text) if fits else None


def both_tasks(
    tested_columns: list[TestedColumn], classified: ClassifiedText, running: faithfulness.RunningTests
) -> str:
    """The panel's text on both tasks; HTML. running : the finished tests of the classifier."""
    if running.tests is None:
        return ""
    rows = [(column.title, column.model, tests.results.sums) for column, tests in tested_columns]
    rows.append(("Sentiment classifier", classified.model, running.tests.results.sums))
    columns = [name for title, *_ in rows for name in (title, "many sentences")]
    cells = [
        (
            words,
            [
                text
                for _, model, sums in rows
                for text in _study_cells(sums.get(measure), measured(model), measure, form)
            ],
        )
        for measure, (words, form) in BOTH_TASKS.items()
    ]
    caption = "Translation against classification: this sentence, and the mean of the study with its 95% interval"
    return f'<p class="what">{_verdict(tested_columns, running)}</p>' + tables.table(caption, columns, cells)


def _study_cells(sums: tuple[float, int] | None, rows: dict[str, dict], measure: str, form: str) -> list[str]:
    here = format(sums[0] / sums[1], form) if sums and sums[1] else "–"
    row = rows.get(measure, {})
    if row.get("value") is None:
        return [here, "–"]
    value, low, high = (format(row[key], form) for key in ("value", "low", "high"))
    return [here, f"{value} ({low} to {high})"]


def _verdict(tested_columns: list[TestedColumn], running: faithfulness.RunningTests) -> str:
    """Plain sentences on the results for this text, and their limits."""
    label = escape(running.tests.subject.trace.translation)
    stays = running.tests.results.sums["preserved uniform all"][0] == 1
    shares = []
    for column, tests in tested_columns:
        staying, count = tests.results.sums["preserved uniform all"]
        shares.append(f"{escape(column.title)} keeps {staying:.0f} of {count} tokens")
    return (
        f"<b>Translation against classification.</b> {says('vashishth')} expect attention to matter in translation, "
        f"and less in the classification of one sentence. Under uniform attention, {'; '.join(shares)}. The sentiment "
        f"classifier reads the same sentence as a review, and its label “{label}” {'stays' if stays else 'changes'}. "
        "One sentence and one classifier do not decide it: that model also has only two possible outputs, and layers "
        "that mix the tokens before its attention is changed."
    )
