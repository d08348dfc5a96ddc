"""The sentence among the test set of its model, and what models give that know less, on the first page."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import tiny
from client import chart_cells
from compare_app import charts, run, scene, sound

from attnviz.models import checkpoint_files
from attnviz.studies import references
from dashboard.compare import captions, pictures

TEXT = "The black dog runs."
NAMES = ("en-fr/bahdanau", "en-fr/transformer")


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    """Tiny models, two of which have a reference."""
    root = tiny.write_models(tmp_path_factory.mktemp("placed"))
    texts = [english for english, _ in tiny.sentences(12, 5)]
    for name in NAMES:
        references.write(references.measure(name, root, "twelve", texts), name, root)
        path = root / name / "card.json"
        card = json.loads(path.read_text()) | {"weights_sha256": checkpoint_files.fingerprint(name, root)}
        checkpoint_files.write_json(path, card)
    return root


@pytest.fixture(autouse=True)
def models_served(models, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(models))


def shown(**query):
    app = run(text=TEXT, **{"show": ["Bahdanau", "Luong general", "Transformer"], **query})
    sound(app)
    return app


def placed(app) -> list[bool]:
    cells = chart_cells(charts(app)[0].proto)
    return ['<p class="small placed">' in cell["below"] for cell in cells]


def by_step_figure(app) -> dict:
    (chart,) = [chart for chart in charts(app) if "by-step" in chart.proto.id]
    return chart_cells(chart.proto)[0]["figure"]


def test_a_sentence_is_placed_among_the_test_set_of_each_model_that_has_one():
    app = shown()
    assert placed(app) == [True, False, True]
    single, _, several = scene(app).columns
    (share,) = re.findall(
        r"Sharper than <b>(\d+)%</b> of the \d+ test sentences of this model: normalised entropy \d\.\d\d, in the "
        r"median of the test set \d\.\d\d\.",
        captions.percentile(single.trace, single.grid),
    )
    assert 0 <= int(share) <= 100
    heads = sum(len(attention.weights) for attention in several.trace.maps if attention.kind == "cross")
    sharp = replace(several.grid, weights=all_on_first_key(several))
    expected = f"(each of its {heads} cross-attention heads alone, then the mean); the map as drawn has 0.00."
    assert expected in captions.percentile(several.trace, sharp)
    sharp = replace(single.grid, weights=all_on_first_key(single))
    assert "(of pieces, with special tokens); the map as drawn has 0.00." in captions.percentile(single.trace, sharp)


def all_on_first_key(column):
    """Weights of the shape of a map, all on the first key."""
    return np.eye(1, column.grid.weights.shape[1]).repeat(len(column.grid.weights), axis=0)


def test_no_share_where_all_weights_are_1():
    column = scene(shown()).columns[0]
    (attention,) = column.trace.maps
    one_hot = np.eye(attention.weights.shape[2], dtype=np.float32)[attention.weights.argmax(2)]
    trace = replace(column.trace, maps=(replace(attention, weights=one_hot),))
    words = captions.percentile(trace, replace(column.grid, weights=one_hot[0]))
    assert "As sharp as attention can be" in words and "%" not in words
    narrow = replace(column.grid, **_first_key(column.grid))
    assert "it sees one token, whose weight is 1" in (words := captions.percentile(column.trace, narrow))
    assert "%" not in words


def _first_key(grid) -> dict:
    """The arrays of a map with its first key alone."""
    ones = np.ones((len(grid.queries), 1))
    return {"keys": grid.keys[:1], "weights": ones, "visible": ones.astype(bool)}


def test_a_text_that_the_model_was_made_to_write_is_not_placed():
    assert placed(shown(target="One text for all: typed", force="Le chien.")) == [False] * 3


def test_the_untrained_model_and_shuffled_words_are_marked_in_the_statistics_by_step():
    figure = by_step_figure(shown())
    marks = [trace for trace in figure["data"] if trace["mode"] == "markers"]
    assert len(marks) == 2 * 3 * 2  # models, panels, references
    assert "marked at the right: Bahdanau untrained" in figure["layout"]["meta"]["description"]
    assert "Triangle: the untrained model" in captions.steps_note(scene(shown()), True)


@pytest.mark.parametrize("query", [{"units": "words"}, {"special": "false"}])
def test_other_maps_than_the_one_that_was_measured_have_no_marks(query):
    assert not [trace for trace in by_step_figure(shown(**query))["data"] if trace["mode"] == "markers"]


def test_one_head_of_the_transformer_has_no_marks():
    assert list(pictures.references(scene(shown(head="1")))) == ["Bahdanau"]
    assert list(pictures.references(scene(shown(layer="1")))) == ["Bahdanau"]


def test_a_reference_of_other_weights_or_a_damaged_one_is_ignored(models, caplog):
    """The log names the damaged one: nobody who visits the page can mend it."""
    path = models / NAMES[0] / "sentences.json"
    good = path.read_text()
    try:
        for bad in (good.replace('"weights_sha256":"', '"weights_sha256":"0'), "{", "[]"):
            path.write_text(bad)
            caplog.clear()
            assert placed(shown()) == [False, False, True], bad[:40]
            line = f"the page does without a file of {path}: ValueError("
            assert [line in caplog.text] == [bad in ("{", "[]")], caplog.text
    finally:
        path.write_text(good)


def test_a_percentage_that_seems_to_contradict_the_line_above_is_explained():
    grid = scene(shown(show=["Bahdanau"])).columns[0].grid
    uniform = replace(grid, weights=np.full(grid.weights.shape, 1 / grid.weights.shape[1]))
    sharp = replace(grid, weights=np.eye(*grid.weights.shape)[np.zeros(len(grid.weights), dtype=int)])
    assert "“Blurred” compares the map with uniform attention" in captions._although(uniform, 0.97)
    assert "“Sharp” is about this map alone" in captions._although(sharp, 0.26)
    assert captions._although(uniform, 0.4) == captions._although(sharp, 0.97) == ""
