"""Two to four heads beside each other, how far they are from one another, and the numbers of every head."""

import pandas as pd
import streamlit as st

from attnviz import figures, heads
from attnviz.heads import Head
from attnviz.select import Grid
from dashboard.browser.plot import Cell, named, plots
from dashboard.heads.scene import COLUMNS, MOST, Gallery, head_name
from dashboard.markup import parts, tables

_NAMES = {"layer": "Layer", "head": "Head"} | COLUMNS


@st.fragment
def show(current: Gallery, dark: bool) -> None:
    st.subheader("Heads compared", divider="gray")
    chosen = st.multiselect(
        f"Heads, 2 to {MOST}",
        current.heads,
        default=current.heads[:2],
        format_func=head_name,
        key="compare",
        bind="query-params",
        max_selections=MOST,
    )
    chosen = [
        head._replace(kind=current.choice.kind) for head in chosen
    ]  # their names, which are what is kept, have none
    if len(chosen) < 2:
        st.html('<p class="small" role="status">Choose at least two heads to compare them.</p>')
        return
    maps = {head_name(head): current.grid(head.layer, head.head) for head in chosen}
    lines = named(figures.token_lines(list(maps.values()), dark=dark), "lines of heads compared", dark)
    if st.toggle("And their mean", key="mean", bind="query-params", help="The mean of the chosen heads, as one map."):
        maps["their mean"] = current.mean(chosen)
    plots([_map(current, name, grid, dark) for name, grid in maps.items()], "compared")
    left, right = st.columns(2, gap="large")
    with left:
        plots([(f'<p class="what">{parts.lines(lines)}.</p>', lines)], "compared-lines")
    right.html(_distances(current, chosen) + _statistics(current, chosen))
    if current.choice.tables:
        for name, grid in maps.items():
            st.html(tables.grid_table(f"Weights of {name}", grid, current.choice.languages, grid.weights, ".2f"))


def _map(current: Gallery, name: str, grid: Grid, dark: bool) -> Cell:
    """A map under its name; hidden weight is said, and what a mean is not."""
    said = [parts.removed(grid), "its statistics would not be the mean of theirs" if grid.head is None else ""]
    note = f'<p class="what">{"; ".join(filter(None, said)).capitalize()}.</p>' if any(said) else ""
    return f"<h4>{name.capitalize()}</h4>{note}", named(
        figures.heatmap(grid, dark=dark, written=False), f"heatmap {current.choice.kind} {name}", dark
    )


def _distances(current: Gallery, chosen: list[Head]) -> str:
    found = heads.distances(current.shown, chosen)
    names = [head_name(head) for head in chosen]
    rows = [(name, [tables.cell(value, ".3f") for value in row]) for name, row in zip(names, found.to_numpy())]
    return tables.table(
        "Jensen–Shannon distance, mean over the rows: 0 for equal heads, 1 for heads that share no key; of all tokens",
        names,
        rows,
    )


def _statistics(current: Gallery, chosen: list[Head]) -> str:
    frame = current.table.set_index(["layer", "head"])
    rows = [
        (title, [tables.cell(frame.loc[(head.layer, head.head), name], ".3f") for head in chosen])
        for name, title in COLUMNS.items()
    ]
    return tables.table("Means over the rows, of all tokens", [head_name(head) for head in chosen], rows)


@st.fragment
def table(current: Gallery) -> None:
    """Every head and every number, to be sorted and taken away."""
    st.subheader("Every head in numbers", divider="gray")
    st.caption("Means over the rows of each map; a click on a column's name sorts by it.")
    st.dataframe(
        _counted(current.table),
        hide_index=True,
        key="heads_table",
        column_config={name: st.column_config.NumberColumn(title, format="%.3f") for name, title in COLUMNS.items()},
        alt=f"Statistics and pattern scores of {len(current.table)} heads",
    )
    st.download_button(
        "All of it as CSV",
        lambda: current.table.to_csv(index=False).encode(),
        f"heads-{current.choice.kind}.csv",
        "text/csv",
        on_click="ignore",
        key="heads_csv",
        help="Layers and heads are counted from 0 there, as in Python.",
    )


def _counted(frame: pd.DataFrame) -> pd.DataFrame:
    """Layers and heads from 1, as everywhere on the page."""
    shown = frame[[name for name in _NAMES if name in frame]].assign(layer=frame["layer"] + 1, head=frame["head"] + 1)
    return shown.rename(columns={name: _NAMES[name] for name in ("layer", "head")})
