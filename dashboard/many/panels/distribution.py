"""How a statistic is spread over sentences, one line per mechanism, beside an untrained model and shuffled words."""

import html

import pandas as pd
import streamlit as st

from attnviz.across import VALUES
from attnviz.across.tables import SHARES, spread
from attnviz.figures.across.many import distribution
from dashboard.browser.plot import named, plots
from dashboard.choices.sentence_numbers import NUMBERS
from dashboard.many import downloads
from dashboard.many.scene import ManyScene, references, uniform
from dashboard.markup import tables
from dashboard.placed.caches import reference
from dashboard.session import address


_WHEN = (
    "The alignment error needs sentences of this project that are linked by hand, with the models forced to write "
    "their translations; order swaps and coverage need cross-attention."
)


@address.fragment
def show(current: ManyScene, dark: bool) -> None:
    st.subheader("How a statistic is spread", divider="gray")
    statistic = st.selectbox(
        "Statistic",
        list(NUMBERS),
        index=list(NUMBERS).index("normalised_entropy"),
        format_func=NUMBERS.get,
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
    figure = distribution(values, NUMBERS[statistic], references=marks, uniform=level, dark=dark)
    figure = named(figure, f"distribution of {NUMBERS[statistic].lower()}", dark)
    plots([("", figure)], "spread")
    downloads.keep("distribution", figure, table(lines, statistic))
    st.html(_key(marks, by_model) + _table(lines, statistic, marks, level))


def _key(marks: dict, by_model: dict) -> str:
    """What the marks on the axis are, and where they are from."""
    tests = sorted({each.test for each in by_model.values() if each})
    if not marks:
        return '<p class="small">No untrained model and no shuffled words were measured for these models.</p>'
    return (
        '<p class="small">Triangles on the axis: the untrained model. Crosses: the trained model when it reads the '
        "words in random order. Both are means over sentences of the same length from "
        f"{html.escape(', '.join(tests))}; the models were forced to write the trained model’s own translations. "
        "Dotted: uniform attention.</p>"
    )


def table(lines: dict[str, pd.DataFrame], statistic: str) -> pd.DataFrame:
    """One row per line: count, mean, deviation and quantiles."""
    return pd.DataFrame([{"line": name} | spread(frame[statistic]) for name, frame in lines.items()])


def _table(lines: dict, statistic: str, marks: dict, level: float | None) -> str:
    """The text equivalent of the chart."""
    rows = []
    for numbers in table(lines, statistic).to_dict("records"):
        name = numbers["line"]
        cells = [f"{numbers['count']:.0f}", f"{numbers['mean']:.3f} ± {numbers['std']:.3f}"]
        cells += [tables.cell(numbers[str(share)], ".3f") for share in SHARES]
        cells += [tables.cell(marks.get(name, {}).get(each, float("nan")), ".3f") for each in ("untrained", "shuffled")]
        rows.append((name, cells))
    if level is not None:
        rows.append(("uniform attention", ["", f"{level:.3f}", *[""] * (len(SHARES) + 2)]))
    columns = ["sentences", "mean ± standard deviation", *(f"{share:.0%} are below" for share in SHARES)]
    return tables.table(NUMBERS[statistic], [*columns, "untrained", "shuffled"], rows)
