"""The numbers of many sentences: how one is spread, beside an untrained model and shuffled words; two of each sentence
as points; and differences of two models, or of two sets of sentences, with bootstrap intervals."""

import itertools
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from attnviz.across import VALUES
from attnviz.across.tables import SHARES, by_size, correlation, differences, spread
from attnviz.arguments import cut
from attnviz.figures.many import distribution, scatter
from dashboard.browser.plot import named, plots
from dashboard.choices.options import sentence_numbers
from dashboard.many import downloads
from dashboard.many.scene import ManyScene, references, uniform
from dashboard.markup import tables
from dashboard.markup.text import escape
from dashboard.session import address
from dashboard.session.caches import reference

_TEXTS = 600  # points, at most, whose sentences the browser gets with them
_CUT = 60  # characters of a sentence there
_WHEN = (
    "The alignment error needs sentences of this project that are linked by hand, with the models forced to write "
    "their translations; order swaps and coverage need cross-attention."
)


@address.fragment
def distribution_panel(current: ManyScene, dark: bool) -> None:
    """One line per mechanism."""
    st.subheader("How a statistic is spread", divider="gray")
    statistic = st.selectbox(
        "Statistic",
        list(sentence_numbers()),
        index=list(sentence_numbers()).index("normalised_entropy"),
        format_func=sentence_numbers().get,
        key="statistic",
        bind="query-params",
        help="A sentence’s value is the mean over its steps, and over all layers and heads of the kind of attention.",
    )
    lines, kind = current.lines(), current.choices.kind
    values = {name: frame[statistic].dropna() for name, frame in lines.items()}
    if not any(map(len, values.values())):
        downloads.drop("distribution")
        st.html(f'<p class="small" role="status">This statistic could not be measured for any sentence. {_WHEN}</p>')
        return
    by_model = {frame["model"].iloc[0]: reference(frame["model"].iloc[0]) for frame in lines.values()}
    marks = references(lines, statistic, kind, by_model) if statistic in VALUES else {}
    level = uniform(lines, statistic, kind)
    figure = distribution(values, sentence_numbers()[statistic], references=marks, uniform=level, dark=dark)
    figure = named(figure, f"distribution of {sentence_numbers()[statistic].lower()}", dark)
    plots([("", figure)], "spread")
    downloads.offer("distribution", figure, quantiles(lines, statistic))
    st.html(_marks_words(marks, by_model) + _distribution_table(lines, statistic, marks, level))


def _marks_words(marks: dict, by_model: dict) -> str:
    """What the marks on the axis are, and where they are from."""
    tests = sorted({reference.test for reference in by_model.values() if reference})
    if not marks:
        return '<p class="small">No untrained model and no shuffled words were measured for these models.</p>'
    return (
        '<p class="small">Triangles on the axis: the untrained model. Crosses: the trained model when it reads the '
        "words in random order. Both are means over sentences of the same length from "
        f"{escape(', '.join(tests))}; the models were forced to write the trained model’s own translations. "
        "Dotted: uniform attention.</p>"
    )


def quantiles(lines: dict[str, pd.DataFrame], statistic: str) -> pd.DataFrame:
    """One row per line: count, mean, deviation and quantiles."""
    return pd.DataFrame([{"line": name} | spread(frame[statistic]) for name, frame in lines.items()])


def _distribution_table(lines: dict, statistic: str, marks: dict, level: float | None) -> str:
    """The text equivalent of the chart."""
    rows = []
    for numbers in quantiles(lines, statistic).to_dict("records"):
        name = numbers["line"]
        cells = [f"{numbers['count']:.0f}", f"{numbers['mean']:.3f} ± {numbers['std']:.3f}"]
        cells += [tables.cell(numbers[str(share)], ".3f") for share in SHARES]
        cells += [
            tables.cell(marks.get(name, {}).get(baseline, float("nan")), ".3f")
            for baseline in ("untrained", "shuffled")
        ]
        rows.append((name, cells))
    if level is not None:
        rows.append(("uniform attention", ["", f"{level:.3f}", *[""] * (len(SHARES) + 2)]))
    columns = ["sentences", "mean ± standard deviation", *(f"{share:.0%} are below" for share in SHARES)]
    return tables.table(sentence_numbers()[statistic], [*columns, "untrained", "shuffled"], rows)


@address.fragment
def points_panel(current: ManyScene, dark: bool) -> None:
    """Entropy against length, or any two."""
    st.subheader("Two numbers of each sentence", divider="gray")
    left, right = st.columns(2)
    names = list(sentence_numbers())
    choice = {"format_func": sentence_numbers().get, "bind": "query-params"}
    x = left.selectbox("Across", names, index=names.index("source_tokens"), key="across", **choice)
    y = right.selectbox("Upwards", names, index=names.index("entropy_nats"), key="upwards", **choice)
    lines = current.lines()
    points = {name: (frame[x], frame[y]) for name, frame in lines.items()}
    whole = sum(map(len, lines.values())) <= _TEXTS
    texts = {
        name: [_text(number, source, whole) for number, source in zip(frame["number"], frame["source"])]
        for name, frame in lines.items()
    }
    titles = sentence_numbers()[x], sentence_numbers()[y]
    figure = named(scatter(points, titles, texts, dark=dark), f"{titles[1]} against {titles[0]}".lower(), dark)
    plots([("", figure)], "points")
    saved = by_size(*next(iter(points.values())))
    downloads.offer("two numbers", figure, saved)
    st.html(_correlations(points, titles))
    if current.choices.tables:
        st.html("".join(_points_table(name, *values, titles) for name, values in points.items()))


def _text(number: int, source: str, whole: bool) -> str:
    """What the pointer reads at a point."""
    if not whole:
        return f"sentence {number}"
    return f"{number}: {cut(source, _CUT)}"


def _correlations(points: dict, titles: tuple[str, str]) -> str:
    rows = [
        (name, [f"{len(x.to_frame().join(y.rename('y')).dropna()):.0f}", tables.cell(correlation(x, y), "+.2f")])
        for name, (x, y) in points.items()
    ]
    return tables.table(f"{titles[1]} and {titles[0]}", ["sentences", "correlation (Pearson’s r)"], rows)


def _points_table(name: str, x, y, titles: tuple[str, str]) -> str:
    """The text equivalent of the points: the mean of y where x is small to large."""
    rows = [
        (
            f"{part.low:.3g} to {part.high:.3g}" if part.low < part.high else f"{part.low:.3g}",
            [f"{part.sentences:.0f}", f"{part.mean:.3f}"],
        )
        for part in by_size(x, y).itertuples()
    ]
    return tables.table(f"{name}: {titles[1]} by {titles[0]}", ["sentences", "mean"], rows)


@dataclass(frozen=True)
class Versus:
    """Two lines of the charts. same : are they of the same sentences?"""

    a: str
    b: str
    same: bool

    def __str__(self) -> str:
        return f"{self.a} minus {self.b}"


@address.fragment
def differences_panel(current: ManyScene, dark: bool) -> None:
    st.subheader("Differences", divider="gray")
    lines = current.lines()
    offered = {str(pair): pair for pair in pairs_of(current)}
    if not offered:
        downloads.drop("differences")
        st.html('<p class="small" role="status">Choose a second mechanism on the left, or other sentences above.</p>')
        return
    pair = offered[st.selectbox("Difference", list(offered), key="versus", bind="query-params")]
    a, b = lines[pair.a], lines[pair.b]
    paired = pair.same or _pair_lines(a, b)
    frame = differences(a, b, list(sentence_numbers()), paired)
    downloads.offer("differences", None, frame.assign(a_is=pair.a, b_is=pair.b))
    st.html(_differences_words(frame, pair, paired) + _differences_table(frame, pair))


def pairs_of(current: ManyScene) -> list[Versus]:
    """What can be compared: each two mechanisms, and each mechanism on the two sets of sentences."""
    lines = current.lines()
    models = [Versus(a, b, True) for a, b in itertools.combinations(current.titles, 2)]
    others = [Versus(name, f"{name}, other sentences", False) for name in current.titles]
    return [pair for pair in (*models, *others) if pair.a in lines and pair.b in lines]


def _pair_lines(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    """Are line 1 of one and line 1 of the other a pair, and so on?"""
    if not set(a.index) & set(b.index):
        return False
    return st.toggle(
        "Line by line",
        key="paired",
        bind="query-params",
        help="For two versions of the same sentences. On: line 1 is compared with line 1, and so on, and the "
        "interval is of these differences. Off: the two sets are independent samples.",
    )


def _differences_words(frame: pd.DataFrame, pair: Versus, paired: bool) -> str:
    if frame.empty:
        return '<p class="small" role="status">No sentence was measured for both.</p>'
    how = f"{int(frame['pairs'].max()):,} pairs of sentences" if paired else "two independent samples of sentences"
    return (
        f'<p class="small" role="status">{escape(str(pair))}. In brackets: the 95% interval of 2,000 bootstrap '
        f"samples of {how} (percentiles). Marked: intervals without 0. Among {len(frame)} intervals, one may exclude "
        "0 by chance.</p>"
    )


def _differences_table(frame: pd.DataFrame, pair: Versus) -> str:
    rows = [
        (
            sentence_numbers()[row.statistic],
            [
                f"{row.a:.3f}",
                f"{row.b:.3f}",
                f"{row.difference:+.3f} [{row.low:+.3f}, {row.high:+.3f}]".replace("-", "−"),
                "●" if row.low > 0 or row.high < 0 else "",
            ],
        )
        for row in frame.itertuples()
    ]
    return tables.table("Means, and their difference", [pair.a, pair.b, "difference", "not 0"], rows) if rows else ""
