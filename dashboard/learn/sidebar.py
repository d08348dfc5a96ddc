"""The sidebar of the page Learn: the lessons and the chapters."""

from pathlib import Path

import streamlit as st

from dashboard.choices.options import CHAPTER_TITLES, chapter_title
from dashboard.learn import lesson
from dashboard.session import address
from dashboard.shell import widgets


def show() -> dict:
    """Draw the sidebar -> the key of the chapter, and the name of the lesson open instead of it ("" for none)."""
    widgets.brand("Attention in fifteen short chapters, with live pictures. You need to know what a neural network is.")
    files = lesson.files()
    names: dict[str, str] = {}
    for name, file in files.items():
        title = _title(name, file)
        names[name] = f"{title}, {name}" if title in names.values() else title
    written = st.query_params.get("lesson")
    if written in files and names[written] != written:
        address.put("lesson", written, names[written])  # a link may name the file
    chosen = st.selectbox(
        "Lesson",
        ["", *files],
        format_func=lambda name: names.get(name, "none"),
        key="lesson",
        bind="query-params",
        help="A lesson leads through pages of the dashboard, with questions and a sheet to print.",
    )
    if chosen:
        return {"lesson": chosen, "chapter": "", "tables": False}
    chapter = st.radio("Chapter", list(CHAPTER_TITLES), format_func=chapter_title, key="chapter", bind="query-params")
    return {"lesson": "", "chapter": chapter, "tables": widgets.tables()}


def _title(name: str, file: Path) -> str:
    """The title of a lesson and its minutes; its name if the file is not a lesson."""
    try:
        opened = lesson.open_file(file)
    except lesson.LessonError:
        return f"{name} (cannot be read)"
    return f"{opened.title} ({opened.minutes} minutes)"
