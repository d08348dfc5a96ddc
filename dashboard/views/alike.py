"""Patterns: what each is, in a formula and in words, how much of it every head has, and the heads most like it."""

import html

import pandas as pd
import streamlit as st

from attnviz import figures, heads, patterns
from attnviz.patterns import PATTERNS
from dashboard.gallery import Gallery, head_name
from dashboard.plot import named, plots
from dashboard.views import parts

_SHOWN = 5  # heads most like a pattern


@st.fragment
def show(current: Gallery, dark: bool) -> None:
    st.subheader("Patterns", divider="gray")
    name = st.selectbox(
        "Show the heads most like", list(PATTERNS), format_func=lambda name: PATTERNS[name].title, key="pattern", bind="query-params"
    )
    pattern = PATTERNS[name]
    left, right = st.columns([2, 3], gap="large")
    with left:
        st.html(f'<p class="what">Looks at {html.escape(pattern.words)}.</p>')
        st.markdown(rf"$\mathrm{{score}} = \frac{{1}}{{Q}} \sum_q \sum_k \min(a_{{qk}}, u_{{qk}}), \quad {pattern.formula}$")
        best = heads.most_like(current.table, name, _SHOWN)
        st.html(_ranked(best, name) + _chance(current, name))
    with right:
        if current.table[name].notna().any():
            figure = figures.head_map(current.table, name, dark=dark)
            plots([("", named(figure, f"{pattern.title} {current.choice.kind}", dark, heads=True))], "pattern")
    if current.choice.tables:
        st.html(_scores(current))


def _ranked(best: pd.DataFrame, name: str) -> str:
    if best.empty:
        return '<p class="small" role="status">No head could follow this pattern in this sentence: nothing in it fits.</p>'
    rows = [(head_name(heads.Head(row.kind, row.layer, row.head)), [parts.cell(getattr(row, name), ".3f")])
            for row in best.itertuples()]  # fmt: skip
    return parts.table("The heads most like it", ["score, 0 to 1"], rows)


def _chance(current: Gallery, name: str) -> str:
    chance = patterns.chance(current.shown, current.choice.kind, [PATTERNS[name]])[name]
    return f'<p class="small">Uniform attention would score {parts.cell(chance, ".3f")} in this sentence.</p>'


def _scores(current: Gallery) -> str:
    """The text equivalent: every head on every pattern."""
    rows = [(head_name(head), [parts.cell(value, ".2f") for value in values])
            for head, values in zip(current.heads, current.table[list(PATTERNS)].to_numpy())]  # fmt: skip
    return parts.table("Scores of every head", [pattern.title for pattern in PATTERNS.values()], rows)
