"""patterns.py on matrices whose pattern anyone can see, and properties that the scores must have."""

from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from attnviz import patterns
from attnviz.patterns import PATTERNS
from attnviz.trace import AttentionMap, Token, Trace

N = 5  # tokens of "a b c d": four words and <eos>


def scores(weights, kind="encoder", source="a b c d", target="a b c d", chosen=PATTERNS.values()):
    """Every pattern's score of one head."""
    trace = synthetic.trace(source, target, kinds=(kind,))
    trace = replace(trace, maps=(AttentionMap(kind, 0, [weights]),))
    view = patterns.layout(trace, trace.maps[0])
    return {
        pattern.name: patterns.score(trace.maps[0].weights[0], patterns.ceiling(pattern, view)) for pattern in chosen
    }


def column(k, rows=N, columns=N):
    return np.eye(columns)[[k] * rows]


def test_each_looks_at_itself():
    scored = scores(np.eye(N))
    assert scored["current"] == 1 and scored["local"] == 1
    assert scored["previous"] == scored["next"] == 0
    assert scored["first"] == pytest.approx(1 / N) and scored["separator"] == pytest.approx(
        1 / N
    )  # of the two ends themselves
    assert scored["broad"] == pytest.approx(1 / N)


def test_each_looks_at_the_one_before():
    """The first row has none before it: it does not count, whatever it looks at."""
    scored = scores(np.vstack([column(3, 1), np.eye(N)[:-1]]))
    assert scored["previous"] == 1 and scored["current"] == scored["next"] == 0
    assert scored["local"] == pytest.approx(4 / 5)  # the first row looks 3 away, and there is a window for it
    assert scored["first"] == pytest.approx(1 / 5)  # row 1 alone


def test_each_looks_at_the_one_after():
    scored = scores(np.vstack([np.eye(N)[1:], column(0, 1)]))
    assert scored["next"] == 1 and scored["previous"] == scored["current"] == 0


def test_all_look_at_the_first_or_at_the_separator():
    assert scores(column(0))["first"] == 1 and scores(column(0))["separator"] == 0
    assert scores(column(N - 1))["separator"] == 1 and scores(column(N - 1))["first"] == 0


def test_two_keys_away_is_local_and_three_is_not():
    assert patterns.REACH == 2
    two, three = np.eye(7)[[2, 3, 4, 5, 6, 4, 4]], np.eye(7)[[3, 4, 5, 6, 1, 2, 3]]
    wide = dict(source="a b c d e f", target="a b c d e f")
    assert scores(two, **wide)["local"] == 1 and scores(three, **wide)["local"] == 0


def test_uniform_is_broad():
    scored = scores(np.full((N, N), 1 / N))
    assert scored["broad"] == pytest.approx(1) and scored["current"] == pytest.approx(1 / N)
    assert scored["local"] == pytest.approx((3 + 4 + 5 + 4 + 3) / 25)


def test_half_the_weight_is_half_the_score():
    assert scores((np.eye(N) + column(0)) / 2)["first"] == pytest.approx((1 + 4 * 0.5) / N)


def test_the_same_word_elsewhere():
    """the dog the dog <eos>: 0 with 2, 1 with 3; <eos> has no like and does not count, nor does one's own place."""
    text = dict(source="the dog the dog", target="x")
    assert scores(np.eye(5)[[2, 3, 0, 1, 4]], **text)["same"] == 1
    assert scores(np.eye(5), **text)["same"] == 0
    assert np.isnan(scores(np.eye(N))["same"])  # no word twice


def test_the_same_word_is_what_the_vocabulary_takes_to_be_the_same():
    """Two capitals of one word; two halves of a letter."""
    text = "The the aa"
    tokens = [
        Token("The", 0, 3, word=0, piece="the"),
        Token("the", 4, 7, word=1, piece="the"),
        Token("a", 8, 9, word=2, piece="1"),
        Token("a", 8, 9, word=2, piece="2"),
    ]
    trace = Trace(
        "m", "m", text, "", False, tuple(tokens), (), (), (), (AttentionMap("encoder", 0, np.full((1, 4, 4), 0.25)),)
    )
    view = patterns.layout(trace, trace.map("encoder"))
    assert np.argwhere(patterns.ceiling(PATTERNS["same"], view)).tolist() == [[0, 1], [1, 0]]


def test_the_same_word_on_both_sides_of_a_cross_map():
    """Target `Anna parle` over source `Anna speaks`: Anna is on the diagonal, and counts."""
    scored = scores(np.eye(3), "cross", "Anna speaks", "Anna parle")
    assert scored["same"] == 1 and scored["current"] == 1


def test_a_causal_map_knows_no_next_and_its_first_row_has_no_choice():
    scored = scores(np.eye(N), "decoder")
    assert np.isnan(scored["next"]) and np.isnan(scored["separator"])
    assert scored["current"] == 1 and scored["first"] == 0  # of rows 1 to 4
    uniform = scores(np.tri(N) / np.arange(1, N + 1)[:, None], "decoder")
    assert uniform["broad"] == pytest.approx(1)  # of the keys that each row sees
    assert uniform["first"] == pytest.approx(np.mean([1 / 2, 1 / 3, 1 / 4, 1 / 5]))


def test_a_decoder_row_stands_where_its_input_went_in():
    """Target `a b a`: inputs <bos> a b a.

    Row 3, named <eos>, went in as the second `a` and finds the first at key 1.
    """
    scored = scores(np.eye(4)[[0, 1, 2, 1]], "decoder", target="a b a")
    assert scored["same"] == 1


def test_the_diagonal_of_a_cross_map():
    """6 queries over 3 keys: two queries a key; 2 over 4: keys 1 and 3 (floor of (q + 1/2) 4 / 2)."""
    wide = scores(np.eye(3)[[0, 0, 1, 1, 2, 2]], "cross", "a b", "u v w x y")
    assert wide["current"] == 1
    tall = scores(np.eye(4)[[1, 3]], "cross", "a b c", "u")
    assert tall["current"] == 1


def test_one_token_scores_nothing():
    scored = scores(np.ones((1, 1)), source="")
    assert all(np.isnan(value) for value in scored.values())


def test_an_annotation_of_ones_own():
    """The verb, word 2, looks at its subject, word 1: one query of five counts."""
    verb = patterns.linked("subject", "Verb to subject", {(2, 1)})
    weights = column(4)
    weights[2] = [0, 0.7, 0, 0, 0.3]
    assert scores(weights, chosen=[verb])["subject"] == pytest.approx(0.7)
    assert np.isnan(scores(weights, chosen=[patterns.linked("none", "None", set())])["none"])


@given(
    hnp.arrays(np.float64, (N, N), elements=st.floats(0, 1)).filter(lambda a: (a.sum(-1) > 1e-3).all()), st.booleans()
)
def test_scores_are_shares(raw, causal):
    raw = raw + 1e-6
    raw = np.tril(raw) if causal else raw
    weights = raw / raw.sum(-1, keepdims=True)
    scored = scores(weights, "decoder" if causal else "encoder", source="a b a d", target="a b a d")
    assert all(np.isnan(value) or 0 <= value <= 1 for value in scored.values())
    rows = range(1, N) if causal else range(N)
    visible = np.tri(N) if causal else np.ones((N, N))
    apart = [np.abs(weights[q] - visible[q] / visible[q].sum()).sum() / 2 for q in rows]  # total variation
    assert scored["broad"] == pytest.approx(1 - np.mean(apart), abs=1e-5)
    near = [weights[q, max(0, q - 2) : q + 3].sum() for q in rows]
    assert scored["local"] == pytest.approx(np.mean(near), abs=1e-5)


def test_induction_looks_after_an_earlier_occurrence():
    """Target `a b a b`: inputs <bos> a b a b. Row 3 went in as the second `a`; after the first stands `b`, key 2. Row 4
    went in as the second `b`; after the first stands `a`, key 3. Both ways only the last row finds it here."""
    weights = np.eye(5)[[0, 1, 2, 2, 4]]
    trace = replace(synthetic.trace("a", "a b a b", kinds=("decoder",)), maps=(AttentionMap("decoder", 0, [weights]),))
    ceiling = patterns.ceiling(PATTERNS["induction"], patterns.layout(trace, trace.maps[0]))
    assert np.argwhere(ceiling).tolist() == [[3, 2], [4, 3]]
    assert patterns.score(weights, ceiling) == 0.5
    assert patterns.examples(weights, ceiling) == [(3, 2, 1.0)]
    in_both = scores(np.eye(N), "encoder", "a b a c")  # row 0 looks after the later `a`, key 3
    assert in_both["induction"] == 0 and np.isnan(scores(np.eye(3), "cross", "a a", "a a")["induction"])


def test_examples_are_the_largest_weights_that_count_first():
    weights, ceiling = np.array([[0.7, 0.3], [0.6, 0.4], [0.1, 0.9]]), np.array([[0.0, 1.0], [1.0, 0.0], [0.0, 0.5]])
    assert patterns.examples(weights, ceiling, 2) == [(1, 0, 0.6), (2, 1, 0.9)]
    with pytest.raises(ValueError, match="shape of the ceiling"):
        patterns.examples(weights, ceiling[:2])


def test_a_repeated_text_says_its_second_half_in_its_first():
    words = patterns.repeated(9, 3).split()
    assert len(words) == 18 and words[:9] == words[9:] and len(set(words)) == 9
    assert patterns.repeated(9, 4) != patterns.repeated(9, 3)
    with pytest.raises(ValueError, match="count must be from 2 to 24; got 1"):
        patterns.repeated(1)


def test_chance_is_the_score_of_uniform_attention():
    trace = synthetic.trace("a b c d", "u v", kinds=("encoder", "decoder"))
    assert patterns.chance(trace) == pytest.approx(scores(np.full((N, N), 1 / N)), nan_ok=True)
    assert patterns.chance(trace, "decoder")["first"] == pytest.approx(np.mean([1 / 2, 1 / 3]))


def test_every_pattern_says_what_it_is():
    for name, pattern in PATTERNS.items():
        assert pattern.name == name and pattern.title and pattern.words and pattern.formula.startswith("u_{qk} =")


def test_a_ceiling_of_another_shape_is_refused():
    with pytest.raises(ValueError) as error:
        patterns.score(np.eye(2), np.eye(3))
    assert str(error.value) == "weights must have the shape of the ceiling, (3, 3); got (2, 2)"
