"""Two to four heads side by side, the statistics of every head, and the same heads of another model or text."""

from dataclasses import replace

import pandas as pd
import streamlit as st

from attnviz import figures, heads
from attnviz.export import heading
from attnviz.figures.wording import lines_words
from attnviz.heads import Head
from attnviz.select import Grid
from dashboard.browser.plot import Cell, named, plots
from dashboard.choices.options import kind_title, model_title
from dashboard.heads import scene, sources, syntax
from dashboard.heads.scene import COLUMNS, MOST, HeadsScene
from dashboard.markup import tables, terms
from dashboard.markup.text import escape, hatched, hatched_heads, in_language, markdown, reading, removed
from dashboard.session import address, caches, catalogue
from dashboard.shell import downloads
from dashboard.shell.problems import SceneError

_PLACES = {"layer": "Layer", "head": "Head"}
_MEANS = ("entropy_nats", "max_weight", "distance", "special_mass")
_ACROSS = 10  # numbers beside each other on a sheet of paper


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    st.subheader("Compare heads", divider="gray")
    chosen = _chosen(current)
    if len(chosen) < 2:
        alone = "There is only one map, so there is nothing to compare."
        words = "Choose at least two heads to compare them." if len(current.heads) > 1 else alone
        st.html(f'<p class="small" role="status">{words}</p>')
        return
    maps = {current.head_title(head): current.grid(head.layer, head.head) for head in chosen}
    grids = list(maps.values())
    least = figures.line_threshold(grids)
    saved = heading.of_trace("Lines of compared heads", current.shown)
    lines = named(figures.token_lines(grids, least=least, dark=dark), "lines of compared heads", dark, lines=saved)
    if st.toggle(
        "Show their mean too", key="mean", bind="query-params", help="Adds one map: the mean of the chosen heads."
    ):
        maps["mean of these heads"] = current.mean(chosen)
    plots([_map(current, name, grid, dark) for name, grid in maps.items()], "compared")
    left, right = st.columns(2, gap="large")
    with left:
        plots([(f'<p class="what">{lines_words(grids, least)}.</p>', lines)], "compared-lines")
    right.html(
        terms.line("Jensen–Shannon distance")
        + _distances(current, chosen)
        + terms.line("entropy", "effective positions", "Gini coefficient", "expected position")
        + _statistics(current, chosen)
    )
    if current.choices.tables:
        for name, grid in maps.items():
            st.html(tables.grid_table(f"Weights of {name}", grid, current.choices.languages))


def _chosen(current: HeadsScene) -> list[Head]:
    if len(current.heads) < 2:
        return []
    chosen = st.multiselect(
        f"Heads, 2 to {MOST}",
        current.heads,
        default=current.heads[:2],
        format_func=current.head_title,
        key="compare",
        bind="query-params",
        max_selections=MOST,
    )
    # the control keeps names, which lack the kind
    return [head._replace(kind=current.choices.kind) for head in chosen]


def _map(current: HeadsScene, name: str, grid: Grid, dark: bool) -> Cell:
    """A map under its name, with notes on hidden weight and on the mean, and its observations."""
    notes = [removed(grid), "Statistics of a mean are not the mean of the statistics" if grid.head is None else ""]
    words = "".join(f" {note}." for note in notes if note) + hatched(grid)
    note = f'<p class="what">{words.strip()}</p>' if words else ""
    figure = named(
        figures.heatmap(grid, dark=dark, written=False),
        f"heatmap {current.choices.kind} {name}",
        dark,
        lines=heading.of_map(current.shown, grid),
    )
    return Cell(f"<h4>{name.capitalize()}</h4>{note}", figure, reading(grid, current.choices.languages.unit))


def _distances(current: HeadsScene, chosen: list[Head]) -> str:
    frame = heads.distances(current.shown, chosen)
    names = [current.head_title(head) for head in chosen]
    caption = "Jensen–Shannon distance, mean over the rows: 0 for equal heads, 1 for heads that share no key"
    return tables.table(f"{caption} (all tokens)", names, tables.of_numbers(names, frame.to_numpy(), ".3f"))


def _statistics(current: HeadsScene, chosen: list[Head]) -> str:
    places = [(head.layer, head.head) for head in chosen]
    values = current.table.set_index(["layer", "head"]).loc[places, list(COLUMNS)].to_numpy().T
    rows = tables.of_numbers(COLUMNS.values(), values, ".3f")
    return tables.table("Means over the rows (all tokens)", [current.head_title(head) for head in chosen], rows)


@address.fragment
def show_table(current: HeadsScene) -> None:
    """The statistics of every head, which can be sorted and downloaded."""
    st.subheader("Statistics of every head", divider="gray")
    st.caption("Means over the rows of each map. Click a column name to sort.")
    along = syntax.columns(current) if current.choices.kind == "encoder" else pd.DataFrame()
    if len(along.columns):
        st.caption("The last columns are the share of right answers of the study of syntax, further down.")
    numbers = COLUMNS | {name: f"{name[0].upper()}{name[1:]}" for name in along}
    joined = current.table.join(along, on=["layer", "head"]) if len(along.columns) else current.table
    groups = [current.group(layer, head) for layer, head in zip(joined["layer"], joined["head"])]
    counted = joined[[name for name in (*_PLACES, *numbers) if name in joined]].rename(columns=_PLACES)
    counted = counted.assign(Layer=joined["layer"] + 1, Head=joined["head"] + 1)  # from 1, as everywhere on the page
    if any(groups):
        st.caption("Share keys: the heads of the layer that have the same keys and values.")
        counted.insert(2, "Share keys", groups)
    st.dataframe(
        counted,
        hide_index=True,
        key="heads_table",
        column_config={name: st.column_config.NumberColumn(title, format="%.3f") for name, title in numbers.items()},
        alt=f"Statistics and pattern scores of {len(current.table)} heads",
    )
    st.html(f'<div class="on-paper">{_printed(current, joined, numbers)}</div>')  # style.css
    file = f"heads-{current.choices.kind}.csv"
    downloads.csv_button("Table as CSV", lambda: current.table, file, key="heads_csv", note=downloads.HEADS_FROM_0)


def _printed(current: HeadsScene, frame: pd.DataFrame, numbers: dict[str, str]) -> str:
    """The statistics as plain tables, for paper. The table on the screen is a canvas, whose print has only the visible
    rows.

    numbers : columns and their titles."""
    columns = [name for name in numbers if name in frame]
    names = [current.head_title(Head(row.kind, row.layer, row.head)) for row in frame.itertuples()]
    parts = [columns[first : first + _ACROSS] for first in range(0, len(columns), _ACROSS)]
    return "".join(
        tables.table(
            f"Statistics of every head{f', part {place} of {len(parts)}' if len(parts) > 1 else ''}",
            [numbers[name] for name in part],
            tables.of_numbers(names, frame[part].to_numpy(), ".3f"),
        )
        for place, part in enumerate(parts, 1)
    )


@address.fragment
def show_other_model(current: HeadsScene, dark: bool) -> None:
    """The same heads of another model, or of the same model on another text, side by side."""
    st.subheader("Compare with another model or text", divider="gray")
    model, text = _other_controls()
    if not model:
        st.html(
            '<p class="small" role="status">Choose a model above. Choose the same model to compare two texts, or '
            "another model to compare models.</p>"
        )
        return
    source = sources.TrainedSource(model)
    choices = replace(current.choices, source=source, text=text.strip() or current.input, output="", writing=None)
    try:
        if choices.kind not in source.kinds:
            raise SceneError(f"{source.title} has no heads of this kind. Choose another kind of attention on the left.")
        other = scene.compose(choices, caches.measure)
    except SceneError as error:
        st.info(markdown(str(error)), icon=":material/info:")
        return
    plots([_other_overview(side, dark) for side in (current, other)], "beside")
    st.html(_means_table(current, other))


def _other_controls() -> tuple[str, str]:
    """The other model, "" for none, and its text, "" for the same."""
    with st.container(horizontal=True):
        model = st.selectbox(
            "Model to compare with",
            ["", *catalogue.many_headed()],
            format_func=lambda name: model_title(name) if name else "none",
            key="beside",
            bind="query-params",
        )
        text = st.text_input(
            "Its text", key="beside_text", bind="query-params", placeholder="empty: the same text", disabled=not model
        )
    return model, text


def _other_overview(side: HeadsScene, dark: bool) -> Cell:
    """All heads of the kind, under the model, its text and its output."""
    languages, kind = side.choices.languages, side.choices.kind
    output = f" → {in_language(side.target, languages.target)}" if side.target else ""
    hidden = hatched_heads(side.shown, kind)
    words = (
        f"<h4>{escape(side.name)}</h4>"
        f'<p class="what">{kind_title(kind)}. {in_language(side.text, languages.source)}{output}{hidden}</p>'
    )
    figure = figures.overview(side.shown, kind, root=side.choices.root, dark=dark)
    return words, named(figure, f"overview beside {side.name} {kind}", dark, lines=heading.of_heads(side.shown, kind))


def _means_table(*scenes: HeadsScene) -> str:
    """The mean of each statistic over all heads of the kind."""
    means = [[side.table[name].mean() for side in scenes] for name in _MEANS]
    rows = tables.of_numbers([COLUMNS[name] for name in _MEANS], means, ".3f")
    names = [f"{side.name}: {side.text}" if scenes[0].name == scenes[1].name else side.name for side in scenes]
    return tables.table("Mean over all heads, of their means over the rows", names, rows)
