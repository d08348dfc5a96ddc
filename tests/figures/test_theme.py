"""What every figure shares: the check of plotly, description and theme; and the colours."""

import copy
import json
import pickle
from dataclasses import astuple

import grids
import numpy as np
import pandas as pd
import plotly.graph_objects as go
import pytest
import synthetic
from grids import contrast, frame, luminance

from attnviz import figures, heads, mechanisms, rollout
from attnviz.alignment import Cells
from attnviz.figures import Chart, theme
from attnviz.mechanisms import Mechanism


@pytest.fixture
def figures_made():
    """One figure from every factory."""
    dog, trace = grids.dog(), synthetic.trace(heads=2, kinds=("decoder",))
    table = heads.table(trace)
    return [
        figures.heatmap(dog, 1, "<i>", dark=True, links=Cells(frozenset({(0, 0)}), frozenset({(0, 0), (1, 0)}))),
        figures.step_bars(dog, 1, "<i>", dark=True),
        figures.difference(np.zeros((3, 3)), dog, title="<i>", dark=True),
        figures.by_step({"a": frame(["x"], np.nan), "b": frame(["x"])}, 3, 0, "<i>", dark=True),
        figures.by_step({"a": frame(["x", "y"])}, [1, 2], title="<i>", dark=True),
        figures.comparison(
            pd.DataFrame({"mechanism": ["a"], "statistic": ["gini"], "mean": 1.0, "std": 0.0}), "<i>", dark=True
        ),
        figures.overview(trace, "decoder", table, "gini", "distance", "<i>", dark=True),
        figures.head_map(table, "gini", "<i>", dark=True),
        figures.token_lines([dog, dog], 1, "<i>", dark=True),
        figures.by_distance(rollout.by_distance(trace, "decoder"), "<i>", dark=True),
    ]


def test_every_figure_passes_the_whole_check_of_plotly(figures_made):
    for figure in figures_made:
        checked, ours = (json.loads(drawn.to_json()) for drawn in (go.Figure(figure.to_dict()), figure))
        for drawn in (checked, ours):
            del drawn["layout"]["template"]  # an empty one; the check writes it out
        assert checked == ours


def test_figures_can_be_changed_like_any_other(figures_made):
    for figure in figures_made:
        figure.update_layout(title="new")
        assert figure.layout.title.text == "new"
        for wrong in (lambda: figure.update_layout(xaxis_nonsense=1), lambda: figure.data[0].update(nonsense=1)):
            with pytest.raises(ValueError):
                wrong()


def test_every_figure_carries_its_description_and_theme(figures_made):
    for figure in figures_made:
        assert figure.layout.meta["description"] and figure.layout.meta["dark"] is True
        assert figure.layout.font.color == theme.DARK.text and figure.layout.paper_bgcolor == "rgba(0,0,0,0)"
        assert figure.layout.title.text == "&lt;i&gt;"


# --- colours


def test_a_mechanism_of_ones_own_has_the_same_look_alone_and_beside_others():
    """So its bars have the colour of its lines."""
    title, shipped = "Own · BahdanauAttention(hidden_size=64)", list(mechanisms.ALL)  # has the name of another in it
    mechanisms.add(Mechanism("own-dot", title, asks="after", score="attnviz.attention:Dot"))
    mechanisms.add(Mechanism("own-dots", "Own · points", asks="after", score="attnviz.attention:Dot"))
    try:
        alone = {name: theme.lines([name])[name] for name in ("own-dot", "own-dots", "bahdanau")}
        assert alone["own-dot"].color not in {look.color for look in theme.lines(shipped).values()}
        assert theme.lines(["bahdanau", "own-dots", "own-dot"]) == alone and len(set(alone.values())) == 3
        assert theme.lines(["Bahdanau · additive", title])[title] == theme.lines([title])[title] == alone["own-dot"]
        assert theme.lines(["Luong dot", "Own points"])["Own points"] == alone["own-dots"]  # as on the page
        mechanisms.remove("own-dots")
        assert theme.lines(["Luong dot", "Own"])["Own"] == alone["own-dot"]  # the only one of its family
    finally:
        for name in set(mechanisms.ALL) - set(shipped):
            mechanisms.remove(name)


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK])
def test_scales_read_without_colour(colors):
    steps = np.array([luminance(color) ** (1 / 3) for color in colors.sequential])
    differences = np.diff(steps) * np.sign(steps[-1] - steps[0])
    assert (differences > 0.03).all()
    assert np.sign(steps[-1] - steps[0]) == np.sign(luminance(colors.text) - luminance(colors.page))
    middle = luminance(colors.diverging[4])
    assert all((luminance(color) - middle) * (luminance(colors.text) - middle) > 0 for color in colors.diverging[::8])


@pytest.mark.parametrize("colors", [theme.LIGHT, theme.DARK])
def test_text_and_lines_stand_out_from_the_page(colors):
    assert contrast(colors.text, colors.page) > 7 and contrast(colors.muted, colors.page) > 4.5
    assert all(contrast(color, colors.page) > 3 for color in (*colors.lines[:3], colors.own, colors.outline))


def test_mechanisms_differ_in_colour_dash_and_marker_and_keep_theirs():
    several = theme.lines(["transformer", "own", "bahdanau", "luong-general", "luong-dot"])
    for part in ("color", "dash", "marker"):
        assert len({getattr(line, part) for line in several.values()}) == 5
    assert theme.lines(["transformer"])["transformer"] == several["transformer"]
    assert "dot" not in {line.dash for line in several.values()}


def test_a_dark_figure_is_a_light_one_with_each_colour_exchanged():
    """So one page can be both: attnviz/export/html_page.js."""
    colors, dog = theme.dark_for_light(), grids.dog()
    parts = [1 if isinstance(part, str) else len(part) for part in astuple(theme.LIGHT)]
    assert len(colors) == sum(parts)  # no colour of the light theme stands for two of the dark one

    def exchanged(value):
        if isinstance(value, dict):
            return {name: exchanged(part) for name, part in value.items()}
        return [exchanged(part) for part in value] if isinstance(value, list) else colors.get(value, value)

    for draw in (figures.heatmap, lambda grid, **look: figures.step_bars(grid, 1, **look)):
        light, dark = (json.loads(draw(dog, dark=dark).to_json()) for dark in (False, True))
        light["layout"]["meta"]["dark"] = True
        assert exchanged(light) == dark


def test_a_chart_carries_what_it_shows_in_words():
    bars = theme.build([dict(type="bar", y=[1, 2])], theme.layout(True, 100, (0, 0, 0, 0), None, "Two bars."))
    for chart in (bars, copy.deepcopy(bars), pickle.loads(pickle.dumps(bars))):
        assert (chart.description, chart.dark) == ("Two bars.", True)
        assert chart.layout.meta == {"description": "Two bars.", "dark": True}  # for the browser
    assert Chart().description == "" and not Chart().dark
