"""The charts of many sentences: how one number is spread, beside an untrained model and shuffled words, and two numbers
of each sentence as points."""

import pandas as pd
import streamlit as st

from attnviz.across import VALUES
from attnviz.across.tables import SHARES, by_size, correlation, spread
from attnviz.arguments import cut
from attnviz.figures.many import distribution, scatter
from dashboard.browser.plot import named, plots
from dashboard.choices.corpora import sentence_numbers
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
    downloads.keep("distribution", figure, quantiles(lines, statistic))
    st.html(_marks_words(marks, by_model) + _distribution_table(lines, statistic, marks, level))


def _marks_words(marks: dict, by_model: dict) -> str:
    """What the marks on the axis are, and where they are from."""
    tests = sorted({each.test for each in by_model.values() if each})
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
        cells += [tables.cell(marks.get(name, {}).get(each, float("nan")), ".3f") for each in ("untrained", "shuffled")]
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
    downloads.keep("two numbers", figure, saved)
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
