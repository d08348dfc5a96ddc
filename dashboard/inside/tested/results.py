"""The results of the tests of attention as charts and tables; one column per model."""

import html
from collections.abc import Sequence
from dataclasses import dataclass, replace

import pandas as pd

from attnviz.faithfulness import CHANGES, spread_of_tau
from attnviz.faithfulness.sentence import METHODS, ORDERS
from attnviz.figures import heatmap, labels
from attnviz.figures.faithfulness import agreement_bars, erasure_curves, saliency, variation_by_weight
from attnviz.select import Grid, select
from dashboard.browser.plot import Cell, named
from dashboard.inside.faithfulness import FaithfulnessTests
from dashboard.inside.tested.attributed import Attributed
from dashboard.inside.scene import Column
from dashboard.markup import tables


@dataclass(frozen=True, eq=False)
class Results:
    """All that is shown of a model."""

    column: Column
    tests: FaithfulnessTests
    attributed: Attributed

    @property
    def grid(self) -> Grid:
        """Attention, the mean over all layers and heads."""
        trace = self.tests.subject.trace
        return replace(select(trace, "cross", 0), weights=self.tests.subject.attention, layer=None, head=None)

    @property
    def agreement(self) -> pd.DataFrame:
        """Of all methods, also of one that is computed only when it is chosen."""
        frames = [self.tests.tested.agreement, self.attributed.agreement]
        return pd.concat(frames, ignore_index=True).drop_duplicates(["step", "method"])

    @property
    def spread(self) -> float:
        """Of τ between random orders of this source's tokens."""
        return spread_of_tau(len(self.tests.subject.source))


def cells(results: Sequence[Results], dark: bool) -> list[Cell]:
    """Row by row: changed attention, erased tokens, attention, attributions beside it, and how far both agree."""
    rows = (
        lambda of: _cell(of, "changed attention", variation_by_weight(of.tests.tested.variation, dark=dark), dark),
        lambda of: _cell(of, "erased source tokens", erasure_curves(_named_orders(of), dark=dark), dark),
        lambda of: _cell(of, "attention, mean of all layers and heads", heatmap(of.grid, dark=dark), dark),
        lambda of: _attributions(of, dark),
        lambda of: _agreement_bars(of, dark),
    )
    return [row(of) for row in rows for of in results]


def _cell(of: Results, words: str, figure, dark: bool, note: str = "") -> Cell:
    name = f"{of.column.title}: {words}"
    return f"<h4>{html.escape(name)}</h4>{note}", named(figure, name, dark)


def _attributions(of: Results, dark: bool) -> Cell:
    shown = of.attributed
    return _cell(of, shown.title, saliency(of.grid, shown.values, shown.title, dark=dark), dark, shown.note)


def _agreement_bars(of: Results, dark: bool) -> Cell:
    figure = agreement_bars(of.tests.subject.trace.target, of.attributed.agreement, of.spread, dark=dark)
    note = '<p class="small">Pale: the two methods put different source tokens first.</p>'
    return _cell(of, f"agreement of attention and {of.attributed.title}, by target token", figure, dark, note)


def _named_orders(of: Results) -> dict[str, pd.DataFrame]:
    """Erasure by orders with their names for readers."""
    return {METHODS.get(name, name): frame for name, frame in of.tests.tested.erased.items()}


def tables_of(results: Sequence[Results], every: bool) -> str:
    """Preserved tokens and agreement; with `every`, the numbers of the charts too."""
    shown = [_preserved, _agreement] + ([_variation, _erasure, _maps, _by_token] if every else [])
    return "".join(table(of) for table in shown for of in results)


def _preserved(of: Results) -> str:
    shares = of.tests.tested.preserved.groupby(["change", "kind"])["preserved"].mean().unstack()
    kinds = [kind for kind in ("function", "content", "other") if kind in shares]
    rows = [
        (change.title, [tables.cell(100 * float(shares.loc[str(change), kind]), ".0f") for kind in kinds])
        for change in CHANGES
    ]
    return tables.table(
        f"{of.column.title}: tokens that stay the first choice when attention is changed at their step (per cent)",
        [f"{kind} words" if kind != "other" else "others" for kind in kinds],
        rows,
    )


def _agreement(of: Results) -> str:
    means = of.agreement.groupby("method")[["tau_b", "top1"]].mean()
    rows = [
        (METHODS[method], [tables.cell(means.loc[method, "tau_b"], "+.2f"), f"{100 * means.loc[method, 'top1']:.0f}"])
        for method in METHODS
        if method in means.index
    ]
    return tables.table(
        f"{of.column.title}: agreement with attention, mean over target tokens (random orders are expected to give 0, "
        f"with a standard deviation of {of.spread:.2f} for one token)",
        ["Kendall’s τ-b", "same first token (per cent)"],
        rows,
    )


def _by_token(of: Results) -> str:
    """τ-b of each target token, by method; the first token is marked where it is the same."""
    frame = of.agreement
    methods = [method for method in METHODS if method in set(frame["method"])]
    taus, same = (frame.pivot(index="step", columns="method", values=name) for name in ("tau_b", "top1"))
    rows = [
        (
            f"{step + 1} {labels.plain(token.text)}",
            [tables.cell(taus.loc[step, m], "+.2f") + ", same first token" * bool(same.loc[step, m]) for m in methods],
        )
        for step, token in enumerate(of.tests.subject.trace.target)
    ]
    caption = f"{of.column.title}: Kendall’s τ-b with attention, by target token"
    return tables.table(caption, [METHODS[method] for method in methods], rows, (of.column.languages.target, "en"))


def _variation(of: Results) -> str:
    names = {"max_weight": "maximum weight", "median": "permuted, median", "uniform": "uniform"}
    frame = of.tests.tested.variation
    rows = [
        (f"{step + 1} {labels.plain(token)}", [tables.cell(value, ".3f") for value in row])
        for step, token, row in zip(frame["step"], frame["token"], frame[[*names]].to_numpy())
    ]
    caption = f"{of.column.title}: total variation of the next token when attention is changed"
    return tables.table(caption, [*names.values()], rows, (of.column.languages.target, "en"))


def _erasure(of: Results) -> str:
    rows = []
    for order in ORDERS:
        means = of.tests.tested.erased[order].groupby("share")[["comprehensiveness", "sufficiency"]].mean()
        rows += [
            (f"{METHODS.get(order, order)}, {share:.0%} of the tokens", [f"{value:.3f}" for value in row])
            for share, row in zip(means.index, means.to_numpy())
        ]
    caption = f"{of.column.title}: probability lost when source tokens are erased, mean over target tokens"
    return tables.table(caption, ["without them", "with them alone"], rows)


def _maps(of: Results) -> str:
    """Attention, and the attributions of the same cells."""
    title, languages = of.column.title, of.column.languages
    attention = tables.grid_table(
        f"{title}: attention, mean of all layers and heads", of.grid, languages, of.grid.weights, ".2f"
    )
    shown = of.attributed
    return attention + tables.grid_table(f"{title}: {shown.title}", of.grid, languages, shown.values, "+.3f")


def frame(of: Results) -> pd.DataFrame:
    """One row per measure, as it is saved: its mean over target tokens, and of how many."""
    sums = of.tests.tested.sums
    rows = [(of.column.model, name, total / count, count) for name, (total, count) in sums.items() if count]
    return pd.DataFrame(rows, columns=["model", "measure", "mean", "tokens"])


def by_token(of: Results) -> pd.DataFrame:
    """One row per target token and method, as it is saved: steps count from 0."""
    return of.agreement.assign(model=of.column.model)[["model", "step", "token", "method", "tau_b", "top1"]]
