"""Lessons: what a file may say, those that ship, a teacher's own, and what a student takes along."""

from urllib.parse import parse_qs, urlsplit

import pypdfium2
import pytest
from page_script import script_of
from streamlit.testing.v1 import AppTest

from dashboard.choices import settings
from dashboard.learn import lesson
from dashboard.learn.lesson import LessonError

HEADER = "---\ntitle: Where & why?\nminutes: 15\n---\n"
BODY = (
    HEADER
    + "\n## First\n\nSee [the page](./heads?text=A+dog).\n\nQuestion: Why <b>?\n\nAnswer: Because.\n\nQuestion: And?\n"
)
SHIPPED = lesson.files()


def run(**query) -> AppTest:
    app = AppTest.from_string(script_of("learn"), default_timeout=120)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def words(app) -> str:
    assert not app.exception, app.exception
    return "".join(element.proto.body for element in app.get("html"))


def test_a_file_becomes_parts_questions_and_links():
    opened = lesson.read(BODY, "mine.md")
    (part,) = opened.parts
    assert (opened.title, opened.minutes, part.title) == ("Where & why?", 15, "First")
    first, second = opened.questions
    assert first.lines == ("Why <b>?",) and "Why &lt;b&gt;?" in first.markup and first.answer.lines == ("Because.",)
    assert second.answer.lines == () and opened.links == ("./heads?text=A+dog",)
    assert 'target="_blank" rel="noopener"' in part.blocks[0].markup


@pytest.mark.parametrize(
    "text, message",
    [
        ("## No header", "mine.md must begin with a header: a line ---"),
        ("---\nminutes: 5\n---\nText", "the header must have a title"),
        ("---\ntitle: A\nminutes: long\n---\nText", "minutes in the header must be a whole number"),
        ("---\ntitle: A\ncolour: red\n---\nText", "line 3: the header takes title:, minutes: and about:"),
        (HEADER, "has no text below its header"),
        (HEADER + "\nAnswer: So.", "line 6: an answer must follow a question"),
        (HEADER + "\nText\n\n[x](javascript:alert(1))", "line 8: a link must lead to a page of the dashboard"),
        (HEADER + "\n[x](./../../etc/passwd)", "line 6: a link must lead"),
        (HEADER + "\n[x](//evil.example)", "got '//evil.example'"),
        (HEADER + "\n[x](http://example.org)", "or to an https address"),
        (HEADER + "\n[x](https://user@example.org/)", "or to an https address"),
        (HEADER + "\n<data:text/html,x>", "got 'data:text/html,x'"),
        (HEADER + "\n[x]\n\n[x]: /etc/passwd", "got '/etc/passwd'"),
    ],
)
def test_what_is_no_lesson_is_said_with_its_line(text, message):
    with pytest.raises(LessonError) as refused:
        lesson.read(text, "mine.md")
    assert message in str(refused.value)


def test_html_and_pictures_are_text():
    pictures = "![A dog](dog.png) ![](https://example.org/x.svg) ![x](javascript:alert(1))"
    opened = lesson.read(HEADER + f"\n<script>alert(1)</script>\n\n{pictures}\n\nA \u202e sign.\n", "mine.md")
    assert opened.parts[0].blocks[1].lines == ("(picture: A dog) (picture) (picture: x)",)
    markup = "".join(block.markup for block in opened.parts[0].blocks)
    assert "<script" not in markup and "<img" not in markup and "\\u202e" in markup


@pytest.mark.parametrize("name", SHIPPED)
def test_those_that_ship_open_with_their_questions_and_sheets(name):
    opened = lesson.open_file(SHIPPED[name])
    app = run(lesson=name)
    shown = words(app)
    assert not app.error and app.subheader[0].value.replace("\\", "") == opened.title
    assert shown.count("Show the answer") == sum(bool(block.answer.lines) for block in opened.questions)
    assert len(app.text_area) == len(opened.questions) >= 5
    document = pypdfium2.PdfDocument(lesson.sheet_pdf(opened))
    printed = "".join("".join(page.get_textpage().get_text_bounded().split()) for page in document)
    html = lesson.sheet_html(opened, "http://localhost:8501/").decode()
    for number, question in enumerate(opened.questions, 1):
        assert "".join(f"{number}.{question.lines[0]}".split()) in printed, printed
        assert question.markup.replace("<p>", f"<p><b>{number}.</b> ", 1) in html
        assert not question.answer.lines or question.answer.markup not in html
    assert 'href="http://localhost:8501/' in html and 'href="./' not in html
    for sentence in (text for link in opened.links for text in parse_qs(urlsplit(link).query).get("text", [])):
        assert "".join(f"(“{sentence}”)".split()) in printed  # paper has no links


def test_they_take_15_30_and_45_minutes():
    assert sorted(lesson.open_file(path).minutes for path in SHIPPED.values()) == [15, 30, 45]


def test_a_teachers_own_comes_first_and_a_bad_file_is_said(tmp_path, monkeypatch):
    (tmp_path / "first-look.md").write_text(BODY, encoding="utf-8")
    (tmp_path / "bad.md").write_bytes(b"\xff\xfe")
    (tmp_path / "gone.md").symlink_to(tmp_path / "nowhere")
    monkeypatch.setenv(settings.LESSONS, str(tmp_path))
    assert lesson.files()["first-look"] == tmp_path / "first-look.md" and "who-asks" in lesson.files()
    app = run(lesson="first-look")
    assert app.selectbox(key="lesson").options[1:4] == [
        "bad (cannot be read)",
        "Where & why? (15 minutes)",
        "gone (cannot be read)",
    ]
    assert "Why &lt;b&gt;?" in words(app)
    for name, reason in (("bad", "must be UTF\\-8 text"), ("gone", "cannot be read")):
        assert reason in (message := run(lesson=name).error[0].value) and f" {name}.md " in message


def test_two_lessons_of_one_title_are_told_apart_by_the_file(tmp_path, monkeypatch):
    (tmp_path / "one.md").write_text(BODY, encoding="utf-8")
    (tmp_path / "two.md").write_text(BODY.replace("## First", "## Another"), encoding="utf-8")
    monkeypatch.setenv(settings.LESSONS, str(tmp_path))
    for name, part in (("one", "First"), ("two", "Another")):
        app = run(lesson=name)
        assert app.selectbox(key="lesson").options[1:3] == [
            "Where & why? (15 minutes)",
            "Where & why? (15 minutes), two",
        ]
        assert app.session_state["lesson"] == name and part in words(app)


@pytest.mark.parametrize("name", ["../SECURITY", "/etc/passwd", "..%2f..%2fREADME", "first-look.md", "\x00"])
def test_a_link_names_no_other_file(name):
    app = run(lesson=name)
    assert not app.error and app.subheader[0].value.startswith("1. ") and app.session_state["lesson"] == ""
    words(app)


def test_what_was_answered_is_saved_by_the_student_and_stays_while_other_chapters_are_read():
    app = run(lesson="first-look")
    app.text_area[0].set_value("At ‘dog’.").run()
    opened = lesson.open_file(SHIPPED["first-look"])
    saved = lesson.answered(opened, {0: "At ‘dog’."}, [{"token": "chien", "guess": "dog 1"}]).decode()
    assert "At ‘dog’." in saved and "token: chien; guess: dog 1" in saved and saved.count("(no answer)") == 4
    app.selectbox(key="lesson").select("").run()
    app.selectbox(key="lesson").select("first-look").run()
    assert app.text_area[0].value == "At ‘dog’."
