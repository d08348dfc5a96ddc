"""The page Learn run by Streamlit's own test driver: every chapter with its pictures, question, answer and link."""

import html
import re
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import numpy as np
import pytest
import tiny
import torch
from client import chart_cells
from streamlit.testing.v1 import AppTest

import attnviz
from attnviz import figures, select
from dashboard.choices.options import CHAPTER_TITLES, chapter_title
from dashboard.compare.caches import course
from dashboard.inside import caches as steps
from dashboard.learn import chapter as words_of
from dashboard.learn import lesson, questions
from dashboard.learn.chapter import SENTENCE, column
from dashboard.learn.chapters import CHAPTERS, heads, self_attention
from dashboard.pages import PAGES
from dashboard.session import caches as models

SCRIPT = """import streamlit as st
from dashboard.learn import sidebar, view

with st.sidebar:
    chosen = sidebar.show()
view.show(chosen)
"""
LINKED = """import streamlit as st
from dashboard.pages import PAGES
from dashboard.shell import link_notes

link_notes.remember(st.session_state)
with st.sidebar:
    chosen = PAGES[{number}].sidebar()
PAGES[{number}].show(chosen)
link_notes.show(st.session_state)
"""
WORDS = "Story.\n\n## Symbols\n\na: b\n\n## Think about it\n\nWhy?\n\n## Answer\n\nBecause.\n\n## Try it\n\nGo.\n"
EACH = pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.key)


def run(**query) -> AppTest:
    app = AppTest.from_string(SCRIPT, default_timeout=120)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def words(app: AppTest) -> str:
    return "".join(element.proto.body for element in app.get("html"))


def cells(app: AppTest) -> list[dict]:
    charts = [element for element in app.get("bidi_component") if element.proto.component_name == "attnviz_plot"]
    return [cell for chart in charts for cell in chart_cells(chart.proto)]


def test_the_chapters_stand_in_the_order_of_the_titles():
    assert [chapter.key for chapter in CHAPTERS] == list(CHAPTER_TITLES) and len(CHAPTERS) == 15


def test_every_text_beside_the_chapters_is_that_of_one():
    """A file of another name would never be read."""
    files = {file.stem for file in Path(words_of.__file__).with_name("chapters").glob("*.md")}
    assert files == CHAPTER_TITLES.keys()


@pytest.mark.parametrize(
    "text",
    [
        "No heading.",
        WORDS.replace("Why?", "Why?\n\nWhy not?"),
        WORDS.replace("Because.", ""),
        WORDS.replace("Story.", ""),
        WORDS.replace("## Answer", "## The answer"),
    ],
)
def test_words_of_another_form_are_refused_with_what_is_wanted(text, tmp_path, monkeypatch):
    monkeypatch.setattr(words_of, "_FOLDER", tmp_path)
    (tmp_path / "own.md").write_text(WORDS)
    own = words_of.read("own", "", {}, None)
    assert (own.story, own.symbols, own.question, own.answer, own.ask) == (
        ("Story.",),
        {"a": "b"},
        "Why?",
        "Because.",
        "Go.",
    )
    (tmp_path / "own.md").write_text(text)
    with pytest.raises(ValueError, match="^own.md must have paragraphs, then the headings Symbols, Think about it, "):
        words_of.read("own", "", {}, None)


@pytest.mark.parametrize(
    "symbols, message",
    [
        ("a b", "own.md: write “a b” as `symbol: meaning`, with an empty line before each symbol"),
        ("a:b: c", "own.md: write “a:b: c” as `symbol: meaning`, with an empty line before each symbol"),
        ("a: b\nc: d", "own.md: write “a: b\nc: d” as `symbol: meaning`, with an empty line before each symbol"),
        ("a: b\n\na: c", "own.md has the symbol “a” twice; keep one and put all of its text there"),
    ],
)
def test_a_symbol_that_would_be_lost_is_refused(symbols, message, tmp_path, monkeypatch):
    monkeypatch.setattr(words_of, "_FOLDER", tmp_path)
    (tmp_path / "own.md").write_text(WORDS.replace("a: b", symbols))
    with pytest.raises(ValueError) as refused:
        words_of.read("own", "", {}, None)
    assert str(refused.value) == message


@pytest.mark.parametrize(
    "below",
    [
        "Answer.",
        "A.\n\nscores\n\nAlso: x",
        "A.\n\nChapter: scores\n\nx",
        "Answer.\n\nChapter: nowhere\n\nAlso: x",
        "A.\n\nB.\n\nC.\n\nD.",
    ],
)
def test_a_question_of_another_form_is_refused_by_its_words(below, tmp_path):
    (file := tmp_path / "questions.md").write_text(f"Above.\n\n## Why?\n\n{below}\n")
    with pytest.raises(ValueError, match=r"^questions.md: below “Why\?” must stand an answer, then Chapter: "):
        list(questions._read(file))


@EACH
def test_each_chapter_has_pictures_words_and_their_equivalents(chapter):
    app = run(chapter=chapter_title(chapter.key), tables="true")
    assert not app.exception and not app.error, (app.exception, app.error)
    assert app.subheader[0].value == chapter_title(chapter.key)
    figures = [cell["figure"] for cell in cells(app) if cell["figure"]]
    assert figures and all(figure["layout"]["meta"]["description"] for figure in figures)
    for figure in figures:  # a saved picture names its model and the sentence; one of no sentence, what it is
        heading = figure["layout"]["meta"]["saved"]["title"]["text"]
        of_a_sentence = ("(en-fr/" in heading and "<br>→ " in heading) or "(en/writer" in heading
        assert of_a_sentence or heading in ("<b>Spread of dot products</b>", "<b>Quality by length</b>")
    shown = words(app)
    assert "Think about it." in shown and "<details" in shown and "Attention is not by itself an explanation." in shown
    assert shown.count("<dt>") == len(chapter.symbols) >= 2 and 'class="numbers"' in shown


@EACH
def test_each_link_opens_its_page_in_that_state(chapter):
    leads_there(html.unescape(re.search(r'href="(\./[^"]*)"', chapter.exercise())[1]))


@pytest.mark.parametrize("name", lesson.files())
def test_the_links_of_each_lesson_open_their_pages(name):
    links = lesson.open_file(lesson.files()[name]).links
    assert len(links) >= 2
    for link in links:
        if link.startswith("./"):
            leads_there(link)


def leads_there(address):
    """Every parameter of the address is taken: each is still what it was or the default, and no note says otherwise."""
    number = [page.path for page in PAGES].index(urlsplit(address).path.removeprefix("./"))
    parameters = parse_qs(urlsplit(address).query)
    app = AppTest.from_string(LINKED.format(number=number), default_timeout=120)
    for key, values in parameters.items():
        app.query_params[key] = values if len(values) > 1 else values[0]
    app.run()
    assert not app.exception and not app.error and not app.info, (app.exception, app.error, app.info)
    assert not [key for key in parameters if key not in app.session_state and key != "guess_steps"]
    assert "text" not in parameters or app.session_state["text"] == parameters["text"][0]
    for key, values in parameters.items():
        value = app.query_params.get(key)
        assert value is None or values == (value if isinstance(value, list) else [value]), key


# What learners type -> the number of the question that they mean.
ASKED = {
    "q k v in bahdanau": 1,
    "luong vs bahdanau": 2,
    "visualize attention weights of my keras model": 3,
    "is bert attention symmetric": 4,
    "can I trust attention weights": 5,
    "attn(cat(embedded, hidden)) tutorial": 6,
    "max_length": 7,
    "do I have to mask padding": 8,
    "masks at inference": 9,
    "all the weight is on <eos>": 10,
    "attention always looks at the same word": 11,
    "is a row encoder or decoder axis": 12,
    "why sqrt(d_k)": 13,
    "heads attend to the first token": 14,
    "AdditiveAttention keras same as paper": 15,
}


def test_the_questions_that_learners_ask_are_found():
    assert len(questions.QUESTIONS) == len(ASKED) == 15
    for question, number in ASKED.items():
        first = questions.search(question)[0][0]
        assert first is questions.QUESTIONS[number - 1], f"{question}: {first.question}"
        (link,) = re.findall(r'href="(\./learn[^"]*)"', first.html())
        assert parse_qs(urlsplit(html.unescape(link)).query)["chapter"] == [chapter_title(first.chapter)]


def test_the_lines_of_python_in_an_answer_run():
    (line,) = re.findall("<code>(figures.*?)</code>", "".join(question.answer for question in questions.QUESTIONS))
    weights = [np.full((2, 3, 3), 1 / 3)]  # a list of (heads, queries, keys), as the answer says
    names = {
        "attnviz": attnviz,
        "figures": figures,
        "select": select,
        "weights": weights,
        "tokens": ["a", "black", "dog"],
    }
    figure = eval(html.unescape(line).removesuffix(".show()"), names)
    assert np.shape(figure.data[0].z) == (3, 3)


def test_a_question_is_found_on_the_page_and_nothing_is_said():
    app = run()
    assert "15 questions that learners ask" in words(app)
    app.text_input(key="question").set_value("padding <b>").run()
    assert "<details" in words(app) and "Must padding be masked?" in words(app) and not app.exception
    app.text_input(key="question").set_value("zzz <i>").run()
    assert "No question or chapter has these words: zzz &lt;i&gt;" in words(app)


def test_what_the_chapter_on_learning_says_of_its_curves():
    """First the loss falls alone; then both fall together."""
    rows = course("en-fr/bahdanau")
    early, appears = rows[5], next(row for row in rows if row["error_rate"] < 0.8)
    assert early["loss"] < 0.7 * rows[0]["loss"] and abs(early["error_rate"] - rows[0]["error_rate"]) < 0.02
    assert appears["update"] > early["update"] and rows[-1]["loss"] < 0.5 * appears["loss"]
    assert rows[-1]["error_rate"] < 0.5 * appears["error_rate"]


def test_what_the_chapter_on_masks_says_of_padding():
    """exp(0) = 1 for each pad. The score of a state of zeros is 0 in the real model, and the chapter shows a loss."""
    step = steps.step(column("luong-general", SENTENCE), 2)
    masked, open_ = (self_attention.padded(step, masked) for masked in (True, False))
    pads, exponents = self_attention.PADS, np.exp(step.scores.astype(float))
    assert masked.weights[0, :-pads] == pytest.approx(step.weights, abs=1e-5) and not masked.weights[0, -pads:].any()
    assert open_.weights[0, -pads:].sum() == pytest.approx(pads / (pads + exponents.sum()), rel=1e-4)
    score = models.model("en-fr/luong-general").model.attention
    keys = score.prepare(torch.zeros(1, 1, len(step.values[0])))
    assert score.score(torch.from_numpy(step.query)[None, None], keys).abs().max() == 0
    lost = re.findall(r"Weight on padding: (\d\.\d\d)", "".join(cell["words"] for cell in cells(masks())))
    assert lost[0] == "0.00" and float(lost[1]) > 0.1


def masks() -> AppTest:
    return run(chapter=chapter_title("masks"))


def test_the_encoder_looks_both_ways_and_a_model_that_writes_looks_back():
    drawn = self_attention.draw_itself(False)
    after = [float(re.findall(r"On average (\d\.\d\d)", cell.words)[0]) for cell in drawn.cells]
    assert 0.3 < after[0] < 0.7 and after[1] == 0


def test_each_pattern_has_a_head_that_shows_it():
    """Well above uniform attention, which is the broad pattern itself. The link opens one of these heads."""
    trace = column("transformer", SENTENCE).trace
    shown = {name: heads.best(trace, name) for name in heads.SHOWN}
    assert all(best.score > 2 * best.chance for name, best in shown.items() if name != "broad")
    assert shown["broad"].chance == pytest.approx(1) and shown["broad"].score > 0.7
    name, head = heads.LINKED
    assert shown[name].head == head


def test_beside_a_pair_of_ones_own_the_chapters_keep_the_models_of_this_project(tmp_path, monkeypatch):
    shutil.copytree(tiny.write_models(tmp_path / "made") / "en-fr", tmp_path / "own" / "en-nl")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path / "own"))
    app = run(chapter=chapter_title("who-asks"))
    assert not app.exception and not app.error and any(cell["figure"] for cell in cells(app))


def test_a_chapter_whose_model_is_missing_keeps_its_words(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tiny.write_models(tmp_path)))
    (tmp_path / "en-fr" / "fixed-context" / "model.safetensors").unlink()
    app = run(chapter=chapter_title("bottleneck"))
    assert not app.exception and len(app.error) == 1
    assert app.error[0].value.startswith("The pictures of this chapter cannot be drawn")
    assert "Think about it." in words(app)


def test_the_buttons_turn_the_pages():
    app = run(chapter=chapter_title("scores"))
    app.button(key="turn1").click().run()
    assert app.subheader[0].value == chapter_title("who-asks")
    app.button(key="turn-1").click().run()
    assert app.subheader[0].value == chapter_title("scores")


def test_only_the_open_chapter_is_worked_out(monkeypatch):
    drawn = []
    for chapter in CHAPTERS:
        monkeypatch.setitem(
            chapter.__dict__, "draw", lambda dark, key=chapter.key: drawn.append(key) or _draw_nothing()
        )
    run(chapter=chapter_title("heads"))
    assert drawn == ["heads"]


def _draw_nothing():
    from dashboard.learn.chapter import Drawn

    return Drawn([])
