"""Pictures for slides and papers: true vectors in the size of the paper, light or dark whatever the page shows."""

import functools
from collections.abc import Callable

import streamlit as st

from attnviz.export.bundle import figure_name
from dashboard.compare import sheets
from dashboard.compare.scene import CompareScene
from dashboard.session.memory import Cursor

SIZES = {"slide": "slide 16:9", "column": "column, 8.5 cm", "page": "page, 17 cm"}  # of attnviz.export.printed
FORMATS = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}
FITTING = (
    "A picture keeps to its sheet. What does not fit is set in smaller type, then long lines are cut (the file's "
    "description has them whole) and every second, third … token is named. In a PDF the rows of a map go on over "
    "several sheets where its columns have room for their names."
)


def show(current: CompareScene, cursor: Cursor) -> None:
    """A button that opens the choices, and a download for each picture. A picture is drawn when it is downloaded."""
    with st.popover("Pictures for slides and papers", key="printed", on_change="rerun") as popover:
        if not popover.open:
            return
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
        for name, make in sheets.makers(current, cursor, framed).items():
            st.download_button(
                f"{name}.{fmt}",
                functools.partial(picture, make, fmt, size, font, dark),
                f"{figure_name(f'{name} {size}')}.{fmt}",
                FORMATS[fmt],
                on_click="ignore",
                key=f"print-{figure_name(name)}",
                type="tertiary",
            )


def picture(make: Callable, fmt: str, size: str, font: float | None, dark: bool) -> bytes:
    """What `sheets.makers` draws, as a file."""
    from attnviz.export import printed

    return make(printed.Style(size, font, dark)).save(fmt)
