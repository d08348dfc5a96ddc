"""The results of the tests of attention, as sentences, charts and tables; a column a model."""

import html
from collections.abc import Sequence
from dataclasses import replace

import pandas as pd

from attnviz.faithfulness import CHANGES, spread_of_tau
from attnviz.faithfulness.sentence import METHODS, ORDERS
from attnviz.figures import heatmap, labels
from attnviz.figures.faithfulness import erasure_curves, saliency, variation_by_weight
from attnviz.select import Grid, select
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches
from dashboard.inside.scene import Column
from dashboard.inside.faithfulness import FaithfulnessTests
from dashboard.markup import tables

GRADIENT, LEFT_OUT, INTEGRATED = "gradient", "leave-one-out", "integrated"
METHOD_TITLES = METHODS | {INTEGRATED: "integrated gradients, this step"}
_PERMUTED = '<a href="https://aclanthology.org/N19-1357/">Jain and Wallace 2019</a>'
_ERASED = '<a href="https://aclanthology.org/2020.acl-main.408/">DeYoung et al. 2020</a>'
Tested = tuple[Column, FaithfulnessTests]


def verdict(column: Column, tests: FaithfulnessTests) -> str:
    """What the permutations and the erased tokens say of this sentence, and what they cannot say; HTML."""
    variation, erased = tests.tested.variation["median"].median(), tests.tested.erased
    moved = "little" if variation < 0.1 else "somewhat" if variation < 0.4 else "strongly"
    own, chance = (erased[name]["comprehensiveness"].mean() for name in ("attention", "random"))
    return (
        f"<b>{html.escape(column.title)}.</b> "
        f"Permuting attention at a step moves its next-token distribution {moved}: median total variation "
        f"{variation:.2f} of at most 1 (the test of {_PERMUTED}). Deleting the source tokens with the largest weights "
        f"lowers the token’s probability by {own:.2f} on average, deleting random tokens by {chance:.2f} "
        f"(comprehensiveness, {_ERASED}). Both tests give the model unusual inputs. Neither alone explains why it "
        "wrote a word."
    )


def cells(tested: Sequence[Tested], method: str, step: int, dark: bool) -> list[Cell]:
    """Row by row: moved attention, erased tokens, attention, and attributions beside it. step : from 0."""
    beside = {id(tests): _attributions(column, tests, method, step) for column, tests in tested}
    rows = (
        lambda column, tests: _cell(
            column, "moved attention", variation_by_weight(tests.tested.variation, dark=dark), dark
        ),
        lambda column, tests: _cell(column, "erased source tokens", erasure_curves(_said(tests), dark=dark), dark),
        lambda column, tests: _cell(
            column, "attention, mean of all layers and heads", heatmap(beside[id(tests)][0], dark=dark), dark
        ),
        lambda column, tests: _beside(column, *beside[id(tests)], METHOD_TITLES[method], dark),
    )
    return [row(column, tests) for row in rows for column, tests in tested]


def _cell(column: Column, words: str, figure, dark: bool, note: str = "") -> Cell:
    name = f"{column.title}: {words}"
    return f"<h4>{html.escape(name)}</h4>{note}", named(figure, name, dark)


def _beside(column: Column, grid: Grid, values, note: str, title: str, dark: bool) -> Cell:
    return _cell(column, title, saliency(grid, values, title, dark=dark), dark, note)


def _said(tests: FaithfulnessTests) -> dict[str, pd.DataFrame]:
    """Erasure by orders with their names for readers."""
    return {METHODS.get(name, name): frame for name, frame in tests.tested.erased.items()}


def _attributions(column: Column, tests: FaithfulnessTests, method: str, step: int):
    """Attention as a grid, attributions of the same cells, and a note on them, HTML."""
    trace = tests.subject.trace
    grid = replace(select(trace, "cross", 0), weights=tests.subject.attention, layer=None, head=None)
    if method != INTEGRATED:
        return grid, tests.tested.attributions[method], ""
    step = min(step, len(trace.target) - 1)
    gradients = caches.integrated(column, step)
    note = f"Completeness error: {gradients.delta[0]:+.3f} nats (the sum of the row against the true change)."
    return _row(grid, step), gradients.values, f'<p class="small">{note}</p>'


def _row(grid: Grid, step: int) -> Grid:
    """The grid's one row of a step."""
    only = slice(step, step + 1)
    parts = {name: getattr(grid, name)[only] for name in ("queries", "weights", "removed", "visible")}
    return replace(grid, **parts)


def tables_of(tested: Sequence[Tested], every: bool) -> str:
    """Preserved tokens and agreement; with `every`, the numbers of the charts too."""
    shown = [_preserved, _agreement] + ([_variation, _erasure] if every else [])
    return "".join(table(column, tests) for table in shown for column, tests in tested)


def _preserved(column: Column, tests: FaithfulnessTests) -> str:
    shares = tests.tested.preserved.groupby(["change", "kind"])["preserved"].mean().unstack()
    kinds = [kind for kind in ("function", "content", "other") if kind in shares]
    rows = [
        (change.title, [tables.cell(100 * float(shares.loc[str(change), kind]), ".0f") for kind in kinds])
        for change in CHANGES
    ]
    return tables.table(
        f"{column.title}: tokens that stay the first choice when attention is changed at their step (per cent)",
        [f"{kind} words" if kind != "other" else "others" for kind in kinds],
        rows,
    )


def _agreement(column: Column, tests: FaithfulnessTests) -> str:
    means = tests.tested.agreement.groupby("method")[["tau_b", "top1"]].mean()
    rows = [
        (METHODS[method], [f"{means.loc[method, 'tau_b']:+.2f}", f"{100 * means.loc[method, 'top1']:.0f}"])
        for method in tests.tested.attributions
    ]
    spread = spread_of_tau(len(tests.subject.source))
    return tables.table(
        f"{column.title}: agreement with attention, mean over target tokens (for random orders: 0 ± {spread:.2f} for "
        "each token)",
        ["Kendall’s τ-b", "same first token (per cent)"],
        rows,
    )


def _variation(column: Column, tests: FaithfulnessTests) -> str:
    names = {"max_weight": "maximum weight", "median": "permuted, median", "uniform": "uniform"}
    frame = tests.tested.variation
    rows = [
        (f"{step + 1} {labels.plain(token)}", [tables.cell(value, ".3f") for value in row])
        for step, token, row in zip(frame["step"], frame["token"], frame[[*names]].to_numpy())
    ]
    caption = f"{column.title}: total variation of the next token when attention is moved"
    return tables.table(caption, [*names.values()], rows, (column.languages.target, "en"))


def _erasure(column: Column, tests: FaithfulnessTests) -> str:
    rows = []
    for order in ORDERS:
        means = tests.tested.erased[order].groupby("share")[["comprehensiveness", "sufficiency"]].mean()
        rows += [
            (f"{METHODS.get(order, order)}, {share:.0%} of the tokens", [f"{value:.3f}" for value in row])
            for share, row in zip(means.index, means.to_numpy())
        ]
    caption = f"{column.title}: probability lost when source tokens are erased, mean over target tokens"
    return tables.table(caption, ["without them", "with them alone"], rows)


def frame(column: Column, tests: FaithfulnessTests) -> pd.DataFrame:
    """One row a measure, as it is saved: its mean over target tokens, and of how many."""
    rows = [(column.model, name, total / count, count) for name, (total, count) in tests.tested.sums.items() if count]
    return pd.DataFrame(rows, columns=["model", "measure", "mean", "tokens"])
