"""The page run by Streamlit's own test driver: every pair, every mechanism, every map, no exception anywhere."""

import base64
import dataclasses
import json
import re
import zlib
from html import unescape
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
from client import chart_cells, widened
from compare_app import charts, htmls, run, scene, shown_together, shows, sound

import attnviz
from attnviz import mechanisms
from attnviz.data import MOST_PIECES
from attnviz.data.sentences import split
from attnviz.figures.chart import Chart
from attnviz.models.names import ModelName
from dashboard.browser.plot import packed
from dashboard.choices import pairs
from dashboard.choices.options import BEAMS, KINDS, PIECES
from dashboard.compare import caches as compare_caches
from dashboard.compare import captions
from dashboard.compare.scene import CompareChoices
from dashboard.markup.text import escape

NAMES = [ModelName.parse(name) for name in attnviz.available()]
SHIPPED = [(name.pair, name.mechanism) for name in NAMES if name.task.translates]


def test_what_ships():
    assert {("en-fr", name) for name in pairs.FIRST} <= set(SHIPPED)


@pytest.mark.parametrize("pair, names", shown_together(SHIPPED))
def test_each_shipped_model(pair, names):
    """In pieces; test_pairs.py has each mechanism of each pair in words."""
    shows(pair, names, "pieces")


def test_a_mechanism_without_a_formula_shows_none(monkeypatch):
    """One of a person's own need not have one."""
    without = dataclasses.replace(mechanisms.find("bahdanau"), formula="")
    for table in (mechanisms.ALL, mechanisms.MECHANISMS):
        monkeypatch.setitem(table, "bahdanau", without)
    app = run(show=["Bahdanau", "Luong general"])
    sound(app)
    shown = [element.value for element in app.markdown if element.value.startswith("$")]
    assert shown == [f"${mechanisms.find('luong-general').formula}$"]


@pytest.mark.parametrize("kind", ["cross", "encoder", "decoder"])
@pytest.mark.parametrize("special", ["true", "false"])
def test_each_map_of_the_transformer(kind, special):
    app = run(show=["Transformer"], kind=KINDS[kind], layer="1", head="2", special=special)
    sound(app)
    grid = scene(app).columns[0].grid
    assert (grid.kind, grid.layer, grid.head) == (kind, 0, 1)
    assert special == "true" or grid.removed.any()
    assert ("Hatched: cells that the query cannot see." in captions.shown_map(scene(app).columns[0])) == (
        kind == "decoder"
    )


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
    warning = "Not in the vocabulary, read as unknown: ‘☃’."
    typed, own = (
        scene(run(**query)).columns[0] for query in ({"target": "One text for all: typed", "force": "Un ☃ chien"}, {})
    )
    assert typed.trace.forced and warning in captions.shown_map(typed) and warning not in captions.shown_map(own)


def test_the_step_stays_within_the_shortest_sentence():
    app = run(step="9")
    assert app.session_state["step"] == 9
    app.text_input(key="text").set_value("Go!").run()
    sound(app)
    assert app.session_state["step"] == scene(app).steps < 9


def test_the_count_names_the_limit_of_the_models():
    assert PIECES == MOST_PIECES
    assert any(f"0 of at most 500 characters (and {MOST_PIECES} pieces)" in html for html in htmls(run(text="")))


@pytest.mark.parametrize(
    "step, shown", [("99", "last"), ("9" * 30, "last"), ("3", 3), ("0", 1), ("-2", 1), ("abc", 1), ("", 1)]
)
def test_the_step_of_a_link(step, shown):
    app = run(step=step, show=["Bahdanau"])
    sound(app)
    steps = app.session_state["last scene of compare"].steps
    assert app.slider(key="step").value == app.session_state["step"] == (steps if shown == "last" else shown)


def test_what_a_link_says_that_cannot_be_is_as_if_it_had_not_been_said():
    """tests/hostile has that each is named, and what is empty."""
    app, plain = run(step="abc", layer="9", head="x", show=["nobody"], beam="7", target="zz", kind="q"), run()
    sound(app)
    assert scene(app).choices == scene(plain).choices and len(scene(app).columns) == 3
    assert app.slider(key="step").value == 1 and app.slider(key="step").max == plain.slider(key="step").max > 1


@pytest.mark.parametrize(
    "show, kind, meaning, parts, unsaid",
    [
        (
            ["Bahdanau", "Transformer"],
            "cross",
            "the target token that is produced",
            ["Dotted line: uniform attention over 11 tokens."],
            ["differ", "window"],
        ),
        (
            ["Luong local"],
            "cross",
            "the target token that is produced",
            ["over 11 tokens. Luong local looks only at the tokens in its window"],
            ["differ"],
        ),
        (
            ["Bahdanau", "Transformer"],
            "encoder",
            "one row of each map",
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
            "the target token that is produced",
            [
                "self-attention of the decoder (Transformer).",
                "There is no line for uniform attention, because the maps differ in how many",
            ],
            ["A step is", "Dotted line:"],
        ),
        (
            ["Transformer"],
            "decoder",
            "the target token that is produced",
            ["Dotted line: uniform attention over the tokens that each step can see, up to"],
            ["differ"],
        ),
        (["Transformer"], "encoder", "the source token that attends", ["Dotted line: uniform"], ["differ"]),
    ],
)
def test_the_slider_says_what_a_step_is_and_the_note_what_the_maps_do_not_share(show, kind, meaning, parts, unsaid):
    app = run(show=show, kind=KINDS[kind])
    name = "Row" if show == ["Transformer"] and kind == "encoder" else "Step"
    assert app.slider(key="step").label == f"{name} (1 to {scene(app).steps}): {meaning}"
    [note] = [html for html in htmls(app) if "Effective positions = exp" in html]
    note = note.split("<div")[0]
    assert all(text in note for text in parts) and not any(text in note for text in unsaid), note


@pytest.mark.parametrize("special, first", [("true", 1), ("false", 0)])
def test_a_row_of_the_decoder_may_look_at_one_token_more_than_the_row_above(special, first):
    scene = run(show=["Transformer"], kind=KINDS["decoder"], special=special).session_state["last scene of compare"]
    assert scene.keys == list(range(first, first + scene.steps))


def test_two_maps_are_subtracted_whatever_the_third_shows():
    difference = "Luong general minus Bahdanau"
    app = run(target="One text for all: Luong general's", kind=KINDS["encoder"], difference=difference)
    sound(app)
    assert app.session_state["difference"] == (1, 0) and len(charts(app)) == 4


def test_the_table_names_its_threshold():
    assert any(">Weights above 0.1</th>" in html for html in htmls(run(show=["Bahdanau"])))


def test_reversed_letters_are_called_letters():
    app = run(pair=pairs.task("reverse").title)
    sound(app)
    words = " ".join(htmls(app)) + captions.shown_map(scene(app).columns[0])
    assert "6 letters · 11 of at most" in words
    assert "word" not in captions.shown_map(scene(app).columns[0])
    assert "translation" not in " ".join(option for box in app.selectbox for option in box.options)


def test_local_attention_shows_its_predicted_places():
    app = run(show=["Luong local"])
    sound(app)
    [column] = scene(app).columns
    assert len(column.windows) == len(column.queries) and "predicts" in captions.shown_map(column)
    assert f"predicted place {column.windows[2][0] + 1:.1f}" in captions.steps(column)[2]
    missing = "A bracket is missing where the window reaches beyond the sentence."  # its end is off the map
    assert missing in captions.shown_map(column)
    assert missing not in captions.shown_map(dataclasses.replace(column, windows=((len(column.grid.keys) / 2, 1.0),)))
    hidden = scene(run(show=["Luong local"], special="false")).columns[0]
    assert hidden.windows == column.windows[:-1]
    words = scene(run(show=["Luong local"], units="words")).columns[0]
    assert words.windows == () and "Choose pieces under Tokens to see them" in captions.shown_map(words)


def test_a_presentation_has_large_type_and_no_more_than_a_step():
    app = run(show=["Bahdanau"], present="true")
    sound(app)
    maps, bars = (chart_cells(chart.proto)[0]["figure"] for chart in charts(app))
    assert maps["layout"]["font"]["size"] > 15 and bars["layout"]["font"]["size"] >= 15
    app.text_input(key="text").set_value("far " * 200).run()  # is refused, and the last picture stays
    app.button(key="leave").click().run()
    assert not app.exception and len(charts(app)) == 3 and not app.session_state["present"]


def test_without_a_mechanism_the_page_says_that_the_last_picture_stays():
    app = run(show=["Bahdanau"])
    app.get("button_group")[0].set_value([]).run()
    captions = [caption.value for caption in app.caption]
    assert [message.value for message in app.info] == ["Choose at least one mechanism on the left."]
    assert not [*app.warning, *app.error]  # nothing is wrong
    assert "The page still shows the picture that was here before." in captions
    assert not any("of this text" in text for text in captions)
    assert app.session_state["heading"] == scene(app).heading  # above the pictures that are saved


LONG = (
    "Mr. Hill has two old dogs and a very small white cat. The dogs run across the green grass in the park every day. "
    "The cat sleeps on a red chair by the window and dreams of fish."
)


def test_a_long_text_is_translated_sentence_by_sentence():
    app = run(text=LONG, sentence="2")
    sound(app)
    choices = scene(app).choices
    assert choices.sentences == (LONG[:53], LONG[54:112], LONG[113:])
    assert choices.text == LONG[54:112] and all(column.trace.text == LONG[54:112] for column in scene(app).columns)
    page = "".join(htmls(app))
    assert "longer than those that the models learnt from" in page
    assert f"Sentence 2 of 3: {LONG[54:112]}" in page and "too long" not in page
    assert captions.notices(scene(app)) == ""


def test_the_translation_of_the_whole_text_has_every_sentence():
    column = scene(run(text=LONG, sentence="2")).columns[0]
    words = captions.whole(column, ["un", "deux <b>", "trois"], CompareChoices(LONG[54:112], (), sentences=split(LONG)))
    assert re.sub("<.*?>", "", words).endswith("by sentence: un deux &lt;b&gt; trois")
    assert words.count("<b ") == 1 and "<b lang" in words


def test_a_long_text_is_read_whole_beside_a_typed_target():
    app = run(text=LONG, target="One text for all: typed", force="Des chiens")
    assert scene(app).choices.text == LONG and "too long for the model" in captions.notices(scene(app))


@pytest.mark.parametrize("text", ["A dog runs. It is fast.", LONG[:53]])
def test_a_text_as_long_as_those_of_training_is_read_whole(text):
    choices = scene(run(text=text)).choices
    assert choices.text == text and choices.sentences == ()


def test_what_the_beam_kept_is_listed_and_each_opens_its_map():
    """Each text is a link to this page, on which all models are made to write it."""
    app = run(show=["Bahdanau", "Transformer"], beam=BEAMS[5])
    assert not [part for part in htmls(app) if "What the beam kept" in part]
    app.toggle(key="listed").set_value(True).run()
    sound(app)
    shown = "".join(cell["words"] for cell in chart_cells(charts(app)[0].proto))
    for column in scene(app).columns:
        listed = attnviz.load(column.model).hypotheses(scene(app).text, 5)
        assert len(listed) == 5 and listed[0].text == column.trace.translation
        for hypothesis in listed:
            address = re.search(rf'href="([^"]*)"[^>]*>{re.escape(escape(hypothesis.text))}</a>', shown)[1]
            query = parse_qs(urlsplit(unescape(address)).query)
            assert query["force"] == [hypothesis.text] and query["target"] == ["One text for all: typed"]
            assert query["text"] == [scene(app).text]
    assert not [toggle for toggle in run(show=["Bahdanau"]).toggle if toggle.key == "listed"]  # greedy keeps one


def test_the_charts_of_a_view_are_sent_in_few_bytes():
    """Each is packed; the script that draws them comes with the page, not with each of them."""
    app = run()
    sizes = [element.proto.ByteSize() for element in charts(app)]
    assert len(sizes) == 3 and sum(sizes) < 20_000, sizes
    assert all(chart_cells(element.proto) for element in charts(app))


def test_the_weights_of_a_map_are_sent_once_in_two_bytes_each_and_its_bars_name_it():
    maps, bars = (element.proto.bytes for element in charts(run()) if "by-step" not in element.proto.id)
    sent, stepped = (json.loads(zlib.decompress(content)) for content in (maps, bars))
    numbers = [cell["figure"]["data"][0]["z"] for cell in sent["cells"]]
    sides = [tuple(map(int, values["shape"].split(","))) for values in numbers]
    assert [len(base64.b64decode(values["bdata"])) for values in numbers] == [2 * rows * keys for rows, keys in sides]
    assert stepped["maps"] == f"{len(maps)}-{zlib.adler32(zlib.decompress(maps)):08x}"
    assert not any({"weights", "texts"} & set(cell) for cell in stepped["cells"]) and stepped["row"] == 0


@pytest.mark.parametrize(
    "values", ([0.25, 1, np.nan, 0.0001, 6.5], [-0.5, 0.5], [0.12345], [6.5535], [[0.5, np.nan]], [])
)
def test_numbers_are_sent_in_two_bytes_only_where_this_changes_none(values):
    numbers = np.array(values, dtype=np.float32)
    figure = Chart.of_parts([{"type": "bar", "y": numbers}], {}, "", False)
    sent = json.loads(zlib.decompress(packed([{"words": "", "figure": figure}])))["cells"][0]["figure"]["data"][0]["y"]
    assert ("per" in sent) == (values not in ([-0.5, 0.5], [0.12345], [6.5535]))
    raw = base64.b64decode(sent["bdata"])
    read = np.frombuffer(raw, sent["dtype"]) if "per" not in sent else widened(sent)
    assert np.array_equal(read.reshape(numbers.shape), numbers, equal_nan=True)


def test_half_a_surrogate_pair_is_sent():
    """A tokenizer of bytes may cut a character in two."""
    data = packed([{"words": "\ud83d", "figure": None}])
    assert json.loads(zlib.decompress(data)) == {"cells": [{"words": "\ud83d", "figure": None}]}


def test_the_models_at_a_moment_of_their_training():
    """By a link; a model without moments is shown as it ships, and the others say which moment it is."""
    app = run(show=["Bahdanau", "Luong dot"], trained="moment 9")
    sound(app)
    assert [column.model for column in scene(app).columns] == ["en-fr/bahdanau@8", "en-fr/luong-dot"]
    assert scene(app).choices.query()["trained"] == "moment 9" and app.select_slider(key="trained").value == 8
    (words,) = [html for html in htmls(app) if "run of their own" in html]
    rows = compare_caches.course("en-fr/bahdanau")
    assert f"Bahdanau after {rows[8]['update']:,} updates: loss {rows[8]['loss']:.2f}" in words
    assert "Luong dot: shown as it ships" in words
    figures = [cell["figure"] for chart in charts(app) for cell in chart_cells(chart.proto)]
    drawn = [trace for figure in figures for trace in (figure or {}).get("data", []) if trace.get("mode") == "lines"]
    assert [row["bleu_lc"] for row in rows] in [trace["y"] for trace in drawn]
    app.select_slider(key="trained").set_value(-1).run()
    assert scene(app).columns[0].model == "en-fr/bahdanau"
    assert not [html for html in htmls(app) if "run of their own" in html]


def test_a_moment_learns_and_the_last_one_differs_from_what_ships():
    models = [attnviz.load(f"en-fr/bahdanau{moment}") for moment in ("@0", "@11", "")]
    untrained, last, shipped = (model.log_prob("A dog is running.", "Un chien court.") for model in models)
    assert untrained < -40 < last != shipped
    rows = compare_caches.course("en-fr/bahdanau")
    assert len(rows) == 12 and rows[0]["bleu_lc"] < 1 < 30 < rows[-1]["bleu_lc"]
    assert rows[-1]["error_rate"] < 0.4 < rows[0]["error_rate"] and rows[0]["update"] == 0
