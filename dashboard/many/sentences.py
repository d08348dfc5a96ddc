"""The sentences themselves: sorted and filtered, and those that stand out. Each is a link to the first page."""

import pandas as pd
import streamlit as st

from dashboard.choices import pairs
from dashboard.choices.options import SENTENCE_ORDERS, sentence_numbers
from dashboard.many import downloads
from dashboard.many.scene import ManyScene, chosen, minus, unusual
from dashboard.markup import tables
from dashboard.markup.text import escape, in_language, sentence_link
from dashboard.session import address
from dashboard.shell.frame import slider_value

_ROWS, _OUTLIERS = 25, 8  # of a table
_NOTHING = "no other mechanism"
_COLUMNS = ("source_tokens", "log_prob", "normalised_entropy", "max_weight")


@address.fragment
def show(current: ManyScene, dark: bool) -> None:
    st.subheader("The sentences", divider="gray")
    lines = current.lines()
    places = st.columns([2, 2, 2, 2, 3])
    choice = {"bind": "query-params"}
    line = places[0].selectbox("Mechanism", list(lines), key="line", **choice)
    names = list(sentence_numbers())
    sort = places[1].selectbox(
        "Number",
        names,
        index=names.index("normalised_entropy"),
        format_func=sentence_numbers().get,
        key="sort",
        help="The first column of the table. Outliers are found by this number, and the rows can be sorted by it.",
        **choice,
    )
    other = places[2].selectbox(
        "Minus the same of",
        [_NOTHING, *lines],
        key="minus",
        help="Adds a column: the number of this mechanism minus that of another, for each sentence. Sort by it to see "
        "which sentences one mechanism finds hard and the other does not.",
        **choice,
    )
    order = places[3].selectbox(
        "Order", list(SENTENCE_ORDERS), format_func=SENTENCE_ORDERS.get, key="direction", **choice
    )
    find = places[4].text_input("With these words", key="find", placeholder="for example: dog", **choice)
    compared = other not in (_NOTHING, line)
    rows = minus(lines[line], lines[other], sort) if compared else lines[line]
    frame = chosen(rows, "difference" if compared else sort, order, find)
    downloads.offer("sentences", None, frame)
    st.html(_outliers(current, lines[line], line, sort))
    first = _first(len(frame))
    st.html(_table(current, frame, f"{line} minus {other}" if compared else line, sort, first))


def _first(count: int) -> int:
    """The first row that is shown, from 0."""
    if count <= _ROWS:
        return 0
    ends = 1, count - _ROWS + 1
    slider_value("row", *ends)
    return st.slider(f"First row (1 to {count:,})", *ends, key="row", bind="query-params") - 1


def _table(current: ManyScene, frame: pd.DataFrame, line: str, sort: str, first: int) -> str:
    columns = [name for name in dict.fromkeys(["difference", sort, *_COLUMNS]) if name in frame]
    titles = sentence_numbers()
    titles = titles | {"difference": f"Difference: {titles[sort][0].lower()}{titles[sort][1:]}"}
    rows = frame.iloc[first : first + _ROWS]
    caption = f"{line}: {len(rows)} of {len(frame):,} sentences"
    return _rows(current, rows, caption, columns, [titles[name] for name in columns])


def _outliers(current: ManyScene, frame: pd.DataFrame, line: str, sort: str) -> str:
    """Those whose value is far from the others', by the robust z-score."""
    unlike = unusual(frame, sort)
    if unlike.empty:
        return f'<p class="small" role="status">{escape(line)}: no sentence stands out in this number.</p>'
    count = f"{len(unlike)} {'outlier' if len(unlike) == 1 else 'outliers'} of {sentence_numbers()[sort].lower()}"
    caption = f"{line}: {count}, {min(len(unlike), _OUTLIERS)} shown"
    return _rows(current, unlike.head(_OUTLIERS), caption, [sort, "z"], [sentence_numbers()[sort], "robust z-score"])


def _rows(current: ManyScene, frame: pd.DataFrame, caption: str, columns: list[str], titles: list[str]) -> str:
    """A table with the sentence as a link, its translation and some numbers."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in ("number", "sentence", "translation", *titles))
    body = "".join(_row(current, row, columns) for row in frame.to_dict("records"))
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers texts"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _row(current: ManyScene, row: dict, columns: list[str]) -> str:
    choices = current.choices
    target = row["translation"] if choices.forced else None
    link = sentence_link(choices.pair, choices.mechanisms, row["source"], target)
    translation = in_language(row["translation"], pairs.task(choices.pair).target)
    numbers = "".join(f"<td>{_number(name, row[name])}</td>" for name in columns)
    return f'<tr><th scope="row">{row["number"]}</th><td>{link}</td><td>{translation}</td>{numbers}</tr>'


def _number(name: str, value) -> str:
    """Lengths as they are, log-probabilities with two decimals, other statistics with three."""
    if pd.isna(value):
        return "–"
    if name == "difference":
        return tables.cell(float(value), "+.3f")
    decimals = 0 if name.endswith("tokens") else 2 if name == "log_prob" else 3
    return tables.cell(float(value), f".{decimals}f")
