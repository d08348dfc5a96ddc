"""The reference of a model: a sentence's place, levels between lengths, and files that are none."""

import copy
import json

import numpy as np
import pytest

import attnviz
from attnviz import stats
from attnviz.across import reference, sentence, sharpness
from attnviz.across.reference import MODELS, QUANTILES

LEVELS = {"cross": {"normalised_entropy": [0.2, 0.6]}}
CONTENT = {
    "test": "test_2016_flickr",
    "sentences": 100,
    "weights_sha256": "ab",
    "lengths": [10, 20],
    "quantiles": {"cross": {"normalised_entropy": np.linspace(0, 1, QUANTILES).tolist()}},
    "levels": {name: LEVELS for name in MODELS},
}


def test_a_sentence_is_placed_among_the_test_set():
    made = reference.from_dict(CONTENT)
    assert made.share_less_sharp(0.25) == pytest.approx(0.75)
    assert made.share_less_sharp(0.25, "decoder") is None


def test_levels_lie_on_the_line_between_two_lengths():
    made = reference.from_dict(CONTENT)
    assert made.level("untrained", "normalised_entropy", np.array([5, 10, 15, 99])) == pytest.approx(
        [0.2, 0.2, 0.4, 0.6]
    )
    assert made.level("untrained", "gini", np.array([5])) is None


def test_what_is_written_is_read(tmp_path):
    path = tmp_path / "sentences.json"
    path.write_text(json.dumps(CONTENT))
    made = reference.read(path)
    assert reference.to_dict(made) == reference.to_dict(reference.from_dict(reference.to_dict(made)))
    assert json.dumps(reference.to_dict(made))


@pytest.mark.parametrize(
    "place, value",
    [
        (("test",), 3),
        (("sentences",), True),
        (("sentences",), 0),
        (("lengths",), []),
        (("lengths",), [1, "2"]),
        (("lengths",), [1, float("nan")]),
        (("lengths",), [1, 10**400]),
        (("quantiles",), [1]),
        (("quantiles", "cross"), None),
        (("quantiles", "cross", "normalised_entropy"), [0.1]),
        (("levels", "untrained", "cross", "normalised_entropy"), [0.1]),
        (("levels", "shuffled"), 3),
    ],
)
def test_content_that_is_no_reference_is_refused(place, value):
    content = copy.deepcopy(CONTENT)
    inner = content
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    with pytest.raises(ValueError, match="reference"):
        reference.from_dict(content)


def test_anything_but_an_object_is_refused():
    with pytest.raises(ValueError) as error:
        reference.from_dict([])
    assert str(error.value) == "a reference must be a JSON object; got list"


def test_sharpness_is_the_sentence_s_normalised_entropy():
    trace = attnviz.from_arrays(
        {"cross": [[[[0.5, 0.5], [1.0, 0.0]], [[0.25, 0.75], [0.5, 0.5]]], [[[0.1, 0.9], [1.0, 0.0]]]]},
        ["a", "b"],
        ["c", "d"],
    )
    wanted = sentence(stats.steps(trace).to_dict("series"))["normalised_entropy"]
    assert sharpness(trace) == pytest.approx(wanted)
    assert sharpness(trace, "encoder") is None
