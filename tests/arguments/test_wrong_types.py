"""What a notebook passes in the wrong place: a ValueError of one line, whatever it is and wherever it is passed."""

import numpy as np
import pytest
import torch

import attnviz
from attnviz import ablation, alignment, arguments, faithfulness, gold, heads, inside, intervene, rollout, select, stats
from attnviz.corpus import CorpusConfig
from attnviz.trace import Trace


class Long:
    def __repr__(self):
        return "o\n" * 10**5


WRONG = (None, True, -1, 1.5, 10**400, "", "x" * 5000, "\ud800", b"x", [None], {"a": 1}, object(), Long(), int, 1j, ...)
WRONG += (np.zeros((2, 2)), torch.zeros(2), iter([]), float("nan"), [10**400], ("cross", 0))


@pytest.fixture(scope="module")
def model(root):
    return attnviz.load("en-fr/transformer", root)


def of_traces(model):
    trace = model.trace("The black dog runs.")
    grid, head, table = select.select(trace), heads.Head("encoder", 0, 0), heads.table(trace)
    weights = np.full((2, 2), 0.5)
    return {
        attnviz.load: ["en-fr/none", None],
        attnviz.available: [None],
        attnviz.save_trace: [trace, "/no/such/folder/x.json"],
        attnviz.load_trace: ["/no/such/x.json"],
        attnviz.from_arrays: [[[weights]], ["a", "b"], ["c", "d"]],
        Trace.from_json: ["{}"],
        trace.map: ["cross", 0],
        trace.queries: [trace.maps[0]],
        select.words: [trace],
        select.select: [trace, "cross", 0, 0, False, False],
        select.mean: [trace, "encoder", [(0, 0)], False, False],
        select.difference: [grid, grid],
        stats.rows: [weights, 0.1, None],
        stats.steps: [trace, 0.1],
        stats.of_grid: [grid, 0.1],
        stats.weights: [trace],
        heads.table: [trace, "encoder", ["distance"]],
        heads.most_like: [table, "previous", 2],
        heads.distances: [trace, [head, head]],
        heads.nearest: [trace, head],
        heads.jensen_shannon: [weights, weights],
    }


def of_models(model):
    trace, head, weights = model.trace("The dog runs."), heads.Head("encoder", 0, 0), np.full((2, 2), 0.5)
    opened, subject = inside.step(model, trace, 0), faithfulness.subject(model, "The dog runs.", "Le chien court.")
    return {
        inside.step: [model, trace, 0, 0, 0],
        inside.formula: [opened, 0],
        inside.temperatures: [opened, [1.0]],
        inside.spread: [[4], 2, 2, 0],
        intervene.parse: ["uniform"],
        intervene.run: [model, "The dog.", intervene.Uniform(), intervene.Scope(), "Le chien."],
        intervene.Scope: [(0,), None, 0, 0],
        intervene.Permuted: [0],
        intervene.Temperature: [1.0],
        intervene.Hide: [(0,)],
        intervene.Given: [(1.0,)],
        faithfulness.subject: [model, "The dog.", "Le chien."],
        faithfulness.integrated_gradients: [subject, [0], 1],
        faithfulness.erasure: [subject, faithfulness.leave_one_out(subject), [0.5]],
        faithfulness.preserved: [subject, [intervene.Uniform()]],
        faithfulness.variation: [subject, 1, 0],
        faithfulness.tau_b: [weights, weights],
        rollout.rollout: [trace, "encoder"],
        ablation.effect: [model, [head], "The dog.", "Le chien."],
        alignment.report: [model, gold.shipped("en-fr")[:1]],
        gold.read: ["/no/such/file"],
        gold.shipped: ["en-fr"],
        CorpusConfig: [("en-fr/bahdanau",), "/no/such/file", 1, 1, ("statistics",), None, 1],
    }


def test_a_wrong_value_is_a_sentence(model):
    for function, given in (of_traces(model) | of_models(model)).items():
        for place in range(len(given)):
            for wrong in WRONG:
                try:
                    function(*given[:place], wrong, *given[place + 1 :])
                except (ValueError, OSError) as error:
                    assert 0 < len(str(error)) < 600, (function, place, str(error)[:200])


def test_what_numpy_has_is_accepted(model):
    trace = model.trace("The dog runs.")
    assert select.select(trace, layer=np.int64(0), head=np.int32(1)).head == 1
    assert len(stats.rows([[0.5, 0.5]], np.float32(0.1))) == 1
    assert attnviz.from_arrays([[[[1.0]]]], ["a"], ["b"], log_probs=np.array([-1.0], np.float32)).log_probs == (-1.0,)


@pytest.mark.parametrize(
    "hint, said",
    [
        (int | None, "a whole number or None"),
        (list[str], "a list, each text"),
        (Trace, "a Trace"),
        (tuple[int, int], "(a whole number, a whole number)"),
        (np.ndarray, "an array of numbers"),
    ],
)
def test_the_sentence_says_what_is_wanted(hint, said):
    with pytest.raises(ValueError) as error:
        arguments.check("it", 1j, hint)
    assert str(error.value) == f"it must be {said}; got 1j"
