"""What a notebook passes in the wrong place: a ValueError of one line, whatever it is and wherever it is passed."""

from collections.abc import Iterator

import numpy as np
import public_functions
import pytest

import attnviz
from attnviz import arguments, select, stats
from attnviz.trace import Trace


@pytest.fixture(scope="module")
def model(root):
    return attnviz.load("en-fr/transformer", root)


def test_a_wrong_value_is_a_sentence(model, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # a wrong name of a file may still be one
    for function, given in public_functions.every(model).items():
        for place in range(len(given)):
            for wrong in public_functions.WRONG:
                try:
                    answer = function(*given[:place], wrong, *given[place + 1 :])
                    if isinstance(answer, Iterator):  # a generator works when it is asked
                        list(answer)
                except (ValueError, OSError) as error:
                    message = str(error)
                    assert 0 < len(message) < 600 and "\n" not in message, (function, place, message[:200])


def test_what_numpy_has_is_accepted(model):
    trace = model.trace("The dog runs.")
    assert select.select(trace, layer=np.int64(0), head=np.int32(1)).head == 1
    assert len(stats.rows([[0.5, 0.5]], np.float32(0.1))) == 1
    assert attnviz.from_arrays([[[[1.0]]]], ["a"], ["b"], log_probs=np.array([-1.0], np.float32)).log_probs == (-1.0,)


@pytest.mark.parametrize(
    "hint, wanted",
    [
        (int | None, "a whole number or None"),
        (list[str], "a list, each text"),
        (Trace, "a Trace"),
        (tuple[int, int], "(a whole number, a whole number)"),
        (np.ndarray, "an array of numbers"),
    ],
)
def test_the_sentence_says_what_is_wanted(hint, wanted):
    with pytest.raises(ValueError) as error:
        arguments.check("it", 1j, hint)
    assert str(error.value) == f"it must be {wanted}; got 1j"


@pytest.mark.parametrize("name", [5, None, ["bahdanau"], "xyzzy"])
def test_what_is_no_name_is_near_none(name):
    assert arguments.guess(name, ["bahdanau"]) == ""


def test_a_name_that_is_nearly_right():
    assert arguments.guess("Bahdanu", ["bahdanau"]) == "; did you mean bahdanau"
