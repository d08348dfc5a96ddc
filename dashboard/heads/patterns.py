"""Finding heads: by a pattern, given as a formula and in words; by similarity to a head; and by a token."""

from collections.abc import Sequence
from urllib.parse import urlencode

import pandas as pd
import streamlit as st

from attnviz import figures, heads, patterns
from attnviz.figures import labels
from attnviz.heads import Head
from attnviz.patterns import PATTERNS
from attnviz.trace import Token
from attnviz.trace.visible import visible
from dashboard.browser.plot import named, plots
from dashboard.choices.options import head_title, place_title
from dashboard.heads.scene import HeadsScene
from dashboard.markup import tables
from dashboard.markup.text import escape
from dashboard.session import address, caches

_SHOWN = 5  # most similar heads
_FOUND = 8  # heads of a token


@address.fragment
def show(current: HeadsScene, dark: bool) -> None:
    st.subheader("Patterns", divider="gray")
    like = st.selectbox(
        "Find the heads most similar to",
        [*PATTERNS, *current.heads],
        format_func=lambda option: _name(current, option),
        key="pattern",
        bind="query-params",
        help="Choose a pattern, or a head of this model. For a head, similar heads are those with the smallest "
        "distance between the weights.",
    )
    left, right = st.columns([2, 3], gap="large")
    frame, column = (
        (current.table, like)
        if like in PATTERNS
        else (caches.nearest(current.choices, current.shown, like), "jensen_shannon")
    )
    with left:
        _pattern(current, like) if like in PATTERNS else _head(current, like, frame)
    with right:
        if frame[column].notna().any():
            figure = figures.head_map(frame, column, dark=dark, span=(0, float(frame[column].max()) or 1))
            plots([("", named(figure, f"{_name(current, like)} {current.choices.kind}", dark, heads=True))], "pattern")
    if current.choices.tables:
        st.html(
            _scores(current)
            if like in PATTERNS
            else _ranked(current, frame, column, f"Distance of every head from {_name(current, like)}", "0 to 1")
        )


@address.fragment
def show_search(current: HeadsScene, dark: bool) -> None:
    """The heads that give a token most weight, and those in which it looks most at one token, with links that open
    them."""
    st.subheader("Find a token", divider="gray")
    m = current.shown.map(current.choices.kind)
    shown = dict.fromkeys(token.text for token in (*current.shown.keys(m), *current.shown.queries(m)))
    token = st.selectbox(
        "Token",
        [text for text in shown if text.strip()],
        index=None,
        format_func=visible,
        key="find",
        bind="query-params",
        placeholder="type or click one",
        help="All heads of this kind are searched, at every place of the token.",
    )
    if token is None:
        st.html('<p class="small" role="status">Choose a token: the heads that look at it most are listed here.</p>')
        return
    by_weight = heads.search(current.shown, token, current.choices.kind)
    left, right = st.columns(2, gap="large")
    for column, way, caption in (
        (left, "gets", f"Heads that give “{visible(token)}” most weight"),
        (right, "gives", f"Heads in which “{visible(token)}” looks most at one token"),
    ):
        rows = list(by_weight[by_weight["way"] == way].head(_FOUND).itertuples())
        if rows:
            others = current.shown.queries(m) if way == "gets" else current.shown.keys(m)
            column.html(_search_table(current, rows, way, caption, labels.shown(others)))


def _search_table(current: HeadsScene, rows: list, way: str, caption: str, others: list[str]) -> str:
    """others : the tokens on the other side of the map, as they are shown."""
    columns = ["weight", "from", "mean of all rows"] if way == "gets" else ["weight", "at"]
    cells = [
        (
            current.head_title(Head(row.kind, row.layer, row.head)),
            [tables.cell(row.weight, ".2f"), f"{others[row.other]} ({row.other + 1})", tables.cell(row.mean, ".2f")][
                : len(columns)
            ],
        )
        for row in rows
    ]
    held = {key: st.query_params.get_all(key) for key in st.query_params}
    links = [
        "heads?" + urlencode(held | {"layer": place_title(row.layer), "head": head_title(row.head)}, doseq=True)
        for row in rows
    ]
    return tables.table(caption, columns, cells, links=links)


def _name(current: HeadsScene, like: str | Head) -> str:
    return current.head_title(like) if isinstance(like, Head) else PATTERNS[like].title


def _pattern(current: HeadsScene, name: str) -> None:
    pattern = PATTERNS[name]
    st.html(f'<p class="what">A head with this pattern looks at {escape(pattern.words)}.</p>')
    st.markdown(r"$\mathrm{score} = \frac{1}{Q} \sum_q \sum_k \min(a_{qk}, u_{qk})$")
    st.markdown(f"${pattern.formula}$")
    best = heads.most_like(current.table, name, _SHOWN)
    if best.empty:
        st.html('<p class="small" role="status">No head can follow this pattern in this sentence.</p>')
    else:
        st.html(
            _ranked(current, best, name, "Most similar heads", "score, 0 to 1")
            + _chance(current, name)
            + _examples(current, name, Head(*best.iloc[0][["kind", "layer", "head"]]))
        )
    if current.choices.writing:
        clicked = st.button(
            "Read random words twice",
            key="repeated",
            on_click=st.session_state.update,
            kwargs={"text": patterns.repeated(), "written": 0, "way": "", "pattern": "induction"},
            help="Only the first copy says how the second goes on, so an induction head shows here.",
        )
        if clicked and address.runs_alone():
            st.rerun()  # the text stands above this panel


def _examples(current: HeadsScene, name: str, head: Head) -> str:
    """Examples of the pattern in the most similar head."""
    trace = current.shown
    attention = trace.map(head.kind, head.layer)
    view = patterns.layout(trace, attention)
    listed = patterns.examples(attention.weights[head.head], patterns.ceiling(PATTERNS[name], view), _SHOWN)
    rows = [
        (_in_context(view.queries, query), [_in_context(view.keys, key), tables.cell(weight, ".2f")])
        for query, key, weight in listed
    ]
    return (
        tables.table(f"Where {current.head_title(head)} follows it most", ["looks at", "weight"], rows) if rows else ""
    )


def _in_context(tokens: Sequence[Token], place: int) -> str:
    """`Mrs . [App]`: a token after the two before it, and its place from 1."""
    *before, token = labels.shown(tokens)[max(0, place - 2) : place + 1]
    return f"{place + 1}: {' '.join(before)} [{token}]"


def _head(current: HeadsScene, head: Head, nearest: pd.DataFrame) -> None:
    st.html(
        '<p class="what">Jensen–Shannon distance between the rows of two heads: 0 for equal heads, 1 for heads that '
        "share no key.</p>"
    )
    st.markdown(
        r"$d = \frac{1}{Q} \sum_q \sqrt{H\!\left(\tfrac{a_q + b_q}{2}\right) - \tfrac{1}{2} H(a_q) - \tfrac{1}{2} "
        r"H(b_q)}$, $H$ in bits"
    )
    if nearest.empty:
        st.html('<p class="small" role="status">The model has no other head of this kind.</p>')
    else:
        caption = f"Heads most similar to {current.head_title(head)}"
        st.html(_ranked(current, nearest.head(_SHOWN), "jensen_shannon", caption, "distance, 0 to 1"))


def _ranked(current: HeadsScene, frame: pd.DataFrame, column: str, caption: str, unit: str) -> str:
    names = [current.head_title(Head(row.kind, row.layer, row.head)) for row in frame.itertuples()]
    return tables.table(caption, [unit], tables.of_numbers(names, frame[[column]].to_numpy(), ".3f"))


def _chance(current: HeadsScene, name: str) -> str:
    chance = patterns.chance(current.shown, current.choices.kind, [PATTERNS[name]])[name]
    return f'<p class="small">Uniform attention scores {tables.cell(chance, ".3f")} in this sentence.</p>'


def _scores(current: HeadsScene) -> str:
    """The text equivalent: the score of each head for each pattern."""
    rows = tables.of_numbers(map(current.head_title, current.heads), current.table[list(PATTERNS)].to_numpy(), ".2f")
    return tables.table("Pattern scores of every head", [pattern.title for pattern in PATTERNS.values()], rows)
