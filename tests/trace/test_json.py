"""trace.py: the JSON of a Trace, there and back, and what it refuses (whole messages)."""

import json
from dataclasses import replace

import numpy as np
import pytest
import synthetic
from hypothesis import given
from hypothesis import strategies as st

from attnviz.trace import Alternative, AttentionMap, Token, Trace


def test_json_has_the_fixed_fields_with_offsets_into_the_text():
    trace = synthetic.trace("The black dog", "Le chien noir", heads=2, layers=2)
    values = json.loads(trace.to_json())
    assert list(values) == [
        "model",
        "mechanism",
        "text",
        "translation",
        "forced",
        "source",
        "target",
        "log_probs",
        "alternatives",
        "maps",
        "level",
        "complete",
        "start",
        "read_as",
        "longest",
        "counted_from",
    ]
    assert values["counted_from"] == 0 == values["maps"][0]["layer"]
    assert values["source"][1].items() >= {"text": "black", "start": 4, "end": 9, "special": False}.items()
    assert values["target"][3].items() >= {"text": "<eos>", "start": 13, "end": 13, "special": True}.items()
    assert [(m["kind"], m["layer"]) for m in values["maps"]] == [("cross", 0), ("cross", 1)]
    assert np.shape(values["maps"][0]["weights"]) == (2, 4, 4)
    assert len(values["log_probs"]) == 4 and set(values["alternatives"][0][0]) == {"text", "probability"}


def test_numpy_numbers_become_json():
    few = (Alternative("a", np.float32(0.5)), Alternative("b", np.float32(0.25)))
    trace = replace(
        synthetic.trace("A", "Un"), log_probs=np.array([-0.5, -1], dtype=np.float32), alternatives=[few, []]
    )
    assert Trace.from_json(trace.to_json()) == trace and type(trace.log_probs[0]) is float


def test_the_fixed_fields_are_enough():
    trace = synthetic.trace()
    values = {
        key: value
        for key, value in trace.to_dict().items()
        if key not in ("alternatives", "level", "complete", "start", "read_as", "longest")
    }
    for name in ("source", "target"):
        values[name] = [{key: t[key] for key in ("text", "start", "end", "special")} for t in values[name]]
    read = Trace.from_dict({**values, "somebody's": "own field"})
    assert read.map() == trace.map() and read.level == "pieces" and read.complete and read.alternatives == ((),) * 4


@given(st.integers(0, 2**32), st.text(min_size=0, max_size=12), st.text(max_size=12), st.booleans())
def test_json_round_trip_is_exact(seed, source, target, pieces):
    trace = synthetic.trace(source, target, heads=2, kinds=("cross", "encoder", "decoder"), seed=seed, pieces=pieces)
    assert Trace.from_json(trace.to_json()) == trace
    assert Trace.from_dict(trace.to_dict()) == trace


@given(st.floats(0, 1, width=32))
def test_every_float32_survives_json(weight):
    attention = AttentionMap("cross", 0, [[[weight, 1 - weight]]])
    trace = replace(
        synthetic.trace("A", "Un"),
        target=(Token("Un", 0, 2),),
        log_probs=(-weight,),
        alternatives=(),
        maps=(attention,),
    )
    assert Trace.from_json(trace.to_json()).maps[0].weights.tobytes() == attention.weights.tobytes()


@pytest.mark.parametrize(
    "text",
    [
        'Je t\'aime </script> "now"',
        "<b>x</b> & <eos>",
        "مرحبا بالعالم",
        "黒い犬が走る",
        "👩‍👩‍👧 ok 🏳️‍🌈",
        "\\ud83d \x00\u2028",
    ],
)
def test_any_text_survives_json(text):
    trace = synthetic.trace(text, text)
    assert Trace.from_json(trace.to_json()) == trace


@pytest.mark.parametrize(
    "text, wanted",
    [
        (
            "{",
            "trace must be JSON; it is not JSON: Expecting property name enclosed in double quotes in line 1, column 2",
        ),
        ("[]", "trace must be an object with named fields; got list"),
        (
            '{"model": "m", "mechanism": "m", "text": "", "forced": false, "source": [], "log_probs": [], "maps": []}',
            "trace must have the fields translation, target too; got model, mechanism, text, forced, source, "
            "log_probs, maps",
        ),
    ],
)
def test_bad_json(text, wanted):
    with pytest.raises(ValueError) as error:
        Trace.from_json(text)
    assert str(error.value) == wanted


@pytest.mark.parametrize(
    "name, value, wanted",
    [
        ("source", [{"text": "A"}], "source token must have the fields start, end too; got text"),
        ("target", ["Un"], "target token must be an object with named fields; got str"),
        ("start", {"text": "<pad>"}, "start token must have the fields start, end too; got text"),
        ("maps", [{"kind": "cross", "layer": 0}], "map must have the fields weights too; got kind, layer"),
        ("alternatives", [[{}]], "alternative must have the fields text, probability too; got none"),
        (
            "log_probs",
            None,
            "log_probs must be a list, each a number; got None",
        ),
    ],
)
def test_bad_fields(name, value, wanted):
    with pytest.raises(ValueError) as error:
        Trace.from_dict({**synthetic.trace().to_dict(), name: value})
    assert str(error.value) == wanted
