"""A model that writes, on the page of heads: the text grows, and a link gives the same text."""

import base64
import html
import re

import heads_app
import numpy as np
import pytest
from heads_app import cells, heads_scene, page, sound

import attnviz
from attnviz import intervene, patterns
from attnviz.heads import Head
from attnviz.networks.writing import Sampling
from attnviz.service import ServiceError
from dashboard.compare.caches import course
from dashboard.session import caches

MODEL = "Shakespeare by letters · written on · Self-attention"
NAME, TEXT = "shakespeare/writer", "ROMEO:\nO, "


def run(**query):
    return heads_app.run(**{"model": MODEL, "text": TEXT, "written": "6", **query})


def button(app, key):
    return next(button for button in app.button if button.key == key)


def test_a_link_gives_the_text_that_the_library_writes():
    app = sound(run(temperature="1.2", top_k="10", chance="4"))
    wanted = attnviz.load(NAME).write(TEXT, 6, 1.2, top_k=10, seed=4)
    scene = heads_scene(app)
    assert scene.trace.translation == wanted.translation and scene.trace.target == wanted.target
    assert scene.written_row == len(wanted.target) - 1
    shapes = cells(app, "overview")[0]["figure"]["layout"]["shapes"]
    assert [shape["name"] for shape in shapes] == ["row"]
    assert app.session_state["row"] == scene.written_row + 1  # of the close-up
    app.slider(key="row").set_value(0).run()
    assert app.query_params["row"] == "0" and sound(run(row="0")).session_state["row"] == 0  # all rows, in a link too
    hidden = np.isnan(decoded(cells(app, "closeup")[0]["figure"]["data"][0]["z"], len(wanted.target)))
    assert np.array_equal(hidden, ~np.tri(len(wanted.target), dtype=bool))  # a later letter is masked
    assert "equal to the logit of the model" in page(app) and "NOT equal" not in page(app)
    assert "10 of at most 2,500 characters<" in page(app)  # not the 500 of translators
    assert "final norm" in page(app) and "after layer 4" in page(app)


def test_the_model_at_a_moment_of_its_training():
    """By a link; the curves are those of the shipped measurements, and the last option is the model that ships."""
    app = sound(run(moment="moment 10", written="3"))
    assert heads_scene(app).trace.model == f"{NAME}@9" and app.select_slider(key="moment").value == 9
    model = attnviz.load(f"{NAME}@9")
    assert heads_scene(app).trace.translation == model.write(TEXT, 3, 0.8, seed=1).translation
    rows = course(NAME)
    assert len(rows) == 12 and rows[0]["update"] == 0 and rows[0]["loss"] > 4 > 1.6 > rows[-1]["loss"]
    lines = [trace["y"] for trace in cells(app, "training")[0]["figure"]["data"] if trace.get("mode") == "lines"]
    assert [row["previous"] for row in rows] in lines and [row["induction"] for row in rows] in lines
    assert f"After {rows[9]['update']:,} updates" in page(app) and "a run of their own" in page(app)
    app.select_slider(key="moment").set_value(-1).run()
    assert heads_scene(sound(app)).trace.model == NAME and not cells(app, "training")
    assert "a run of their own" not in page(app)
    by_pieces = course("en/writer")
    assert len(by_pieces) == 12 and by_pieces[0]["loss"] > 8 > 4 > by_pieces[-1]["loss"]


def test_one_step_and_back():
    app = sound(run())
    before = heads_scene(app).trace
    button(app, "write_step").click().run()
    after = heads_scene(sound(app)).trace
    assert after.target[:-1] == before.target and len(after.target) == len(before.target) + 1
    assert app.session_state["row"] == len(after.target)
    app.slider(key="row").set_value(2).run()
    assert app.session_state["row"] == 2  # until the next token
    button(app, "write_back").click().run()
    assert heads_scene(sound(app)).trace.target == before.target


def test_a_candidate_is_taken_and_both_ways_are_shown():
    app = sound(run())
    before, model = heads_scene(app).trace, attnviz.load(NAME)
    candidates = [button for button in app.button if str(button.key).startswith("candidate")]
    number = int(candidates[-1].key.removeprefix("candidate"))
    candidates[-1].click().run()
    trace = heads_scene(sound(app)).trace
    assert model.ids(trace) == [*model.ids(before), number]
    ways = [cell["words"] for cell in cells(app, "ways")]
    assert ["Your choice" in way for way in ways] == [True, False] and len(cells(app, "other")) == 2
    without = model.write(TEXT, 7, 0.8).translation
    written = spoken_words(ways[1])
    assert written.startswith(f"Without it{without}log-probability") and ways[0] != ways[1]
    link = {name: str(app.session_state[name]) for name in ("way", "written")}  # as the address has it
    assert heads_scene(sound(run(**link))).trace == trace


def test_candidates_that_the_models_cannot_give_are_missing_and_the_rest_is_there(monkeypatch):
    """As of a model in a process that has ended."""
    app = sound(run())

    def away(*given):
        raise ServiceError("the models are away")

    monkeypatch.setattr(caches, "candidates", away)
    app.run()
    assert not app.exception and [error.value for error in app.error] == ["The models are away."], app.exception
    assert cells(app, "closeup") and not cells(app, "next")


@pytest.mark.parametrize("way", ["x", "1:2:3", "1:99999999", "-1:4"])
def test_choices_that_are_spelled_wrongly_are_refused(way):
    app = run(way=way)
    assert not app.exception and "Your choices must be like 5" in app.error[0].value


def test_a_token_that_cannot_be_written_is_refused():
    app = run(way="1:0")
    assert not app.exception and "can write" in app.error[0].value


def test_the_bars_of_the_next_letters_are_a_figure_with_its_numbers():
    app = sound(run(temperature="0.5", top_k="3", tables="true"))
    (cell,) = cells(app, "next")
    before, after = (data["y"] for data in cell["figure"]["data"])
    trace = heads_scene(app).trace
    wanted = attnviz.load(NAME).candidates(trace, None, Sampling(0.5, 3))
    assert before == [round(candidate.probability, 4) for candidate in wanted] and sum(after) == pytest.approx(
        1, abs=1e-3
    )
    assert after[3:] == [0] * 5 and "cannot be drawn" in cell["figure"]["layout"]["meta"]["description"]
    assert cell["figure"]["layout"]["meta"]["name"]  # it can be saved
    assert f"{wanted[0].drawn:.4f}" in page(app)


def test_random_words_are_read_twice_and_the_page_finds_where_a_head_follows_them():
    app = sound(run())
    button(app, "repeated").click().run()
    scene = heads_scene(sound(app))
    assert scene.text == patterns.repeated() and not scene.choices.writing.steps
    best = scene.table.loc[scene.table["induction"].idxmax()]
    title = scene.head_title(Head("decoder", best["layer"], best["head"]))
    assert f"Where {title} follows it most" in page(app)


def test_nothing_is_written():
    app = sound(run(written="0"))
    assert heads_scene(app).written_row is None and heads_scene(app).trace.translation == TEXT


def test_a_full_context_is_said():
    app = sound(run(text="O, " * 83, written="40"))
    assert len(heads_scene(app).trace.target) == 256 and "The context of the model is full" in page(app)


def test_a_head_is_switched_off():
    app = sound(run(off="decoder layer 1, head 1"))
    assert "Log-probability of the text, with what was written" in page(app)


def test_a_line_break_among_the_candidates_has_its_own_sign():
    app = sound(run(text="First Citizen:", written="0"))
    labels = [button.label for button in app.button if str(button.key).startswith("candidate")]
    assert labels[0] == "⏎" and len(set(labels)) == len(labels)


def test_no_choice_is_none_but_that_of_a_token_to_find():
    """After Back Streamlit's select box showed nothing for it."""
    assert [box.key for box in sound(run()).selectbox if box.value is None] == ["find"]


def test_attention_is_changed_in_one_head_and_the_text_is_written_again():
    app = sound(run(rule="uniform", rule_place="layer 2, head 3", rule_row="12", temperature="0.8"))
    model, trace = attnviz.load(NAME), heads_scene(app).trace
    wanted = intervene.written(model, trace, intervene.Uniform(), intervene.Scope((11,), None, 1, 2), Sampling(0.8))
    texts, bars, before, after = cells(app, "changed")
    spoken = spoken_words(texts["words"])
    assert wanted.free.translation in spoken and trace.translation in spoken
    changes = [round(float(change), 4) for change in wanted.log_prob_changes]
    assert bars["figure"]["data"][1]["y"] == changes and any(changes) and not any(changes[:11])
    maps = [decoded(cell["figure"]["data"][0]["z"], len(trace.target)) for cell in (before, after)]
    assert maps[1][11, :12] == pytest.approx(1 / 12, abs=1e-4) and maps[0][10, :11] == pytest.approx(maps[1][10, :11])


def spoken_words(words: str) -> str:
    """HTML without its tags."""
    return html.unescape(re.sub("<[^>]*>", "", words))


def decoded(values: dict, size: int) -> np.ndarray:
    return np.frombuffer(base64.b64decode(values["bdata"]), "float32").reshape(size, size)


def test_a_word_of_the_prompt_is_replaced_and_each_row_is_changed_alone():
    app = sound(run(prompt_word="7 O", prompt_new="Ah", rows_alone="true", tables="true"))
    model, trace = attnviz.load(NAME), heads_scene(app).trace
    word = next(word for word in intervene.words(trace) if word.start == 7)
    wanted = intervene.written_after(model, trace, word, "Ah", Sampling(0.8))
    assert wanted.free.text == "ROMEO:\nAh, "
    spoken = spoken_words(cells(app, "replaced")[0]["words"])
    assert wanted.free.translation in spoken
    assert "Attention changed in one of 16 rows at a time" in page(app)
    assert "Each token after the other prompt, same text" in page(app)


def test_a_text_longer_than_a_sentence_is_read_up_to_the_context():
    """512 pieces of the model of stories; what is longer is refused by the number of pieces."""
    model, text = "Stories and sentences · written on · Self-attention", "The king was old. " * 40
    app = sound(run(model=model, text=text, written="0"))
    assert len(heads_scene(app).trace.target) > 150 and "720 of at most 2,500 characters<" in page(app)
    refused = run(model=model, text="The king was old. " * 130, written="0")
    assert "reads at most 512" in refused.error[0].value
