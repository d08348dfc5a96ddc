"""The page run by Streamlit's own test driver: every mechanism, every map, no exception anywhere."""

import pytest
import serving
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz.translator import LONGEST
from dashboard.settings import KINDS, PIECES, title

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


def test_the_count_names_the_limit_of_the_models():
    assert PIECES == LONGEST
    assert any(f"0 of at most 500 characters (and {LONGEST} word pieces)" in html for html in htmls(run(text="")))


def htmls(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


@pytest.mark.parametrize("step, shown", [("99", "last"), ("9" * 30, "last"), ("3", 3), ("0", 1), ("-2", 1), ("abc", 1), ("", 1)])
def test_the_step_of_a_link(step, shown):
    app = run(step=step)
    sound(app)
    steps = app.session_state["last_scene"].steps
    assert app.slider(key="step").value == app.session_state["step"] == (steps if shown == "last" else shown)


@pytest.mark.parametrize("show, kind, meaning", [
    (["Bahdanau", "Transformer"], "cross", "which target token is produced"),
    (["Transformer"], "encoder", "which source token is looking"),
    (["Bahdanau", "Transformer"], "encoder", "which row of each map"),
    (["Bahdanau", "Transformer"], "decoder", "which target token is produced"),
])  # fmt: skip
def test_the_slider_says_what_a_step_is(show, kind, meaning):
    app = run(show=show, kind=KINDS[kind])
    assert app.slider(key="step").label == f"Step (1 to {app.session_state['last_scene'].steps}): {meaning}"


@pytest.mark.parametrize("show, kind, said, unsaid", [
    (["Bahdanau", "Transformer"], "cross", ["Dotted: uniform attention over 11 tokens."], ["differ"]),
    (["Bahdanau", "Transformer"], "encoder", [
        "The maps differ in kind: cross-attention (Bahdanau), self-attention of the encoder (Transformer).",
        "A step is a source token in the encoder and a target token elsewhere", "over 11 tokens"], ["No dotted line"]),
    (["Bahdanau", "Transformer"], "decoder", [
        "self-attention of the decoder (Transformer).", "No dotted line for uniform attention: the maps differ in how many"],
        ["A step is", "Dotted:"]),
    (["Transformer"], "decoder", ["Dotted: uniform attention over the tokens that each step may look at, up to"], ["differ"]),
])  # fmt: skip
def test_the_note_below_the_statistics_says_what_the_maps_do_not_share(show, kind, said, unsaid):
    [note] = [html for html in htmls(run(show=show, kind=KINDS[kind])) if "Effective positions = exp" in html]
    note = note.split("<div")[0]
    assert all(text in note for text in said) and not any(text in note for text in unsaid), note


@pytest.mark.parametrize("special, first", [("true", 1), ("false", 0)])
def test_a_row_of_the_decoder_may_look_at_one_token_more_than_the_row_above(special, first):
    scene = run(show=["Transformer"], kind=KINDS["decoder"], special=special).session_state["last_scene"]
    assert scene.keys == list(range(first, first + scene.steps))


def test_the_table_names_its_threshold():
    assert any(">Weights above 0.1</th>" in html for html in htmls(run(show=["Bahdanau"])))
