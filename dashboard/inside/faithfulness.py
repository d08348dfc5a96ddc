"""The tests of attention of one text, run stage by stage, so that the page can report progress and stop; and their
results: attributions beside attention, charts, tables and plain sentences. No Streamlit here."""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import torch

from attnviz.faithfulness import CHANGES, Subject, agreement, spread_of_tau
from attnviz.faithfulness.attributions import POINTS
from attnviz.faithfulness.sentence import INTEGRATED, METHODS, ORDERS, STAGES, Results
from attnviz.faithfulness.subject import Continued
from attnviz.figures import heatmap, labels
from attnviz.figures.faithfulness import agreement_bars, erasure_curves, saliency, variation_by_weight
from attnviz.figures.wording import signed
from attnviz.function_words import CONTENT, FUNCTION
from attnviz.select import Grid
from attnviz.service import ServiceError
from attnviz.trace import Trace
from dashboard.browser.plot import Cell, named
from dashboard.inside import caches
from dashboard.inside.scene import Column
from dashboard.markup import tables
from dashboard.markup.terms import cited
from dashboard.markup.text import escape
from dashboard.session.caches import work
from dashboard.shell.turns import Steps

GRADIENT, LEFT_OUT = "gradient", "leave-one-out"
OFFERED = (GRADIENT, LEFT_OUT, INTEGRATED)
TITLES = METHODS
AT_ONCE = 4  # target tokens whose integrated gradients are computed together
LIMITS = (
    "<b>What these tests cannot show.</b> A changed row of attention and a sentence with deleted tokens are unlike the "
    "training data, so a word may be lost for that reason alone. A word that stays could be written without that "
    "attention; this does not show that the model did not use it. Gradients are about small changes and are no ground "
    "truth. No test here explains by itself why the model wrote a word."
)


@dataclass(frozen=True, eq=False)
class FaithfulnessTests:
    """results : without integrated gradients, which take seconds and are computed when they are chosen
    (`attribution`)."""

    subject: Subject
    results: Results

    @property
    def read(self) -> str:
        """The noun for the tokens that are erased: `source` or `prompt`."""
        return "prompt" if isinstance(self.subject, Continued) else "source"


class RunningTests:
    """Running tests: `advance` does the next stage. All sessions with the same text share them.

    done : finished stages, of STAGES. tests : None until all are done. problem : why the text cannot be tested, or "".
    model : its name. language : that a model of the transformers library produces here.
    """

    def __init__(self, model: str, text: str, target: str | Trace | None, language: str = ""):
        self.tests: FaithfulnessTests | None = None
        self.problem, self.model = "", model
        self._text_and_target, self._language = (text, target), language
        self._results: list = []  # of the stages that are done
        self._lock = threading.Lock()

    @property
    def done(self) -> int:
        return len(self._results)

    @property
    def finished(self) -> bool:
        return self.tests is not None or bool(self.problem)

    def advance(self, on_step: Callable[[], None] = lambda: None) -> None:
        """Do the next stage. on_step : called repeatedly; an exception that it raises ends the stage, which is then
        repeated. Raises ServiceError."""
        with self._lock:
            if self.finished:
                return
            torch.set_num_threads(1)  # of this thread: small models are slower with more
            given, how = (*self._text_and_target, tuple(self._results)), {"on_step": on_step, "steps": "on_step"}
            try:
                made = work(self.model, "faithfulness.sentence:stage", *given, language=self._language, **how)
            except ServiceError:  # it may pass: the stage is repeated
                raise
            except ValueError as error:  # an empty translation
                self.problem = str(error)
                return
            self._results.append(made)
            if self.done == STAGES:
                subject, preserved, variation, (attributions, agreement), erased = self._results
                results = Results(preserved, variation, attributions, agreement, erased)
                self.tests = FaithfulnessTests(subject, results)


@dataclass(frozen=True, eq=False)
class Attributed:
    """method : of OFFERED. values (T, S). agreement : the rows of this method from `faithfulness.agreement`. note : on
    their accuracy, HTML."""

    method: str
    values: np.ndarray
    agreement: pd.DataFrame
    note: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.method]


def attribution(column: Column, tests: FaithfulnessTests, method: str, steps: Steps) -> Attributed:
    """The chosen attribution. Integrated gradients of all tokens take about a second; the others are already computed.
    steps : receives progress."""
    if method != INTEGRATED:
        frame = tests.results.agreement
        return Attributed(method, tests.results.attributions[method], frame[frame["method"] == method])
    gradients, target = caches.integrated(column, steps), tests.subject.trace.target
    frame = agreement(tests.subject.attention, {method: gradients.values}, target)
    worst = int(np.abs(gradients.delta).argmax())
    note = (
        f"Completeness error: at most {abs(gradients.delta[worst]):.2f} nats, at "
        f"{escape(labels.quoted(target, worst))}. It is the difference between the sum of a row and the true "
        f"change of log-probability. Where it is large, the row is not exact: {POINTS} points on the path were too few."
    )
    return Attributed(method, gradients.values, frame, f'<p class="small">{note}</p>')


@dataclass(frozen=True, eq=False)
class FaithfulnessResults:
    """All results shown for a model."""

    column: Column
    tests: FaithfulnessTests
    attributed: Attributed

    @property
    def grid(self) -> Grid:
        """Attention, the mean over all layers and heads."""
        trace, weights = self.tests.subject.trace, self.tests.subject.attention
        removed, sides = np.zeros(len(weights)), ("", "")
        if self.column.writes:
            removed, sides = 1 - weights.sum(-1), ("target", "prompt")
        visible = np.ones(weights.shape, dtype=bool)
        return Grid(
            *(trace.model, trace.mechanism, "cross", None, None, trace.target, trace.source),
            *(weights, removed, visible, sides),
        )

    @property
    def agreement(self) -> pd.DataFrame:
        """Of all methods, also of one that is computed only when it is chosen."""
        frames = [self.tests.results.agreement, self.attributed.agreement]
        return pd.concat(frames, ignore_index=True).drop_duplicates(["step", "method"])

    @property
    def spread(self) -> float:
        """Of τ between random orders of this source's tokens."""
        return spread_of_tau(len(self.tests.subject.source))


def results_cells(results: Sequence[FaithfulnessResults], dark: bool) -> list[Cell]:
    """Row by row: changed attention, erased tokens, attention, attributions beside it, and their agreement."""
    columns = [_cells(result, dark) for result in results]
    return [cell for row in zip(*columns) for cell in row]


def _cells(result: FaithfulnessResults, dark: bool) -> list[Cell]:
    """The pictures of a model, from top to bottom."""
    tests, shown, target = result.tests, result.attributed, result.tests.subject.trace.target
    orders = {METHODS.get(name, name): frame for name, frame in tests.results.erased.items()}
    pale = '<p class="small">Pale: the two methods put different source tokens first.</p>'
    agreed = f"agreement of attention and {shown.title}, by target token"
    pictures = (
        ("changed attention", variation_by_weight(target, tests.results.variation, dark=dark), ""),
        (f"erased {tests.read} tokens", erasure_curves(orders, dark=dark), ""),
        ("attention, mean of all layers and heads", heatmap(result.grid, dark=dark), ""),
        (shown.title, saliency(result.grid, shown.values, shown.title, dark=dark), shown.note),
        (agreed, agreement_bars(target, shown.agreement, result.spread, dark=dark), pale),
    )
    cells = []
    for words, figure, note in pictures:
        name = f"{result.column.title}: {words}"
        cells.append(Cell(f"<h4>{escape(name)}</h4>{note}", named(figure, name, dark)))
    return cells


def tables_of(results: Sequence[FaithfulnessResults], every: bool) -> str:
    """Preserved tokens and agreement; with `every`, the numbers of the charts too."""
    shown = [_preserved_table, _agreement_table] + (
        [_variation_table, _erasure_table, _maps_tables, _token_table] if every else []
    )
    return "".join(table(result) for table in shown for result in results)


def _preserved_table(result: FaithfulnessResults) -> str:
    shares = result.tests.results.preserved.groupby(["change", "kind"])["preserved"].mean().unstack()
    kinds = [kind for kind in ("function", "content", "other") if kind in shares]
    rows = tables.of_numbers(
        [change.title for change in CHANGES], 100 * shares.loc[[*map(str, CHANGES)], kinds].to_numpy(), ".0f"
    )
    return tables.table(
        f"{result.column.title}: tokens that stay the first choice when attention is changed at their step (per cent)",
        [f"{kind} words" if kind != "other" else "others" for kind in kinds],
        rows,
    )


def _agreement_table(result: FaithfulnessResults) -> str:
    means = result.agreement.groupby("method")[["tau_b", "top1"]].mean()
    rows = [
        (METHODS[method], [tables.cell(means.loc[method, "tau_b"], "+.2f"), f"{100 * means.loc[method, 'top1']:.0f}"])
        for method in METHODS
        if method in means.index
    ]
    return tables.table(
        f"{result.column.title}: agreement with attention, mean over target tokens (random orders are expected to give "
        f"0, with a standard deviation of {result.spread:.2f} for one token)",
        ["Kendall’s τ-b", "same first token (per cent)"],
        rows,
    )


def _token_table(result: FaithfulnessResults) -> str:
    """τ-b of each target token, by method; the first token is marked where it is the same."""
    frame = result.agreement
    methods = [method for method in METHODS if method in set(frame["method"])]
    taus, same = (frame.pivot(index="step", columns="method", values=name) for name in ("tau_b", "top1"))
    rows = [
        (
            name,
            [tables.cell(taus.loc[step, m], "+.2f") + ", same first token" * bool(same.loc[step, m]) for m in methods],
        )
        for step, name in enumerate(tables.numbered(result.tests.subject.trace.target))
    ]
    caption = f"{result.column.title}: Kendall’s τ-b with attention, by target token"
    return tables.table(caption, [METHODS[method] for method in methods], rows, (result.column.languages.target, "en"))


def _variation_table(result: FaithfulnessResults) -> str:
    names = {"max_weight": "maximum weight", "median": "permuted, median", "uniform": "uniform"}
    frame, tokens = result.tests.results.variation, tables.numbered(result.tests.subject.trace.target)
    steps = [tokens[step] for step in frame["step"]]
    rows = tables.of_numbers(steps, frame[[*names]].to_numpy(), ".3f")
    caption = f"{result.column.title}: total variation of the next token when attention is changed"
    return tables.table(caption, [*names.values()], rows, (result.column.languages.target, "en"))


def _erasure_table(result: FaithfulnessResults) -> str:
    rows = []
    for order in ORDERS:
        means = result.tests.results.erased[order].groupby("share")[["comprehensiveness", "sufficiency"]].mean()
        shares = [f"{METHODS.get(order, order)}, {share:.0%} of the tokens" for share in means.index]
        rows += tables.of_numbers(shares, means.to_numpy(), ".3f")
    caption = f"{result.column.title}: probability lost when source tokens are erased, mean over target tokens"
    return tables.table(caption, ["without them", "with them alone"], rows)


def _maps_tables(result: FaithfulnessResults) -> str:
    """Attention, and the attributions of the same cells."""
    title, languages = result.column.title, result.column.languages
    attention = tables.grid_table(f"{title}: attention, mean of all layers and heads", result.grid, languages)
    shown = result.attributed
    return attention + tables.grid_table(f"{title}: {shown.title}", result.grid, languages, "+.3f", shown.values)


def means_frame(result: FaithfulnessResults) -> pd.DataFrame:
    """One row per measure, for saving: its mean over target tokens, and their number."""
    sums = result.tests.results.sums
    rows = [(result.column.model, name, total / count, count) for name, (total, count) in sums.items() if count]
    return pd.DataFrame(rows, columns=["model", "measure", "mean", "tokens"])


def tokens_frame(result: FaithfulnessResults) -> pd.DataFrame:
    """One row per target token and method, as it is saved: steps count from 0."""
    return result.agreement.assign(model=result.column.model)[["model", "step", "token", "method", "tau_b", "top1"]]


def verdict(column: Column, tests: FaithfulnessTests, attributed: Attributed) -> str:
    """A sentence for each test of a model; HTML."""
    lines = (_permuted_words(tests), _preserved_words(tests), _erased_words(tests), _agreement_words(tests, attributed))
    items = "".join(f"<li>{line}</li>" for line in lines)
    return f'<div class="verdict" role="status"><b>{escape(column.title)}</b><ul>{items}</ul></div>'


def _permuted_words(tests: FaithfulnessTests) -> str:
    moved, uniform = (tests.results.variation[name].mean() for name in ("median", "uniform"))
    return (
        f"Permuting attention at a step moves its next-token distribution by {moved:.2f} on average (the median of 100 "
        f"permutations). Uniform attention moves it by {uniform:.2f}. This is total variation: 0 is no change, 1 is "
        f"the largest possible ({cited('jain')}, {cited('wiegreffe')})."
    )


def _preserved_words(tests: FaithfulnessTests) -> str:
    """By kinds of words, if the language has a list of function words; else over all tokens."""
    frame = tests.results.preserved
    frame = frame[frame["change"] == "uniform"]
    counts = {kind: rows["preserved"] for kind, rows in frame.groupby("kind") if kind in (FUNCTION, CONTENT)}
    counts = counts or {"": frame["preserved"]}
    shares = " and ".join(
        f"{int(preserved.sum())} of {len(preserved)} {f'{kind} words' if kind else 'tokens'}"
        for kind, preserved in sorted(counts.items(), reverse=True)
    )
    return f"Under uniform attention at their step, {shares} stay the model’s first choice ({cited('moradi')})."


def _erased_words(tests: FaithfulnessTests) -> str:
    of_largest, of_random = (tests.results.erased[name]["comprehensiveness"].mean() for name in ("attention", "random"))
    return (
        f"Deleting the {tests.read} tokens with the largest weights lowers the probability of a token by "
        f"{of_largest:.2f} on average. Deleting random tokens lowers it by {of_random:.2f} (comprehensiveness, "
        f"{cited('deyoung')})."
    )


def _agreement_words(tests: FaithfulnessTests, attributed: Attributed) -> str:
    random = tests.results.agreement.groupby("method")["tau_b"].mean()["random"]
    spread = spread_of_tau(len(tests.subject.source))
    return (
        f"Attention and {attributed.title} order the {tests.read} tokens with Kendall’s τ-b "
        f"{signed(attributed.agreement['tau_b'].mean(), 2)} on average (1: the same order, −1: the reverse order). "
        f"Random numbers give {signed(random, 2)} here; they are expected to give 0, with a standard deviation of "
        f"{spread:.2f} for one token ({cited('jain')})."
    )
