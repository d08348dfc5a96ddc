"""The page of heads on models of one's own, by Streamlit's own test driver."""

import base64

import any_family
import families
import heads_app
import numpy as np
import pytest
from heads_app import HF, SAVED, TEXT, cells, check_panels_are_drawn, heads_scene, page, run_own_model, sound
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz import ablation, heads, loading
from attnviz.figures.wording import signed
from attnviz.heads import Head
from attnviz.models.writer import beginning
from dashboard.choices.options import KINDS
from dashboard.session import catalogue, memory

pytestmark = [
    pytest.mark.xdist_group("hf"),  # one process imports the library
    pytest.mark.usefixtures("families_served"),
]


def run(**query) -> AppTest:
    return heads_app.run(**{"text": TEXT, **query})


def as_named(place):
    """The model of a folder with the name that the page gives it."""
    return loading.load_from(str(place), catalogue.guest(str(place)))


def test_heads_that_share_keys_are_named_as_a_group(folder):
    """In the overview, the close-up and the table; a model whose heads have their own says nothing of it."""
    app = run_own_model(folder, "llama")
    assert "Heads that share keys and values: 1–2, 3–4." in cells(app, "overview")[0]["words"]
    assert "head 1 (heads 1–2 share keys and values)" in cells(app, "closeup")[0]["words"]
    assert list(app.dataframe[0].value["Share keys"][:4]) == ["1–2", "1–2", "3–4", "3–4"]
    app = run_own_model(folder, "gpt2")
    assert "share keys" not in cells(app, "overview")[0]["words"] and "Share keys" not in app.dataframe[0].value


# family -> kind -> heads of each layer
@pytest.mark.parametrize(
    "family, counts",
    [
        ("bert", {"encoder": (4, 4)}),
        ("distilbert", {"encoder": (2, 2, 2)}),
        ("gpt2", {"decoder": (2, 2, 2)}),
        ("t5", {"encoder": (4, 4, 4), "decoder": (4, 4), "cross": (4, 4)}),
        ("bart", {"encoder": (4, 4, 4), "decoder": (2, 2), "cross": (2, 2)}),
    ],
)
def test_every_panel_of_every_kind(folder, family, counts):
    """Layers and heads are those of the trace; a layer that the next kind lacks is left for one that it has."""
    app = run_own_model(folder, family)
    assert app.selectbox(key="kind").options == [KINDS[kind] for kind in counts]
    for kind, of_layers in counts.items():
        app.selectbox(key="kind").set_value(kind).run()
        check_panels_are_drawn(app)
        assert heads_scene(app).heads == [
            Head(kind, layer, head) for layer, many in enumerate(of_layers) for head in range(many)
        ]
        assert heads_scene(app).trace == as_named(folder(family)).trace(TEXT)
    assert len(heads_scene(app).all_heads) == sum(map(sum, counts.values()))
    app.button_group(key="units").set_value("words").run() if family == "bert" else None
    sound(app)


def test_a_writer_is_forced_to_produce_a_text(folder):
    app = sound(run_own_model(folder, "t5", output="Le chien noir court.", off="cross layer 2, head 1"))
    trace = heads_scene(app).trace
    assert trace == as_named(folder("t5")).trace(TEXT, "Le chien noir court.") and trace.forced
    assert "Change in log-probability of the forced text" in page(app)
    assert not [field for field in sound(run_own_model(folder, "bert")).text_input if field.key == "output"]


def test_a_writer_without_some_heads(folder):
    app = sound(run_own_model(folder, "t5", off=["cross layer 2, head 1", "encoder layer 3, head 4"]))
    effect = ablation.effect(attnviz.load(f"hf:{folder('t5')}"), [Head("cross", 1, 0), Head("encoder", 2, 3)], TEXT)
    assert f"<b>{signed(effect.change, 2)}</b> nats" in page(app) and effect.change != 0
    assert len(cells(app, "without")) == 2  # the heads of the encoder, which are on show, and of the cross-attention


@pytest.mark.parametrize(
    "family, kind, how",
    [
        (
            "bert",
            "encoder",
            "This model does not write text, so each token of your text is predicted: masked in turn, from all others",
        ),
        ("gpt2", "decoder", "Each token of the text is predicted: from those before it"),
    ],
)
def test_a_reader_without_some_heads_says_what_is_measured_instead(folder, family, kind, how):
    app = sound(run_own_model(folder, family, off=f"{kind} layer 1, head 2", tables="true"))
    assert how in page(app) and len(cells(app, "without")) == 1
    model = as_named(folder(family))
    effect = ablation.effect(model, [Head(kind, 0, 1)], TEXT)
    assert f"<b>{signed(effect.change, 2)}</b> nats" in page(app)
    app.button(key="measure").click().run()
    measured = memory.head_changes(app.session_state, model.name, TEXT)
    assert len(measured) == len(heads_scene(app).all_heads) and cells(sound(app), "importance")
    assert measured[1].change == pytest.approx(effect.change, abs=1e-4)


def test_a_reader_that_predicts_nothing_says_so(folder):
    app = sound(run_own_model(folder, "distilbert", off="encoder layer 1, head 2"))
    assert page(app).count("so head importance cannot be measured") == 2 and len(cells(app, "without")) == 1
    assert not [button for button in app.button if button.key == "measure"]


def test_heads_of_a_family_that_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setitem(
        families.FAMILIES, "albert", (families.wordpiece, "AlbertForMaskedLM", {**families.STACK, "embedding_size": 8})
    )
    app = run(model=HF, own=str(families.write(tmp_path / "albert", "albert")))
    check_panels_are_drawn(app)
    assert page(app).count("(albert): heads of its family cannot be switched off") == 2


@pytest.mark.parametrize(
    "text, wanted",
    [
        ("", "There is no text yet"),
        ("[SEP]", "The text has no tokens but special ones"),
        ("n " * 60, "The text is too long: 62 tokens with those that"),
    ],
)
def test_a_text_that_the_model_cannot_take(folder, text, wanted):
    app = run_own_model(folder, "bert")
    app.text_input(key="text").set_value(text).run()
    assert not app.exception and wanted in [*app.info, *app.error][0].value.replace("\\", "")
    assert app.text_input(key="text").value == text and heads_scene(app).choices.text == TEXT and cells(app, "overview")


def test_one_token(folder):
    app = sound(run_own_model(folder, "gpt2", text="n", off="decoder layer 1, head 1", tables="true"))
    assert "The text has one token, so there is nothing to predict it from" in page(app)
    app.button(key="measure").click().run()
    assert not app.exception and "no token comes before its only token" in app.error[0].value


def test_a_model_that_cannot_be_read_leaves_picture_and_text(folder, tmp_path):
    app = run_own_model(folder, "bert")
    for name, wanted in (
        ("/no/such", "such: there is no such folder, and this cannot be"),
        (str(tmp_path), "config.json is missing"),
        ("~nobody/x", "there is no such folder"),
        ("x" * 5000, "there is no such folder"),
        ("\0", ""),
    ):
        app.text_input(key="own").set_value(name).run()
        assert not app.exception and wanted in app.error[0].value.replace("\\", "")
        assert (
            heads_scene(app).choices.source.title == "bert"
            and cells(app, "overview")
            and app.text_input(key="text").value == TEXT
        )
    app.text_input(key="own").set_value(" ").run()
    assert (
        not app.exception
        and not app.error
        and "Type the folder of a model" in app.info[0].value
        and cells(app, "overview")
    )


def test_a_trained_model_and_one_of_ones_own_are_asked_the_same(folder):
    app = sound(run(own=str(folder("gpt2"))))
    app.selectbox(key="model").set_value("own model").run()
    assert heads_scene(sound(app)).choices.text == TEXT and heads_scene(app).choices.kind == "decoder"
    app.selectbox(key="model").set_value("en-fr/transformer").run()
    assert (
        heads_scene(sound(app)).choices.text == TEXT and heads_scene(app).choices.kind == "decoder"
    )  # which it has too


def test_a_model_whose_files_changed_is_read_again(tmp_path):
    folder = families.write(tmp_path / "bert", "bert")
    app = run(model=HF, own=str(folder))
    families.write(folder, "bert", num_hidden_layers=3)
    app.button_group(key="units").set_value("words").run()
    assert heads_scene(sound(app)).layers == [0, 1, 2]


def test_a_causal_model_writes_on(folder):
    """Greedy, five tokens; the next ones can be clicked; heads off, the lens and every panel follow the whole text."""
    change = {"rule": "uniform", "prompt_word": "2 black", "prompt_new": "green", "rows_alone": "true"}
    app = run_own_model(folder, "gpt2", written="5", temperature="0 (greedy)", off="layer 1, head 1", **change)
    check_panels_are_drawn(app)
    trace = heads_scene(app).trace
    assert trace.target and trace == beginning(as_named(folder("gpt2")).write(TEXT, 32, 0), trace.given + 5)
    shown = " ".join(element.value for element in app.get("html") if hasattr(element, "value"))
    shown = shown or " ".join(element.proto.body for element in app.get("html"))
    assert "5 pieces written" in shown and "The most probable token after each layer" in shown
    assert any(button.key.startswith("candidate") for button in app.button)
    assert cells(app, "changed") and cells(app, "replaced") and "Attention changed in one of" in shown
    app.button(key="write_step").click().run()
    assert len(heads_scene(sound(app)).trace.target) == len(trace.target) + 1
    app.slider(key="written").set_value(0).run()
    assert heads_scene(sound(app)).trace == as_named(folder("gpt2")).trace(TEXT)


def test_an_encoder_has_no_controls_that_write(folder):
    assert not [slider for slider in run_own_model(folder, "bert").slider if slider.key == "written"]


def test_a_token_is_found_and_each_head_is_a_link(folder):
    app = sound(run_own_model(folder, "bert"))
    assert "Choose a token" in page(app)
    app = sound(run_own_model(folder, "bert", find="dog"))
    best = heads.search(heads_scene(app).shown, "dog", "encoder").query("way == 'gets'").iloc[0]
    shown = page(app)
    assert "Heads that give “dog” most weight" in shown and "Heads in which “dog” looks most at one token" in shown
    first = shown[shown.index("Heads that give “dog” most weight") :]
    assert f"layer={best.layer + 1}&amp;head={best['head'] + 1}" in first[: first.index("</a>")]


def test_a_hybrid_names_its_other_layers_and_two_texts_are_read(folder, tmp_path):
    any_family.write(tmp_path, "Qwen3NextForCausalLM", families.byte_pairs())
    app = sound(run(model=HF, own=str(tmp_path)))
    assert "Layers 1–3: linear attention, no weights." in page(app) and heads_scene(app).layers == [3]
    app = sound(run_own_model(folder, "bert", text="The dog ||| a ball"))
    assert "Read as two texts, divided at |||" in page(app) and "type ||| between" in app.sidebar.caption[0].value


@pytest.fixture(scope="module")
def reading_far(tmp_path_factory):
    """The folder of a model that reads 600 tokens."""
    settings = {"max_position_embeddings": 600, "hidden_size": 32, "num_hidden_layers": 2}
    return families.write(tmp_path_factory.mktemp("far") / "llama", "llama", **settings)


LONG = ("the black dog is run " * 110).strip()


def test_a_text_longer_than_a_trace_is_reduced_and_a_head_opened_through_a_window(reading_far):
    app = sound(
        run(model=HF, own=str(reading_far), text=LONG, layer="1", head="2", rows_from="300", columns_from="290")
    )
    scene, model = heads_scene(app), attnviz.load(f"hf:{reading_far}")
    count, opened = len(scene.tokens), model.opened(LONG, 0, 1)
    assert all(app.button(key=key).disabled for key in ("play_writing", "write_step", "write_back"))  # not written on
    assert 512 < count <= 600 and scene.trace.maps == () and f"A long text: {count} tokens" in page(app)
    whole, window = (cell["figure"]["data"][0] for cell in cells(app, "closeup"))
    whole, hover = weights_of(whole["z"]), window["hovertext"]
    shown = np.nan_to_num(weights_of(window["z"])[10])
    assert shown == pytest.approx(opened.weights[0, 309, 289:353], abs=1e-4)
    assert (
        hover[10][3]
        == f"310 {scene.tokens[309].text}: looks at 293 {scene.tokens[292].text} {opened.weights[0, 309, 292]:.6f}"
    )
    assert hover[0][20] == f"300 {scene.tokens[299].text}: cannot see 310 {scene.tokens[309].text}"
    assert np.nanmax(whole) == pytest.approx(1)  # the first token sees itself alone
    rows = page(app).split("The strongest links of layer 1 head 2")[1].split("</table>")[0]
    largest = heads.strongest(opened.weights[0], np.tri(count, dtype=bool)).iloc[0]
    assert f"<td>{largest.weight:.4f}</td>" in rows and rows.count("<tr>") == 21
    assert len(app.dataframe[0].value) == len(scene.reduced.table) == 8
    app.segmented_control(key="zoom").set_value(32).run()
    _, window = (cell["figure"]["data"][0]["z"] for cell in cells(sound(app), "closeup"))
    assert weights_of(window).shape == (32, 32)


def test_a_reduced_trace_opens_again_and_says_what_it_lacks(reading_far):
    reduced = attnviz.load(f"hf:{reading_far}").reduced(LONG)
    app = run(model=SAVED)
    app.file_uploader[0].set_value(("long.safetensors", reduced.pack(), "application/octet-stream")).run()
    assert cells(sound(app), "overview") and "lacks the full maps" in page(app) and not cells(app, "closeup")
    first, rest = page(app).split("</summary>")[0], page(app).split("</summary>")[1]  # the maps stay in sight
    assert LONG[:300] in first and LONG not in first and LONG in rest
    app.file_uploader[0].set_value(("long.safetensors", reduced.pack()[:-9], "application/octet-stream")).run()
    assert not app.exception and "damaged or incomplete" in app.error[0].value


def test_a_text_that_takes_long_is_read_after_a_click(reading_far, monkeypatch):
    monkeypatch.setattr("dashboard.heads.view._SOON", 0)
    app = run(model=HF, own=str(reading_far), text=LONG)
    assert "reading it takes one processor about" in app.info[0].value and not cells(app, "overview")
    next(button for button in app.button if button.key == "read_long").click().run()
    assert cells(sound(app), "overview")


def weights_of(values: dict) -> np.ndarray:
    shape = [int(side) for side in values["shape"].split(",")]
    return np.frombuffer(base64.b64decode(values["bdata"]), values["dtype"]).reshape(shape)
