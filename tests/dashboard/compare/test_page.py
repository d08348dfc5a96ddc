"""The page run by Streamlit's own test driver: every pair, every mechanism, every map, no exception anywhere."""

import other_pairs
import pytest
import serving
import tiny
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz import gold
from attnviz.data.limits import LONGEST
from attnviz.mechanisms import MECHANISMS
from attnviz.models.names import ModelName
from dashboard.choices import pairs
from dashboard.choices.options import KINDS, MOST, PIECES, title
from dashboard.compare import captions

SHIPPED = [name.split("/") for name in attnviz.available() if ModelName.parse(name).task.translates]
UNTRAINED = [("en-fr", name) for name in MECHANISMS] + [
    (pair, name) for pair in other_pairs.TEXTS for name in other_pairs.MECHANISMS
]


@pytest.fixture(scope="session")
def untrained(tmp_path_factory):
    """Checkpoints of every pair, and of every mechanism of the first."""
    root = tiny.write_models(tmp_path_factory.mktemp("every-pair"))
    return other_pairs.write(root)


@pytest.fixture
def elsewhere(untrained, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(untrained))


def run(**query) -> AppTest:
    app = AppTest.from_file(str(serving.ROOT / "dashboard" / "page.py"), default_timeout=60)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def sound(app: AppTest) -> None:
    assert not app.exception and not app.error, (app.exception, app.error)


def charts(app: AppTest) -> list:
    return [element for element in app.get("bidi_component") if element.proto.component_name == "attnviz_plot"]


def scene(app: AppTest):
    return app.session_state["last scene of compare"]


def mechanisms(app: AppTest) -> list[str]:
    return [column.mechanism for column in scene(app).columns]


def test_what_ships():
    assert {("en-fr", name) for name in pairs.FIRST} <= set(map(tuple, SHIPPED))


@pytest.mark.parametrize("pair, mechanism", SHIPPED)
@pytest.mark.parametrize("units", ["pieces", "words"])
def test_each_shipped_model(pair, mechanism, units):
    shows(pair, mechanism, units)


@pytest.mark.parametrize("pair, mechanism", UNTRAINED)
def test_each_mechanism_of_each_pair(elsewhere, pair, mechanism):
    shows(pair, mechanism, "words")


def shows(pair, mechanism, units):
    app = run(pair=pairs.of(pair).title, show=[title(mechanism)], units=units, tables="true")
    sound(app)
    [column] = scene(app).columns
    assert column.trace.model == f"{pair}/{mechanism}" and column.trace.text == pairs.of(pair).first
    assert len(charts(app)) == (3 if MECHANISMS[mechanism].kinds else 2)


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("special", ["true", "false"])
def test_each_map_of_the_transformer(kind, special):
    app = run(show=["Transformer"], kind=KINDS[kind], layer="1", head="2", special=special)
    sound(app)
    grid = scene(app).columns[0].grid
    assert (grid.kind, grid.layer, grid.head) == (kind, 0, 1)
    assert special == "true" or grid.removed.any()


def test_a_new_sentence_and_then_none():
    app = run()
    first = scene(app)
    app.text_input(key="text").set_value("A man is eating.").run()
    sound(app)
    assert scene(app).columns[0].trace.text == "A man is eating."
    app.text_input(key="text").set_value("").run()
    assert not app.error and [message.value for message in app.info] == [
        "There is no sentence yet. Type one, or click an example."
    ]
    assert scene(app).columns[0].trace.text == "A man is eating." != first.columns[0].trace.text


def test_characters_of_a_text_for_all_that_no_model_knows_are_named():
    said = "Not in the vocabulary, read as unknown: ‘☃’."
    typed, own = (
        scene(run(**query)).columns[0] for query in ({"target": "One text for all: typed", "force": "Un ☃ chien"}, {})
    )
    assert typed.trace.forced and said in captions.shown_map(typed) and said not in captions.shown_map(own)


def test_the_step_stays_within_the_shortest_sentence():
    app = run(step="9")
    assert app.session_state["step"] == 9
    app.text_input(key="text").set_value("Go!").run()
    sound(app)
    assert app.session_state["step"] == scene(app).steps < 9


def test_the_count_names_the_limit_of_the_models():
    assert PIECES == LONGEST
    assert any(f"0 of at most 500 characters (and {LONGEST} word pieces)" in html for html in htmls(run(text="")))


def htmls(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


@pytest.mark.parametrize(
    "step, shown", [("99", "last"), ("9" * 30, "last"), ("3", 3), ("0", 1), ("-2", 1), ("abc", 1), ("", 1)]
)
def test_the_step_of_a_link(step, shown):
    app = run(step=step)
    sound(app)
    steps = app.session_state["last scene of compare"].steps
    assert app.slider(key="step").value == app.session_state["step"] == (steps if shown == "last" else shown)


@pytest.mark.parametrize(
    "show, kind, meaning",
    [
        (["Bahdanau", "Transformer"], "cross", "the target token that is produced"),
        (["Transformer"], "encoder", "the source token that attends"),
        (["Bahdanau", "Transformer"], "encoder", "one row of each map"),
        (["Bahdanau", "Transformer"], "decoder", "the target token that is produced"),
    ],
)
def test_the_slider_says_what_a_step_is(show, kind, meaning):
    app = run(show=show, kind=KINDS[kind])
    assert app.slider(key="step").label == f"Step (1 to {app.session_state['last scene of compare'].steps}): {meaning}"


@pytest.mark.parametrize(
    "show, kind, said, unsaid",
    [
        (["Bahdanau", "Transformer"], "cross", ["Dotted line: uniform attention over 11 tokens."], ["differ"]),
        (
            ["Bahdanau", "Transformer"],
            "encoder",
            [
                "The maps differ in kind: cross-attention (Bahdanau), self-attention of the encoder (Transformer).",
                "A step is a source token in the encoder and a target token elsewhere",
                "over 11 tokens",
            ],
            ["No dotted line"],
        ),
        (
            ["Bahdanau", "Transformer"],
            "decoder",
            [
                "self-attention of the decoder (Transformer).",
                "There is no line for uniform attention, because the maps differ in how many",
            ],
            ["A step is", "Dotted line:"],
        ),
        (
            ["Transformer"],
            "decoder",
            ["Dotted line: uniform attention over the tokens that each step can see, up to"],
            ["differ"],
        ),
    ],
)
def test_the_note_below_the_statistics_says_what_the_maps_do_not_share(show, kind, said, unsaid):
    [note] = [html for html in htmls(run(show=show, kind=KINDS[kind])) if "Effective positions = exp" in html]
    note = note.split("<div")[0]
    assert all(text in note for text in said) and not any(text in note for text in unsaid), note


@pytest.mark.parametrize("special, first", [("true", 1), ("false", 0)])
def test_a_row_of_the_decoder_may_look_at_one_token_more_than_the_row_above(special, first):
    scene = run(show=["Transformer"], kind=KINDS["decoder"], special=special).session_state["last scene of compare"]
    assert scene.keys == list(range(first, first + scene.steps))


def test_the_table_names_its_threshold():
    assert any(">Weights above 0.1</th>" in html for html in htmls(run(show=["Bahdanau"])))


def test_a_link_without_a_pair_opens_the_first(elsewhere):
    app = run(text="A dog runs.")
    sound(app)
    assert scene(app).choices.pair == "en-fr" and mechanisms(app) == list(pairs.FIRST)
    assert app.selectbox(key="pair").options == [
        pairs.TASKS[name].title for name in ("en-fr", "en-de", "en-ja", "reverse")
    ]


def test_another_pair_takes_its_own_examples_and_the_mechanisms_that_it_has(elsewhere):
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


def test_the_labels_name_the_language(elsewhere):
    app = run(pair="English → German")
    assert app.selectbox(key="target").label == "German text" and app.text_input(key="force").placeholder.startswith(
        "Ein Mann"
    )
    assert app.text_input(key="text").placeholder == "Type an English sentence and press Enter"
    app.selectbox(key="pair").set_value("reverse").run()
    assert (
        app.selectbox(key="target").label == "Reversed text"
        and app.text_input(key="text").label == "Your sequence of letters"
    )


def test_a_fifth_mechanism_is_refused_in_words(elsewhere):
    app = run(show=["Bahdanau", "Luong dot", "Luong concat", "Scaled dot", "Transformer"])
    assert mechanisms(app) == ["bahdanau", "luong-dot", "luong-concat", "scaled-dot"] and said(app, "4 mechanisms fit")
    app = run(show=["Bahdanau", "Luong dot", "Luong concat", "Scaled dot"])
    assert not said(app, "4 mechanisms fit")
    group = app.get("button_group")[0]
    group.set_value([*group.value, "transformer"]).run()
    assert (
        mechanisms(app) == app.session_state["show"] and len(mechanisms(app)) == MOST and said(app, "4 mechanisms fit")
    )
    app.toggle(key="tables").set_value(True).run()
    assert not said(app, "4 mechanisms fit")


def said(app: AppTest, text: str) -> bool:
    return any(text in element.proto.body for element in app.get("html"))


def test_no_attention_is_said_and_left_out(elsewhere):
    app = run(show=["Fixed context", "Bahdanau"], target="One text for all: Bahdanau's")
    sound(app)
    assert said(app, "Fixed context has no attention, so it has no statistics and no difference.")
    assert "Fixed context" not in scene(app).frames() and not app.selectbox(key="target").disabled
    cells = charts(app)[0].proto.json
    assert "compressed into one vector of 32 numbers" in cells  # 2 x 16: both directions


@pytest.mark.parametrize("pair", ["en-fr", "en-de", "en-ja"])
@pytest.mark.parametrize("units", ["pieces", "words"])
def test_a_sentence_linked_by_hand(elsewhere, pair, units):
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


def test_the_whole_set_can_be_chosen_and_only_where_there_is_one(elsewhere):
    app = run()
    assert len(app.selectbox(key="gold").options) == 1 + len(gold.shipped("en-fr")) > 30
    app.selectbox(key="pair").set_value("reverse").run()
    assert "gold" not in [box.key for box in app.selectbox]


def test_one_that_is_damaged_leaves_the_others(untrained, tmp_path, monkeypatch):
    root = other_pairs.write(tmp_path)
    (root / "en-ja" / "bahdanau" / "model.safetensors").write_bytes(b"cut")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = run(pair="English → Japanese")
    assert mechanisms(app) == ["luong-general", "transformer"]
    assert [message.value.startswith("Bahdanau is not shown") for message in app.warning] == [True]


def test_no_models_at_all_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    app = run()
    assert not app.exception and "No checkpoint" in app.error[0].value
