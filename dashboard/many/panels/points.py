"""Two numbers of each sentence as points: entropy against length, or any two."""

import streamlit as st

from attnviz.across.tables import by_size, correlation
from attnviz.figures.across.many import scatter
from dashboard.browser.plot import named, plots
from dashboard.choices.sentence_numbers import NUMBERS
from dashboard.many import downloads
from dashboard.many.scene import ManyScene
from dashboard.markup import tables
from dashboard.session import address

_TEXTS = 600  # points, at most, whose sentences the browser gets with them
_CUT = 60  # characters of a sentence there


@address.fragment
def show(current: ManyScene, dark: bool) -> None:
    st.subheader("Two numbers of each sentence", divider="gray")
    left, right = st.columns(2)
    names = list(NUMBERS)
    choice = {"format_func": NUMBERS.get, "bind": "query-params"}
    x = left.selectbox("Across", names, index=names.index("source_tokens"), key="across", **choice)
    y = right.selectbox("Upwards", names, index=names.index("entropy_nats"), key="upwards", **choice)
    lines = current.lines()
    points = {name: (frame[x], frame[y]) for name, frame in lines.items()}
    whole = sum(map(len, lines.values())) <= _TEXTS
    texts = {
        name: [_text(number, source, whole) for number, source in zip(frame["number"], frame["source"])]
        for name, frame in lines.items()
    }
    titles = NUMBERS[x], NUMBERS[y]
    figure = named(scatter(points, titles, texts, dark=dark), f"{titles[1]} against {titles[0]}".lower(), dark)
    plots([("", figure)], "points")
    saved = by_size(*next(iter(points.values())))
    downloads.keep("two numbers", figure, saved)
    st.html(_correlations(points, titles))
    if current.choices.tables:
        st.html("".join(_table(name, *values, titles) for name, values in points.items()))


def _text(number: int, source: str, whole: bool) -> str:
    """What the pointer reads at a point."""
    if not whole:
        return f"sentence {number}"
    return f"{number}: {source}" if len(source) <= _CUT else f"{number}: {source[: _CUT - 1]}…"


def _correlations(points: dict, titles: tuple[str, str]) -> str:
    rows = [
        (name, [f"{len(x.to_frame().join(y.rename('y')).dropna()):.0f}", tables.cell(correlation(x, y), "+.2f")])
        for name, (x, y) in points.items()
    ]
    return tables.table(f"{titles[1]} and {titles[0]}", ["sentences", "correlation (Pearson’s r)"], rows)


def _table(name: str, x, y, titles: tuple[str, str]) -> str:
    """The text equivalent of the points: the mean of y where x is small to large."""
    rows = [
        (
            f"{part.low:.3g} to {part.high:.3g}" if part.low < part.high else f"{part.low:.3g}",
            [f"{part.sentences:.0f}", f"{part.mean:.3f}"],
        )
        for part in by_size(x, y).itertuples()
    ]
    return tables.table(f"{name}: {titles[1]} by {titles[0]}", ["sentences", "mean"], rows)
