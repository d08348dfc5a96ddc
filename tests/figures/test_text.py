"""What a page sends of a chart: the same figure as Plotly's own, without Plotly's copy of it."""

import copy
import json
import pickle

import grids
import nasty
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest

import attnviz
from attnviz import figures
from attnviz.figures.chart import Chart
from attnviz.figures.many import distribution, scatter
from attnviz.figures.wording import signed

LEVELS = {"untrained": {"entropy_nats": 2.5, "max_weight": 0.2, "effective_entropy": 9.0}}
HEADS = attnviz.from_arrays(
    {"encoder": np.random.default_rng(0).dirichlet(np.ones(3), (2, 2, 3)).tolist()}, ["a", "b", "<eos>"], ["c"]
)
MAKERS = {
    "heatmap": lambda: figures.heatmap(grids.dog()),
    "blank heatmap": lambda: figures.heatmap(grids.grid(grids.words("a"), grids.words("b"), np.full((2, 2), np.nan))),
    "unwritten heatmap": lambda: figures.heatmap(grids.dog(), dark=True, written=False),
    "bars": lambda: figures.step_bars(grids.dog(), 1),
    "difference": lambda: figures.difference(np.eye(3) - 0.5, grids.dog(), ("a", "b")),
    "steps": lambda: figures.by_step({"bahdanau": grids.frame(["a", "b"])}, 4, references={"bahdanau": LEVELS}),
    "steps without a number": lambda: figures.by_step({"a": grids.frame(["x"], np.nan)}, None),
    "table": lambda: nasty.nasty_figure("table"),
    "lines": lambda: figures.token_lines([grids.dog()]),
    "distribution": lambda: distribution({"a": [1.0, 2.0]}, "x", uniform=1.0),
    "scatter": lambda: scatter({"a": ([1.0, np.nan], [2.0, 3.0])}, ("x", "y"), {"a": ["<s>", "\ud800"]}),
    "overview": lambda: figures.overview(HEADS, "encoder"),
    "map of heads": lambda: figures.head_map(
        pd.DataFrame({"layer": [0, 0], "head": [0, 1], "change": [0.5, np.nan], "kind": "cross"}), "change"
    ),
}

WITH_NAN = ("steps without a number",)


def parsed(text: str):
    """JSON, without arrays of numbers in place of which it has bytes; NaN must not be there."""
    return json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize("name", MAKERS)
def test_the_text_is_that_of_plotly_s_figure(name):
    chart = MAKERS[name]()
    text = chart.text()
    assert ("_parts" in vars(chart)) == (name not in WITH_NAN)  # else Plotly's copy was made after all
    figure = MAKERS[name]()
    assert figure.data is not None and figure._validate  # it is Plotly's now
    assert parsed(text) == parsed(figure.to_json(validate=False)) == parsed(figure.text())
    go.Figure(json.loads(text))  # and Plotly takes every property of it


@pytest.mark.parametrize("name", MAKERS)
def test_what_is_marked_is_marked_in_both_kinds(name):
    chart, figure = MAKERS[name](), MAKERS[name]()
    assert figure.layout.meta
    for drawing in (chart, figure):
        drawing.mark({"label": "x", "description": "not this"})
    assert parsed(chart.text())["layout"] == parsed(figure.text())["layout"]
    assert chart.plain_layout["meta"]["label"] == figure.plain_layout["meta"]["label"] == "x"
    assert chart.layout.meta["description"] == chart.description


def test_a_chart_is_plotly_s_for_all_who_ask_for_a_part():
    chart = MAKERS["heatmap"]()
    assert isinstance(chart, go.Figure) and not hasattr(chart, "no_such_part")
    for other in (
        copy.deepcopy(MAKERS["heatmap"]()),
        pickle.loads(pickle.dumps(MAKERS["heatmap"]())),
        go.Figure(chart),
    ):
        ours, theirs = (parsed(drawing.to_json()) for drawing in (chart, other))
        del (
            theirs["layout"]["template"],
            ours["layout"]["template"],
        )  # an empty one, to which Plotly adds when it checks
        assert ours == theirs
    with pytest.raises(ValueError):
        chart.update_layout(height="high")  # later changes are checked
    with pytest.raises(AttributeError) as error:
        Chart.of_parts([], {"meta": {}}, "", False).nothing
    assert "nothing" in str(error.value)


@pytest.mark.parametrize("value, text", [(-0.17, "−0.17"), (0.171, "+0.17"), (-0.001, "0.00"), (0.0, "0.00")])
def test_a_change_has_its_sign_and_a_true_minus(value, text):
    assert signed(value, 2) == text
