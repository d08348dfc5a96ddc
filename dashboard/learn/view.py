"""The page Learn: one chapter at a time. Only the open chapter is worked out and drawn."""

import streamlit as st

from dashboard.browser.bridge import bridge
from dashboard.browser.plot import plots
from dashboard.choices.options import chapter_title
from dashboard.learn.chapter import Chapter
from dashboard.learn.chapters import CHAPTERS
from dashboard.markup import terms
from dashboard.markup.text import markdown
from dashboard.shell import frame
from dashboard.shell.problems import sentence


def show(fields: dict) -> None:
    place = next(i for i, chapter in enumerate(CHAPTERS) if chapter.key == fields["chapter"])
    chapter = CHAPTERS[place]
    st.subheader(chapter_title(chapter.key), divider="gray")
    st.html(chapter.words() + chapter.ask_first())
    _pictures(chapter, fields["tables"], frame.is_dark())
    st.html(chapter.exercise())
    _turn(place)
    st.html(terms.caveat())
    bridge()


def _pictures(chapter: Chapter, tables: bool, dark: bool) -> None:
    try:
        with st.spinner("Drawing the live pictures …"):
            drawn = chapter.draw(dark)
    except ValueError as error:  # a folder of checkpoints that lacks a model of the chapter
        st.error(
            markdown(f"The pictures of this chapter cannot be drawn. {sentence(str(error))}"), icon=":material/info:"
        )
        return
    plots(drawn.cells, "chapter")
    if tables:
        st.html(drawn.tables)


def _turn(place: int) -> None:
    """To the chapter before, and to the next."""
    with st.container(horizontal=True, key="turn"):
        for step, words in ((-1, "‹ {}"), (1, "{} ›")):
            if 0 <= place + step < len(CHAPTERS):
                other = CHAPTERS[place + step]
                st.button(words.format(other.title), key=f"turn{step}", on_click=_open, args=(other.key,))


def _open(key: str) -> None:
    st.session_state["chapter"] = key
