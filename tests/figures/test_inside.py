"""Figures of one opened step, as data."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from opened_steps import step
from synthetic import tokens

from attnviz import inside
from attnviz.figures.inside import describe_parts, score_bars, score_parts, weighted_values
from attnviz.figures.what_if import effect_bars, product_spread, score_functions
from attnviz.inside import Parts, Window


def test_scores_and_weights_share_an_axis():
    opened = step()
    figure = score_bars(opened, "A <title>")
    weights, scores = figure.data
    np.testing.assert_allclose(weights.y, opened.weights, atol=1e-4)
    np.testing.assert_allclose(scores.y, opened.scores, atol=1e-4)
    assert figure.layout.title.text == "A &lt;title&gt;"
    assert len(figure.layout.xaxis.ticktext) == len(opened.keys) and "&lt;" in "".join(figure.layout.xaxis.ticktext)
    words = figure.layout.meta["description"]
    assert words.startswith("Scores and weights of step 2, ‘<i>’; the largest: <eos> ")


def test_what_is_outside_the_window_has_no_score():
    count = len(step().keys)
    window = Window(3.0, 2.0, np.linspace(0.2, 1, count))
    figure = score_bars(step(window))
    assert figure.data[1].y[0] is None and figure.data[0].y[0] == 0
    assert figure.data[1].hovertext[0] == "‘The’ (1): outside the window"
    assert figure.layout.meta["description"].endswith(" 1 token is outside the window.")
    np.testing.assert_allclose(figure.data[2].y, window.gaussian, atol=1e-4)  # over the weights
    assert figure.data[2].yaxis == "y" and figure.layout.annotations[1].text == "weight, after it (dotted: Gaussian)"


def test_the_bars_of_a_score_sum_to_it():
    opened = step()  # each row of terms is the one before it, 0.4 higher in every term
    figure = score_parts(opened, 2, count=2)
    *shown, nothing = figure.data[0].x
    names = figure.layout.yaxis.ticktext
    name, _, rest = names[-1].partition(": ")
    assert nothing is None and name == "2 others" and names[0].startswith("constant part: ")
    assert names[1].startswith("hidden unit ") and names[1].endswith(f": {shown[1]:.3f}".replace("-", "−"))
    assert sum(shown) + float(rest.replace("−", "-")) == pytest.approx(opened.scores[2], abs=1e-3)
    windowed = step(Window(1.0, 2.0, np.linspace(0.2, 1, len(opened.keys))))
    figure = score_parts(windowed, 2, reference="runner-up")
    other = windowed.compared(2, "runner-up").other
    logs = np.log(windowed.window.gaussian)
    assert figure.layout.yaxis.ticktext[-1].startswith("ln of the Gaussian: ")
    assert figure.data[0].x[-1] == pytest.approx(logs[2] - logs[other], abs=1e-4)
    assert f"({other + 1})" in figure.layout.meta["description"]
    with pytest.raises(ValueError, match=r"^key must be from 0 to \d; got 99$"):
        score_parts(opened, 99)


def test_small_scores_are_written_with_two_digits():
    opened = step()
    small = replace(opened, scores=opened.scores * 1e-3, parts=Parts(opened.parts.terms * 1e-3, "hidden unit"))
    scores = score_bars(small).data[1]
    best = int(np.argmax(small.scores))
    assert float(scores.text[best].replace("−", "-")) == pytest.approx(small.scores[best], rel=0.1)
    assert scores.y[best] == pytest.approx(small.scores[best], rel=0.01)
    parts = score_parts(small, 2, count=2)
    assert all(parts.data[0].x[:3]) and not any(name.endswith(": 0.000") for name in parts.layout.yaxis.ticktext)


def test_the_largest_of_negative_scores_is_written_above_the_bars():
    opened = step()
    low = replace(opened, scores=opened.scores - 30)
    figure, above = score_bars(low), max(low.scores)
    assert not any(figure.data[1].text) and figure.layout.yaxis2.range[1] > 0 > above
    number = figure.layout.annotations[-1]
    assert (number.text, number.x, number.y) == (f"{above:.2f}".replace("-", "−"), int(low.scores.argmax()), 0)
    assert len(score_bars(opened).layout.annotations) == len(figure.layout.annotations) - 1


def test_a_long_constant_part_does_not_hide_the_differences():
    opened = step()
    opened = replace(opened, scores=opened.scores + 50, parts=Parts(opened.parts.terms + 12.5, "hidden unit"))
    figure = score_parts(opened, 2)
    _, high = figure.layout.xaxis.range
    assert figure.data[0].x[0] > 40 > 2 > high and figure.layout.yaxis.ticktext[0].endswith(" (bar cut)")
    short = replace(step(), scores=step().scores - 5.8, parts=Parts(step().parts.terms - 1.45, "hidden unit"))
    assert score_parts(short, 0).layout.yaxis.ticktext[0] == "constant part: 0.000"


def test_the_named_parts_of_a_score_have_a_bar_each_and_are_no_dimensions():
    """Before the largest dimensions, however small they are."""
    opened = step()
    opened = replace(opened, parts=Parts(opened.parts.terms, "dimension", ("u · h", "b")))
    names = score_parts(opened, 2, count=1).layout.yaxis.ticktext
    assert [name.partition(":")[0] for name in names[1:]] == ["u · h", "b", "dimension 1", "1 others"]
    assert " of 2 dimensions, u · h and b; the largest: u · h " in describe_parts(opened, 2)
    named, constant = opened.compared(2).differences.terms[0, 2:]
    assert rf"{named:+.3f} \text{{ (u · h)}}{constant:+.3f} \text{{ (b)}}" in inside.formula(opened, 2)


def test_a_score_that_is_no_sum_is_one_number():
    """Of a score function of a person's own, which need not say its terms."""
    opened = step()
    whole = replace(opened, parts=Parts(opened.scores[:, None], "dimension"))
    figure = score_parts(whole, 2)
    constant, own = figure.layout.yaxis.ticktext
    assert constant.startswith("constant part: ") and own.startswith("the whole score: ")
    words = figure.layout.meta["description"]
    assert " as the mean of all tokens, and a difference from it of " in words and "dimension" not in words


def test_the_spread_says_that_it_is_sampled():
    frame = inside.spread((4, 64), samples=200)
    figure = product_spread(frame)
    assert [trace.name for trace in figure.data] == ["q · k", "q · k / √d"] * 2
    assert figure.data[0].y == tuple(frame[~frame["scaled"]]["deviation"].round(4))
    assert figure.layout.annotations[0].text == "Sampled: random vectors, no model"
    assert figure.layout.meta["description"].startswith("Sampled: ")
    with pytest.raises(ValueError, match=r"^the frame of the spread must have the columns width, scaled, "):
        product_spread(frame.drop(columns="scaled"))


def test_no_number_lies_on_the_names_where_the_picture_is_narrow():
    """The numbers are in the names; a bar below 0 ends within the axis."""
    figure = score_parts(step(), 0)
    values = [value for value in figure.data[0].x[1:] if value is not None]
    assert min(values) < 0 and figure.data[0].text is None
    low, high = figure.layout.xaxis.range
    assert low < min(values) and high > max(0, *values)
    assert "hidden unit" in figure.layout.yaxis.ticktext[1] and "−" in figure.layout.yaxis.ticktext[1]


def test_the_titles_of_two_panels_do_not_stand_between_them():
    """In half a page's width a title beside the second axis would lie on the first panel's lines."""
    figure = product_spread(inside.spread((4, 64), samples=10))
    assert figure.layout.yaxis.title.text is None and figure.layout.yaxis2.title.text is None
    sampled, first, second = figure.layout.annotations
    assert (first.text, second.text) == ("standard deviation", "mean largest weight")
    assert (first.x, second.x) == (0, 0.54) and first.y == second.y == 1 and sampled.y == 0 > sampled.yshift


def test_a_temperature_changes_the_weights_alone():
    opened = step()
    weights, scores = score_bars(opened, temperature=4).data
    np.testing.assert_allclose(weights.y, opened.weights_at(4), atol=1e-4)
    np.testing.assert_allclose(scores.y, opened.scores, atol=1e-4)


def test_weighted_values_sum_to_the_context():
    opened = step()
    figure = weighted_values(opened, title="A <title>")
    [cells] = figure.data
    np.testing.assert_allclose(np.sum(cells.z[:-1], axis=0), cells.z[-1], atol=1e-3)
    assert len(figure.layout.yaxis.ticktext) == len(opened.keys) + 1
    assert "&lt;" in "".join(figure.layout.yaxis.ticktext) and figure.layout.title.text == "A &lt;title&gt;"
    assert figure.layout.meta["description"].startswith("Weighted values and context of step 2, ‘<i>’: 2 of 2 ")


def test_the_models_own_weights_stand_above_other_scores():
    """A learnt score has the title of its mechanism, whatever its model is called."""
    opened = step()
    scores = [
        ("dot", None, None),
        ("additive", "mine/of/today", "bahdanau"),
        ("general", "mine/of/today", "luong-general"),
        ("general", "mine/of/today", "luong-local"),
    ]
    keys = pd.DataFrame({"key": range(len(opened.keys)), "weight": 1 / len(opened.keys)})
    frames = [keys.assign(score=score, trained_with=model, mechanism=name) for score, model, name in scores]
    figure = score_functions(opened, pd.concat(frames, ignore_index=True))
    [cells] = figure.data
    np.testing.assert_allclose(cells.z[0], opened.weights, atol=1e-4)
    np.testing.assert_allclose(cells.z[1:], 1 / len(opened.keys), atol=1e-4)
    names = ["the model’s own", "dot", "Bahdanau · additive", "Luong · general", "general, of Luong · local"]
    assert list(figure.layout.yaxis.ticktext) == names


def test_the_effect_on_each_token():
    target = tokens("Le <b>chien</b>")
    changes, variation = np.linspace(-1, 1, len(target)), np.linspace(0, 1, len(target))
    below, above = effect_bars(target, changes, variation).data
    np.testing.assert_allclose(below.y, variation, atol=1e-4)
    np.testing.assert_allclose(above.y, changes, atol=1e-4)
    assert below.hovertext[1] == "total variation at ‘&lt;’ (2): +0.111"


def test_an_effect_has_a_number_for_each_token():
    with pytest.raises(ValueError, match="^changes and variation must have one number per token, 2; got 1 and 2$"):
        effect_bars(tokens("Le")[:2], np.zeros(1), np.zeros(2))
