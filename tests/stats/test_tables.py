"""Statistics of whole traces and grids: one row per step, their summary, and every weight with its tokens."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import synthetic
from measured_rows import COLUMNS, KINDS, REFERENCE

import attnviz
from attnviz import select, stats
from attnviz.trace import AttentionMap


def message(error):
    return str(error.value)


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


def test_a_token_that_is_half_a_surrogate_pair_has_statistics():
    trace = attnviz.from_arrays([np.full((1, 2, 2), 0.5)], ["\ud800", "b"])
    assert stats.steps(trace).token.tolist() == ["\ud800", "b"]
    assert stats.of_grid(select.select(trace, "encoder")).token.tolist() == ["\ud800", "b"]
