"""Changes of rows of weights: by hand, and what holds of all of them."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from attnviz import intervene
from attnviz.intervene import Given, Hide, Permuted, Place, Temperature
from attnviz.intervene.changes import Stacked

ROW, SEEN = torch.tensor([0.1, 0.6, 0.0, 0.3]), torch.tensor([True, True, False, True])
HERE = Place(0, 0)


@pytest.mark.parametrize(
    "change, wanted",
    [
        (intervene.Identity(), [0.1, 0.6, 0, 0.3]),
        (intervene.Uniform(), [1 / 3, 1 / 3, 0, 1 / 3]),
        (intervene.ZeroLargest(), [0.25, 0, 0, 0.75]),
        (intervene.OnlyLargest(), [0, 1, 0, 0]),
        (intervene.KeepLargest(), [0.2, 0.6, 0, 0.2]),
        (intervene.LastOnly(), [0, 0, 0, 1]),
        (Temperature(0.5), [0.01 / 0.46, 0.36 / 0.46, 0, 0.09 / 0.46]),
        (Hide((1,)), [0.25, 0, 0, 0.75]),
        (Hide((0, 1)), [0, 0, 0, 1]),
        (Given((0.5, 0, 0, 0.5)), [0.5, 0, 0, 0.5]),
    ],
    ids=str,
)
def test_by_hand(change, wanted):
    torch.testing.assert_close(change(ROW, SEEN, HERE), torch.tensor(wanted, dtype=torch.float32), atol=1e-6, rtol=1e-6)


rows = st.lists(st.floats(0.01, 1), min_size=1, max_size=8).flatmap(
    lambda numbers: st.tuples(st.just(numbers), st.lists(st.booleans(), min_size=len(numbers), max_size=len(numbers)))
)
everywhere = [kind() for name, kind in intervene.KINDS.items() if name not in ("temperature", "hide", "given")]


@pytest.mark.parametrize("change", [*everywhere, Temperature(3), Temperature(0.2)], ids=str)
@given(row=rows)
def test_rows_sum_to_1_and_hidden_stays_0(change, row):
    numbers, seen = torch.tensor(row[0]), torch.tensor(row[1])
    seen[0] = True
    weights = torch.where(seen, numbers, 0) / numbers[seen].sum()
    before = weights.clone()
    changed = change(weights, seen, HERE)
    assert (
        torch.equal(weights, before)
        and float(changed.sum()) == pytest.approx(1, abs=1e-5)
        and float(changed.min()) >= 0
    )
    if change.name != "last-only":
        assert not changed[~seen].any()
    if change.name == "permuted":
        torch.testing.assert_close(changed.sort().values, weights.sort().values)


def test_each_row_of_a_batch_is_permuted_by_itself():
    weights = torch.arange(1.0, 9).expand(100, 1, 8) / 36
    seen = torch.ones(100, 1, 8, dtype=torch.bool)
    changed = Permuted(3)(weights, seen, HERE)
    assert len({tuple(row) for row in changed.squeeze(1).tolist()}) > 95
    assert torch.equal(changed, Permuted(3)(weights, seen, HERE))
    assert not torch.equal(changed, Permuted(4)(weights, seen, HERE))
    assert not torch.equal(changed, Permuted(3)(weights, seen, Place(1, 0)))
    torch.testing.assert_close(changed.mean(0).squeeze(0), torch.full((8,), 1 / 8), atol=0.03, rtol=0)


def test_no_number_is_drawn_from_the_shared_generator():
    before = torch.get_rng_state()
    Permuted(1)(ROW, SEEN, HERE)
    assert torch.equal(before, torch.get_rng_state())


def test_what_is_left_without_weight_is_shared():
    """All weight on the token that is hidden: nobody knows what the others would have."""
    weights, seen = torch.tensor([1.0, 0, 0]), torch.ones(3, dtype=torch.bool)
    assert Hide((0,))(weights, seen, HERE).tolist() == [0, 0.5, 0.5]
    assert intervene.ZeroLargest()(weights, seen, HERE).tolist() == [0, 0.5, 0.5]


@pytest.mark.parametrize("change", [*everywhere, Temperature(0.5), Hide((2, 0)), Given((0.25, 0.75))], ids=str)
def test_names_are_read_back(change):
    assert intervene.parse(str(change)) == change and change.title


@pytest.mark.parametrize("text", ["", "even", "uniform:2", "hide", "permuted"])
def test_names_that_are_none(text):
    with pytest.raises(ValueError) as error:
        intervene.parse(text)
    assert str(error.value) == (
        "change must be one of identity, uniform, zero-largest, only-largest, keep-largest, permuted:…, last-only, "
        f"temperature:…, hide:…, given:…; got {text!r}"
    )


def test_stacked_changes_have_rows_of_their_own():
    stacked = Stacked(((intervene.Uniform(), 1), (Permuted(3), 2)))
    weights, seen = ROW.expand(3, 1, 4), SEEN.expand(3, 1, 4)
    changed = stacked(weights, seen, HERE)
    torch.testing.assert_close(changed[:1], intervene.Uniform()(weights[:1], seen[:1], HERE))
    torch.testing.assert_close(changed[1:], Permuted(3)(weights[1:], seen[1:], HERE))


@pytest.mark.parametrize(
    "make, message",
    [
        (
            lambda: intervene.parse("hide:x"),
            "change 'hide:x' cannot be read: invalid literal for int() with base 10: 'x'",
        ),
        (lambda: Temperature(0), "temperature must be above 0; got 0"),
        (lambda: Temperature(math.nan), "temperature must be above 0; got nan"),
        (lambda: Hide(()), "tokens must be places of source tokens, from 0; got ()"),
        (lambda: Given((0.5, 0.4)), "weights must be at least 0 and sum to 1; got (0.5, 0.4)"),
        (lambda: Given((1.5, -0.5)), "weights must be at least 0 and sum to 1; got (1.5, -0.5)"),
        (lambda: Given((1.0,))(ROW, SEEN, HERE), "weights must be one per source token, 4; got 1"),
        (lambda: Hide((4,))(ROW, SEEN, HERE), "tokens must be places of source tokens, 0 to 3; got 4"),
        (lambda: Hide((0, 1, 3))(ROW, SEEN, HERE), "at least one source token must stay visible; hide fewer"),
        (
            lambda: Stacked(((intervene.Uniform(), 2),))(ROW[None], SEEN[None], HERE),
            "weights must have 2 rows, as the changes have; got 1",
        ),
        (lambda: intervene.Scope(words="verbs"), "words must be function, content or None; got 'verbs'"),
        (
            lambda: intervene.Scope(steps=(-1,)),
            "steps must be places of target tokens, from 0, or None for all; got (-1,)",
        ),
    ],
)
def test_refusals(make, message):
    with pytest.raises(ValueError) as error:
        make()
    assert str(error.value) == message
