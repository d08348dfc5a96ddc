"""Maps for slides and papers: true vectors in the size of the paper, light or dark whatever the page shows."""

import functools

import streamlit as st

from attnviz.export.bundle import figure_name
from dashboard.compare.scene import Column, CompareScene
from dashboard.session.memory import Cursor

SIZES = {"slide": "slide 16:9", "column": "column, 8.5 cm", "page": "page, 17 cm"}  # of attnviz.export.printed
FORMATS = {"pdf": "application/pdf", "svg": "image/svg+xml", "png": "image/png"}


def show(current: CompareScene, cursor: Cursor) -> None:
    """A button that opens the choices, and a download for each map. A picture is drawn when it is downloaded."""
    with st.popover("Map for a slide or a paper", key="printed", on_change="rerun") as popover:
        if not popover.open:
            return
        st.caption("With title, sentence, translation, mechanism and model. In PDF and SVG, text is text.")
        size = st.segmented_control(
            "Size", list(SIZES), default="page", format_func=SIZES.get, required=True, key="print_size"
        )
        fmt = st.segmented_control(
            "Format", list(FORMATS), default="pdf", format_func=str.upper, required=True, key="print_format"
        )
        font = st.number_input(
            "Font size in points", 4.0, 40.0, None, 1.0, key="print_font", placeholder="of the size chosen"
        )
        dark = st.toggle("Dark background", key="print_dark")
        framed = st.toggle("Frame the row of the step", key="print_step")
        for column in current.mapped:
            st.download_button(
                f"{column.title}.{fmt}",
                functools.partial(picture, column, fmt, size, font, dark, cursor if framed else None),
                f"{figure_name(f'attention {column.title} {size}')}.{fmt}",
                FORMATS[fmt],
                on_click="ignore",
                key=f"print-{column.mechanism}",
                type="tertiary",
            )


def picture(column: Column, fmt: str, size: str, font: float | None, dark: bool, framed: Cursor | None) -> bytes:
    """The map of a column as a file. framed : where the step is that is to be outlined, at the time of the download."""
    from attnviz.export import printed  # matplotlib takes half a second: only for those who print

    step = framed.step if framed and framed.step < len(column.grid.queries) else None
    links = column.links and column.links.cells
    return printed.picture(column.shown, column.grid, fmt, size, font=font, dark=dark, step=step, links=links)
