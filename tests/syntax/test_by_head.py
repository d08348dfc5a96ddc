"""Heads against dependencies: a case by hand, a loop over words, and what is refused."""

import numpy as np
import pandas as pd
import pytest
import synthetic

from attnviz import syntax
from attnviz.syntax import DIRECTIONS, RELATIONS, TO_DEPENDANT, TO_GOVERNOR, Parse
from attnviz.trace import AttentionMap, Token, Trace

TEXT = "red car stops"
PARSE = Parse(TEXT, ((0, 3), (4, 7), (8, 13)), (1, 2, -1), ("amod", "nsubj", "root"))
WORDS = (("red", 0, 3), ("car", 4, 7), ("stops", 8, 13))


def trace_of(*heads, kind="encoder"):
    """A model that reads TEXT; heads : the row of each of its words, and of <eos>."""
    source = (
        *(Token(text, start, end, word=i) for i, (text, start, end) in enumerate(WORDS)),
        Token("<eos>", 13, 13, special=True),
    )
    maps = (AttentionMap(kind, 0, np.array(heads, dtype=np.float32)),)
    return Trace("m", "m", TEXT, "", False, source, (), (), (), maps)


LOOKS = [[0.1, 0.6, 0.2, 0.1], [0.1, 0.1, 0.2, 0.6], [0.3, 0.2, 0.1, 0.4], [0.25] * 4]


def test_by_hand():
    """red looks at car (its governor), car at stops once <eos> is left out (its governor), stops at red."""
    trace = trace_of(LOOKS)
    assert syntax.looks(trace, PARSE).tolist() == [[1, 2, 0]]
    frame = syntax.table([trace], {TEXT: PARSE}).set_index(["relation", "direction"])
    assert list(frame.index) == [(name, way) for name in ("nsubj", "amod") for way in DIRECTIONS]
    assert frame["right"].tolist() == [1, 0, 1, 0] and (frame["count"] == 1).all()
    assert frame["offset"].tolist() == [1, -1, 1, -1] and (frame["baseline"] == 1).all()


def test_the_same_as_a_loop_over_words_and_offsets():
    random = np.random.default_rng(0)
    texts = list(syntax.shipped())[:3]
    traces = [synthetic.trace(text, "", heads=2, layers=2, kinds=("encoder",)) for text in texts]
    frame = syntax.table(traces)
    for row in frame.sample(12, random_state=random.integers(99)).itertuples():
        right, count, by_offset = 0, 0, dict.fromkeys(range(-20, 21), 0)
        for trace in traces:
            parse = syntax.shipped()[trace.text]
            looks = syntax.looks(trace, parse, layer=row.layer)[row.head]
            for query in range(len(parse.words)):
                pairs = parse.pairs(row.relation)
                answers = {b if row.direction == TO_GOVERNOR else a for a, b in pairs if query in (a, b)} - {query}
                answers = {
                    word
                    for word in answers
                    if ((query, word) if row.direction == TO_GOVERNOR else (word, query)) in pairs
                }
                count += bool(answers)
                right += looks[query] in answers
                for offset in by_offset:
                    by_offset[offset] += query + offset in answers
        assert (row.right, row.count) == (right, count) and row.share == right / count
        assert row.baseline == max(by_offset.values()) / count == by_offset[row.offset] / count


def test_a_causal_model_is_not_asked_for_what_it_cannot_see():
    weights = np.tril(np.ones((4, 4)))
    trace = trace_of(weights / weights.sum(1, keepdims=True), kind="decoder")
    frame = syntax.table([trace], {TEXT: PARSE}, kind="decoder")
    assert set(frame["direction"]) == {TO_DEPENDANT}


def test_what_cannot_be_measured_is_said():
    trace = trace_of(LOOKS)
    with pytest.raises(ValueError, match="every text must have a parse; got none for 'red car stops'"):
        syntax.table([trace])
    with pytest.raises(ValueError, match="there must be a trace"):
        syntax.table([])
    with pytest.raises(ValueError, match="direction must be one of to governor, to dependant; got up"):
        syntax.questions(PARSE, "nsubj", "up")
    translated = synthetic.trace(TEXT, "voiture", kinds=("cross",))
    with pytest.raises(ValueError, match="syntax needs self-attention of the source"):
        syntax.looks(translated, PARSE, "cross")
    other = Parse("red", ((0, 3),), (-1,), ("root",))
    with pytest.raises(ValueError, match="the trace must be of 'red'; got 'red car stops'"):
        syntax.looks(trace, other)


def test_relations_are_the_columns_of_the_table():
    assert isinstance(syntax.table([trace_of(LOOKS)], {TEXT: PARSE}), pd.DataFrame)
    assert set(RELATIONS) == {"nsubj", "obj", "det", "amod", "case"}
