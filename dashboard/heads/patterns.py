"""Patterns: what each is, in a formula and in words; how much each head follows it; and the heads most similar to a
pattern or a head."""

from collections.abc import Sequence

import pandas as pd
import streamlit as st

from attnviz import figures, heads, patterns
from attnviz.figures import labels
from attnviz.heads import Head
from attnviz.patterns import PATTERNS
from attnviz.trace import Token
from dashboard.browser.plot import named, plots
from dashboard.heads.scene import HeadsScene
from dashboard.markup import tables
from dashboard.markup.text import escape
from dashboard.session import address, caches

_SHOWN = 5  # most similar heads


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
        st.button(
            "Read random words twice",
            key="repeated",
            on_click=_read_twice,
            help="Only the first copy says how the second goes on, so an induction head shows here.",
        )


def _read_twice() -> None:
    """A prompt made for induction, which is only read."""
    st.session_state.update(text=patterns.repeated(), written=0, way="", pattern="induction")


def _examples(current: HeadsScene, name: str, head: Head) -> str:
    """Where the most similar head follows the pattern most."""
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
    before = " ".join(labels.plain(token.text) for token in tokens[max(0, place - 2) : place])
    return f"{place + 1}: {before} [{labels.plain(tokens[place].text)}]"


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
        st.html(
            _ranked(
                current,
                nearest.head(_SHOWN),
                "jensen_shannon",
                f"Heads most similar to {current.head_title(head)}",
                "distance, 0 to 1",
            )
        )


def _ranked(current: HeadsScene, frame: pd.DataFrame, column: str, caption: str, unit: str) -> str:
    rows = [
        (current.head_title(Head(row.kind, row.layer, row.head)), [tables.cell(getattr(row, column), ".3f")])
        for row in frame.itertuples()
    ]
    return tables.table(caption, [unit], rows)


def _chance(current: HeadsScene, name: str) -> str:
    chance = patterns.chance(current.shown, current.choices.kind, [PATTERNS[name]])[name]
    return f'<p class="small">Uniform attention scores {tables.cell(chance, ".3f")} in this sentence.</p>'


def _scores(current: HeadsScene) -> str:
    """The text equivalent: the score of each head for each pattern."""
    rows = [
        (current.head_title(head), [tables.cell(value, ".2f") for value in values])
        for head, values in zip(current.heads, current.table[list(PATTERNS)].to_numpy())
    ]
    return tables.table("Pattern scores of every head", [pattern.title for pattern in PATTERNS.values()], rows)
