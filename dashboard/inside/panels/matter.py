"""Does attention matter for this sentence? Permutations, preserved words, gradients beside attention, erased tokens."""

from dataclasses import replace

import streamlit as st

from attnviz.faithfulness import CHANGES, spread_of_tau
from attnviz.figures import heatmap
from attnviz.figures.faithfulness import erasure_curves, saliency, variation_by_weight
from attnviz.select import Grid, select
from dashboard.browser.plot import named, plots
from dashboard.inside import caches
from dashboard.inside.scene import InsideScene
from dashboard.inside.faithfulness import GRADIENT, LEFT_OUT, FaithfulnessTests
from dashboard.markup import tables
from dashboard.markup.text import markdown
from dashboard.shell.problems import sentence

INTEGRATED = "integrated gradients, this step"
DEBATE = (
    "<b>Attention is not by itself an explanation.</b> "
    '<a href="https://aclanthology.org/N19-1357/">Jain and Wallace (2019)</a> permuted the attention of classifiers '
    "and often changed nothing. "
    '<a href="https://aclanthology.org/D19-1002/">Wiegreffe and Pinter (2019)</a> answered that an explanation need '
    "not be the only one. "
    '<a href="https://arxiv.org/abs/1909.11218">Vashishth et al. (2019)</a> expect attention to matter more in '
    "translation than in classification. "
    '<a href="https://aclanthology.org/D19-5624/">Moradi et al. (2019)</a> tested translation, and found content words '
    "to depend on it more than function words."
)


@st.fragment
def show(current: InsideScene, dark: bool) -> None:
    st.subheader("Does it matter?", divider="gray")
    st.html(f'<p class="small">{DEBATE}</p>')
    if not st.toggle(
        "Test attention on this sentence", key="tests", bind="query-params", help="Takes a second or two."
    ):
        return
    try:
        tests = caches.tests(current.choices.model, current.text)
    except ValueError as error:
        st.error(markdown(sentence(str(error))), icon=":material/info:")
        return
    st.html(f'<p class="what" role="status">{verdict(tests)}</p>')
    plots(
        [
            ("<h4>Moved attention</h4>", named(variation_by_weight(tests.variation, dark=dark), "variation", dark)),
            ("<h4>Erased source tokens</h4>", named(erasure_curves(tests.erased, dark=dark), "erasure", dark)),
        ],
        "tests",
    )
    _saliency(current, tests, dark)
    st.html(_preserved(tests) + _agreement(tests))


def verdict(tests: FaithfulnessTests) -> str:
    """What the permutations and the erased tokens say of this sentence, and what they cannot say."""
    variation, erased = tests.variation["median"].median(), tests.erased
    moved = "little" if variation < 0.1 else "somewhat" if variation < 0.4 else "strongly"
    own, chance = (erased[name]["comprehensiveness"].mean() for name in ("attention", "random"))
    return (
        f"Permuting attention at a step moves its next-token distribution {moved}: median total variation "
        f"{variation:.2f} of at most 1. Deleting the source tokens with the largest weights costs {own:.2f} of "
        f"probability, deleting random ones {chance:.2f}. Both tests give the model unusual inputs. Neither alone "
        "explains why it wrote a word."
    )


def _saliency(current: InsideScene, tests: FaithfulnessTests, dark: bool) -> None:
    """Attention and attributions on the same axes."""
    method = st.segmented_control(
        "Beside attention",
        [GRADIENT, LEFT_OUT, INTEGRATED],
        default=GRADIENT,
        required=True,
        key="method",
        bind="query-params",
    )
    trace = tests.subject.trace
    grid = _mean(select(trace, "cross", 0), tests)
    delta = ""
    if method == INTEGRATED:
        step = min(st.session_state["step"], len(trace.target)) - 1
        gradients = caches.integrated(current.choices.model, current.text, step)
        grid, values = _row(grid, step), gradients.values
        delta = f" Completeness error: {gradients.delta[0]:+.3f} nats (the sum of the row against the true change)."
    else:
        values = tests.attributions[method]
    beside = saliency(grid, values, method, dark=dark)
    shown = named(heatmap(grid, dark=dark), "attention, mean of heads", dark)
    plots(
        [
            ("<h4>Attention, mean of all layers and heads</h4>", shown),
            (f"<h4>{method}</h4><p class='small'>{delta}</p>", named(beside, method, dark)),
        ],
        "saliency",
    )


def _mean(grid: Grid, tests: FaithfulnessTests) -> Grid:
    return replace(grid, weights=tests.subject.attention, layer=None, head=None)


def _row(grid: Grid, step: int) -> Grid:
    """The grid's one row of a step."""
    only = slice(step, step + 1)
    return replace(
        grid,
        queries=grid.queries[only],
        weights=grid.weights[only],
        removed=grid.removed[only],
        visible=grid.visible[only],
    )


def _preserved(tests: FaithfulnessTests) -> str:
    shares = tests.preserved.groupby(["change", "kind"])["preserved"].mean().unstack()
    kinds = [kind for kind in ("function", "content", "other") if kind in shares]
    rows = [
        (
            change.title,
            [tables.cell(100 * float(shares.loc[str(change), kind]), ".0f") for kind in kinds],
        )
        for change in CHANGES
    ]
    return tables.table(
        "Tokens that stay the first choice when attention is changed at their step (per cent)",
        [f"{kind} words" if kind != "other" else "others" for kind in kinds],
        rows,
    )


def _agreement(tests: FaithfulnessTests) -> str:
    means = tests.agreement.groupby("method")[["tau_b", "top1"]].mean()
    rows = [
        (method, [f"{means.loc[method, 'tau_b']:+.2f}", f"{100 * means.loc[method, 'top1']:.0f}"])
        for method in tests.attributions
    ]
    spread = spread_of_tau(len(tests.subject.source))
    return tables.table(
        f"Agreement with attention, mean over target tokens (for random orders: 0 ± {spread:.2f} for each token)",
        ["Kendall’s τ-b", "same first token (per cent)"],
        rows,
    )
