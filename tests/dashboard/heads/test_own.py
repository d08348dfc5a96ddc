"""The page of heads on models of one's own and on saved traces, run by Streamlit's own test driver."""

import sys

import families
import heads_app
import numpy as np
import pytest
import tiny
from heads_app import cells, heads_scene, page, sound
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz import ablation
from attnviz.heads import Head
from attnviz.trace import files
from dashboard.choices.options import KINDS
from dashboard.session import memory

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
HF, SAVED = "A Hugging Face model", "A saved trace"
TEXT = "The black dogs."


@pytest.fixture(scope="module")
def checkpoints(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("checkpoints"))


@pytest.fixture(autouse=True)
def here(checkpoints, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(checkpoints))


def run(**query) -> AppTest:
    return heads_app.run(**{"text": TEXT, **query})


def own(folder, family, **query) -> AppTest:
    return run(model=HF, own=str(folder(family)), **query)


def upload(app: AppTest, content: bytes, name: str = "mine.safetensors") -> AppTest:
    return app.file_uploader[0].set_value((name, content, "application/octet-stream")).run()


def drawn(app: AppTest) -> None:
    assert all(cells(sound(app), key) for key in ("overview", "closeup", "compared", "compared-lines", "depth"))


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
    """Layers and heads are those of the trace, and a layer that one kind has and another has not is left for one that is there."""
    app = own(folder, family)
    assert app.selectbox(key="kind").options == [KINDS[kind] for kind in counts]
    for kind, heads in counts.items():
        app.selectbox(key="kind").set_value(kind).run()
        drawn(app)
        assert heads_scene(app).heads == [
            Head(kind, layer, head) for layer, many in enumerate(heads) for head in range(many)
        ]
        assert heads_scene(app).trace == attnviz.load(f"hf:{folder(family)}").trace(TEXT)
    assert len(heads_scene(app).every) == sum(map(sum, counts.values()))
    app.button_group(key="units").set_value("words").run() if family == "bert" else None
    sound(app)


def test_a_writer_without_some_heads(folder):
    app = sound(own(folder, "t5", off=["cross layer 2, head 1", "encoder layer 3, head 4"]))
    effect = ablation.effect(attnviz.load(f"hf:{folder('t5')}"), [Head("cross", 1, 0), Head("encoder", 2, 3)], TEXT)
    assert f"<b>{effect.change:+.2f}</b> nats" in page(app) and effect.change != 0 and len(cells(app, "without")) == 1


@pytest.mark.parametrize(
    "family, kind, how",
    [
        ("bert", "encoder", "each token of your text is predicted: masked in turn, from all others"),
        ("gpt2", "decoder", "each token of your text is predicted: from those before it"),
    ],
)
def test_a_reader_without_some_heads_says_what_is_measured_instead(folder, family, kind, how):
    app = sound(own(folder, family, off=f"{kind} layer 1, head 2", tables="true"))
    assert "does not write text" in page(app) and how in page(app) and len(cells(app, "without")) == 1
    found = attnviz.load(f"hf:{folder(family)}")
    effect = ablation.effect(found, [Head(kind, 0, 1)], TEXT)
    assert f"<b>{effect.change:+.2f}</b> nats" in page(app)
    app.button(key="measure").click().run()
    measured = memory.head_changes(app.session_state, found.name, TEXT)
    assert len(measured) == len(heads_scene(app).every) and cells(sound(app), "importance")
    assert measured[1].change == pytest.approx(effect.change, abs=1e-4)


def test_a_reader_that_predicts_nothing_says_so(folder):
    app = sound(own(folder, "distilbert", off="encoder layer 1, head 2"))
    assert page(app).count("so head importance cannot be measured") == 2 and len(cells(app, "without")) == 1
    assert not [button for button in app.button if button.key == "measure"]


def test_heads_of_a_family_that_is_not_known(tmp_path, monkeypatch):
    monkeypatch.setitem(
        families.FAMILIES, "albert", (families.wordpiece, "AlbertForMaskedLM", {**families.STACK, "embedding_size": 8})
    )
    app = run(model=HF, own=str(families.write(tmp_path / "albert", "albert")))
    drawn(app)
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
    app = own(folder, "bert")
    app.text_input(key="text").set_value(text).run()
    assert not app.exception and wanted in [*app.info, *app.error][0].value.replace("\\", "")
    assert app.text_input(key="text").value == text and heads_scene(app).choices.text == TEXT and cells(app, "overview")


def test_one_token(folder):
    app = sound(own(folder, "gpt2", text="n", off="decoder layer 1, head 1", tables="true"))
    assert "The text has one token, so there is nothing to predict it from" in page(app)
    app.button(key="measure").click().run()
    assert not app.exception and "no token comes before its only token" in app.error[0].value


def test_a_model_that_cannot_be_read_leaves_picture_and_text(folder, tmp_path, monkeypatch):
    app = own(folder, "bert")
    for name, wanted in (
        ("/no/such", "/no/such: there is no such folder, and this cannot be"),
        (str(tmp_path), "config.json is missing"),
        ("~nobody/x", "there is no such folder"),
        ("x" * 5000, "there is no such folder"),
        ("\0", ""),
    ):
        app.text_input(key="own").set_value(name).run()
        assert not app.exception and wanted in app.error[0].value.replace("\\", "")
        assert (
            heads_scene(app).choices.source.title == str(folder("bert"))
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
    monkeypatch.setitem(sys.modules, "transformers", None)
    app.text_input(key="own").set_value("some/model").run()
    assert 'need the transformers library: pip install "transformers>=5.23,<6"' in app.error[0].value.replace("\\", "")


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


# -- saved traces ----------------------------------------------------------------------------------------------------


def arrays(**more):
    rng = np.random.default_rng(0)
    weights = {
        kind: [rng.dirichlet(np.ones(3), size=(many, rows)) for many in heads]
        for kind, heads, rows in (("encoder", (2, 5), 3), ("cross", (3,), 2))
    }
    return attnviz.from_arrays(weights, ["[CLS]", "<b>a</b>", "dog"], ["un", "chien"], special=["[CLS]"], **more)


@pytest.mark.parametrize("name", ["mine.json", "mine.safetensors"])
def test_every_panel_of_a_saved_trace(name, tmp_path):
    trace = arrays(name="<b>mine</b>")
    attnviz.save_trace(trace, tmp_path / name)
    app = run(model=SAVED)
    assert "Choose a trace file" in app.info[0].value and not [box for box in app.text_input if box.key == "text"]
    upload(app, (tmp_path / name).read_bytes(), name)
    for kind in ("encoder", "cross"):
        app.selectbox(key="kind").set_value(kind).run()
        drawn(app)
    assert heads_scene(app).trace == trace and app.selectbox(key="kind").options == [KINDS["encoder"], KINDS["cross"]]
    assert page(app).count("does not contain its model") == 2 and not app.multiselect(key="compare").disabled
    assert (
        "no log-probability in this trace" in page(app)
        and "<b>a</b>" not in page(app)
        and "<b>mine</b>" not in page(app)
    )
    assert f"from {name}" in page(app)


def test_a_file_that_is_no_trace_leaves_the_picture(folder):
    trace = arrays()
    app = upload(run(model=SAVED), files.pack(trace))
    bad = trace.to_json().replace(str(float(trace.maps[0].weights[0, 0, 0])), "0.75")
    for content, wanted in (
        (b"", "The file mine.safetensors is empty"),
        ((folder("bert") / "model.safetensors").read_bytes(), "its weights are not those of a trace"),
        (bad.encode(), "must sum to 1 over the keys of every row"),
        (b"{", "trace must be JSON"),
    ):
        upload(app, content)
        assert not app.exception and wanted in app.error[0].value.replace("\\", ""), wanted
        assert heads_scene(app).trace == trace and cells(app, "overview")
    assert heads_scene(sound(upload(app, files.pack(arrays(name="again"))))).trace.model == "again"


def test_a_trace_without_attention_says_so(checkpoints):
    trace = attnviz.load("en-fr/fixed-context", checkpoints).trace(TEXT)
    app = upload(run(model=SAVED), trace.to_json().encode(), "none.json")
    assert not app.exception and "holds a trace without attention" in app.error[0].value


def test_some_layers_only_have_no_rollout():
    trace = attnviz.from_arrays(np.full((3, 2, 4, 4), 0.25), list("abcd"))
    values = trace.to_dict() | {
        "maps": [{"kind": m.kind, "layer": 2 * m.layer + 1, "weights": m.weights.tolist()} for m in trace.maps]
    }
    app = upload(run(model=SAVED), files.pack(type(trace).from_dict(values)))
    drawn(app)
    assert (
        "Rollout is not possible here: the trace must have the encoder maps of every layer"
        in cells(app, "depth")[0]["words"]
    )
    assert app.session_state["layer"] == 5 and heads_scene(app).layers == [1, 3, 5]


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_saved_trace_of_one_token(kind):
    drawn_ = upload(
        run(model=SAVED, tables="true"), files.pack(attnviz.from_arrays(np.ones((1, 2, 1, 1)), ["a"], kind=kind))
    )
    assert cells(sound(drawn_), "overview") and heads_scene(drawn_).heads == [Head(kind, 0, 0), Head(kind, 0, 1)]


def test_a_saved_trace_of_words(folder):
    from attnviz import select

    app = upload(
        run(model=SAVED, units="words"), files.pack(select.words(attnviz.load(f"hf:{folder('bert')}").trace(TEXT)))
    )
    drawn(app)
    assert "Rollout is not possible here: the trace must be of pieces" in cells(app, "depth")[0]["words"]


def test_heads_compared_are_those_of_the_model_that_is_shown(folder):
    """Their names, which the page keeps, do not say of which kind they are."""
    app = own(folder, "gpt2")
    app.selectbox(key="model").set_value("saved trace").run()
    drawn(upload(app, files.pack(arrays())))
