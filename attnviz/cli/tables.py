"""Tables for a terminal: aligned columns, and a trace as text."""

import math
from collections.abc import Sequence

from attnviz import select, stats
from attnviz.figures.labels import plain, width
from attnviz.mechanisms import ALL
from attnviz.trace import Trace
from attnviz.trace.visible import shown


def table(rows: Sequence[tuple[str, ...]], sides: str) -> str:
    """Aligned columns, `<` left or `>` right, by the width of each text in a terminal."""
    widths = [max(map(width, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        gaps = [" " * (widest - width(cell)) for widest, cell in zip(widths, row)]
        cells = [gap + cell if side == ">" else cell + gap for cell, gap, side in zip(row, gaps, sides)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def summary(trace: Trace, notes: Sequence[str] = ()) -> str:
    """The output of a model, its probability, and a table of what each token attends to most. notes : lines on a
    translation."""
    kind = ALL.get(trace.mechanism)
    if kind and kind.classifies:
        return _label(trace)
    if kind and kind.writes:
        return _written(trace)
    return _translation(trace, notes) if trace.target else _self_attention(trace)


def _translation(trace: Trace, notes: Sequence[str] = ()) -> str:
    """The translation, its log-probability, and for each target token its probability and its most attended source
    token."""
    rows = [("step", "token", "probability")]
    for step, (token, log_prob) in enumerate(zip(shown(trace.target), trace.log_probs), start=1):
        rows.append((str(step), token, f"{math.exp(log_prob):.2f}"))
    attention = "none"
    if any(attention_map.kind == "cross" for attention_map in trace.maps):
        attention = f"cross, {_which(trace)}"
        rows = [row + more for row, more in zip(rows, _most_attended(trace, "cross"))]
    how = "target" if trace.forced else "translation"
    cut = "" if trace.complete else "\nthe length limit cut the translation short"
    note_lines = "".join(f"\n{note}" for note in notes)
    text = plain(trace.translation) if trace.translation else "(empty: the model ended at once)"
    return (
        f"{how}: {text}\nlog-probability: {trace.log_prob:.3f}{cut}{note_lines}\n"
        f"attention: {attention}\n\n{table(rows, '><><>')}"
    )


def _written(trace: Trace) -> str:
    """The log-probability of a text, and for each of its tokens its probability and the most attended token before
    it."""
    tokens = zip(shown(trace.target), trace.log_probs)
    rows = [("token", "probability"), *((token, f"{math.exp(p):.2f}") for token, p in tokens)]
    rows = [row + more for row, more in zip(rows, _most_attended(trace, "decoder"))]
    return (
        f"text: {plain(trace.translation)}\nlog-probability: {trace.log_prob:.3f}\n"
        f"attention: decoder, {_which(trace, 'decoder')}\n\n{table(rows, '<><>')}"
    )


def _label(trace: Trace) -> str:
    """The label, its probability, and for each token its pooling weight and its most attended token."""
    pooling = trace.map("cross").weights[0, 0]
    tokens = [("token", "share in the label"), *((token, f"{w:.2f}") for token, w in zip(shown(trace.source), pooling))]
    rows = [row + more for row, more in zip(tokens, _most_attended(trace, "encoder"))]
    return (
        f"label: {trace.translation}\nprobability: {math.exp(sum(trace.log_probs)):.3f}\n"
        f"attention: encoder, {_which(trace, 'encoder')}\n\n{table(rows, '<><>')}"
    )


def _self_attention(trace: Trace) -> str:
    """For each token of a text that a model read without writing: its most attended token."""
    kind = trace.maps[0].kind
    tokens = [("step", "token")]
    tokens += [(str(step), token) for step, token in enumerate(shown(select.select(trace, kind).queries), start=1)]
    rows = [row + more for row, more in zip(tokens, _most_attended(trace, kind))]
    return f"attention: {kind}, {_which(trace, kind)}\n\n{table(rows, '><<>')}"


def _which(trace: Trace, kind: str = "cross") -> str:
    """The map shown in the table, in words: the last layer of that kind, counted from 0 as in JSON, and the mean of its
    heads."""
    layer, heads = trace.map(kind).layer, len(trace.map(kind).weights)
    place = "the only one" if sum(m.kind == kind for m in trace.maps) == 1 else "the last"
    mean = f"mean of {heads} heads" if heads > 1 else "its one head"
    return f"layer {layer} ({place}; layers count from 0), {mean}"


def _most_attended(trace: Trace, kind: str) -> list[tuple[str, str]]:
    """Two columns, with their head: the most attended token of each row, and its weight."""
    grid = select.select(trace, kind)
    keys, rows = shown(grid.keys), stats.of_grid(grid).itertuples()
    most = (("" if row.argmax_token is None else keys[int(row.argmax)], f"{row.max_weight:.2f}") for row in rows)
    return [("attends most to", "weight"), *most]
