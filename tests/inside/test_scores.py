"""Other temperatures, score functions and widths, and the formula with its numbers."""

import math
import re

import numpy as np
import pytest
import torch

import attnviz
from attnviz import inside
from attnviz.inside.formula import SUMS
from attnviz.mechanisms import MECHANISMS

TEXT = "The black dog runs."


@pytest.fixture(scope="module")
def models(root):
    return {name: attnviz.load(f"en-fr/{name}", root) for name in MECHANISMS}


@pytest.fixture(scope="module")
def opened(models):
    return {name: inside.step(model, model.trace(TEXT), 1) for name, model in models.items() if MECHANISMS[name].kinds}


def test_temperature_one_is_the_model(opened):
    np.testing.assert_allclose(opened["luong-local"].weights_at(1.0), opened["luong-local"].weights, atol=1e-6)


def test_a_warmer_row_has_more_entropy(opened):
    frame = inside.temperatures(opened["bahdanau"], (0.1, 1, 100))
    assert frame["temperature"].tolist() == [0.1, 1, 100] and frame["entropy_nats"].is_monotonic_increasing
    assert frame["entropy_nats"].iloc[-1] == pytest.approx(math.log(len(opened["bahdanau"].keys)), abs=1e-3)


@pytest.mark.parametrize("temperature", [0, -1, math.nan])
def test_a_temperature_must_be_above_0(opened, temperature):
    with pytest.raises(ValueError, match=rf"^temperature must be above 0; got {temperature}$"):
        opened["bahdanau"].weights_at(temperature)


def test_other_scores_of_one_query(opened, models):
    """luong-dot asks with s and h of one width: its own scores are `dot`, and those of scaled dot are these by
    sqrt(D)."""
    frame = inside.other_scores(opened["luong-dot"], models.values())
    dot, scaled = (frame[frame["score"] == score]["value"].to_numpy() for score in ("dot", "scaled dot"))
    np.testing.assert_allclose(dot, opened["luong-dot"].scores, atol=1e-5)
    np.testing.assert_allclose(scaled * math.sqrt(16), dot, atol=1e-5)
    assert set(frame["score"]) == {"dot", "scaled dot"}  # the learnt ones read annotations twice as wide


def test_other_scores_with_learnt_weights(opened, models):
    frame = inside.other_scores(opened["bahdanau"], models.values()).set_index("trained_with")
    np.testing.assert_allclose(frame.loc["en-fr/bahdanau", "value"], opened["bahdanau"].scores, atol=1e-5)
    named = frame[frame["mechanism"].notna()]
    assert len(named) and (named.index == "en-fr/" + named["mechanism"]).all()
    general, query = models["luong-general"].model.attention.key, torch.from_numpy(opened["bahdanau"].query.copy())
    by_hand = [float(query @ general(torch.from_numpy(value.copy()))) for value in opened["bahdanau"].values]
    np.testing.assert_allclose(frame.loc["en-fr/luong-general", "value"], by_hand, atol=1e-5)
    summed = opened["bahdanau"].values.reshape(-1, 2, 16).sum(1) @ opened["bahdanau"].query
    np.testing.assert_allclose(frame[frame["score"] == "dot"]["value"], summed, atol=1e-5)
    assert frame.groupby(["score", frame.index], dropna=False)["weight"].sum().to_numpy() == pytest.approx(1)


def test_a_classifiers_query_has_no_dot_product(tmp_path):
    model = attnviz.load("sst2/self-attention")
    opened = inside.step(model, model.trace("A dull film."), 0)
    with pytest.raises(ValueError, match=r"^annotations must be as wide as the query, 1, or twice that"):
        inside.other_scores(opened)


def test_products_spread_with_the_root_of_the_width():
    """Vaswani et al. 2017, footnote 4: the variance of q . k is d."""
    frame = inside.spread((16, 256), samples=4000)
    plain, scaled = (frame[frame["scaled"] == is_scaled]["deviation"].to_numpy() for is_scaled in (False, True))
    np.testing.assert_allclose(plain, [4, 16], rtol=0.05)
    np.testing.assert_allclose(scaled, 1, rtol=0.05)
    assert inside.spread((8,), samples=5).equals(inside.spread((8,), samples=5))


def test_the_formula_has_the_numbers_of_its_cell(opened):
    asked = opened["luong-general"]
    (_, first), *_ = asked.parts.largest(2, 1)
    text = inside.formula(asked, 2)
    assert text.startswith(rf"e_{{2,3}} = \sum_i s_{{t,i}} \, (W h_j)_i = {first:.3f}")
    assert (
        r"\text{ (13 more)}" in text
        and f"= {asked.scores[2]:.3f}" in text
        and text.endswith(f"= {asked.weights[2]:.3f}")
    )


def test_the_formula_says_what_a_window_leaves_out(models):
    model = models["luong-local"]
    asked = inside.step(model, model.trace("The black white grey dog runs."), 0)
    (hidden, *_), visible = np.flatnonzero(~asked.mask), int(asked.weights.argmax())
    assert inside.formula(asked, int(hidden)).endswith(r"= 0 \text{ (outside the window)}")
    assert rf"\ln {asked.window.gaussian[visible]:.3f}" in inside.formula(asked, visible)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].kinds])
def test_every_mechanism_has_a_formula(opened, name):
    assert inside.formula(opened[name], int(opened[name].weights.argmax())).count("=") == 5
    with pytest.raises(ValueError, match=r"^key must be from 0 to \d+; got -1$"):
        inside.formula(opened[name], -1)


def test_every_letter_of_a_formula_is_named(opened):
    for asked in opened.values():
        named = re.findall(r"\b[a-zA-Zα]\b", inside.symbols(asked))
        used = re.sub(r"\\[a-z]+", " ", SUMS[asked.mechanism].terms)
        assert set(re.findall("[a-zA-Z]", used)) <= set(named), asked.mechanism
