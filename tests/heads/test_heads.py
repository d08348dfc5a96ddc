"""heads.py: the table against stats and plain loops, distances between heads against scipy."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.spatial.distance
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import attnviz
from attnviz import heads, patterns, select, stats
from attnviz.heads import Head
from attnviz.trace import AttentionMap

KINDS = ("cross", "encoder", "decoder")


@pytest.fixture(scope="module")
def trace():
    return synthetic.trace("The black dog sees the dog", "Le chien noir", heads=2, layers=3, kinds=KINDS, pieces=True)


def row(frame, *head):
    rows = frame[(frame[["kind", "layer", "head"]] == list(head)).all(axis=1)]
    assert len(rows) == 1
    return rows.iloc[0]


def test_one_row_a_head(trace):
    frame = heads.table(trace)
    assert list(frame) == [
        "model",
        "kind",
        "layer",
        "head",
        *stats.STATISTICS,
        "special_mass",
        "distance",
        *patterns.PATTERNS,
    ]
    assert list(zip(frame.kind, frame.layer, frame["head"])) == [
        (kind, layer, head) for kind in KINDS for layer in range(3) for head in range(2)
    ]
    assert (frame.model == trace.model).all()


def test_statistics_are_the_means_of_stats(trace):
    frame, summary = heads.table(trace, threshold=0.3), stats.summary(trace, threshold=0.3)
    for line in summary.itertuples():
        assert row(frame, line.kind, line.layer, line.head)[line.statistic] == pytest.approx(line.mean, rel=1e-6)


def test_distance_and_patterns_by_hand(trace):
    frame = heads.table(trace)
    for kind in KINDS:
        attention = trace.map(kind, 1)
        for head, weights in enumerate(attention.weights):
            queries, keys = weights.shape
            away = [
                sum(a * abs(k - int((q + 0.5) * keys / queries)) for k, a in enumerate(line))
                for q, line in enumerate(weights)
            ]
            measured = row(frame, kind, 1, head)
            assert measured.distance == pytest.approx(np.mean(away), rel=1e-5)
            assert measured["first"] == pytest.approx(weights[kind == "decoder" :, 0].mean(), rel=1e-5)


def test_the_table_of_words(trace):
    joined = select.words(trace)
    pd.testing.assert_series_equal(
        heads.table(joined)["gini"],
        stats.summary(joined).query("statistic == 'gini'")["mean"],
        check_names=False,
        check_index=False,
    )


def test_some_columns_of_one_kind(trace):
    frame = heads.table(trace, "decoder", only=("previous", "gini"))
    assert list(frame) == ["model", "kind", "layer", "head", "previous", "gini"] and set(frame.kind) == {"decoder"}
    whole = heads.table(trace)
    pd.testing.assert_frame_equal(frame, whole[whole.kind == "decoder"][list(frame)].reset_index(drop=True))


def test_patterns_of_ones_own(trace):
    subject = patterns.linked("subject", "Verb to subject", {(3, 2)})
    frame = heads.table(trace, "encoder", scored=[subject])
    assert "subject" in frame and "previous" not in frame and frame.subject.between(0, 1).all()


def test_an_unknown_column(trace):
    with pytest.raises(ValueError, match="^columns must be among entropy_nats, .*, broad; got entropie$"):
        heads.table(trace, only=["entropie", "gini"])


def test_no_attention_no_rows(trace):
    assert heads.table(replace(trace, maps=())).empty and "broad" in heads.table(replace(trace, maps=()))


def test_the_heads_most_like_a_pattern():
    shifted = np.vstack([np.eye(5)[:1], np.eye(5)[:-1]])
    maps = (AttentionMap("encoder", 0, [np.eye(5), shifted]), AttentionMap("encoder", 1, [(np.eye(5) + shifted) / 2]))
    frame = heads.table(replace(synthetic.trace("a b c d", kinds=("encoder",)), maps=maps))
    best = heads.most_like(frame, "previous", 2)
    assert list(zip(best.layer, best["head"])) == [(0, 1), (1, 0)]
    assert heads.most_like(frame, "same").empty  # no word twice: no score
    with pytest.raises(ValueError, match="^the table must have the column nex; got model, "):
        heads.most_like(frame, "nex")


# -- how far heads are apart -------------------------------------------------------------------------------------------

pairs = (
    hnp.arrays(
        np.float64,
        st.tuples(st.just(2), st.integers(1, 4), st.integers(1, 7)),
        elements=st.floats(0, 1, allow_subnormal=False),
    )
    .filter(lambda a: (a.sum(-1) > 1e-3).all())
    .map(lambda a: a / a.sum(-1, keepdims=True))
)


@given(pairs)
def test_jensen_shannon_is_scipys(pair):
    distance = heads.jensen_shannon(*pair)
    wanted = np.nan_to_num(scipy.spatial.distance.jensenshannon(*pair, base=2, axis=-1))  # scipy: root of -1e-17 is NaN
    np.testing.assert_allclose(distance, wanted, atol=1e-7)
    assert ((distance >= 0) & (distance <= 1)).all()
    np.testing.assert_array_equal(distance, heads.jensen_shannon(*pair[::-1]))


def test_equal_rows_and_rows_apart():
    assert heads.jensen_shannon([1, 0], [0, 1]) == 1 and heads.jensen_shannon([0.3, 0.7], [0.3, 0.7]) == 0
    assert np.isnan(heads.jensen_shannon([np.nan, np.nan], [0.5, 0.5]))


def test_distances_between_chosen_heads(trace):
    chosen = [Head("encoder", 0, 1), Head("encoder", 2, 0), Head("encoder", 2, 1)]
    distances = heads.distances(trace, chosen)
    assert list(distances) == list(distances.index) == ["encoder 0.1", "encoder 2.0", "encoder 2.1"]
    assert (np.diag(distances) == 0).all() and (distances.to_numpy() == distances.to_numpy().T).all()
    a, b = trace.map("encoder", 0).weights[1], trace.map("encoder", 2).weights[0]
    wanted = scipy.spatial.distance.jensenshannon(a.astype(float), b.astype(float), base=2, axis=-1).mean()
    assert distances.iloc[0, 1] == pytest.approx(wanted, rel=1e-5)


@pytest.mark.parametrize(
    "chosen, message",
    [
        (
            [Head("encoder", 0, 0), Head("cross", 0, 0)],
            "heads must be of one kind to be compared; got encoder 0.0, cross 0.0",
        ),
        ([], "heads must be of one kind to be compared; got none"),
        ([Head("encoder", 0, 2)], "head must be one of 0 to 1 of the encoder map of layer 0; got 2"),
    ],
)
def test_heads_that_cannot_be_compared(trace, chosen, message):
    with pytest.raises(ValueError) as error:
        heads.distances(trace, chosen)
    assert str(error.value) == message


def test_a_token_is_found_in_every_head(trace):
    """By plain loops over the weights: most of a column and of a row, and the mean of a column."""
    frame = heads.search(trace, "DOG", "encoder")
    source = trace.source
    places = [i for i, token in enumerate(source) if token.text.casefold() == "dog"]
    assert len(places) == 2 and len(frame) == 2 * 2 * 2 * 3  # places, ways, heads, layers
    assert frame["weight"].is_monotonic_decreasing and set(frame["kind"]) == {"encoder"}
    for head in frame.itertuples():
        weights = trace.map("encoder", head.layer).weights[head.head]
        line = weights[:, head.place] if head.way == "gets" else weights[head.place]
        assert head.weight == line.max() and head.other == line.argmax()
        assert head.other_token == source[head.other].text and head.place in places
        assert np.isnan(head.mean) if head.way == "gives" else head.mean == pytest.approx(line.mean())
    assert set(heads.search(trace, trace.target[0].text)["kind"]) == {"cross", "decoder"}
    with pytest.raises(ValueError, match="^text must be a token of the trace; got 'cat'$"):
        heads.search(trace, "cat")


def test_a_token_in_many_traces_counts_each_of_its_places():
    """Two heads by hand: the mean of the largest weight over the places, the commonest other token, the best trace."""
    weights = [
        np.array([[[0.9, 0.1], [0.2, 0.8]], [[0.5, 0.5], [0.5, 0.5]]]),
        np.array([[[0.3, 0.7], [0.6, 0.4]], [[0.5, 0.5], [0.02, 0.98]]]),
        np.array([[[1.0, 0.0], [0.0, 1.0]], [[1.0, 0.0], [0.0, 1.0]]]),
    ]
    texts = [(["dog", "runs"], ["le", "chien"]), (["dog", "sits"], ["un", "chien"]), (["cat", "sits"], ["le", "chat"])]
    traces = [attnviz.from_arrays([w], *pair, name="m") for w, pair in zip(weights, texts)]
    frame = heads.search_all(traces, "Dog")
    assert frame["way"].eq("gets").all() and frame["head"].tolist() == [0, 1]
    first, second = frame.to_dict("records")
    assert (first["sentences"], first["places"]) == (2, 2) and first["weight"] == pytest.approx((0.9 + 0.6) / 2)
    assert second["weight"] == pytest.approx(0.5) and (first["example"], second["example"]) == (0, 0)
    assert first["share"] == 0.5 and second["other_token"] in ("le", "un")
    row = heads.search_all(iter(traces), "chien").iloc[0]
    assert (row["way"], row["head"], row["example"]) == ("gives", 1, 1)
    assert row["weight"] == pytest.approx((0.5 + 0.98) / 2)
    with pytest.raises(ValueError, match="^text must be a token of one of the traces; got 'horse'"):
        heads.search_all(traces, "horse")
