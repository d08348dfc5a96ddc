"""Each function that returns a Chart, and a figure that it makes."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np
import pandas as pd
import synthetic
from opened_steps import step

from attnviz import figures, heads, inside, rollout, select, stats
from attnviz.figures import faithfulness, learning, many, what_if
from attnviz.figures import inside as opened
from attnviz.figures.arcs import dependency_arcs
from attnviz.figures.chart import Chart, large
from attnviz.inside import Window
from attnviz.syntax import Parse

TRACE = synthetic.trace("The $5 dog <eos>", "Le chien & noir", kinds=("cross", "decoder"), heads=2, layers=2)
GRID = select.select(TRACE)
PARSE = Parse("a <b> dog runs", ((0, 1), (2, 5), (6, 9), (10, 14)), (2, 2, 3, -1), ("det", "amod", "nsubj", "root"))
VALUES = np.linspace(-0.6, 0.9, GRID.weights.size).reshape(GRID.weights.shape)
_QUERIES, _COUNT = list(GRID.queries), len(GRID.queries)


def functions() -> set[Callable]:
    """Every public function below `attnviz.figures` that makes a Chart of values."""
    made = set()
    for module_info in pkgutil.walk_packages(figures.__path__, f"{figures.__name__}."):
        module = importlib.import_module(module_info.name)
        for name, function in inspect.getmembers(module, inspect.isfunction):
            own = inspect.unwrap(function).__module__ == module.__name__ and not name.startswith("_")
            if own and inspect.unwrap(function).__annotations__.get("return") in (Chart, "Chart"):
                made.add(function)
    return made - {large, importlib.import_module("attnviz.figures.theme").build}  # of a Chart or its parts


def all_charts() -> dict[Callable, Chart]:
    return _of_maps() | _of_steps() | _of_tests() | _of_studies()


def _of_maps() -> dict[Callable, Chart]:
    table = heads.table(TRACE)
    grids = [select.select(TRACE, "cross", 1, head) for head in (0, 1)]
    return {
        figures.heatmap: figures.heatmap(select.select(TRACE, "decoder"), 1, windows=[(1, 1)] * _COUNT),
        figures.difference: figures.difference(VALUES, GRID, ("A", "B")),
        figures.overview: figures.overview(TRACE, "decoder", table, "distance", "distance", root=True),
        figures.overview_of_pooled: figures.overview_of_pooled(
            {0: np.eye(5, dtype=np.float32)[None]}, "decoder", 5, dark=True
        ),
        figures.head_map: figures.head_map(table[table["kind"] == "decoder"], "distance"),
        figures.token_lines: figures.token_lines(grids, 1),
        dependency_arcs: dependency_arcs(PARSE, np.array([2, 0, 1, -1])),
        figures.by_distance: figures.by_distance(rollout.by_distance(TRACE, "decoder")),
        faithfulness.saliency: faithfulness.saliency(GRID, VALUES, "gradients"),
    }


def _of_steps() -> dict[Callable, Chart]:
    frame, opened_step = stats.of_grid(GRID), step(Window(2.0, 2.0, np.linspace(0.2, 1, len(step().keys))))
    scores = pd.DataFrame(
        {"score": "dot", "trained_with": None, "mechanism": None, "key": range(len(opened_step.keys)), "weight": 0.2}
    )
    summary = stats.summary(TRACE).assign(mechanism="Bahdanau")
    return {
        figures.step_bars: figures.step_bars(GRID, 1, window=(1.25, 1)),
        figures.guess_bars: figures.guess_bars(GRID, 1, np.full(len(GRID.keys), 1 / len(GRID.keys))),
        figures.next_tokens: figures.next_tokens(["a <b>", "$5"], [0.6, 0.1], [0.9, 0.0]),
        figures.by_step: figures.by_step({"Bahdanau": frame, "Luong dot": frame}, _COUNT, 1),
        figures.comparison: figures.comparison(summary),
        opened.score_bars: opened.score_bars(opened_step),
        opened.score_parts: opened.score_parts(opened_step, 2, 3),
        what_if.score_functions: what_if.score_functions(opened_step, scores),
        opened.weighted_values: opened.weighted_values(opened_step),
        what_if.effect_bars: what_if.effect_bars(_QUERIES, VALUES[:, 0], np.abs(VALUES[:, 1])),
        what_if.product_spread: what_if.product_spread(inside.spread((4, 16, 64), samples=100)),
    }


def _of_tests() -> dict[Callable, Chart]:
    tau = pd.DataFrame({"tau_b": np.linspace(-0.2, 0.9, _COUNT), "top1": [place % 2 == 0 for place in range(_COUNT)]})
    low = pd.DataFrame({"step": range(_COUNT), "max_weight": np.linspace(0.2, 0.9, _COUNT)})
    low = low.assign(median=0.4, low=0.3, high=0.6, uniform=0.7)
    erased = pd.DataFrame({"share": [0.1, 0.5], "comprehensiveness": [0.2, 0.6], "sufficiency": [0.5, 0.1]})
    return {
        faithfulness.agreement_bars: faithfulness.agreement_bars(_QUERIES, tau, 0.25),
        faithfulness.variation_by_weight: faithfulness.variation_by_weight(_QUERIES, low),
        faithfulness.erasure_curves: faithfulness.erasure_curves({"attention": erased, "random": erased / 2}),
    }


def _of_studies() -> dict[Callable, Chart]:
    random = np.random.default_rng(0)
    samples = {"Bahdanau": random.normal(1, 0.2, 200), "Luong dot": random.normal(2, 0.3, 200)}
    levels = {"Bahdanau": {"untrained": 2.2, "shuffled": 1.4}}
    lengths = pd.DataFrame({"mechanism": ["A", "A", "B", "B"], "words": [5, 20] * 2, "bleu": [40, 30, 42, 12]})
    points = {name: (values, values**2) for name, values in samples.items()}
    texts = {name: [f"{value:.1f}" for value in values] for name, values in samples.items()}
    return {
        many.distribution: many.distribution(samples, "Entropy (nats)", references=levels, uniform=2.5),
        many.scatter: many.scatter(points, ("Length", "Entropy"), texts),
        many.by_length: many.by_length(lengths),
        learning.over_time: learning.over_time(
            {
                name: {
                    "batch": [0, 9],
                    "loss": [3.2, 0.4],
                    "exact": [0, 0.7],
                    "entropy": [2, 1],
                    "alignment_error": error,
                }
                for name, error in (("Bahdanau", [0.9, 0.2]), ("Fixed context", [None, None]))
            },
            marks={"Bahdanau": {"loss": 9, "alignment_error": None}},
            at=9,
        ),
        learning.maps_over_time: learning.maps_over_time({"Bahdanau": [GRID, GRID]}, ["batch 0", "batch 9"]),
        figures.reliability: figures.reliability([(0.04, 0.02, 50), (0.31, 0.4, 51)]),
    }
