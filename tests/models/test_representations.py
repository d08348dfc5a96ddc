"""What a session of Python shows of a value is one short line; a notebook shows a printed picture as a picture."""

import numpy as np
import pytest

import attnviz
from attnviz import faithfulness, figures, inside, intervene, select
from attnviz.across import reference
from attnviz.confidence import Judge
from attnviz.export import printed
from attnviz.models.checkpoint_files import ROOT

NAME = "en-fr/bahdanau"
TEXT = "The black dog is running across the green grass."


@pytest.fixture(scope="module")
def model():
    return attnviz.load(NAME)


@pytest.mark.xdist_group("hf")  # one process imports the library
def test_values_are_one_line(model, load):
    trace = model.trace(TEXT)
    (measured,) = model.traces([TEXT], keep=("statistics",))
    values = [
        model,
        attnviz.load("sst2/self-attention"),
        load("bert"),
        trace,
        trace.map("cross"),
        select.select(trace),
        inside.step(model, trace, 2),
        measured,
        Judge.load(NAME),
        reference.read(ROOT / NAME / reference.FILE),
    ]
    lines = {type(value).__name__: repr(value) for value in values}
    assert {name: line for name, line in lines.items() if len(line) > 300 or "\n" in line} == {}
    assert lines["Translator"] == "Translator(en-fr/bahdanau: Bahdanau · additive, 3,906,928 parameters)"
    assert lines["Step"].startswith("Step(en-fr/bahdanau, step 2, layer 0, head 0: ")
    assert all(line.startswith(name) for name, line in lines.items())


def test_results_are_one_line_with_the_shapes_of_their_arrays(model):
    step, subject = inside.step(model, model.trace(TEXT), 2), faithfulness.subject(model, TEXT)
    [first, second, *_] = intervene.words(subject.trace)
    values = [
        step.parts,
        step.compared(1),
        intervene.run(model, TEXT, intervene.parse("uniform")),
        intervene.rewrite(model, TEXT, second, "white"),
        subject,
        faithfulness.integrated_gradients(subject, [0]),
    ]
    lines = [repr(value) for value in values]
    assert [line for line in lines if len(line) > 500 or "\n" in line or "array(" in line] == []
    assert (
        lines[0] == f"Parts(terms=ndarray {len(step.keys)} × {step.parts.terms.shape[1]}, unit='hidden unit', extra=())"
    )
    assert lines[-1] == f"Integrated(values=ndarray 1 × {len(step.keys)}, delta=ndarray 1)"


def test_a_long_text_leaves_one_line():
    trace = attnviz.from_arrays(np.full((1, 1, 5000), 1 / 5000), ["token"] * 5000, ["a"])
    sheet = printed.of_figure(
        figures.heatmap(select.select(attnviz.from_arrays(np.eye(2)[None], ["a", "b"]), "encoder")), ["word " * 900]
    )
    assert len(repr(trace)) < 300 and len(repr(sheet)) < 200


def test_a_sheet_is_a_picture_in_a_notebook(model):
    trace = model.trace(TEXT)
    sheet = printed.of_map(trace, select.select(trace))
    assert sheet._repr_png_() == sheet.save("png") and sheet._repr_png_().startswith(b"\x89PNG")
    assert len(repr(sheet)) < 100
