"""Alignment over heads: every one, their means, the best chosen on other sentences; the card; links on a grid."""

import json
from dataclasses import replace

import pytest
import synthetic
from linked import PAIR, forced, sharp

from attnviz import alignment, gold, select


def corpus():
    """Two heads: the first is right on the 1st and 3rd of four sentences, the second on the 2nd and 4th; wrong
    elsewhere."""
    pair = gold.parse("a b\nx y\n0-0 1-1")[0]
    right, wrong = sharp(0, 1, 2, size=3), sharp(1, 0, 2, size=3)
    return [forced(pair, [right, wrong] if i % 2 == 0 else [wrong, right]) for i in range(4)], [pair] * 4


def test_measure_has_a_row_for_every_head_and_mean():
    frame = alignment.measure(*corpus())
    assert frame[["layer", "head"]].astype(object).where(frame[["layer", "head"]].notna(), None).values.tolist() == [
        [0, 0],
        [0, 1],
        [0, None],
        [None, None],
    ]
    assert frame.error_rate.tolist() == [0.5, 0.5, 0.5, 0.5] and frame.links.tolist() == [8] * 4
    rule = alignment.above(0.5)
    assert alignment.measure(*corpus(), rule).query("head.isna()").recall.tolist() == [
        1,
        1,
    ]  # both heads' links, at .5 each


def test_the_best_head_is_chosen_on_other_sentences():
    """On the 2nd and 4th the second head is best, and wrong on the 1st and 3rd, which it is chosen for; and the
    reverse."""
    counts, chosen = alignment.best_head(*corpus())
    assert chosen == [(0, 1), (0, 0)] and counts.error_rate == 1
    traces, pairs = corpus()
    steady = alignment.best_head([traces[0]] * 4, pairs)
    assert steady[0].error_rate == 0 and steady[1] == [(0, 0), (0, 0)]


def test_a_head_without_any_rate_is_not_the_best():
    """No link found, and none that is sure: there is nothing to rate."""
    sure, unsure = gold.parse("a b\nx y\n0-0 1-1\n\na b\nx y\n0-0? 1-1?")
    blank, right = sharp(0, 1, 2, size=3) * 0 + 1 / 3, sharp(0, 1, 2, size=3)
    counts, chosen = alignment.best_head(
        [forced(pair, [blank, right]) for pair in (sure, unsure)], [sure, unsure], alignment.above(0.5)
    )
    assert chosen == [(0, 1), (0, 1)] and counts.error_rate == 0


@pytest.mark.parametrize(
    ("traces", "pairs", "message"),
    [
        (
            1,
            1,
            "the best of 2 heads is chosen on other sentences than those scored, so at least two linked pairs "
            "are needed; got 1",
        ),
        (0, 0, "there must be attention to measure; got none"),
        (2, 3, "there must be one trace for each pair; got 2 traces and 3 pairs"),
    ],
)
def test_best_head_says_what_is_wrong(traces, pairs, message):
    every, gold_pairs = corpus()
    with pytest.raises(ValueError) as error:
        alignment.best_head(every[:traces], gold_pairs[:pairs])
    assert str(error.value) == message


class Stored:
    """Stands for a model: its traces are given."""

    def __init__(self, traces):
        self.traces = iter(traces)

    def trace(self, source, target):
        return next(self.traces)


def test_the_report_of_a_card():
    traces, pairs = corpus()
    measured = alignment.report(Stored([traces[0]] * 4), pairs)
    assert (measured["pairs"], measured["sure"], measured["possible"]) == (4, 8, 8)
    assert measured["best_head"] == {
        "error_rate": 0.0,
        "precision": 1.0,
        "recall": 1.0,
        "links": 8,
        "chosen": [[0, 0], [0, 0]],
    }
    assert measured["diagonal"]["error_rate"] == 0 and set(measured["shifted"]) == {"-1", "1"}
    # with the second head, a step later, x reads the row of y, which is right, and y that of <eos>, which is none: 1 -
    # 2 / 3
    later = {"error_rate": 0.3333, "precision": 1.0, "recall": 0.5, "links": 4, "chosen": [[0, 1], [0, 1]]}
    assert measured["shifted"]["1"] == later
    assert [(row["layer"], row["head"], row["error_rate"]) for row in measured["heads"]] == [(0, 0, 0), (0, 1, 1)]
    assert [(row["layer"], row["head"]) for row in measured["means"]] == [(0, None), (None, None)]
    assert json.loads(json.dumps(measured, allow_nan=False)) == measured


def test_no_attention_and_no_pairs_have_no_report():
    traces, pairs = corpus()
    without = [replace(trace, maps=()) for trace in traces]
    assert alignment.measure(without, pairs).empty and alignment.report(Stored(without), pairs) is None
    assert alignment.report(Stored([]), ()) is None


# --- links on a grid


@pytest.mark.parametrize("words", [False, True])
def test_cells_are_the_tokens_of_linked_words(words):
    pair = gold.parse("The black horse\nLe cheval noir\n0-0 0-1? 1-2 2-1")[0]
    trace = synthetic.trace(pair.source, pair.target, pieces=True)
    grid = select.select(trace, words=words)
    predicted = alignment.cells(grid, pair)
    spelt = {(grid.queries[query].text, grid.keys[key].text) for query, key in predicted.sure}
    assert spelt == (
        {("Le", "The"), ("cheval", "horse"), ("noir", "black")}
        if words
        else {
            ("Le", "The"),
            ("che", "hor"),
            ("che", "se"),
            ("val", "hor"),
            ("val", "se"),
            ("no", "bla"),
            ("no", "ck"),
            ("ir", "bla"),
            ("ir", "ck"),
        }
    )
    more = {(grid.queries[query].text, grid.keys[key].text) for query, key in predicted.possible - predicted.sure}
    assert more == ({("cheval", "The")} if words else {("che", "The"), ("val", "The")})


def test_cells_without_special_tokens_are_counted_on_what_is_shown():
    trace = synthetic.trace(PAIR.source, PAIR.target)
    assert alignment.cells(select.select(trace, special=False), PAIR) == alignment.cells(select.select(trace), PAIR)


@pytest.mark.parametrize(
    ("kind", "target", "message"),
    [
        ("encoder", "Le chien noir", "links join a target and a source, so the map must be of kind cross; got encoder"),
        ("cross", "Le chat noir", "the map must be of 'Le chien noir'; got 'chat' at 3"),
    ],
)
def test_links_of_another_map_are_refused(kind, target, message):
    trace = synthetic.trace("The black dog", target, kinds=("cross", "encoder"))
    with pytest.raises(ValueError) as error:
        alignment.cells(select.select(trace, kind), PAIR)
    assert str(error.value) == message
