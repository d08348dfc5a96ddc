"""The page Learn: a search, and one chapter or one lesson at a time. Only the open chapter is computed and drawn."""

import functools
from pathlib import Path

import streamlit as st

from dashboard.browser.plot import bridge, plots
from dashboard.choices.options import chapter_title
from dashboard.compare import guessing
from dashboard.learn import lesson, questions
from dashboard.learn.chapter import Chapter
from dashboard.learn.chapters import CHAPTERS
from dashboard.learn.lesson import Lesson
from dashboard.markup import terms
from dashboard.markup.text import escape, markdown
from dashboard.shell import downloads, frame
from dashboard.shell.problems import sentence

_ANSWER_LENGTH = 5000  # characters of an answer


def show(fields: dict) -> None:
    _search()
    if fields["lesson"]:
        _lesson(fields["lesson"])
    else:
        _chapter(fields)
    st.html(terms.caveat())
    bridge(on_guesses=lambda rows: guessing.hear(st.session_state, rows))


def _search() -> None:
    """The search in learners' questions."""
    question = st.text_input(
        "Find a question",
        key="question",
        bind="query-params",
        placeholder="such as: why is a map not symmetric",
        max_chars=200,
    )
    st.html(questions.html(question))


def _chapter(fields: dict) -> None:
    place = next(i for i, chapter in enumerate(CHAPTERS) if chapter.key == fields["chapter"])
    chapter = CHAPTERS[place]
    st.subheader(chapter_title(chapter.key), divider="gray")
    st.html(chapter.words() + chapter.ask_first())
    _pictures(chapter, fields["tables"], frame.is_dark())
    st.html(chapter.exercise())
    _turn(place)


def _pictures(chapter: Chapter, tables: bool, dark: bool) -> None:
    try:
        with st.spinner("Drawing the live pictures …"):
            pictures = chapter.draw(dark)
    except ValueError as error:  # a folder of checkpoints that lacks a model of the chapter
        st.error(
            markdown(f"The pictures of this chapter cannot be drawn. {sentence(str(error))}"), icon=":material/info:"
        )
        return
    plots(pictures.cells, "chapter")
    if tables:
        st.html(pictures.tables)


def _turn(place: int) -> None:
    """Buttons to the previous and the next chapter."""
    with st.container(horizontal=True, key="turn"):
        for step, words in ((-1, "‹ {}"), (1, "{} ›")):
            if 0 <= place + step < len(CHAPTERS):
                other, turn = CHAPTERS[place + step], st.session_state.update
                st.button(words.format(other.title), key=f"turn{step}", on_click=turn, kwargs={"chapter": other.key})


def _lesson(name: str) -> None:
    """A lesson from top to bottom: a field for each question, its answer behind a click, and the downloads."""
    path: Path = lesson.files()[name]
    try:
        opened = lesson.open_file(path)
    except lesson.LessonError as error:
        st.error(markdown(f"This lesson cannot be shown: {error}."), icon=":material/info:")
        return
    st.subheader(markdown(opened.title), divider="gray")
    st.html(
        f'<p class="what">{opened.minutes} minutes. {escape(opened.about)} Links open in a new tab. This page '
        "keeps what you write, and what you guess in those tabs, until you close it.</p>"
        '<div class="guesses" hidden data-kind="wanted"></div>'
    )
    answers: dict[int, str] = {}
    for part in opened.parts:
        if part.title:
            st.html(f"<h3>{escape(part.title)}</h3>")
        for block in part.blocks:
            st.html(f'<div class="{"exercise" if block.answer else "story"}">{block.markup}</div>')
            if block.answer:
                number = len(answers)
                answers[number] = _own_answer(name, number, " ".join(block.lines))
                if block.answer.lines:
                    st.html(
                        f'<details class="answer"><summary>Show the answer</summary>{block.answer.markup}</details>'
                    )
    _to_keep(name, opened, answers)


def _own_answer(name: str, number: int, question: str) -> str:
    """A student's answer. It is stored only in the browser's session."""
    return st.text_area(
        f"Your answer to: {markdown(question)}",
        key=f"answer {name} {number}",
        max_chars=_ANSWER_LENGTH,
        height=80,
        label_visibility="collapsed",
        placeholder="Your answer",
        persist_state="session",
    )


def _to_keep(name: str, opened: Lesson, answers: dict[int, str]) -> None:
    guesses = guessing.record(st.session_state)
    address = (st.context.url or "./").partition("?")[0].removesuffix("learn")
    made = {
        "Save my answers": (f"{name}-answers.txt", lesson.answered, (answers, guesses)),
        "Sheet to print (PDF)": (f"{name}.pdf", lesson.sheet_pdf, ()),
        "Sheet to print (HTML)": (f"{name}.html", lesson.sheet_html, (address,)),
        "Sheet with answers (PDF)": (f"{name}-with-answers.pdf", lesson.sheet_pdf, (True,)),
    }
    with st.container(horizontal=True, key="lesson_files"):
        for words, (file, make, more) in made.items():
            downloads.button(words, functools.partial(make, opened, *more), file, f"save {words}")
    count = len(guesses)
    seen = f"{count} row{'s' * (count != 1)} of guesses will be saved with your answers. " if count else ""
    st.caption(
        f"{seen}Answers and guesses are kept in this browser alone, until you close the page. Nobody collects them."
    )
