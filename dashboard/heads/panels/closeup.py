"""One head, or the mean of a layer's heads: as a heatmap and as lines from token to token."""

import html

import streamlit as st

from attnviz import figures
from attnviz.figures.wording import row_sentence
from attnviz.select import Grid
from dashboard.browser.bridge import bridge
from dashboard.browser.plot import named, plots
from dashboard.choices.settings import head_title, number
from dashboard.heads.scene import COLUMNS, Gallery
from dashboard.markup import parts, tables

_MEAN = -1  # among the options of the head: a button group takes no None
_WHOLE = "whole_page"  # in the session while the whole page is run, not the fragment alone
_SAID = ("entropy_nats", "max_weight", "distance", "special_mass")


def show(current: Gallery, dark: bool) -> None:
    st.subheader("Close-up", divider="gray")
    st.session_state[_WHOLE] = True
    _opened(current, dark)


@st.fragment
def _opened(current: Gallery, dark: bool) -> None:
    """A fragment: another head is drawn without the overview. It holds the bridge, so a click on the overview runs this alone.

    Pictures come before the controls where these are known to say something: each control takes the browser some milliseconds.
    They are not when the whole page is run: the address may say something else, and controls alone read it.
    """
    controls, pictures = st.container(horizontal=True, gap="large"), st.container()
    known = None if st.session_state.pop(_WHOLE, False) else _known(current)
    if known:
        with pictures:
            _draw(current, *known, dark)
    with controls:
        layer, head = _which(current)
        row = _row(current.grid(layer, head))
    bridge(-1 if row is None else row, 1, _to_row, None if head is None else (layer, head), _to_head)
    if not known:
        with pictures:
            _draw(current, layer, head, row, dark)


def _draw(current: Gallery, layer: int, head: int | None, row: int | None, dark: bool) -> None:
    grid, name = current.grid(layer, head), f"layer {layer + 1} {'mean' if head is None else f'head {head + 1}'}"
    heatmap = named(
        figures.heatmap(grid, dark=dark, written=False, room=parts.HALF),
        f"heatmap {current.choice.kind} {name}",
        dark,
        rows=True,
    )
    lines = named(figures.token_lines([grid], row, dark=dark), f"lines {current.choice.kind} {name}", dark, rows=True)
    plots([(_measured(current, grid), heatmap), (_looks(grid, row, parts.lines(lines)), lines)], "closeup")
    if current.choice.tables:
        st.html(tables.grid_table(f"Weights of {name}", grid, current.choice.languages, grid.weights, ".2f"))


def _known(current: Gallery) -> tuple[int, int | None, int | None] | None:
    """Layer, head and row that the controls have, if all can be shown; None before there are controls, and for another model."""
    layer, head, row = (st.session_state.get(name) for name in ("layer", "head", "row"))
    if layer not in current.layers or head not in _heads(current, layer) or row is None:
        return None
    head = None if head == _MEAN else head
    return (layer, head, row - 1 if row else None) if row <= len(current.grid(layer, head).queries) else None


def _heads(current: Gallery, layer: int) -> list[int]:
    return [_MEAN, *range(current.beside(layer))]


def _which(current: Gallery) -> tuple[int, int | None]:
    """The layer and head on show; None for the mean of heads."""
    known = st.session_state  # what is there already needs no default: Streamlit warns of two
    common = {"required": True, "wrap": True, "bind": "query-params"}
    layer = st.segmented_control(
        "Layer",
        current.layers,
        default=None if known.get("layer") in current.layers else current.layers[-1],
        format_func=number,
        key="layer",
        **common,
    )
    heads = _heads(current, layer)
    head = st.segmented_control(
        "Head",
        heads,
        default=None if known.get("head") in heads else 0,
        key="head",
        format_func=lambda head: head_title(None if head == _MEAN else head),
        **common,
    )
    return layer, None if head == _MEAN else head


def _row(grid: Grid) -> int | None:
    """The query whose lines stand out, if one is chosen."""
    rows = len(grid.queries)
    st.session_state["row"] = min(max(int(st.session_state.get("row", _asked())), 0), rows)
    st.slider(f"Row (1 to {rows}; 0 for all)", 0, rows, key="row", bind="query-params")
    return st.session_state["row"] - 1 if st.session_state["row"] else None


def _asked() -> int:
    """The row of the link that opened the page."""
    try:
        return int(st.query_params.get("row", 0))
    except ValueError:
        return 0


def _to_row(row: int) -> None:
    """A second click on the row shows all again."""
    st.session_state["row"] = 0 if st.session_state.get("row") == row + 1 else row + 1


def _to_head(layer: int, head: int) -> None:
    st.session_state.update(layer=layer, head=head)


def _measured(current: Gallery, grid: Grid) -> str:
    """Statistics of the head, as in the table; of the mean of heads none: its statistics are not the mean of theirs."""
    hidden = parts.removed(grid)
    if grid.head is None:
        return f'<p class="what"><b>Layer {grid.layer + 1}</b>, the mean of its {current.beside(grid.layer)} heads{hidden and "; "}{hidden}.</p>'
    found = current.table[(current.table["layer"] == grid.layer) & (current.table["head"] == grid.head)].iloc[0]
    said = ", ".join(f"{COLUMNS[name][0].lower()}{COLUMNS[name][1:]} {found[name]:.2f}" for name in _SAID)
    as_computed = f" These are of all tokens; below, {hidden}." if hidden else ""
    return f'<p class="what"><b>Layer {grid.layer + 1}, head {grid.head + 1}</b>, means over the rows: {said}.{as_computed}</p>'


def _looks(grid: Grid, row: int | None, lines: str) -> str:
    if row is None:
        return f'<p class="what">{lines}; a click on the left keeps the row.</p>'
    return f'<p class="what">{html.escape(row_sentence(grid, row))}</p>'
