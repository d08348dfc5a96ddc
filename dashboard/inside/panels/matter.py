"""Does attention matter for this sentence? Permutations, preserved words, gradients beside attention, erased tokens.

The tests run a stage at a time: in between, the page says how far they are, and Stop is heard.
"""

import contextlib

import streamlit as st
from streamlit.errors import StreamlitAPIException

from dashboard.browser.plot import plots
from dashboard.inside import caches, downloads, faithfulness_results, faithfulness_study
from dashboard.inside.faithfulness import STAGES, RunningTests
from dashboard.inside.faithfulness_results import AT_ONCE, GRADIENT, OFFERED, TITLES, Results, attributed
from dashboard.inside.faithfulness_study import TestedColumn, percentiles
from dashboard.inside.scene import InsideScene
from dashboard.markup.terms import says
from dashboard.markup.text import markdown
from dashboard.session import address
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
    under_way = [(column, caches.testing(column)) for column in current.columns]
    other = faithfulness_study.classifier(current.columns[0])
    judged = caches.testing(other) if other else None
    _finish([testing for _, testing in under_way] + [judged] * bool(judged))
    for column, testing in under_way:
        if testing.problem:
            st.error(markdown(f"{column.title}: {sentence(testing.problem)}"), icon=":material/info:")
    tested = [(column, testing.tests) for column, testing in under_way if testing.tests]
    if tested:
        _results(current, tested, faithfulness_study.both_tasks(tested, other, judged) if other else "", dark)


def _finish(testings: list[RunningTests]) -> None:
    """Do the stages that are left, and say how far they are.

    A run of this panel alone does one and begins anew, since only then it hears whether the switch was moved. A run of
    the whole page does all: Streamlit stops it when anything is moved.
    """
    if all(testing.finished for testing in testings):
        return
    bar = st.empty()
    while waiting := [testing for testing in testings if not testing.finished]:
        done, count = sum(testing.done for testing in testings), STAGES * len(testings)
        bar.progress(done / count, f"Tests: {done} of {count} stages done. Switch the tests off to stop.")
        with turns.long_turn():
            waiting[0].advance(turns.let_go_if_asked)
        with contextlib.suppress(StreamlitAPIException):  # the whole page is run
            st.rerun(scope="fragment")
    bar.empty()


def _results(current: InsideScene, tested: list[TestedColumn], of_tasks: str, dark: bool) -> None:
    """of_tasks : the comparison with the classifier, HTML."""
    above = st.container()
    method = st.segmented_control(
        "Beside attention",
        OFFERED,
        default=GRADIENT,
        required=True,
        format_func=TITLES.get,
        key="method",
        bind="query-params",
        help="Integrated gradients of all target tokens take a second or two for each model.",
    )
    shown = _attributed(tested, method)
    with above:
        st.html("".join(faithfulness_results.verdict(of.column, of.tests, of.attributed) for of in shown))
        st.html(f'<p class="small caveat">{faithfulness_results.LIMITS}</p>')
        st.html(percentiles(tested))
        st.html(of_tasks or "<p></p>")
    cells = faithfulness_results.cells(shown, dark)
    with st.container(key=f"tested{len(shown)}"):  # style.css: a column for each model
        plots(cells, "tests")
    st.html(faithfulness_results.tables_of(shown, current.choices.tables))
    downloads.offer("tests", cells, [faithfulness_results.means_frame(of) for of in shown])
    downloads.offer("agreement", (), [faithfulness_results.tokens_frame(of) for of in shown])
    downloads.csv_button("tests")


def _attributed(tested: list[TestedColumn], method: str) -> list[Results]:
    """The tests with the attributions of the chosen method; the page says how far they are."""
    count = sum(-(-len(tests.subject.target) // AT_ONCE) for _, tests in tested)
    steps = Steps("Integrated gradients", count, "stop-gradients", _without_integrated)
    shown = [Results(column, tests, attributed(column, tests, method, steps)) for column, tests in tested]
    steps.end()
    return shown


def _without_integrated() -> None:
    st.session_state["method"] = GRADIENT
