"""stats.py against scipy, hand-worked cases, the reference matrix and properties that any statistic of its name must
have."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.stats
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz import select, stats
from attnviz.trace import AttentionMap

KINDS = ("cross", "encoder", "decoder")
COLUMNS = [
    "entropy_nats",
    "entropy_bits",
    "normalised_entropy",
    "max_weight",
    "effective_threshold",
    "effective_entropy",
    "effective_inverse",
    "gini",
    "argmax",
    "expected_position",
]
REFERENCE = np.array(
    [
        [0.65, 0.10, 0.05, 0.05, 0.10, 0.03, 0.02],
        [0.10, 0.70, 0.05, 0.05, 0.05, 0.03, 0.02],
        [0.05, 0.05, 0.05, 0.05, 0.10, 0.68, 0.02],
        [0.05, 0.05, 0.10, 0.75, 0.02, 0.02, 0.01],
        [0.05, 0.10, 0.70, 0.05, 0.05, 0.03, 0.02],
        [0.02, 0.02, 0.02, 0.02, 0.02, 0.02, 0.88],
    ]
)

distributions = (
    hnp.arrays(np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.floats(0, 1))
    .filter(lambda a: (a.sum(-1) > 1e-3).all())
    .map(lambda a: a / a.sum(-1, keepdims=True))
)


def message(error):
    return str(error.value)


def row(*weights, **options):
    return stats.rows([weights], **options).iloc[0]


# -- rows --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_reference_matrix(dtype):
    frame = stats.rows(REFERENCE.astype(dtype))
    assert frame.entropy_nats.round(4).tolist() == [1.2235, 1.1127, 1.1699, 0.9481, 1.1127, 0.5819]
    assert round(frame.entropy_nats.mean(), 4) == 1.0248 and round(frame.entropy_nats.std(ddof=0), 4) == 0.2153
    assert round(frame.max_weight.mean(), 4) == 0.7267 and round(frame.max_weight.std(ddof=0), 4) == 0.0748
    assert frame.effective_threshold.tolist() == [1] * 6  # .10 is not above .1, in float32 either
    assert frame.argmax.tolist() == [0, 1, 5, 3, 2, 6]


def test_the_frame():
    frame = stats.rows([[0.5, 0.5], [1, 0], [0, 1]])
    assert list(frame.columns) == COLUMNS == list(stats.STATISTICS)
    assert frame.index.name == "query" and frame.index.tolist() == [0, 1, 2]


def test_one_row_by_hand():
    """a = 1/2, 1/4, 1/4, 0. H = 1/2 ln 2 + 2 (1/4) ln 4 = 1.5 ln 2. Sum a^2 = 3/8. Position (0 * 2 + 1 + 2) / 4.
    Gini, ascending 0, 1/4, 1/4, 1/2: sum (2i - n - 1) a_i / n = (-3 * 0 - 1 * 1/4 + 1 * 1/4 + 3 * 1/2) / 4 = 3/8."""
    got = row(0.5, 0.25, 0.25, 0)
    ln2 = np.log(2)
    wanted = [1.5 * ln2, 1.5, 1.5 * ln2 / np.log(4), 0.5, 3, 2**1.5, 8 / 3, 3 / 8, 0, 0.75]
    assert got.astype(float).tolist() == pytest.approx(wanted)


@given(distributions)
def test_entropy_is_scipys(weights):
    frame = stats.rows(weights)
    np.testing.assert_allclose(frame.entropy_nats, scipy.stats.entropy(weights, axis=1), atol=1e-12)
    np.testing.assert_allclose(frame.entropy_bits, scipy.stats.entropy(weights, base=2, axis=1), atol=1e-12)


@given(distributions)
def test_gini_is_the_mean_difference_of_all_pairs(weights):
    """Sum over all pairs of |a_i - a_j| / (2 n sum a)."""
    pairs = np.abs(weights[:, :, None] - weights[:, None, :]).sum((1, 2)) / (2 * weights.shape[1])
    np.testing.assert_allclose(stats.rows(weights).gini, pairs, atol=1e-12)


@given(distributions)
def test_bounds(weights):
    n, frame = weights.shape[1], stats.rows(weights)
    few = 1e-9
    for name in ("effective_entropy", "effective_inverse"):
        assert frame[name].between(1 - few, n + few).all()
    assert (frame.effective_inverse <= frame.effective_entropy + few).all()  # Renyi: order 2 never exceeds order 1
    assert frame.gini.between(0, (n - 1) / n + few).all() and frame.max_weight.between(1 / n - few, 1 + few).all()
    assert frame.expected_position.between(-few, n - 1 + few).all()
    assert (frame.entropy_nats >= 0).all() and frame.effective_threshold.between(0, 10).all()
    assert frame.normalised_entropy.isna().all() if n == 1 else frame.normalised_entropy.between(0, 1 + few).all()


@given(distributions, st.randoms(use_true_random=False))
def test_the_order_of_keys_matters_only_to_positions(weights, random):
    order = list(range(weights.shape[1]))
    random.shuffle(order)
    before, after = stats.rows(weights), stats.rows(weights[:, order])
    same = [name for name in COLUMNS if name not in ("argmax", "expected_position")]
    np.testing.assert_allclose(before[same], after[same], atol=1e-12)
    np.testing.assert_allclose(after.expected_position, weights[:, order] @ np.arange(len(order)), atol=1e-12)


@given(distributions, st.integers(1, 3), st.sampled_from([np.float64, np.float32]))
def test_keys_that_are_not_visible_change_nothing(weights, padding, dtype):
    weights = weights.astype(dtype)
    wider = np.pad(weights, ((0, 0), (0, padding)))
    visible = np.arange(wider.shape[1]) < weights.shape[1]
    got = stats.rows(wider, visible=np.tile(visible, (len(weights), 1)))
    pd.testing.assert_frame_equal(got, stats.rows(weights), atol=1e-9)


@pytest.mark.parametrize("n", [2, 7, 64])
def test_uniform_and_one_hot(n):
    uniform, sharp = row(*[1 / n] * n), row(*[0] * (n - 1), 1)
    assert uniform.normalised_entropy == pytest.approx(1) and uniform.gini == pytest.approx(0, abs=1e-12)
    assert uniform.effective_entropy == pytest.approx(n) and uniform.effective_inverse == pytest.approx(n)
    assert uniform.expected_position == pytest.approx((n - 1) / 2)
    assert sharp.entropy_nats == 0 and not np.signbit(sharp.entropy_nats) and sharp.normalised_entropy == 0
    assert sharp.effective_inverse == 1 and sharp.gini == pytest.approx((n - 1) / n) and sharp["argmax"] == n - 1


def test_a_single_key():
    got = row(1.0)
    assert np.isnan(got.normalised_entropy)
    assert got.drop("normalised_entropy").astype(float).tolist() == [0, 0, 1, 1, 1, 1, 0, 0, 0]


def test_normalised_by_the_visible_keys():
    """Causal, two of three visible, half and half: entropy ln 2 of at most ln 2, not of ln 3."""
    frame = stats.rows([[1, 0, 0], [0.5, 0.5, 0], [1 / 3] * 3], visible=np.tri(3, dtype=bool))
    assert np.isnan(frame.normalised_entropy[0]) and frame.normalised_entropy[1:].tolist() == pytest.approx([1, 1])
    assert frame.gini.tolist() == pytest.approx([0, 0, 0])


def test_threshold_is_strict():
    assert [row(0.5, 0.3, 0.2, threshold=t).effective_threshold for t in (0, 0.2, 0.25, 0.3, 0.5, 1)] == [
        3,
        2,
        2,
        1,
        0,
        0,
    ]
    tenth = np.full((1, 10), 0.1, dtype=np.float32)
    assert stats.rows(tenth).effective_threshold[0] == 0


def test_a_blank_row():
    frame = stats.rows([[np.nan, np.nan], [0.25, 0.75]], visible=[[False, False], [True, True]])
    assert frame.iloc[0].isna().all() and frame.iloc[1].notna().all()
    assert frame["argmax"][1] == 1 and stats.rows([[0.25, 0.75]])["argmax"].dtype == np.int64


def test_the_first_of_equal_keys_is_the_argmax():
    assert row(0.2, 0.4, 0.4)["argmax"] == 1


def test_a_row_that_is_off_by_less_than_the_tolerance_is_a_distribution():
    assert row(0.5, 0.50005).normalised_entropy <= 1
    assert row(0, 1.00005).entropy_nats == 0 and row(0, 1.00005).max_weight == 1.00005


@pytest.mark.parametrize(
    "weights, options, wanted",
    [
        ([0.5, 0.5], {}, "weights must have axes [queries, keys], with at least one key; got shape (2,)"),
        (np.zeros((2, 0)), {}, "weights must have axes [queries, keys], with at least one key; got shape (2, 0)"),
        ([[0.5, 0.5], [0.5, 0.4]], {}, "weights of every row must sum to 1; got [0.5, 0.4] in row 1"),
        ([[np.inf, 0]], {}, "weights of every row must sum to 1; got [inf, 0.0] in row 0"),
        ([[1.5, -0.5]], {}, "weights of every row must be at least 0; got [1.5, -0.5] in row 0"),
        (
            [[1, 0], [np.nan, 1]],
            {},
            "weights of every row must hold numbers, or NaN in the whole row; got [nan, 1.0] in row 1",
        ),
        (
            [[0.5, 0.5]],
            {"visible": [[True, False]]},
            "weights of every row must be 0 where a key is not visible; got [0.5, 0.5] in row 0",
        ),
        ([[0.5, 0.5]], {"visible": [True, True]}, "visible must have the shape of the weights, (1, 2); got (2,)"),
        ([[0.5, 0.5]], {"threshold": -0.1}, "threshold must be from 0 to 1; got -0.1"),
        ([[0.5, 0.5]], {"threshold": np.nan}, "threshold must be from 0 to 1; got nan"),
    ],
)
def test_rows_refuses(weights, options, wanted):
    with pytest.raises(ValueError) as error:
        stats.rows(weights, **options)
    assert message(error) == wanted


def test_rows_leaves_its_input_alone():
    weights = REFERENCE.copy()
    stats.rows(weights)
    np.testing.assert_array_equal(weights, REFERENCE)


# -- steps, of_grid, summary, weights ----------------------------------------------------------------------------------


def test_steps_is_rows_of_every_head():
    trace = synthetic.trace("The black dog", "Le chien noir court", heads=2, layers=3, kinds=KINDS, pieces=True)
    frame = stats.steps(trace)
    assert list(frame.columns) == [
        "model",
        "mechanism",
        "kind",
        "layer",
        "head",
        "step",
        "token",
        "argmax_token",
        *COLUMNS,
        "special_mass",
    ]
    assert len(frame) == sum(m.weights.shape[0] * m.weights.shape[1] for m in trace.maps)
    groups = {key: part for key, part in frame.groupby(["kind", "layer", "head"])}
    assert len(groups) == 18
    for (kind, layer, head), part in groups.items():
        m = trace.map(kind, layer)
        queries, keys = trace.queries(m), trace.keys(m)
        wanted = stats.rows(m.weights[head], visible=trace.visible(m))
        pd.testing.assert_frame_equal(part[COLUMNS].reset_index(drop=True), wanted.reset_index(drop=True))
        assert part.step.tolist() == list(range(len(queries))) and part.token.tolist() == [t.text for t in queries]
        assert part.argmax_token.tolist() == [keys[i].text for i in wanted.argmax]
        special = sum(m.weights[head][:, j] for j, key in enumerate(keys) if key.special)
        np.testing.assert_allclose(part.special_mass, special, rtol=1e-6)


def test_steps_normalises_causally():
    trace = synthetic.trace("a", "u v w", kinds=("decoder",))
    uniform = np.tri(4) / np.arange(1, 5)[:, None]
    frame = stats.steps(replace(trace, maps=(AttentionMap("decoder", 0, [uniform]),)))
    assert np.isnan(frame.normalised_entropy[0]) and frame.normalised_entropy[1:].tolist() == pytest.approx([1, 1, 1])
    assert frame.special_mass.tolist() == pytest.approx([1, 1 / 2, 1 / 3, 1 / 4])  # on <bos>


def test_one_token_and_repeated_tokens():
    alone = stats.steps(synthetic.trace("", "", kinds=KINDS))
    assert alone.token.tolist() == ["<eos>"] * 3 and alone.argmax_token.tolist() == ["<eos>", "<eos>", "<bos>"]
    assert alone.normalised_entropy.isna().all() and (alone.entropy_nats == 0).all()
    repeated = stats.steps(synthetic.trace("the dog the dog the", "le chien le"))
    assert repeated.token.tolist() == ["le", "chien", "le", "<eos>"] and repeated.step.tolist() == [0, 1, 2, 3]


def test_a_trace_without_attention_has_no_steps():
    trace = replace(synthetic.trace(), maps=())
    assert stats.steps(trace).empty and list(stats.steps(trace).columns) == list(stats.steps(synthetic.trace()).columns)
    assert stats.weights(trace).empty and stats.summary(trace).empty
    assert list(stats.summary(trace).columns) == list(stats.summary(synthetic.trace()).columns)


def test_steps_refuses_a_bad_threshold():
    with pytest.raises(ValueError) as error:
        stats.steps(synthetic.trace(), threshold=2)
    assert message(error) == "threshold must be from 0 to 1; got 2"


@pytest.mark.parametrize("words", [False, True])
@pytest.mark.parametrize("kind", KINDS)
def test_of_grid_is_steps_when_one_head_is_shown_whole(kind, words):
    trace = synthetic.trace("The black dog", "Le chien noir", heads=2, kinds=KINDS, pieces=True)
    frame = stats.of_grid(select.select(trace, kind, head=1, words=words))
    wanted = stats.steps(select.words(trace) if words else trace).query(f"kind == '{kind}' and head == 1")
    shared = [name for name in frame.columns if name != "removed_mass"]
    pd.testing.assert_frame_equal(frame[shared], wanted[shared].reset_index(drop=True))
    assert (frame.removed_mass == 0).all()
    assert list(frame.columns) == [
        "model",
        "mechanism",
        "step",
        "token",
        "argmax_token",
        *COLUMNS,
        "special_mass",
        "removed_mass",
    ]


def test_of_grid_without_special_tokens():
    trace = synthetic.trace("a", "u v", kinds=("decoder",))
    frame = stats.of_grid(select.select(trace, "decoder", special=False))
    assert frame.token.tolist() == ["u", "v"] and frame.removed_mass[0] == 1
    assert frame.loc[0, COLUMNS].isna().all() and pd.isna(frame.argmax_token[0]) and frame.argmax_token[1] == "u"
    assert (frame.special_mass == 0).all()


def test_the_mean_head_is_not_the_mean_of_heads():
    """Two sharp heads on different keys: each has entropy 0, their mean has ln 2."""
    trace = synthetic.trace("a", "", heads=2)
    trace = replace(trace, maps=(AttentionMap("cross", 0, [[[1, 0]], [[0, 1]]]),))
    assert stats.steps(trace).entropy_nats.tolist() == [0, 0]
    assert stats.of_grid(select.select(trace)).entropy_nats.tolist() == pytest.approx([np.log(2)])


def test_summary_is_the_mean_and_population_deviation():
    trace = synthetic.trace("The black dog", "Le chien noir", heads=2, layers=2, kinds=KINDS)
    frame, steps = stats.summary(trace), stats.steps(trace)
    assert list(frame.columns) == ["model", "mechanism", "kind", "layer", "head", "statistic", "mean", "std"]
    assert len(frame) == 3 * 2 * 2 * 11 and frame.statistic[:11].tolist() == [*COLUMNS, "special_mass"]
    for line in frame.itertuples():
        part = steps.query(f"kind == '{line.kind}' and layer == {line.layer} and head == {line.head}")[line.statistic]
        assert line.mean == pytest.approx(part.mean()) and line.std == pytest.approx(part.std(ddof=0), abs=1e-12)


def test_summary_of_the_reference_matrix():
    trace = synthetic.trace("a b c d e f", "u v w x y")
    trace = replace(trace, maps=(AttentionMap("cross", 0, [REFERENCE]),))
    frame = stats.summary(trace).set_index("statistic")
    assert frame.loc["entropy_nats", ["mean", "std"]].tolist() == pytest.approx([1.0248, 0.2153], abs=5e-5)
    assert frame.loc["max_weight", ["mean", "std"]].tolist() == pytest.approx([0.7267, 0.0748], abs=5e-5)
    assert frame.loc["effective_threshold", ["mean", "std"]].tolist() == [1, 0]


def test_summary_skips_what_is_not_there():
    decoder = stats.summary(synthetic.trace("a", "u v", kinds=("decoder",))).set_index("statistic")
    assert np.isfinite(decoder.loc["normalised_entropy", "mean"])  # the first step has none
    alone = stats.summary(synthetic.trace("", "")).set_index("statistic")
    assert np.isnan(alone.loc["normalised_entropy", "mean"]) and np.isnan(alone.loc["normalised_entropy", "std"])
    assert alone.loc["entropy_nats", ["mean", "std"]].tolist() == [0, 0]


def test_summarise_what_is_on_the_screen():
    grids = [select.select(synthetic.trace(model=name, seed=seed), special=False) for seed, name in enumerate("ba")]
    frames = [stats.of_grid(grid) for grid in grids]
    frame = stats.summarise(pd.concat(frames))
    assert list(frame.columns) == ["model", "mechanism", "statistic", "mean", "std"]
    assert frame.model.unique().tolist() == ["b", "a"]  # in the order given
    for part, name in zip(frames, "ba"):
        line = frame.query(f"model == '{name}' and statistic == 'removed_mass'").iloc[0]
        assert line["mean"] == pytest.approx(part.removed_mass.mean()) and line["std"] == pytest.approx(
            part.removed_mass.std(ddof=0)
        )


def test_weights_lists_every_number_with_its_tokens():
    trace = synthetic.trace("the dog the", "le chien", heads=2, layers=2, kinds=KINDS)
    frame = stats.weights(trace)
    assert list(frame.columns) == [
        "model",
        "kind",
        "layer",
        "head",
        "query",
        "query_token",
        "key",
        "key_token",
        "weight",
    ]
    assert len(frame) == sum(m.weights.size for m in trace.maps)
    for line in frame.sample(40, random_state=0).itertuples():
        m = trace.map(line.kind, line.layer)
        assert line.weight == m.weights[line.head, line.query, line.key]
        assert (line.query_token, line.key_token) == (trace.queries(m)[line.query].text, trace.keys(m)[line.key].text)
