"""The page of one step for a model that writes: its numbers, changed attention, another word, and the tests."""

import base64
import re

import numpy as np
import pytest
import tiny_writer
from inside_app import cells, figures, opened, page

import attnviz
from attnviz import inside, intervene
from attnviz.figures import labels
from attnviz.intervene import Given, Hide, Scope
from dashboard.session import address, catalogue, memory

PROMPT = "The dog runs. The"


@pytest.fixture(scope="module")
def root(models):
    return tiny_writer.write_models(models)


@pytest.fixture(autouse=True)
def models_served(root, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))


@pytest.fixture(scope="module")
def model(root):
    return attnviz.load("en/writer", root)


@pytest.fixture(scope="module")
def trace(model):
    return model.write(PROMPT, 6, 0.0)


def run(**query):
    query = {"pair": "Stories and sentences · written on", "show": "", "added": "6", "text": PROMPT} | query
    app = opened(**query)
    assert not app.exception and not app.error, (app.exception, [error.value for error in app.error])
    return app


def test_the_step_is_that_of_the_library(model, trace):
    app = run(step="9", layer="1", head="2", tables="true")
    scene = memory.last(app.session_state, "inside")
    assert scene.columns[0].trace.target == trace.target
    step = inside.step(model, trace, 8, 0, 1)
    bars = figures(app, "opened")[0]["layout"]["xaxis"]["ticktext"]
    assert len(bars) == len(step.keys) == 9 and step.keys == (trace.start, *trace.target[:8])
    table = re.search(r"scores and weights of this step.*?</table>", page(app), re.DOTALL)[0]
    assert [float(weight) for weight in re.findall(r"<td>([\d.]+)</td></tr>", table)] == pytest.approx(
        step.weights.tolist(), abs=6e-5
    )
    assert "rotated by its position" in page(app) and "layer 1, head 2" in page(app)
    assert "cut at the length limit" not in page(app)  # it writes as many tokens as were asked for
    assert not any(box.key in ("target", "beam", "guest") for box in app.selectbox)


def test_weights_set_by_hand_are_those_that_the_model_reads(model, trace):
    weights = [0.0, 1.0, *[0.0] * 3]
    app = run(step="5", layer="1", head="2", change="by hand: drag the bars", given=", ".join(map(str, weights)))
    outcome = intervene.written(model, trace, Given(tuple(weights)), Scope((4,), None, 0, 1))
    words = "".join(cell["words"] for cell in cells(app, "changed"))
    assert f"{sum(outcome.forced.log_probs):.2f}".replace("-", "−") in words
    z = figures(app, "changed")[1]["data"][0]["z"]
    shown = np.frombuffer(base64.b64decode(z["bdata"]), z["dtype"]).reshape(len(trace.target), -1)
    assert shown[4, :5].tolist() == weights and np.isnan(shown[4, 5:]).all()
    np.testing.assert_allclose(shown[5, :6], trace.map("decoder", 0).weights[1, 5, :6], atol=1e-5)  # only that step


def test_a_wrong_number_of_weights_is_said():
    app = run(step="5", change="by hand: drag the bars", given="1, 0")
    assert "Type 5 numbers separated by commas" in page(app) and not figures(app, "changed")


def test_a_word_of_the_prompt_is_replaced(model, trace):
    app = run(word="2 dog", instead="cat")
    outcome = intervene.written_after(model, trace, intervene.words(trace)[1], "cat")
    words = "".join(cell["words"] for cell in cells(app, "replaced"))
    assert "The text of Self-attention writer" in words and "The other text: <b>The cat runs. The</b>" in page(app)
    bars = figures(app, "replaced")[-1]["layout"]["xaxis"]["ticktext"]
    assert len(bars) == len(outcome.total_variation) == 6  # the tokens that were written


def test_the_tests_are_of_the_tokens_that_were_written():
    app = run(tests="true")
    words = page(app)
    assert "Deleting the prompt tokens with the largest weights" in words and "translation, and less" not in words
    shown = figures(app, "tests")
    assert len(shown[2]["layout"]["yaxis"]["ticktext"]) == 6
    none = opened(pair="Stories and sentences · written on", show="", added="0", text=PROMPT, tests="true")
    assert not none.exception and "one that it wrote after it" in none.error[0].value


@pytest.mark.xdist_group("hf")  # one process imports the transformers library
def test_a_causal_model_of_the_transformers_library_stands_beside_it(folder):
    """Its step, a changed text, a hidden token at the same place of the text, another word, and the tests."""
    own = attnviz.load(f"hf:{folder('gpt2')}")
    text = "The dog runs"
    both = {"guest": str(folder("gpt2")), "show": ["Self-attention writer", "gpt2"], "text": text, "added": "4"}
    hide = {"change": "hide a source token", "hidden": "3 dog"}
    app = run(**both, step="6", word="2 dog", instead="cat", tests="true", **hide)
    ours, theirs = memory.last(app.session_state, "inside").columns
    assert theirs.writes and theirs.title == "gpt2" and theirs.trace.target == own.write(text, 4, 0).target
    step = inside.step(own, own.write(text, 4, 0), 5, 2, 0)
    assert [*figures(app, "opened")[1]["layout"]["xaxis"]["ticktext"]] == labels.shown(step.keys)
    assert "How positions enter is the family’s own" in page(app) and "of which &lt;bos&gt; is the first" in page(app)
    changed = cells(app, "changed")
    assert len([cell for cell in changed if "Under the change" in cell["words"]]) == 2
    places = [place for place, key in enumerate(theirs.keys()) if key.start < 7 and key.end > 4]
    forced = intervene.written(own, own.write(text, 4, 0), Hide(tuple(places))).forced
    assert f"{sum(forced.log_probs):.2f}".replace("-", "−") in changed[1]["words"]
    assert "The cat runs" in page(app) and len(cells(app, "tests")) == 2 * len(cells(app, "tests")[::2])


@pytest.mark.xdist_group("hf")
def test_a_model_that_only_reads_or_translates_is_not_offered_there(folder):
    app = run(guest=str(folder("t5")), show="Self-attention writer")
    assert "t5 does not write a text on" in page(app)
    assert len(memory.last(app.session_state, "inside").columns) == 1


def test_the_pair_goes_along_to_pages_that_have_it_alone():
    assert catalogue.attending()["en"] == ["writer"] and "en" not in catalogue.offered()
    session = {"page": "inside", "pair": "en", "text": PROMPT}
    address.arrive("heads", session)
    assert session["model"] == "en/writer" and session["text"] == PROMPT
    address.arrive("inside", session)
    assert session["pair"] == "en"
    address.arrive("many", session)
    assert session["pair"] == "en"
    address.arrive("", session)
    assert session["pair"] == next(iter(catalogue.offered()))
