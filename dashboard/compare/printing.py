"""Pictures for slides and papers: true vectors in the size of the paper, light or dark whatever the page shows."""

import html
import threading
from collections.abc import Callable

import streamlit as st

from attnviz.export.bundle import figure_name
from dashboard.compare import sheets
from dashboard.compare.scene import CompareScene
from dashboard.session import address
from dashboard.session.memory import Cursor

SIZES = {"slide": "slide 16:9", "column": "column, 8.5 cm", "page": "page, 17 cm"}  # of attnviz.export.printed
FORMATS = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}
FITTING = (
    "A picture keeps to its sheet. What does not fit is set in smaller type, then long lines are cut (the file's "
    "description has them whole) and every second, third … token is named. In a PDF the rows of a map go on over "
    "several sheets where its columns have room for their names."
)


_OFFERED = "pictures on offer"  # in the session


class Picture:
    """A picture that is drawn once, when its file or its notes are first asked for: the browser asks for the file on
    another thread than that of the page."""

    def __init__(self, make: Callable, fmt: str, size: str, font: float | None, dark: bool):
        self._make, self._fmt, self._style = make, fmt, (size, font, dark)
        self._lock, self._sheet = threading.Lock(), None

    def sheet(self):
        """The `printed.Sheet` that `sheets.makers` draws."""
        from attnviz.export import printed

        with self._lock:
            if self._sheet is None:
                self._sheet = self._make(printed.Style(*self._style))
            return self._sheet

    def save(self) -> bytes:
        return self.sheet().save(self._fmt)


def show(current: CompareScene, cursor: Cursor) -> None:
    """A button that opens the choices, and a download for each picture."""
    with st.popover("Pictures for slides and papers", key="printed", on_change="rerun") as popover:
        if popover.open:
            _offer(current, cursor)
        else:
            st.session_state.pop(_OFFERED, None)


@address.fragment
def _offer(current: CompareScene, cursor: Cursor) -> None:
    """A picture is drawn when it is downloaded; what did not fit on it then stands below its button."""
    st.caption("With title, sentence, translation, mechanism and model. PDF and SVG keep text as text.")
    st.caption(FITTING)
    size = st.segmented_control(
        "Size", list(SIZES), default="page", format_func=SIZES.get, required=True, key="print_size"
    )
    fmt = st.segmented_control(
        "Format", list(FORMATS), default="pdf", format_func=str.upper, required=True, key="print_format"
    )
    font = st.number_input(
        "Font size in points", 4.0, 40.0, None, 1.0, key="print_font", placeholder="the default for this width"
    )
    dark = st.toggle("Dark background", key="print_dark")
    framed = st.toggle("Frame the row of the step", key="print_step")
    before, offered = st.session_state.get(_OFFERED, {}), {}
    for name, make in sheets.makers(current, cursor, framed).items():
        offered[name] = Picture(make, fmt, size, font, dark)
        pressed = st.download_button(
            f"{name}.{fmt}",
            offered[name].save,
            f"{figure_name(f'{name} {size}')}.{fmt}",
            FORMATS[fmt],
            key=f"print-{figure_name(name)}",
            type="tertiary",
        )
        if pressed and name in before:  # the browser has the button of the run before this one
            st.html(_notes(name, before[name].sheet().notes))
    st.session_state[_OFFERED] = offered


def _notes(name: str, notes: tuple[str, ...]) -> str:
    words = " ".join(notes) or "All of it fits, in the type that was chosen."
    return f'<p class="small" role="status">{html.escape(f"{name}: {words}")}</p>'
