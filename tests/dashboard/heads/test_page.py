"""The page of heads by Streamlit's test driver: every panel and kind of attention, a translator and a classifier."""

import html

import heads_app
import numpy as np
import pytest
from heads_app import cells, heads_scene, page, sound
from streamlit.testing.v1 import AppTest

from attnviz import heads, loading
from attnviz.data import loops
from attnviz.heads import Head
from dashboard.choices.options import KINDS
from dashboard.heads.scene import COLUMNS
from dashboard.heads.sources import TrainedSource
from dashboard.session import memory

pytestmark = pytest.mark.usefixtures("models_served")
SENTIMENT = {"model": "Sentiment of a sentence · Self-attention"}
TEXT = "The black dog runs."


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


def test_a_map_that_words_cannot_have_is_said(models, monkeypatch):
    """An output that is cut may end in a part of a word: see `select.words`. This untrained model repeats one piece
    until it is cut, unless its loop is ended."""
    monkeypatch.setattr(loops, "loop_at_end", lambda pieces: None)
    cut = loading.load("en-fr/transformer", models).trace(TEXT)
    assert not cut.complete
    monkeypatch.setattr(TrainedSource, "trace", lambda source, text, output: cut)
    app = sound(run(kind=KINDS["decoder"]))
    [units] = [group for group in app.get("button_group") if group.key == "units"]
    units.set_value("words").run()
    assert (
        not app.exception
        and "decoder" in app.error[0].value
        and not heads_scene(app).choices.words
        and cells(app, "overview")
    )


@pytest.mark.parametrize("kind", ["decoder", "encoder"])
def test_hatched_cells_are_explained_at_every_map_that_has_them(kind):
    app = sound(run(kind=KINDS[kind], compare=["layer 1, head 1", "layer 1, head 2"], off=f"{kind} layer 1, head 1"))
    maps = [
        cells(app, "overview")[0],
        cells(app, "closeup")[0],
        *cells(app, "compared")[:2],
        cells(app, "without")[0],
    ]
    for drawn in maps:
        assert ("Hatched: cells that the query cannot see." in drawn["words"]) == (kind == "decoder"), drawn["words"]


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
    assert "layer 1, head 2" in described(lines) and "Row 3," in lines["words"]
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
        f"{100 * eos:.0f}% of the weight on average" in heatmap["words"]
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


def test_heads_compared():
    app = sound(run(compare=["layer 1, head 1", "layer 2, head 1", "layer 2, head 2"]))
    chosen = [Head("encoder", 0, 0), Head("encoder", 1, 0), Head("encoder", 1, 1)]
    assert len(cells(app, "compared")) == 3 and "layer 2, head 2" in described(cells(app, "compared-lines")[0])
    far = heads.distances(heads_scene(app).trace, chosen).iloc[0, 2]
    assert f"<td>{far:.3f}</td>" in page(app)
    app.multiselect(key="compare").set_value(chosen[:1]).run()
    assert not cells(sound(app), "compared") and "Choose at least two heads" in page(app)


def test_each_term_of_the_statistics_of_heads_is_explained():
    shown = page(run())
    for term in ("entropy", "effective positions", "Gini coefficient", "expected position"):
        assert f"<summary>{term}</summary>" in shown


def test_the_table_of_heads_counts_from_one():
    frame = sound(run()).dataframe[0].value
    assert frame[["Layer", "Head"]].to_numpy().tolist() == [[1, 1], [1, 2], [2, 1], [2, 2]]
    assert set(COLUMNS) <= set(frame.columns)


def test_the_table_is_worked_out_once_for_each_text_and_kind(monkeypatch):
    kinds = []
    monkeypatch.setattr(
        "attnviz.heads.table", lambda trace, kind, real=heads.table: kinds.append(kind) or real(trace, kind)
    )
    app = run(text="The horse jumps.")
    app.selectbox(key="order").set_value("max_weight").run()
    app.selectbox(key="kind").set_value("cross").run()
    sound(app)
    assert kinds == ["encoder", "cross"]


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


def test_another_model_and_another_text_stand_beside_this(models):
    title = "English → French · Transformer"
    app = sound(run(beside=title, beside_text="The cat sleeps."))
    this, other = cells(app, "beside")
    assert "The black dog runs." in this["words"] and "The cat sleeps." in other["words"]
    kinds = [cell["figure"]["layout"]["meta"]["description"].split()[1] for cell in (this, other)]
    assert kinds == ["encoder"] * 2
    saved = other["figure"]["layout"]["meta"]["saved"]["title"]["text"]  # not what stands beside it
    assert "self-attention of the encoder" in saved and "The cat sleeps." in saved and "dog" not in saved
    model = loading.load("en-fr/transformer", models)
    for text in ("The black dog runs.", "The cat sleeps."):
        mean = heads.table(model.trace(text), "encoder")["entropy_nats"].mean()
        assert f"<td>{mean:.3f}</td>" in page(app)
    app.selectbox(key="kind").set_value("cross").run()
    app.selectbox(key="beside").set_value("sst2/self-attention").run()
    assert not app.exception and not cells(app, "beside") and app.info  # it has no cross-attention of several heads
    app.selectbox(key="beside").set_value("").run()
    assert not cells(sound(app), "beside")
