"""Two models on the same sentences, or a model on two sets of sentences: differences with bootstrap intervals."""

import itertools
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from attnviz.across.tables import differences
from dashboard.choices.corpora import sentence_numbers
from dashboard.many import downloads
from dashboard.many.scene import ManyScene
from dashboard.markup import tables
from dashboard.markup.text import escape
from dashboard.session import address


@dataclass(frozen=True)
class Versus:
    """Two lines of the charts. same : are they of the same sentences?"""

    a: str
    b: str
    same: bool

    def __str__(self) -> str:
        return f"{self.a} minus {self.b}"


@address.fragment
def show(current: ManyScene, dark: bool) -> None:
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
    downloads.keep("differences", None, frame.assign(a_is=pair.a, b_is=pair.b))
    st.html(_words(frame, pair, paired) + _table(frame, pair))


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


def _words(frame: pd.DataFrame, pair: Versus, paired: bool) -> str:
    if frame.empty:
        return '<p class="small" role="status">No sentence was measured for both.</p>'
    how = f"{int(frame['pairs'].max()):,} pairs of sentences" if paired else "two independent samples of sentences"
    return (
        f'<p class="small" role="status">{escape(str(pair))}. In brackets: the 95% interval of 2,000 bootstrap '
        f"samples of {how} (percentiles). Marked: intervals without 0. Among {len(frame)} intervals, one may exclude "
        "0 by chance.</p>"
    )


def _table(frame: pd.DataFrame, pair: Versus) -> str:
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
