"""The functions that notebooks call, each with arguments that it takes, and values that are wrong in any place."""

import numpy as np
import pandas as pd
import torch

import attnviz
from attnviz import (
    ablation,
    across,
    alignment,
    confidence,
    faithfulness,
    figures,
    function_words,
    gold,
    heads,
    inside,
    intervene,
    patterns,
    rollout,
    select,
    stats,
)
from attnviz.across import reference
from attnviz.confidence import Judge, Scale, TrainingWords
from attnviz.corpus import CorpusConfig
from attnviz.export import bundle, html_page
from attnviz.trace import Trace


class Long:
    """Says more than fits in a message."""

    def __repr__(self):
        return "o\n" * 10**5


class Silent:
    """Cannot be said, compared or counted."""

    __hash__ = None

    def __repr__(self):
        raise RuntimeError("no")

    def __eq__(self, other):
        raise KeyError("no")

    def __len__(self):
        return -1


WRONG = (None, True, -1, 1.5, 10**400, "", "x" * 5000, "\ud800", b"x", [None], {"a": 1}, object(), Long(), Silent())
WRONG += (int, 1j, ..., iter([]), float("nan"), [10**400], ("cross", 0), set(), "5", 10**30, lambda: 1, [[1, 2], [3]])
WRONG += ([], {}, (), np.zeros((2, 2)), torch.zeros(2), np.array(5), np.full((3, 2), np.nan), np.array(["a"]))
WRONG += (pd.DataFrame(),)
WRONG += (np.array([None, 1], object), pd.Series([1.0]), np.array(["a\nb"] * 3, object))


def of_traces(model) -> dict:
    """Traces, tables and distances."""
    trace = model.trace("The black dog runs.")
    grid, head, table = select.select(trace), heads.Head("encoder", 0, 0), heads.table(trace)
    weights = np.full((2, 2), 0.5)
    rows = [[np.eye(2)[None, None]], [np.full((1, 1, 1, 3), 1 / 3)]]  # of two steps
    generated = {"sequences": np.array([[5, 6, 7, 8]]), "attentions": rows}
    return {
        attnviz.load: ["en-fr/none", None],
        attnviz.available: [None],
        attnviz.save_trace: [trace, f"{__file__}/x.json"],  # below a file nothing can be written
        attnviz.load_trace: ["/no/such/x.json"],
        attnviz.from_arrays: [[[weights]], ["a", "b"], ["c", "d"]],
        attnviz.from_generate: [generated, ["a", "b", "c"], None],
        model.trace: ["The dog.", "Le chien.", 1],
        model.traces: [["The dog."], ["Le chien."]],
        model.log_prob: ["The dog.", "Le chien."],
        Trace.from_json: ["{}"],
        trace.map: ["cross", 0],
        trace.queries: [trace.maps[0]],
        select.words: [trace],
        select.select: [trace, "cross", 0, 0, False, False],
        select.mean: [trace, "encoder", [(0, 0)], False, False],
        select.difference: [grid, grid],
        stats.rows: [weights, 0.1, None],
        stats.steps: [trace, 0.1],
        stats.of_grid: [grid, 0.1],
        stats.weights: [trace],
        heads.table: [trace, "encoder", ["distance"]],
        heads.most_like: [table, "previous", 2],
        heads.distances: [trace, [head, head]],
        heads.nearest: [trace, head],
        heads.search: [trace, trace.source[0].text, "encoder"],
        heads.search_all: [[trace], trace.source[0].text, "encoder"],
        heads.jensen_shannon: [weights, weights],
        bundle.trace_json: [trace],
        bundle.frame_csv: [table],
        bundle.figure_name: ["a"],
        html_page.page: [trace],
    }


def of_models(model) -> dict:
    """What asks a model again."""
    trace, head, weights = model.trace("The dog runs."), heads.Head("encoder", 0, 0), np.full((2, 2), 0.5)
    opened, subject = inside.step(model, trace, 0), faithfulness.subject(model, "The dog runs.", "Le chien court.")
    pair, word, files = gold.shipped("en-fr")[0], intervene.words(trace)[0], ("en-fr/bahdanau", "/no/such/folder")
    return {
        inside.step: [model, trace, 0, 0, 0],
        inside.formula: [opened, 0],
        inside.temperatures: [opened, [1.0]],
        inside.spread: [[4], 2, 2, 0],
        inside.windows: [model, trace],
        intervene.parse: ["uniform"],
        intervene.run: [model, "The dog.", intervene.Uniform(), intervene.Scope(), "Le chien."],
        intervene.words: [trace],
        intervene.replaced: ["The dog runs.", word, "cat"],
        intervene.rewrite: [model, "The dog runs.", word, "cat", "Le chien."],
        intervene.Scope: [(0,), None, 0, 0],
        intervene.Permuted: [0],
        intervene.Temperature: [1.0],
        intervene.Hide: [(0,)],
        intervene.Given: [(1.0,)],
        faithfulness.subject: [model, "The dog.", "Le chien."],
        faithfulness.subjects: [model, ["The dog."]],
        faithfulness.integrated_gradients: [subject, [0], 1],
        faithfulness.erasure: [subject, faithfulness.leave_one_out(subject), [0.5]],
        faithfulness.preserved: [subject, [intervene.Uniform()]],
        faithfulness.preserved_together: [[subject], [intervene.Uniform()]],
        faithfulness.variation: [subject, 1, 0],
        faithfulness.tau_b: [weights, weights],
        rollout.rollout: [trace, "encoder"],
        ablation.effect: [model, [head], "The dog.", "Le chien."],
        alignment.report: [model, [pair]],
        gold.read: ["/no/such/file"],
        gold.shipped: ["en-fr"],
        CorpusConfig: [("en-fr/bahdanau",), "/no/such/file", 1, 1, ("statistics",), None, 1],
        Judge.load: files,
        TrainingWords.load: files[1:],
        Scale: [0.0, {}, 0.5, 0.9, -1.0],
        confidence.signs: [trace, TrainingWords({}, 1)],
    }


def of_figures(model) -> dict:
    """Pictures."""
    trace = model.trace("The dog runs.")
    grid, table = select.select(trace), heads.table(trace)
    figure = figures.heatmap(grid)
    return {
        figures.heatmap: [grid, 0, "title"],
        figures.difference: [grid.weights, grid, ("a", "b"), "title"],
        figures.next_tokens: [["a", "b"], [0.5, 0.2], [1.0, 0.0]],
        figures.step_bars: [grid, 0, "title"],
        figures.guess_bars: [grid, 0, [1.0] * len(grid.keys), "title"],
        figures.token_lines: [[grid], 0, "title"],
        figures.line_threshold: [[grid]],
        figures.overview: [trace, "encoder", table, "distance", "distance", "title"],
        figures.head_map: [table[table["kind"] == "encoder"], "distance", "title"],
        figures.by_distance: [rollout.by_distance(trace), "title"],
        figures.by_step: [{"a": stats.of_grid(grid)}, 4, 0, "title"],
        figures.reliability: [[(0.1, 0.1, 3)], "title"],
        figures.cell_texts: [grid, None],
        figures.describe: [grid, 0],
        figures.large: [figure, 1.5],
        bundle.figure_html: [figure, "name"],
    }


def of_statistics(model) -> dict:
    """Patterns, alignments, and numbers across sentences."""
    trace, weights, values = model.trace("The dog runs."), np.full((2, 2), 0.5), np.ones(3)
    grid, view, pair = select.select(trace), patterns.layout(trace, trace.maps[0]), gold.shipped("en-fr")[0]
    pattern = next(iter(patterns.PATTERNS.values()))
    return {
        patterns.layout: [trace, trace.maps[0]],
        patterns.linked: ["name", "title", [(0, 0)]],
        patterns.ceiling: [pattern, view],
        patterns.score: [weights, weights],
        patterns.examples: [weights, weights, 2],
        patterns.repeated: [3, 1],
        patterns.chance: [trace, "encoder", [pattern]],
        across.bootstrap: [values, values, 0, 10],
        across.paired_bootstrap: [values, values, 0, 10],
        across.outliers: [pd.Series(values), 3.5],
        across.share_above: [0.5, values],
        across.sharpness: [trace, "cross"],
        reference.read: ["/no/such/file"],
        alignment.argmax: [weights],
        alignment.above: [0.5],
        alignment.diagonal: [2, 2],
        alignment.count: [np.zeros((len(pair.target_words), len(pair.source_words)), bool), pair],
        alignment.cells: [grid, pair],
        alignment.on_words: [trace, pair, 0],
        function_words.words: ["fr"],
        function_words.kind: ["le", "fr"],
        function_words.kinds: ["le chien", list(trace.target), "fr"],
    }


def every(model) -> dict:
    """All of them: function -> arguments."""
    return of_traces(model) | of_models(model) | of_figures(model) | of_statistics(model)
