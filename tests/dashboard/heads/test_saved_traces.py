"""The page of heads on saved traces, by Streamlit's own test driver."""

import io

import heads_app
import numpy as np
import pytest
from heads_app import SAVED, TEXT, cells, check_panels_are_drawn, heads_scene, page, run_own_model, sound
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz.heads import Head
from attnviz.trace import files
from dashboard.choices.options import KINDS

pytestmark = [
    pytest.mark.xdist_group("hf"),  # one process imports the library
    pytest.mark.usefixtures("families_served"),
]


def run(**query) -> AppTest:
    return heads_app.run(**{"text": TEXT, **query})


def upload(app: AppTest, content: bytes, name: str = "mine.safetensors") -> AppTest:
    return app.file_uploader[0].set_value((name, content, "application/octet-stream")).run()


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
    assert "Choose a file" in app.info[0].value and not [box for box in app.text_input if box.key == "text"]
    upload(app, (tmp_path / name).read_bytes(), name)
    for kind in ("encoder", "cross"):
        app.selectbox(key="kind").set_value(kind).run()
        check_panels_are_drawn(app)
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
        ((folder("bert") / "model.safetensors").read_bytes(), "Are these the parameters of a model?"),
        (bad.encode(), "must sum to 1 over the keys of every row"),
        (b"{", "trace must be JSON"),
    ):
        upload(app, content)
        assert not app.exception and wanted in app.error[0].value.replace("\\", ""), wanted
        assert heads_scene(app).trace == trace and cells(app, "overview")
    assert heads_scene(sound(upload(app, files.pack(arrays(name="again"))))).trace.model == "again"


def test_a_trace_without_attention_says_so(root):
    trace = attnviz.load("en-fr/fixed-context", root).trace(TEXT)
    app = upload(run(model=SAVED), trace.to_json().encode(), "none.json")
    assert not app.exception and "holds a trace without attention" in app.error[0].value


def test_some_layers_only_have_no_rollout():
    trace = attnviz.from_arrays(list(np.full((3, 2, 4, 4), 0.25)), list("abcd"))
    values = trace.to_dict() | {
        "maps": [{"kind": m.kind, "layer": 2 * m.layer + 1, "weights": m.weights.tolist()} for m in trace.maps]
    }
    app = upload(run(model=SAVED), files.pack(type(trace).from_dict(values)))
    check_panels_are_drawn(app)
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
    check_panels_are_drawn(app)
    assert "Rollout is not possible here: the trace must be of pieces" in cells(app, "depth")[0]["words"]


def test_heads_compared_are_those_of_the_model_that_is_shown(folder):
    """Their names, which the page keeps, do not say of which kind they are."""
    app = run_own_model(folder, "gpt2")
    assert {head.kind for head in heads_scene(sound(app)).heads} == {"decoder"}
    app.selectbox(key="model").set_value("saved trace").run()
    check_panels_are_drawn(upload(app, files.pack(arrays())))
    assert {head.kind for head in heads_scene(app).heads} == {"encoder"}


# -- arrays ----------------------------------------------------------------------------------------------------------


def npz(**named) -> bytes:
    file = io.BytesIO()
    np.savez(file, **named)
    return file.getvalue()


def test_arrays_with_their_tokens():
    """The page shows what `from_arrays` makes of them."""
    layers = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 4, 3))
    app = upload(run(model=SAVED), npz(layer_0=layers[0], layer_1=layers[1], tokens=["The", "<b>", "runs"]), "mine.npz")
    check_panels_are_drawn(app)
    trace = attnviz.from_arrays(list(layers), ["The", "<b>", "runs"], name="mine")
    assert heads_scene(app).trace == trace


def test_arrays_without_tokens_ask_for_them():
    """Means of heads, as `nn.MultiheadAttention` gives them, are called that. Before them a file of four heads was
    there, two of them compared; after them one that has tokens of its own."""
    weights, heads = (np.random.default_rng(0).dirichlet(np.ones(3), size=size) for size in ((2, 3), (2, 4, 3)))
    app = sound(
        upload(run(model=SAVED, tables="true"), npz(layer_0=heads[0], layer_1=heads[1], tokens=["a"] * 3), "a.npz")
    )
    upload(app, npz(layer_0=weights[0], layer_1=weights[1]), "mean.npz")
    assert app.info[0].value.startswith("The file mean.npz holds weights and no tokens. Type its tokens on the left")
    app.text_input(key="array_tokens").set_value('["New York", "is", "big"]').run()
    sound(app)
    assert [token.text for token in heads_scene(app).trace.source] == ["New York", "is", "big"]
    assert len(app.multiselect(key="compare").value) == 1  # the other is not there
    shown = page(app) + "".join(cell["words"] for cell in cells(app, "closeup"))
    assert "layer 1, mean of heads" in shown and "Layer 2, mean of heads" in shown and "head 1" not in shown
    upload(app, npz(layer_0=heads[0], tokens=["a", "cat", "sat"]), "own.npz")
    assert [token.text for token in heads_scene(sound(app)).trace.source] == ["a", "cat", "sat"]


def test_arrays_are_read_as_the_person_says():
    """What `from_arrays` asks for in its errors has a control under the same name."""
    batch = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 4, 3)) * 0.75
    app = upload(run(model=SAVED), npz(weights=batch, tokens=["a", "b", "c"]), "batch.npz")
    assert "batch" in app.error[0].value
    app.number_input(key="array_batch").set_value(1).run()
    assert 'rest="sink"' in app.error[0].value
    app.toggle(key="array_rest").set_value(True).run()
    check_panels_are_drawn(app)
    assert heads_scene(app).trace.maps[0].sink
    assert heads_scene(app).trace.notes and all(note in page(app) for note in heads_scene(app).trace.notes)


def test_arrays_that_are_no_arrays():
    app = upload(run(model=SAVED), npz(weights=np.array([{}], dtype=object)), "mine.npz")
    assert "pickle" in app.error[0].value
