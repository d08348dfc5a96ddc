"""Syntax: how often each head attends along a relation between words, measured on parsed sentences; and the arcs of a
sentence with known dependencies."""

import pandas as pd
import streamlit as st

from attnviz import figures, select, syntax
from attnviz.export import heading
from attnviz.figures.arcs import dependency_arcs
from attnviz.heads import Head
from attnviz.models import checkpoint_values
from attnviz.syntax import DIRECTIONS, RELATIONS, TO_GOVERNOR
from dashboard.browser.plot import Cell, named, plots
from dashboard.heads.scene import HeadsScene
from dashboard.heads.sources import TrainedSource
from dashboard.markup import tables
from dashboard.session import address, caches
from dashboard.shell import frame

_SHOWN = 5  # best heads
_NUMBERS = ("layer", "head", "right", "count", "share", "offset", "baseline")


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    """Show the panel; only for attention from source to source, because the parsed sentences are sources."""
    if not _reads_itself(current):
        return
    st.subheader("Syntax", divider="gray")
    measured = study_rows(current)
    if measured.empty:
        st.html(
            '<p class="small" role="status">This model has not been measured on the parsed sentences. In Python, '
            "<code>syntax.table(model.trace(text) for text in syntax.shipped())</code> measures any model that "
            "reads English.</p>"
        )
        return
    left, right = st.columns([2, 3], gap="large")
    with left:
        label = st.selectbox(
            "Relation",
            list(RELATIONS),
            format_func=lambda name: RELATIONS[name].title,
            key="relation",
            bind="query-params",
        )
        ways = list(DIRECTIONS)
        frame.keep_place("direction", ways, [question(label, way) for way in ways])
        direction = st.selectbox(
            "From", ways, format_func=lambda way: question(label, way), key="direction", bind="query-params"
        )
        rows = measured[(measured["relation"] == label) & (measured["direction"] == direction)]
        st.html(_words(label, direction, rows) + _best(rows))
    with right:
        figure = figures.head_map(rows, "share", dark=dark, span=(0, 1))
        plots([("", named(figure, f"syntax {label} {direction}", dark, heads=True))], "syntax")
    if current.choices.tables:
        st.html(_all_heads(measured))


def arcs(current: HeadsScene, layer: int, head: int | None, dark: bool) -> list[Cell]:
    """The dependencies of the sentence over the map of one head, if they are known."""
    if (
        head is None
        or not _reads_itself(current)
        or (parse := caches.parse(current.text, current.choices.languages)) is None
    ):
        return []
    looks = syntax.looks(current.trace, parse, current.choices.kind, layer)[head]
    name = select.map_title(layer, head)
    words = (
        '<p class="what">Dependencies of the sentence. A solid arc: one of its two words looks most at the other, '
        "where the arrow points. Special tokens are left out.</p>"
    )
    saved = heading.of_trace(f"Dependencies, {name}", current.trace)
    figure = dependency_arcs(parse, looks, name, dark=dark)
    return [Cell(words, named(figure, f"dependencies {name}", dark, lines=saved))]


def study_rows(current: HeadsScene) -> pd.DataFrame:
    """The rows of the study for this model; none if it was not measured with these weights."""
    source = current.choices.source
    results = caches.study("syntax")
    models = {model.get("weights_sha256") for model in results.get("models", ())}
    measured = isinstance(source, TrainedSource) and caches.fingerprint(source.name) in models
    return rows_of_model(results if measured else {}, source.name)


def columns(current: HeadsScene) -> pd.DataFrame:
    """The share of right answers of each head: a column for each question, such as “the subject to its verb”."""
    rows = study_rows(current)
    rows = rows.assign(question=[question(*pair) for pair in zip(rows["relation"], rows["direction"])])
    return rows.pivot(index=["layer", "head"], columns="question", values="share")[
        list(dict.fromkeys(rows["question"]))
    ]


def _reads_itself(current: HeadsScene) -> bool:
    kind = current.choices.kind
    return kind == "encoder" or (kind == "decoder" and not current.trace.target)


def _words(label: str, direction: str, rows: pd.DataFrame) -> str:
    first = rows.iloc[0]
    return (
        '<p class="what">How often the word that a head weighs most is the right one, from '
        f"{question(label, direction)}: {first['count']} questions in the parsed "
        f"sentences, whatever is typed above. The best fixed offset, {_offset(first['offset'])}, answers "
        f"{first['baseline']:.0%}. A head near that may follow the position and not the syntax.</p>"
    )


def _offset(words: int) -> str:
    """`the next word`, `2 words before`."""
    if abs(words) == 1:
        return "the next word" if words > 0 else "the word before"
    return f"{abs(words)} words {'after' if words > 0 else 'before'}"


def _best(rows: pd.DataFrame) -> str:
    best = rows.sort_values("share", ascending=False, kind="stable").head(_SHOWN)
    lines = [
        (Head(row.kind, row.layer, row.head).title, [f"{row.share:.0%}", f"{row.baseline:.0%}"])
        for row in best.itertuples()
    ]
    return tables.table("Heads that look along it most", ["right", "best fixed offset"], lines)


def _all_heads(rows: pd.DataFrame) -> str:
    """The text equivalent: the share of each head for each question."""
    pairs = list(dict.fromkeys(zip(rows["relation"], rows["direction"])))
    shares = rows.set_index(["layer", "head", "relation", "direction"])["share"]
    places = list(dict.fromkeys(zip(rows["layer"], rows["head"])))
    lines = [(Head("encoder", *place).title, [f"{shares[(*place, *pair)]:.0%}" for pair in pairs]) for place in places]
    baseline = rows.drop_duplicates(["relation", "direction"])["baseline"]
    lines.append(("best fixed offset", [f"{value:.0%}" for value in baseline]))
    return tables.table("Share of right answers of every head", [question(*pair) for pair in pairs], lines)


def question(label: str, direction: str) -> str:
    """`the subject to its verb`, or `the verb to the subject`."""
    relation = RELATIONS[label]
    ends = relation.dependant, relation.governor
    return " to ".join(ends) if direction == TO_GOVERNOR else f"{ends[1].replace('its', 'the')} to {ends[0]}"


def rows_of_model(study: dict, model: str) -> pd.DataFrame:
    """The rows of a stored study for one model, in the columns of `syntax.table`; those that cannot be read are left
    out."""
    whole = [
        {**row, "kind": "encoder"}
        for row in study.get("rows", ())
        if row.get("model") == model
        and row.get("relation") in RELATIONS
        and row.get("direction") in DIRECTIONS
        and checkpoint_values.numbers(row, *_NUMBERS)
    ]
    return pd.DataFrame(whole, columns=list(syntax.COLUMNS))
