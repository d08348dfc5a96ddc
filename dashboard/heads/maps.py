"""All heads of a kind as small maps, and the clicked head as a heatmap and as lines from token to token.

Of a text too long to keep all its weights, the clicked head is computed again, and read through a window that scrolls
and zooms."""

import functools

import numpy as np
import plotly.graph_objects as go
import streamlit as st

from attnviz import figures, heads, select
from attnviz.export import heading
from attnviz.figures.wording import lines_words, row_name, row_sentence
from attnviz.select import Grid
from attnviz.trace import AttentionMap
from dashboard.browser.plot import HALF, bridge, named, plots
from dashboard.choices.options import kind_title
from dashboard.heads import syntax, writing
from dashboard.heads.scene import COLUMNS, HeadsScene, LongScene
from dashboard.markup import tables
from dashboard.markup.text import escape, hatched, hatched_heads, reading, removed
from dashboard.session import address
from dashboard.shell import turns, widgets
from dashboard.shell.frame import slider_value

_WHOLE = "whole_page"  # in the session while the whole page is run, not the fragment alone
_LIT = "row of the token just written"  # in the session
_SIDES = (32, 64, 128)  # tokens of the window on a long text
_LISTED = 20  # its strongest links
LACKING = "This file holds what was reduced of a long text, and lacks the full maps: a head cannot be opened."
_NAMED = ("entropy_nats", "max_weight", "distance", "special_mass")


def show_all(current: HeadsScene, dark: bool) -> None:
    """Small maps; a click on one opens it below."""
    kind = kind_title(current.choices.kind)
    st.subheader(f"Every head: {kind[0].lower()}{kind[1:]}", divider="gray")
    plots([(_all_words(current), _all_figure(current, dark))], "overview")
    if current.choices.tables:
        st.html(all_table(current))


def _all_figure(current: HeadsScene, dark: bool) -> go.Figure:
    choices = current.choices
    figure = figures.overview(
        current.shown,
        choices.kind,
        current.table,
        choices.order or None,
        choices.color or None,
        root=choices.root,
        row=current.written_row,
        dark=dark,
    )
    lines = heading.of_heads(current.shown, choices.kind)
    return named(figure, f"overview {choices.kind}", dark, heads=True, lines=lines)


def _all_words(current: HeadsScene) -> str:
    order = COLUMNS.get(current.choices.order, "")
    sorted_ = (
        f" Sorted by {escape(order[0].lower() + order[1:])}, highest first. Above each map: layer·head."
        if order
        else ""
    )
    groups = list(dict.fromkeys(filter(None, (current.group(head.layer, head.head) for head in current.heads))))
    grouped = f" Heads that share keys and values: {', '.join(groups)}." if groups else ""
    hidden = hatched_heads(current.shown, current.choices.kind)
    return (
        '<p class="small">In each map, rows are queries and columns are keys. A stronger colour means more '
        f"weight. Click a map to open the head below.{sorted_}{grouped}{hidden}</p>"
    )


def all_table(current: HeadsScene) -> str:
    """The text equivalent: the numbers that sort and colour the heads; else three statistics."""
    chosen = [name for name in dict.fromkeys((current.choices.order, current.choices.color)) if name]
    chosen = chosen or ["entropy_nats", "max_weight", "distance"]
    rows = tables.of_numbers(map(current.head_title, current.heads), current.table[chosen].to_numpy(), ".3f")
    return tables.table("Every head: mean over the rows of its map", [COLUMNS[name] for name in chosen], rows)


def show_closeup(current: HeadsScene, dark: bool) -> None:
    """One head, or the mean of the heads of a layer."""
    st.subheader("Close-up", divider="gray")
    st.session_state[_WHOLE] = True
    _light_written(current)
    _opened(current, dark)


def _light_written(current: HeadsScene) -> None:
    """Choose the row of the token that was just written; a row chosen by the visitor or a link is kept until the next
    token."""
    anew = _LIT not in st.session_state or address.came_back()
    row, before = current.written_row, 0 if anew else st.session_state[_LIT]
    linked = anew and "row" in st.query_params
    st.session_state[_LIT] = row
    if row not in (None, before) and not linked:
        tokens = current.grid(current.layers[0], None).queries  # without <eos> where special tokens are hidden
        lit = min(row + 1, len(tokens))
        address.put("row", lit, str(lit))


@address.fragment
def _opened(current: HeadsScene, dark: bool) -> None:
    """The open head, as a fragment, so that another head is drawn without the overview. It contains the bridge, so a
    click on the overview reruns only this. If the session has the values of the controls, the pictures are drawn first,
    because each control takes the browser some milliseconds.

    In a run of the whole page the controls come first, because only they read the address.
    """
    controls, pictures = st.container(horizontal=True, gap="large"), st.container()
    chosen = None if st.session_state.pop(_WHOLE, False) else _session_choice(current)
    if chosen:
        with pictures:
            _draw(current, *chosen, dark)
    with controls:
        layer, head = _head_controls(current)
        row = _row(current.grid(layer, head), current.written_row is not None)
    bridge(-1 if row is None else row, 1, _to_row, None if head is None else (layer, head), _to_head)
    if not chosen:
        with pictures:
            _draw(current, layer, head, row, dark)


def _draw(current: HeadsScene, layer: int, head: int | None, row: int | None, dark: bool) -> None:
    grid, choices = current.grid(layer, head), current.choices
    name = f"layer {layer + 1} {'mean' if head is None or current.is_mean(layer) else f'head {head + 1}'}"
    least = figures.line_threshold([grid])
    heatmap = figures.heatmap(grid, dark=dark, written=False, room=HALF)
    lines = figures.token_lines([grid], row, least=least, dark=dark)
    saved = heading.of_map(current.shown, grid)
    cells = [
        (
            _measured(current, grid),
            named(heatmap, f"heatmap {choices.kind} {name}", dark, rows=True, lines=saved),
            reading(grid, choices.languages.unit),
        ),
        (_looks(grid, row, least), named(lines, f"lines {choices.kind} {name}", dark, rows=True, lines=saved)),
    ]
    if over := syntax.arcs(current, layer, head, dark):
        plots(over, "dependencies")
    plots(cells, "closeup")
    if choices.tables:
        st.html(tables.grid_table(f"Weights of {name}", grid, choices.languages))
    with turns.errors_shown():
        _draw_other_way(current, layer, head, name, dark)


def _draw_other_way(current: HeadsScene, layer: int, head: int | None, name: str, dark: bool) -> None:
    """The same head on the text without the last choice, if the visitor chose a token."""
    other = writing.other_way(current)
    if other is None:
        return
    shown = select.words(other) if current.choices.words else other
    grid = select.select(shown, current.choices.kind, layer, head, special=current.choices.special)
    least = figures.line_threshold([grid])
    saved = heading.of_map(shown, grid)
    pictures = (
        (figures.heatmap(grid, dark=dark, written=False, room=HALF), f"heatmap {name} without your choice"),
        (figures.token_lines([grid], least=least, dark=dark), f"lines {name} without your choice"),
    )
    words = (
        '<p class="what"><b>Without your choice</b>, the same head.</p>',
        f'<p class="what">{lines_words([grid], least)}.</p>',
    )
    plots([(text, named(figure, title, dark, lines=saved)) for text, (figure, title) in zip(words, pictures)], "other")
    if current.choices.tables:
        caption = f"Weights of {name}, without your choice"
        st.html(tables.grid_table(caption, grid, current.choices.languages))


def _session_choice(current: HeadsScene) -> tuple[int, int | None, int | None] | None:
    """Layer, head and row of the session, if all can be shown; None in a first run, and for another model."""
    layer, head, row = (st.session_state.get(name) for name in ("layer", "head", "row"))
    if layer not in current.layers or head not in widgets.head_options(current.head_count(layer)) or row is None:
        return None
    head = widgets.head_of(head)
    return (layer, head, row - 1 if row else None) if row <= len(current.grid(layer, head).queries) else None


def _head_controls(current: HeadsScene) -> tuple[int, int | None]:
    """The shown layer and head; None for the mean of heads."""
    layer = widgets.layer(current.layers, current.layers[-1], wrap=True)
    if current.is_mean(layer):
        return layer, 0
    return layer, widgets.head(current.head_count(layer), 0, wrap=True)


def _row(grid: Grid, lit: bool) -> int | None:
    """The query whose lines are highlighted, if one is chosen. lit : does a new visit choose one? Then the address says
    that none is chosen."""
    rows = len(grid.queries)
    slider_value("row", 0, rows)
    st.slider(f"{row_name(grid).capitalize()} (1 to {rows}; 0 for all)", 0, rows, key="row", bind="query-params")
    address.not_also("row")
    if st.session_state["row"]:
        return st.session_state["row"] - 1
    address.also("row", lambda held: "0" if lit else None)
    return None


def _to_row(row: int) -> None:
    """Highlight a row; a second click on it shows all again."""
    st.session_state["row"] = 0 if st.session_state.get("row") == row + 1 else row + 1


def _to_head(layer: int, head: int) -> None:
    st.session_state.update(layer=layer, head=head)


def _measured(current: HeadsScene, grid: Grid) -> str:
    """Statistics of the head, as in the table.

    A mean of heads has none, because they would not be the mean of the heads' statistics.
    """
    hidden = removed(grid)
    mean = current.is_mean(grid.layer)
    if grid.head is None and not mean:
        words = ". ".join(filter(None, (f"mean of its {current.head_count(grid.layer)} heads", hidden)))
        return f'<p class="what"><b>Layer {grid.layer + 1}</b>, {words}.{hatched(grid)}</p>'
    table = current.table
    row = table[(table["layer"] == grid.layer) & (table["head"] == (grid.head or 0))].iloc[0]
    numbers = ", ".join(f"{COLUMNS[name][0].lower()}{COLUMNS[name][1:]} {row[name]:.2f}" for name in _NAMED)
    note = f" These numbers include all tokens. In the map: {hidden[0].lower()}{hidden[1:]}." if hidden else ""
    of = "mean of heads" if mean else f"head {grid.head + 1}"
    if group := "" if mean else current.group(grid.layer, grid.head):
        of += f" (heads {group} share keys and values)"
    return (
        f'<p class="what"><b>Layer {grid.layer + 1}, {of}</b>, means over the rows: {numbers}.{note}{hatched(grid)}</p>'
    )


def _looks(grid: Grid, row: int | None, least: float) -> str:
    if row is None:
        return f'<p class="what">{lines_words([grid], least)}. Click a token on the left to keep its row.</p>'
    return f'<p class="what">{escape(row_sentence(grid, row))}</p>'


def show_long(current: LongScene, dark: bool) -> None:
    count = len(current.tokens)
    st.html(
        f'<p class="what" role="status">A long text: {count:,} tokens. Not all weights are kept: each layer was '
        "reduced to what this page shows while it was computed. The statistics are exact. A long text is only read, "
        "not written on.</p>"
    )
    st.subheader(f"Every head of {count:,} tokens", divider="gray")
    choices = current.choices
    figure = figures.overview_of_pooled(
        current.reduced.pooled,
        current.reduced.kind,
        count,
        current.table,
        choices.order or None,
        choices.color or None,
        root=choices.root,
        dark=dark,
    )
    lines = heading.of_heads(current.trace, current.reduced.kind)
    words = '<p class="small">Each cell is the largest weight of its block of tokens. Click a map to open the head.</p>'
    plots([(words, named(figure, "overview of a long text", dark, heads=True, lines=lines))], "overview")
    if choices.tables:
        st.html(all_table(current))
    _opened_long(current, dark)


@address.fragment
def _opened_long(current: LongScene, dark: bool) -> None:
    st.subheader("Close-up", divider="gray")
    with st.container(horizontal=True, gap="large"):
        layer = widgets.layer(current.layers, current.layers[-1], wrap=True)
        head = widgets.head(current.head_count(layer), 0, wrap=True)
    if head is None:
        bridge(-1, 1, None, None, _to_head)
        st.html('<p class="what" role="status">The mean of heads is not kept of a long text. Choose a head.</p>')
        return
    with turns.errors_shown():
        _open_long(current, layer, head, dark)


def _open_long(current: LongScene, layer: int, head: int, dark: bool) -> None:
    opened = current.choices.source.opened(current.text, layer, head)
    if opened is None:
        bridge(-1, 1, None, (layer, head), _to_head)
        st.html(f'<p class="what" role="status">{LACKING}</p>')
        return
    whole, name = current.whole(opened), f"layer {layer + 1} head {head + 1}"
    every = -(-len(current.tokens) // len(whole.queries))
    bridge(-1, 1, functools.partial(_to_block, whole.weights, every), (layer, head), _to_head)
    row, column, side = _window(len(current.tokens))
    window = current.window(opened, row, column, side)
    words = (
        f"The whole head, {every} by {every} tokens a cell. Click a row to go to its largest weight.",
        f"Rows from token {row + 1}, columns from token {column + 1}. Point at a cell for its exact weight.",
    )
    overview = figures.heatmap(whole, dark=dark, written=False, room=HALF)
    exact = figures.heatmap(window, dark=dark, room=HALF, first=(row, column))
    figures_of = (named(overview, f"whole {name}", dark, rows=True), named(exact, f"part of {name}", dark))
    plots([(f'<p class="what">{text}</p>', figure) for text, figure in zip(words, figures_of)], "closeup")
    st.html(_strongest(current, opened, name))
    if current.choices.tables:
        st.html(tables.grid_table(f"Weights of {name}", window, current.choices.languages, ".4f"))


def _window(count: int) -> tuple[int, int, int]:
    """The controls of the window -> its first row and column, from 0, and the number of tokens a side."""
    with st.container(horizontal=True, gap="large"):
        side = st.segmented_control(
            "Tokens a side", _SIDES, default=_SIDES[1], required=True, key="zoom", bind="query-params"
        )
        last = max(1, count - side + 1)
        for key in ("rows_from", "columns_from"):
            slider_value(key, 1, last)
        row = st.slider("Rows from token", 1, last, key="rows_from", bind="query-params")
        column = st.slider("Columns from token", 1, last, key="columns_from", bind="query-params")
    return row - 1, column - 1, side


def _to_block(weights: np.ndarray, every: int, row: int) -> None:
    """A row of the whole head was clicked: the window goes to its largest weight."""
    column = int(np.nan_to_num(weights[row]).argmax())
    st.session_state.update(rows_from=row * every + 1, columns_from=column * every + 1)


def _strongest(current: LongScene, opened: AttentionMap, name: str) -> str:
    """The largest weights of the whole head, HTML."""
    links = heads.strongest(opened.weights[0], current.trace.visible(opened), _LISTED)
    names = tables.numbered(current.tokens)
    rows = [(names[link.query], [names[link.key], f"{link.weight:.4f}"]) for link in links.itertuples()]
    caption = f"The strongest links of {escape(name)}: from the token that looks, to the token that it looks at"
    return tables.table(caption, ["looks at", "weight"], rows, ("", "en"))
