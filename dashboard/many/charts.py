"""The numbers of many sentences: the distribution of one, beside an untrained model and shuffled words; scatter plots
of two; the sentences themselves; and differences of two models, or of two sets of sentences, with bootstrap
intervals."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import streamlit as st

from attnviz.across import SHARES, VALUES, by_size, correlation, differences, spread
from attnviz.arguments import cut
from attnviz.figures.many import distribution, scatter
from attnviz.select import map_title
from dashboard.browser.plot import named, plots
from dashboard.choices import pairs
from dashboard.choices.options import SENTENCE_ORDERS, mechanism_of, model, sentence_numbers, title
from dashboard.many import caches, downloads
from dashboard.many.scene import ManyScene, chosen, minus, references, uniform, unusual
from dashboard.markup import tables
from dashboard.markup.text import escape, in_language, sentence_link
from dashboard.session import address
from dashboard.session.caches import reference
from dashboard.shell import turns
from dashboard.shell.frame import slider_value

_TEXTS = 600  # points, at most, whose sentences the browser gets with them
_CUT = 60  # characters of a sentence there
_WHEN = (
    '<p class="small" role="status">This statistic could not be measured for any sentence. The alignment error needs '
    "sentences of this project that are linked by hand, with the models forced to write their translations; order "
    "swaps and coverage need cross-attention.</p>"
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
        st.html(_WHEN)
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
    """The meaning and the source of the marks on the axis."""
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
        name: [
            f"{number}: {cut(source, _CUT)}" if whole else f"sentence {number}"
            for number, source in zip(frame["number"], frame["source"])
        ]
        for name, frame in lines.items()
    }
    titles = sentence_numbers()[x], sentence_numbers()[y]
    figure = named(scatter(points, titles, texts, dark=dark), f"{titles[1]} against {titles[0]}".lower(), dark)
    plots([("", figure)], "points")
    if any(all(frame[number].isna().all() for frame in lines.values()) for number in (x, y)):
        st.html(_WHEN)
    saved = by_size(*next(iter(points.values())))
    downloads.offer("two numbers", figure, saved)
    st.html(_correlations(points, titles))
    if current.choices.tables:
        st.html("".join(_points_table(name, *values, titles) for name, values in points.items()))


def _correlations(points: dict, titles: tuple[str, str]) -> str:
    rows = [
        (name, [f"{len(x.to_frame().join(y.rename('y')).dropna()):.0f}", tables.cell(correlation(x, y), "+.2f")])
        for name, (x, y) in points.items()
    ]
    return tables.table(f"{titles[1]} and {titles[0]}", ["sentences", "correlation (Pearson’s r)"], rows)


def _points_table(name: str, x, y, titles: tuple[str, str]) -> str:
    """The text equivalent of the points: the mean of y by intervals of x."""
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
    """Two lines of the charts, for comparison. same : do they have the same sentences?"""

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
    """The possible comparisons: each two mechanisms, and each mechanism on the two sets of sentences."""
    lines = current.lines()
    models = [Versus(a, b, True) for a, b in itertools.combinations(current.titles, 2)]
    others = [Versus(name, f"{name}, other sentences", False) for name in current.titles]
    return [pair for pair in (*models, *others) if pair.a in lines and pair.b in lines]


def _pair_lines(a: pd.DataFrame, b: pd.DataFrame) -> bool:
    """Are the sentences of both sets pairs, line by line?"""
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


_ROWS, _OUTLIERS = 25, 8  # of a table
_NOTHING = "no other mechanism"
_COLUMNS = ("source_tokens", "log_prob", "normalised_entropy", "max_weight")


@address.fragment
def sentences_panel(current: ManyScene, dark: bool) -> None:
    """The sentences themselves, sorted and filtered, and the outliers; each is a link to the first page."""
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
        [_NOTHING, *(name for name in lines if name != line)],
        key="minus",
        help="Adds a column: the number of this mechanism minus that of another, for each sentence. Sort by it to see "
        "which sentences one mechanism finds hard and the other does not.",
        **choice,
    )
    order = places[3].selectbox(
        "Order", list(SENTENCE_ORDERS), format_func=SENTENCE_ORDERS.get, key="direction", **choice
    )
    find = places[4].text_input("With these words", key="find", placeholder="for example: dog", **choice)
    compared = other != _NOTHING
    rows = minus(lines[line], lines[other], sort) if compared else lines[line]
    frame = chosen(rows, "difference" if compared else sort, order, find)
    downloads.offer("sentences", None, frame)
    st.html(_WHEN if lines[line][sort].isna().all() else _outliers(current, lines[line], line, sort))
    first = _first(len(frame))
    st.html(_table(current, frame, f"{line} minus {other}" if compared else line, sort, first))


@address.fragment
def token_panel(current: ManyScene, dark: bool) -> None:
    """A token in all sentences that have it: the heads that give it most weight, and those that look most at one key
    from it."""
    st.subheader("A token in all sentences", divider="gray")
    text = st.text_input(
        "Token of the sentences, or of the translations",
        key="token",
        bind="query-params",
        placeholder="for example: dog",
        help="A word as a whole, or a piece of one. All heads of this kind are searched, at every place of the token.",
    )
    downloads.drop("token")
    if text.strip():
        with turns.errors_shown():
            _search(current, text.strip())


def _search(current: ManyScene, text: str) -> None:
    names = [model(current.choices.pair, name) for name in current.choices.mechanisms]
    with turns.long_turn(names), st.spinner("Searching the sentences …"):
        frame, texts, left = caches.token(names, current.corpus, text, current.choices)
    if frame is None:
        words = f"No head of this kind meets “{text[:80]}” in these sentences."
        st.html(f'<p class="small" role="status">{escape(words)}</p>')
        return
    note = f" {left:,} more are left out." if left else ""
    st.html(
        f'<p class="small" role="status">{len(texts):,} translations that may have the token were searched.{note}</p>'
    )
    st.html(_token_table(current, frame, texts))
    downloads.offer("token", None, frame.drop(columns="example").assign(token=text))


_WAYS = {"gets": "gets most from", "gives": "gives most to"}


def _token_table(current: ManyScene, frame: pd.DataFrame, texts: list[tuple[str, str | None]]) -> str:
    task = pairs.task(current.choices.pair)
    head = ("model", "head", "the token", "mean of its largest weight", "places", "most often", "sentence")
    rows = []
    for row in frame.head(_ROWS).to_dict("records"):
        language = task.target if (row["way"] == "gets") == (row["kind"] != "encoder") else task.source
        cells = (
            map_title(row["layer"], row["head"]),
            _WAYS[row["way"]],
            tables.cell(row["weight"], ".3f"),
            f"{row['places']:,}",
            f"{in_language(row['other_token'], language)} ({row['share']:.0%})",
            _opened(current, *texts[row["example"]]),
        )
        name = f'<th scope="row">{escape(title(mechanism_of(row["model"])))}</th>'
        rows.append(name + "".join(f"<td>{cell}</td>" for cell in cells))
    caption = f"{min(len(frame), _ROWS)} of {len(frame):,} heads and ways, the largest weight first"
    return _texts_table(caption, head, [f"<tr>{row}</tr>" for row in rows])


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
    """The sentences whose value is far from the others', by the robust z-score."""
    unlike = unusual(frame, sort)
    if unlike.empty:
        return f'<p class="small" role="status">{escape(line)}: no sentence stands out in this number.</p>'
    count = f"{len(unlike)} {'outlier' if len(unlike) == 1 else 'outliers'} of {sentence_numbers()[sort].lower()}"
    caption = f"{line}: {count}, {min(len(unlike), _OUTLIERS)} shown"
    return _rows(current, unlike.head(_OUTLIERS), caption, [sort, "z"], [sentence_numbers()[sort], "robust z-score"])


def _rows(current: ManyScene, frame: pd.DataFrame, caption: str, columns: list[str], titles: list[str]) -> str:
    """A table with the sentence as a link, its translation (none of a model that only reads it) and some numbers."""
    texts = ("number", "sentence") if pairs.task(current.choices.pair).writes else ("number", "sentence", "translation")
    return _texts_table(caption, (*texts, *titles), [_row(current, row, columns) for row in frame.to_dict("records")])


def _texts_table(caption: str, titles: Sequence[str], rows: Sequence[str]) -> str:
    """rows : HTML."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in titles)
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers texts"><caption>{escape(caption)}</caption>'
        f"<thead><tr>{head}</tr></thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _row(current: ManyScene, row: dict, columns: list[str]) -> str:
    choices = current.choices
    target = row["translation"] if choices.forced else None
    link = _opened(current, row["source"], target)
    task = pairs.task(choices.pair)
    translation = "" if task.writes else f"<td>{in_language(row['translation'], task.target)}</td>"
    numbers = "".join(f"<td>{_number(name, row[name])}</td>" for name in columns)
    return f'<tr><th scope="row">{row["number"]}</th><td>{link}</td>{translation}{numbers}</tr>'


def _opened(current: ManyScene, text: str, target: str | None) -> str:
    choices = current.choices
    return sentence_link(choices.pair, choices.mechanisms, text, target, choices.guest)


def _number(name: str, value) -> str:
    """A number in words: lengths as integers, log-probabilities with two decimals, other statistics with three."""
    if pd.isna(value):
        return "–"
    if name == "difference":
        return tables.cell(float(value), "+.3f")
    decimals = 0 if name.endswith("tokens") else 2 if name == "log_prob" else 3
    return tables.cell(float(value), f".{decimals}f")
