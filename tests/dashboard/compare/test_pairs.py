"""The page by Streamlit's test driver: other pairs, mechanisms that a pair lacks, linked sentences, damaged models."""

import json
import shutil

import other_pairs
import pytest
import tiny
from client import chart_text
from compare_app import charts, has_text, mechanisms, run, scene, shown_together, shows, sound

from attnviz import gold
from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs
from dashboard.choices.options import MOST, title
from dashboard.shell import widgets

UNTRAINED = [("en-fr", name) for name in MECHANISMS] + [
    (pair, name) for pair in other_pairs.TEXTS for name in other_pairs.MECHANISMS
]


@pytest.fixture(scope="session")
def untrained(tmp_path_factory):
    """Checkpoints of every pair, and of every mechanism of the first."""
    root = tiny.write_models(tmp_path_factory.mktemp("every-pair"))
    return other_pairs.write(root)


@pytest.fixture
def untrained_served(untrained, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(untrained))


@pytest.mark.parametrize("pair, names", shown_together(UNTRAINED))
def test_each_mechanism_of_each_pair(untrained_served, pair, names):
    shows(pair, names, "words")


def test_a_link_without_a_pair_opens_the_first(untrained_served):
    app = run(text="A dog runs.")
    sound(app)
    assert scene(app).choices.pair == "en-fr" and mechanisms(app) == list(pairs.FIRST)
    assert app.selectbox(key="pair").options == [
        pairs.TASKS[name].title for name in ("en-fr", "en-de", "en-ja", "reverse")
    ]


def test_another_pair_takes_its_own_examples_and_the_mechanisms_that_it_has(untrained_served):
    app = run(show=["Luong dot", "Transformer"], target="One text for all: typed", force="Un chien")
    app.selectbox(key="pair").set_value("en-ja").run()
    sound(app)
    assert scene(app).choices.text == pairs.TASKS["en-ja"].first
    assert (
        mechanisms(app) == ["transformer"] and scene(app).choices.target == "own" and app.session_state["force"] == ""
    )
    app.text_input(key="text").set_value("I am here.").run()
    app.selectbox(key="pair").set_value("en-de").run()
    assert scene(app).choices.text == "I am here." and mechanisms(app) == ["transformer"]
    app.selectbox(key="pair").set_value("reverse").run()
    assert scene(app).choices.text == pairs.TASKS["reverse"].first
    sound(app)


def test_a_mechanism_of_ones_own_that_the_pair_lacks_gives_its_place_to_one_that_it_has(untrained_served, monkeypatch):
    ship = set(MECHANISMS) - {"luong-dot", "transformer"}
    monkeypatch.setattr("attnviz.mechanisms._SHIPPED", ship)
    app = run(show=["Bahdanau", "Luong dot"])
    app.selectbox(key="pair").set_value("en-ja").run()
    assert mechanisms(app) == ["bahdanau", "transformer"]


def test_the_labels_name_the_language(untrained_served):
    app = run(pair="English → German")
    assert app.selectbox(key="target").label == "German text" and app.text_input(key="force").placeholder.startswith(
        "for example: Ein Mann"
    )
    assert app.text_input(key="text").placeholder == "Type an English sentence and press Enter"
    app.selectbox(key="pair").set_value("reverse").run()
    assert (
        app.selectbox(key="target").label == "Reversed text"
        and app.text_input(key="text").label == "Your sequence of letters"
    )


def test_a_fifth_mechanism_is_refused_in_words(untrained_served):
    app = run(show=["Bahdanau", "Luong dot", "Luong concat", "Scaled dot", "Transformer"])
    assert mechanisms(app) == ["bahdanau", "luong-dot", "luong-concat", "scaled-dot"] and has_text(
        app, "4 mechanisms fit"
    )
    app = run(show=["Bahdanau", "Luong dot", "Luong concat", "Scaled dot"])
    assert not has_text(app, "4 mechanisms fit")
    group = app.get("button_group")[0]
    group.set_value([*group.value, "transformer"]).run()
    assert (
        mechanisms(app) == app.session_state["show"]
        and len(mechanisms(app)) == MOST
        and has_text(app, "4 mechanisms fit")
    )
    app.toggle(key="tables").set_value(True).run()
    assert not has_text(app, "4 mechanisms fit")


def test_where_no_two_maps_can_be_subtracted_the_page_says_what_to_do(untrained_served):
    app = run(show=["Bahdanau", "Luong dot"], target="Each model's own text")
    texts = {column.trace.translation for column in scene(app).columns}
    assert len(texts) == 2 and has_text(app, "choose one text for all under “French text” on the left")
    app.selectbox(key="target").set_value("One text for all: Bahdanau's").run()
    assert not has_text(app, "No two maps can be subtracted")


def test_letters_are_not_called_pieces(untrained_served):
    app = run(pair="Reverse the sequence")
    cells = chart_text(charts(app)[0].proto)
    assert has_text(app, "200 letters)") and "per letter)" in cells and "per piece)" not in cells
    assert "units" not in app.session_state and not has_text(app, "<summary>piece</summary>")
    assert has_text(run(), "<summary>piece</summary>")


def test_no_attention_is_said_and_left_out(untrained_served):
    app = run(show=["Fixed context", "Bahdanau"], target="One text for all: Bahdanau's")
    sound(app)
    assert has_text(app, "Fixed context has no attention, so it has no statistics and no difference.")
    assert "Fixed context" not in scene(app).frames() and not app.selectbox(key="target").disabled
    cells = chart_text(charts(app)[0].proto)
    assert "compressed into one vector of 32 numbers" in cells  # 2 x 16: both directions


@pytest.mark.parametrize("pair, units", [("en-fr", "pieces"), ("en-de", "words"), ("en-ja", "words")])
def test_a_sentence_linked_by_hand(untrained_served, pair, units):
    linked = gold.shipped(pair)[7]
    app = run(
        pair=pairs.TASKS[pair].title,
        show=[title(name) for name in ("fixed-context", *pairs.FIRST)],
        units=units,
        special="false",
    )
    app.selectbox(key="gold").set_value(linked.source).run()
    sound(app)
    alone, *others = scene(app).columns
    assert alone.links is None and all(column.trace.translation == linked.target for column in scene(app).columns)
    assert all(column.links.cells.sure and 0 <= column.links.error <= 1 for column in others)
    app.selectbox(key="kind").set_value("encoder").run()
    sound(app)
    assert [column.links is None for column in scene(app).columns] == [True, False, False, True]
    app.button(key="example1").click().run()
    sound(app)
    assert scene(app).choices.text == pairs.TASKS[pair].examples[1] and scene(app).choices.target == "own"
    assert app.session_state["gold"] == "" and not any(column.links for column in scene(app).columns)


@pytest.mark.parametrize("pair", ["en-fr", "en-ja"])
def test_an_example_that_goes_wrong_says_so_before_it_is_clicked(pair):
    app = run(pair=pairs.TASKS[pair].title)
    button, failing = app.button(key="failing"), pairs.TASKS[pair].failing
    assert button.label == f"Goes wrong: {failing}" and "badly" in button.help
    button.click().run()
    sound(app)
    assert scene(app).choices.text == failing
    app.selectbox(key="pair").set_value("en-de").run()  # an example is not kept for another pair
    assert scene(app).choices.text == pairs.TASKS["en-de"].first


def test_the_whole_set_can_be_chosen_and_only_where_there_is_one(untrained_served):
    app = run()
    assert len(app.selectbox(key="gold").options) == 1 + len(gold.shipped("en-fr")) > 30
    app.selectbox(key="pair").set_value("reverse").run()
    assert "gold" not in [box.key for box in app.selectbox]


def test_one_that_is_damaged_leaves_the_others(untrained, tmp_path, monkeypatch):
    root = other_pairs.write(tmp_path)
    weights = root / "en-ja" / "bahdanau" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:5000])
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = run(pair="English → Japanese")
    sound(app)
    assert mechanisms(app) == ["luong-general", "transformer"]
    [message] = app.warning
    assert message.value.startswith("Bahdanau is not shown") and "en-ja/bahdanau" in message.value.replace("\\", "")


def test_a_pair_of_ones_own_has_examples_from_its_card_and_names_its_languages(tmp_path, monkeypatch):
    shutil.copytree(tiny.write_models(tmp_path / "made") / "en-fr", tmp_path / "own" / "en-nl")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path / "own"))
    app = run()
    assert app.text_input(key="text").value == "" and has_text(app, widgets.NO_EXAMPLES)
    card = tmp_path / "own" / "en-nl" / "luong-dot" / "card.json"
    listed = ["The *dog* runs.", "The *dog* runs.", "two\nlines", "x" * 501, " ", 7, "The cat sleeps."]
    card.write_text(json.dumps(json.loads(card.read_text()) | {"examples": listed}))
    app = run(show=["Bahdanau", "Luong dot"])
    sound(app)
    field, output = app.text_input(key="text"), app.selectbox(key="target")
    assert not has_text(app, widgets.NO_EXAMPLES)
    assert (field.label, field.value, output.label) == ("Your English sentence", "The *dog* runs.", "Dutch text")
    assert app.selectbox(key="pair").options == ["English → Dutch"] and len(scene(app).columns) == 2
    assert [button.label for button in app.button if button.key.startswith("example")] == [
        r"The \*dog\* runs.",
        "The cat sleeps.",
    ]
    app.button(key="example1").click().run()
    assert scene(app).choices.text == "The cat sleeps."


def test_no_models_at_all_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    app = run()
    assert not app.exception and "No checkpoint" in app.error[0].value
