"""The page run by Streamlit's own test driver: every mechanism, every map, no exception anywhere."""

import pytest
import serving
from streamlit.testing.v1 import AppTest

import attnviz
from dashboard.settings import KINDS, title

MECHANISMS = [name.split("/")[1] for name in attnviz.available()]


def run(**query) -> AppTest:
    app = AppTest.from_file(str(serving.ROOT / "dashboard" / "page.py"), default_timeout=60)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def sound(app: AppTest) -> None:
    assert not app.exception and not app.error, (app.exception, app.error)


def test_three_mechanisms_ship():
    assert MECHANISMS == ["bahdanau", "luong-general", "transformer"]


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("units", ["pieces", "words"])
def test_each_mechanism(mechanism, units):
    app = run(show=[title(mechanism)], units=units)
    sound(app)
    assert app.session_state["last_scene"].parts[0].mechanism == mechanism
    assert len(charts(app)) == 3


def charts(app: AppTest) -> list:
    return [element for element in app.get("bidi_component") if element.proto.component_name == "attnviz_plot"]


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("special", ["true", "false"])
def test_each_map_of_the_transformer(kind, special):
    app = run(show=["Transformer"], kind=KINDS[kind], layer="1", head="2", special=special)
    sound(app)
    grid = app.session_state["last_scene"].parts[0].grid
    assert (grid.kind, grid.layer, grid.head) == (kind, 0, 1)
    assert special == "true" or grid.removed.any()


def test_a_new_sentence_and_then_none():
    app = run()
    first = app.session_state["last_scene"]
    app.text_input(key="text").set_value("A man is eating.").run()
    sound(app)
    assert app.session_state["last_scene"].parts[0].trace.text == "A man is eating."
    app.text_input(key="text").set_value("").run()
    assert [message.value for message in app.error] == ["There is no sentence yet. Type one, or take an example."]
    assert app.session_state["last_scene"].parts[0].trace.text == "A man is eating." != first.parts[0].trace.text


def test_the_step_stays_within_the_shortest_sentence():
    app = run(step="9")
    assert app.session_state["step"] == 9
    app.text_input(key="text").set_value("Go!").run()
    sound(app)
    assert app.session_state["step"] == app.session_state["last_scene"].steps < 9
