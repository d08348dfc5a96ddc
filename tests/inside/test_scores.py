"""Other temperatures, score functions and widths, and the formula with its numbers."""

import math
import re
from dataclasses import replace

import numpy as np
import pytest
import torch

import attnviz
from attnviz import inside
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
    step = opened["luong-general"]
    compared = step.compared(2)
    (_, first), *_ = compared.largest(1)
    text = inside.formula(step, 2)
    assert text.startswith(r"e_{2,3} = \sum_i s_{t,i} \, (W h_j)_i = ")
    assert rf"= \underbrace{{{compared.constant:.3f}}}_{{\text{{mean of all}}}}{first:+.3f}" in text
    assert (
        r"\text{ (13 more)}" in text and f"= {step.scores[2]:.3f}" in text and text.endswith(f"= {step.weights[2]:.3f}")
    )
    other = step.compared(2, "runner-up").other
    assert rf"_{{e_{{2,{other + 1}}}}}" in inside.formula(step, 2, "runner-up")


def test_the_formula_follows_the_temperature(opened):
    step = opened["bahdanau"]
    text = inside.formula(step, 2, temperature=2.0)
    assert rf"\exp({step.scores[2]:.3f} / 2)" in text and text.endswith(f"= {step.weights_at(2.0)[2]:.3f}")
    heated = step.at_temperature(2.0)
    np.testing.assert_allclose(heated.context, step.weights_at(2.0) @ step.values, atol=1e-6)
    assert step.at_temperature(1.0) is step


@pytest.mark.parametrize("reference", inside.REFERENCES)
@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].kinds])
def test_a_score_is_the_constant_part_and_the_differences(opened, name, reference):
    step = opened[name]
    for key in np.flatnonzero(step.mask).tolist():
        compared = step.compared(key, reference)
        total = compared.constant + compared.differences.terms.sum() + compared.gaussian
        assert total == pytest.approx(step.scores[key], abs=1e-4)


def test_terms_that_all_tokens_share_do_not_explain_a_weight(opened):
    """A hidden unit that is saturated adds the same to every score, and cancels in the softmax."""
    step = opened["bahdanau"]
    terms = np.concatenate([step.parts.terms, np.full((len(step.keys), 1), 5.0)], axis=1)
    shifted = replace(step, parts=inside.Parts(terms, step.parts.unit), scores=step.scores + 5)
    for reference in inside.REFERENCES:
        before, after = step.compared(1, reference), shifted.compared(1, reference)
        assert after.constant == pytest.approx(before.constant + 5, abs=1e-5)
        assert after.largest(3) == before.largest(3) and after.differences.terms[0, -1] == 0


def test_the_runner_up_has_the_next_largest_weight(opened):
    step = opened["luong-dot"]
    order = np.argsort(-step.weights).tolist()
    assert step.compared(order[0], "runner-up").other == order[1]
    assert step.compared(order[3], "runner-up").other == order[0]
    with pytest.raises(ValueError, match="^reference must be one of mean, runner-up; got 'median'$"):
        step.compared(0, "median")


def test_the_formula_says_what_a_window_leaves_out(models):
    model = models["luong-local"]
    step = inside.step(model, model.trace("The black white grey dog runs."), 0)
    (hidden, *_), visible = np.flatnonzero(~step.mask), int(step.weights.argmax())
    assert inside.formula(step, int(hidden)).endswith(r"= 0 \text{ (outside the window)}")
    gaussian = np.log(step.window.gaussian)
    wanted = gaussian[visible] - gaussian[step.mask].mean()
    assert step.compared(visible).gaussian == pytest.approx(wanted, abs=1e-4)
    assert rf"{wanted:+.3f} \text{{ (Gaussian)}}" in inside.formula(step, visible)


@pytest.mark.parametrize("name", [name for name in MECHANISMS if MECHANISMS[name].kinds])
def test_every_mechanism_has_a_formula(opened, name):
    assert inside.formula(opened[name], int(opened[name].weights.argmax())).count("=") == 5
    with pytest.raises(ValueError, match=r"^key must be from 0 to \d+; got -1$"):
        inside.formula(opened[name], -1)


def test_every_letter_of_a_formula_is_named(opened):
    for step in opened.values():
        named = re.findall(r"\b[a-zA-Zα]\b", inside.symbols(step))
        used = re.sub(r"\\[a-z]+", " ", MECHANISMS[step.mechanism].terms)
        assert set(re.findall("[a-zA-Z]", used)) <= set(named), step.mechanism
