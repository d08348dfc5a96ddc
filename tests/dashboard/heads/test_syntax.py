"""The panel of syntax and the arcs over the close-up: with the stored study, and without it."""

import json
import re

import heads_app
import pytest
from heads_app import cells, page, sound

from attnviz import syntax
from attnviz.data.tasks import TASKS
from attnviz.models import checkpoint_files
from attnviz.syntax import DIRECTIONS, RELATIONS
from dashboard.choices.options import KINDS
from dashboard.heads.syntax import question, rows_of_model

pytestmark = pytest.mark.usefixtures("models_served")
FIRST = TASKS["en-fr"].first


@pytest.fixture
def studied(models):
    """A study of the Transformer here, in which the head that looks along a relation most is layer 2, head 1."""
    name = "en-fr/transformer"
    rows = [
        dict(model=name, layer=layer, head=head, relation=label, direction=direction, right=layer, count=4)
        | dict(share=layer / 4 + head / 8, offset=1, baseline=0.5)
        for label in RELATIONS
        for direction in DIRECTIONS
        for layer in (0, 1)
        for head in (0, 1)
    ]
    results = {"rows": rows, "models": [{"weights_sha256": checkpoint_files.fingerprint(name, models)}]}
    path = models / "studies" / "syntax.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(results), encoding="utf-8")
    yield
    path.unlink()


def test_the_study_says_which_heads_look_along_a_relation(studied):
    app = sound(heads_app.run(text=FIRST, tables="true"))
    text = page(app)
    assert "from the subject to its verb: 4 questions" in text
    assert "The best fixed offset, the next word, answers 50%" in text
    best = text.split("Heads that look along it most")[1].split("</table>")[0]
    assert re.findall(r'scope="row"[^>]*>([^<]+)', best)[0] == "layer 2, head 2"
    table = app.dataframe[0].value
    assert table["the subject to its verb"].max() == 0.375


def test_the_sentence_s_dependencies_stand_over_the_close_up():
    app = sound(heads_app.run(text=FIRST))
    (arcs,) = cells(app, "dependencies")
    assert "Dependencies of the sentence. In " in arcs["figure"]["layout"]["meta"]["description"]
    assert "has not been measured on the parsed sentences" in page(app)
    assert not cells(sound(heads_app.run(text=FIRST, kind=KINDS["cross"])), "dependencies")


def test_rows_that_are_no_rows_are_left_out():
    whole = dict(model="m", layer=0, head=0, relation="nsubj", direction="to governor", right=1, count=2)
    whole |= dict(share=0.5, offset=1, baseline=0.5)
    broken = [{**whole, "share": "x"}, {**whole, "relation": "<b>"}, {**whole, "direction": []}, {"model": "m"}]
    assert len(rows_of_model({"rows": [whole, *broken]}, "m")) == 1
    assert question("amod", "to dependant") == "the noun to the adjective"
    assert set(syntax.RELATIONS) == set(RELATIONS)


def test_another_relation_gives_the_directions_other_names(studied):
    app = sound(heads_app.run(text=FIRST, kind=KINDS["encoder"]))
    app.selectbox(key="direction").set_value("to dependant").run()
    app.selectbox(key="relation").set_value("obj").run()
    sound(app)
    assert app.selectbox(key="direction").value == "to dependant"
    assert "the verb to the object: " in page(app)
