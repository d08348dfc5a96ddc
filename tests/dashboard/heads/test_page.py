"""The page of heads run by Streamlit's own test driver: every panel, every kind of attention, for a translator and a classifier."""

import html
import shutil

import heads_app
import numpy as np
import pytest
import tiny
import torch
from heads_app import cells, heads_scene, page, sound
from streamlit.testing.v1 import AppTest

from attnviz import ablation, heads, loading
from attnviz.heads import Head
from attnviz.mechanisms import Config
from attnviz.models import checkpoints
from attnviz.networks.registry import build
from dashboard.choices.options import KINDS
from dashboard.heads.scene import COLUMNS
from dashboard.session import caches, memory

SENTIMENT = {"model": "Sentiment of a sentence · Self-attention"}
TEXT = "The black dog runs."


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """A Transformer and a classifier, untrained, of 2 layers with 2 heads."""
    root = tiny.write_models(tmp_path_factory.mktemp("many-headed"))
    text, folder = tiny.vocabulary(), root / "sst2"
    folder.mkdir()
    text.save(folder / "tokenizer.json")
    config = Config("self-attention", len(text), tiny.CLASSIFIER)
    torch.manual_seed(5)
    checkpoints.save_model(folder / "self-attention", config, build(config).state_dict())
    checkpoints.write_json(folder / "self-attention" / "card.json", {"pair": "sst2"})
    return root


@pytest.fixture(autouse=True)
def here(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))


def run(**query) -> AppTest:
    return heads_app.run(**{"text": TEXT, **query})


def described(cell: dict) -> str:
    return cell["figure"]["layout"]["meta"]["description"]


@pytest.mark.parametrize(
    "query",
    [
        *({"kind": kind} for kind in KINDS.values()),
        {"units": "words"},
        {"units": "words", "kind": KINDS["cross"]},
        SENTIMENT,
        SENTIMENT | {"units": "words", "tables": "true"},
        {"tables": "true", "color": "Distance (tokens)", "faint": "true"},
    ],
)
def test_every_panel_of_every_map(query):
    app = sound(run(**query))
    assert len(heads_scene(app).heads) == 4 and len(heads_scene(app).table) == 4
    shown = [
        key for key in ("overview", "closeup", "compared", "compared-lines", "pattern", "depth") if cells(app, key)
    ]
    assert set(shown) >= {"overview", "closeup", "compared", "compared-lines", "depth"}
    assert len(cells(app, "closeup")) == 2


def test_a_map_that_words_cannot_have_is_said():
    """This untrained model never ends, so that its last word may be a part of one: see `select.words`."""
    app = sound(run(kind=KINDS["decoder"]))
    [units] = [group for group in app.get("button_group") if group.key == "units"]
    units.set_value("words").run()
    assert (
        not app.exception
        and "decoder" in app.error[0].value
        and not heads_scene(app).choices.words
        and cells(app, "overview")
    )


def test_the_overview_follows_order_and_colour():
    app = sound(run(order="Entropy (nats)", color="Maximum weight"))
    [overview] = cells(app, "overview")
    order = heads.most_like(heads_scene(app).table, "entropy_nats")[["layer", "head"]].to_numpy().tolist()
    assert [head for row in overview["figure"]["data"][0]["customdata"] for head in row] == order
    assert overview["figure"]["layout"]["meta"]["heads"] and "frames: Maximum weight" in described(overview)
    assert "Sorted by entropy (nats)" in overview["words"]


def test_a_link_opens_a_head_and_its_row():
    app = sound(run(layer="1", head="2", row="3"))
    heatmap, lines = cells(app, "closeup")
    grid = heads_scene(app).grid(0, 1)
    assert "layer 1, head 2" in described(lines) and "Step 3," in lines["words"]
    weights = np.array(heads_scene(app).trace.map("encoder", 0).weights[1])
    assert (
        np.array_equal(grid.weights, weights)
        and "<b>Layer 1, head 2</b>, means over the rows: entropy (nats)" in heatmap["words"]
    )


def test_special_tokens_can_be_hidden_and_how_much_is_said():
    app = sound(run(special="false", compare=["layer 1, head 1", "layer 2, head 2"], mean="true"))
    heatmap, lines = cells(app, "closeup")
    eos = float(heads_scene(app).grid(1, 0).removed.mean())
    assert (
        f"{100 * eos:.0f} % of the weight on average" in heatmap["words"]
        and "These numbers include all tokens" in heatmap["words"]
    )
    every = len(heads_scene(app).trace.source)
    assert f"from {every - 1} source tokens" in described(lines) and f"a map of {every} source tokens" in described(
        cells(app, "overview")[0]
    )
    assert (
        all("Special tokens are hidden" in cell["words"] for cell in cells(app, "compared"))
        and len(cells(app, "compared")) == 3
    )


def test_the_heads_most_like_a_head():
    app = sound(run(pattern="layer 1, head 2", tables="true"))
    nearest = heads.nearest(heads_scene(app).trace, Head("encoder", 0, 1))
    best = nearest.iloc[0]
    assert f">layer {best['layer'] + 1}, head {best['head'] + 1}</th><td>{best['jensen_shannon']:.3f}</td>" in page(app)
    assert "Distance of every head from layer 1, head 2" in page(app) and cells(app, "pattern")


def test_the_mean_of_heads_has_no_statistics_of_heads():
    heatmap, lines = cells(sound(run(head="mean of heads")), "closeup")
    assert "<b>Layer 2</b>, mean of its 2 heads." in heatmap["words"] and "mean of heads" in described(lines)


@pytest.mark.parametrize("row, shown", [("99", "last"), ("0", 0), ("-2", 0), ("abc", 0), ("2", 2)])
def test_the_row_of_a_link(row, shown):
    app = sound(run(row=row))
    assert app.session_state["row"] == (len(heads_scene(app).shown.source) if shown == "last" else shown)


def test_heads_compared():
    app = sound(run(compare=["layer 1, head 1", "layer 2, head 1", "layer 2, head 2"]))
    chosen = [Head("encoder", 0, 0), Head("encoder", 1, 0), Head("encoder", 1, 1)]
    assert len(cells(app, "compared")) == 3 and "layer 2, head 2" in described(cells(app, "compared-lines")[0])
    far = heads.distances(heads_scene(app).trace, chosen).iloc[0, 2]
    assert f"<td>{far:.3f}</td>" in page(app)
    app.multiselect(key="compare").set_value(chosen[:1]).run()
    assert not cells(sound(app), "compared") and "Choose at least two heads" in page(app)


def test_the_table_of_heads_counts_from_one():
    frame = sound(run()).dataframe[0].value
    assert frame[["Layer", "Head"]].to_numpy().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert set(COLUMNS) <= set(frame.columns)


def test_the_table_is_worked_out_once_for_each_text_and_kind(monkeypatch):
    asked = []
    monkeypatch.setattr(
        "attnviz.heads.table", lambda trace, kind, real=heads.table: asked.append(kind) or real(trace, kind)
    )
    app = run(text="The horse jumps.")
    app.selectbox(key="order").set_value("max_weight").run()
    app.selectbox(key="kind").set_value("cross").run()
    sound(app)
    assert asked == ["encoder", "cross"]


def test_the_heads_most_like_a_pattern():
    app = sound(run(pattern="Previous token"))
    best = heads.most_like(heads_scene(app).table, "previous").iloc[0]
    assert f">layer {best['layer'] + 1}, head {best['head'] + 1}</th><td>{best['previous']:.3f}</td>" in page(app)
    assert any("k = p_q - 1" in text.value for text in app.markdown) and "Uniform attention scores" in page(app)


def test_a_pattern_without_a_chance_is_said():
    app = sound(run(pattern="Same token", text="The dog"))
    assert "No head can follow this pattern" in page(app) and not cells(app, "pattern")


def test_rollout_is_for_self_attention():
    rolled, far = cells(sound(run(depth="1")), "depth")
    assert "Rollout of layer 1" in rolled["words"] and "distance" in described(far)
    why, far = cells(sound(run(kind=KINDS["cross"])), "depth")
    assert why["figure"] is None and "Rollout needs self-attention" in why["words"]


def test_a_large_map_as_a_table_has_the_largest_of_each_row(models):
    app = sound(run(text="The dog sleeps. " * 20, tables="true", layer="1", head="1"))
    trace = heads_scene(app).trace
    weights = trace.map("encoder", 0).weights[0]
    assert weights.size > 2500 and page(app).count("<td") < 10 * 5 * len(trace.source)
    for row in (0, 7):
        keys = np.argsort(-weights[row], kind="stable")[:5]
        written = "".join(f"<td>{html.escape(trace.source[key].text)} {weights[row, key]:.2f}</td>" for key in keys)
        assert f"{row + 1} {trace.source[row].text}</th>{written}" in page(app)


def test_heads_switched_off(models):
    off = [Head("encoder", 0, 0), Head("cross", 1, 1)]
    app = sound(run(off=["encoder layer 1, head 1", "cross layer 2, head 2"]))
    effect = ablation.effect(loading.load("en-fr/transformer", models), off, TEXT)
    assert f"<b>{effect.change:+.2f}</b> nats" in page(app) and effect.change != 0
    assert len(cells(app, "without")) == 1
    app.multiselect(key="off").set_value([]).run()
    assert not cells(sound(app), "without")


def test_each_head_is_measured_and_what_was_found_stays(models):
    app = run()
    app.button(key="measure").click().run()
    found = memory.head_changes(app.session_state, "en-fr/transformer", TEXT)
    model = loading.load("en-fr/transformer", models)
    expected = ablation.importance(model, TEXT, model.trace(TEXT).translation)
    assert {one.head: one.change for one in found} == pytest.approx({one.head: one.change for one in expected})
    assert len(found) == 12 and cells(sound(app), "importance")
    app.selectbox(key="kind").set_value("cross").run()
    assert cells(sound(app), "importance")
    app.text_input(key="text").set_value("The cat sleeps.").run()
    assert not cells(sound(app), "importance")


def test_what_was_stopped_goes_on_from_there(monkeypatch):
    app, asked = run(), []
    found = memory.head_changes(app.session_state, "en-fr/transformer", TEXT)
    every = heads_scene(app).every
    found += [ablation.Importance(head, -1.0, 1, 12) for head in every[:5]]
    monkeypatch.setattr(
        caches,
        "importance",
        lambda model, text, target, only: asked.extend(only) or [ablation.Importance(head, 0.5, 1, 7) for head in only],
    )
    app.run()
    assert "(5 of 12 heads measured so far)" in page(app)
    app.button(key="measure").click().run()
    assert asked == every[5:] and sound(app).button(key="measure").disabled


def test_an_output_that_cannot_be_forced_is_said(monkeypatch):
    def refuse(*_):
        raise ValueError("the target is too long")

    for name in ("importance", "effect"):
        monkeypatch.setattr(caches, name, refuse)
    app = run(off="encoder layer 1, head 1")
    app.button(key="measure").click().run()
    assert not app.exception and cells(app, "overview")
    assert [error.value for error in app.error] == ["The output cannot be measured. The target is too long."] * 2


def test_the_classifier_says_its_label(models):
    app = sound(run(**SENTIMENT, text="A moving film"))
    trace = loading.load("sst2/self-attention", models).trace("A moving film")
    [verdict] = cells(app, "verdict")
    assert f"<b>{trace.translation}</b>" in verdict["words"]
    assert all(f"{label.text} {label.probability:.3f}" in verdict["words"] for label in trace.alternatives[0])
    assert described(verdict).startswith(f"Step 1, ‘{trace.translation}’: looks at")
    assert app.selectbox(key="kind").options == [KINDS["encoder"]]
    assert (
        "How much each head matters" in page(app)
        and len(memory.head_changes(app.session_state, "sst2/self-attention", "A moving film")) == 4
    )


@pytest.mark.parametrize(
    "text, message",
    [
        ("", "There is no sentence yet"),
        ("   ", "There is no sentence yet"),
        ("a " * 300, "The sentence has 600 characters"),
        ("\u200b", "has no visible character"),
    ],
)
def test_bad_input_is_said_and_the_last_picture_stays(text, message):
    app = run()
    app.text_input(key="text").set_value(text).run()
    assert not app.exception and message in (app.error if text.strip() else app.info)[0].value
    assert cells(app, "overview") and heads_scene(app).choices.text == TEXT


def test_the_card_of_a_trained_model_is_on_the_page(models, monkeypatch):
    shown = page(sound(run(**SENTIMENT)))
    assert (
        '<div class="model"><p>Sentiment of a sentence · Self-attention</p><details class="card"' in shown
        and "MB on disk" in shown
    )
    found = heads_scene(run()).choices.source
    assert f'<div class="model"><p>{html.escape(found.title)}</p><details class="card"' in page(run())


def test_markup_is_text():
    app = sound(run(text="<b>dog</b> & <eos>", tables="true", row="1"))
    assert "<b>dog" not in page(app) and "&lt;b" in page(app).replace("&lt;</", "&lt;b</") and cells(app, "closeup")


def test_a_word_is_enough():
    app = sound(run(text="dog", tables="true", off="encoder layer 1, head 1"))
    assert heads_scene(app).choices.text == "dog" and all(
        cells(app, key) for key in ("overview", "closeup", "compared", "without")
    )


def test_without_a_trained_model_one_of_ones_own_is_asked_for(tmp_path, monkeypatch):
    root = tiny.write_models(tmp_path)
    shutil.rmtree(root / "en-fr" / "transformer")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(root))
    app = sound(run())
    assert "Type the folder of a model" in app.info[0].value and not cells(app, "overview")


def test_another_model_takes_its_own_examples():
    app = run(text="")
    app.text_input(key="text").set_value("The black dog is running across the green grass.").run()
    app.selectbox(key="model").set_value("sst2/self-attention").run()
    assert heads_scene(sound(app)).choices.text == "A funny, moving film that never gets dull."
    app.text_input(key="text").set_value("A dog").run()
    app.selectbox(key="model").set_value("en-fr/transformer").run()
    assert heads_scene(sound(app)).choices.text == "A dog"
