"""Heads switched off and measured, on the page by Streamlit's own test driver."""

import heads_app
import pytest
from heads_app import cells, heads_scene, page, sound
from streamlit.testing.v1 import AppTest

from attnviz import ablation, loading
from attnviz.figures.wording import signed
from attnviz.heads import Head
from dashboard.session import caches, memory

pytestmark = pytest.mark.usefixtures("models_served")
TEXT = "The black dog runs."


def run(**query) -> AppTest:
    return heads_app.run(**{"text": TEXT, **query})


def test_heads_switched_off(models):
    off = [Head("encoder", 0, 0), Head("cross", 1, 1)]
    app = sound(run(off=["encoder layer 1, head 1", "cross layer 2, head 2"]))
    effect = ablation.effect(loading.load("en-fr/transformer", models), off, TEXT)
    assert f"<b>{signed(effect.change, 2)}</b> nats" in page(app) and effect.change != 0
    shown, elsewhere = cells(app, "without")  # of the encoder, which is on show, and where the other head is
    assert [cell["figure"]["layout"]["shapes"][0]["name"] for cell in (shown, elsewhere)] == ["switched off"] * 2
    assert "Cross-attention without these heads" in elsewhere["words"]
    app.multiselect(key="off").set_value([]).run()
    assert not cells(sound(app), "without")


def test_an_output_that_is_forced_is_shown_and_measured(models):
    app = sound(run(output="Le chien", off="encoder layer 1, head 1"))
    model, [head] = loading.load("en-fr/transformer", models), [Head("encoder", 0, 0)]
    assert heads_scene(app).trace == model.trace(TEXT, "Le chien")
    assert f"<b>{signed(ablation.effect(model, [head], TEXT, 'Le chien').change, 2)}</b> nats" in page(app)
    assert "Change in log-probability of the forced French text" in page(app) and "stays the same" not in page(app)
    app.button(key="measure").click().run()
    measured = memory.head_changes(app.session_state, "en-fr/transformer", TEXT, "Le chien")
    assert len(measured) == 12 and not memory.head_changes(app.session_state, "en-fr/transformer", TEXT)


def test_each_head_is_measured_and_what_was_found_stays(models):
    app = run()
    app.button(key="measure").click().run()
    changes = memory.head_changes(app.session_state, "en-fr/transformer", TEXT)
    model = loading.load("en-fr/transformer", models)
    expected = ablation.importance(model, TEXT, model.trace(TEXT).translation)
    assert {importance.head: importance.change for importance in changes} == pytest.approx(
        {importance.head: importance.change for importance in expected}, abs=1e-5
    )  # in batches of another size the last digits differ
    assert len(changes) == 12 and cells(sound(app), "importance") and app.query_params["measured"] == "each head"
    assert cells(sound(run(measured="each head")), "importance")  # so does a link to this page
    app.selectbox(key="kind").set_value("cross").run()
    assert cells(sound(app), "importance")
    app.text_input(key="text").set_value("The cat sleeps.").run()
    assert not cells(sound(app), "importance") and "measured" not in app.query_params


def test_what_was_stopped_goes_on_from_there_and_a_link_opens_it_as_it_was():
    app = run(measured="5")
    changes = memory.head_changes(app.session_state, "en-fr/transformer", TEXT)
    assert "(5 of 12 heads measured so far)" in page(app) and app.query_params["measured"] == "5"
    # A browser that draws only the last of several runs still marks the layer and the head.
    assert all(app.button_group(key=key).proto.default for key in ("layer", "head"))
    first = list(changes)
    app.button(key="measure").click().run()
    assert changes[:5] == first and [importance.head for importance in changes] == heads_scene(app).all_heads
    assert sound(app).button(key="measure").disabled and app.query_params["measured"] == "each head"


@pytest.mark.parametrize("words", ["0", "-1", "½", "each"])
def test_a_link_that_names_no_number_of_heads_measures_none(words):
    app = sound(run(measured=words))
    assert not cells(app, "importance") and "measured" not in app.query_params


def test_an_output_that_cannot_be_forced_is_said(monkeypatch):
    def refuse(*_):
        raise ValueError("the target is too long")

    for name in ("importance", "effect"):
        monkeypatch.setattr(caches, name, refuse)
    app = run(off="encoder layer 1, head 1")
    app.button(key="measure").click().run()
    assert not app.exception and cells(app, "overview")
    assert [error.value for error in app.error] == ["The output cannot be measured. The target is too long."] * 2
