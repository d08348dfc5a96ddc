"""The heading of an exported picture: what it shows, the model, the sentence and the translation.

Lines of plain text, the first of them the title; `changes` puts them into a figure, where Plotly's markup is escaped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import plotly.graph_objects as go

from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.labels import plain
from attnviz.mechanisms import ALL
from attnviz.select import map_title

__all__ = ["MARKS", "of_difference", "of_heads", "of_map", "of_statistics", "of_step", "of_trace"]

ROOM = 690  # px for text in a figure that is saved: a column of 720 px less its margins
_SIZE, _LINE = 13, 18  # px of the type, from line to line
_COLUMN = 0.56  # of the size of the type: the width of a letter, as a rule
_BOLD, _CAPITAL = 0.88, 0.74  # of the letters of a line: so many fit when they are bold, and when all are capitals
_DOWN = 14  # px from the edge: Plotly draws the first of several lines half above the place that it is given
_AXIS = 22  # px for the name of an axis
_KINDS = {
    "cross": "cross-attention",
    "encoder": "self-attention of the encoder",
    "decoder": "self-attention of the decoder",
}
STEP = "Step {step} of {count}: {query}"  # plot.js fills it in too
MARKS = {  # what a picture marks: the sentence that explains it
    "links": "Outlined: gold links (dashed: only possible).",
    "hidden": "Hatched: cells that the query cannot see.",
    "windows": (
        "Diamond: the place that the model predicts. Brackets: the ends of its window, where they are in the sentence."
    ),
    "window": "Dotted line: the place that the model predicts. Grey: its window.",
    "references": (
        "At the right, in the order of the legend: triangle, the untrained model; cross, the trained model, its input "
        "in random order."
    ),
}
_WIDE = "\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef"  # of which a line may end after any character
_UNIT = re.compile(rf"[{_WIDE}]\s*|[^\s{_WIDE}]+\s*|\s+")


def of_map(trace, grid, links=None, windows: Sequence = ()) -> list[str]:
    """Of a map of a trace. links, windows : as the map marks them (`figures.heatmap`); they are explained if there are
    any, and so are hatched cells.

    >>> heading.of_map(trace, select.select(trace))
    ['Bahdanau · additive (en-fr/bahdanau): cross-attention', 'The black dog runs.', '→ Le chien noir court.']
    """
    marks = _explained(hidden=not grid.visible.all(), links=links, windows=windows)
    return [_map_title(trace, grid), *texts(trace), *marks]


def _map_title(trace, grid) -> str:
    return f"{_title(grid.mechanism)} ({trace.model}): {_which(trace, grid)}"


def of_heads(trace, kind: str) -> list[str]:
    """Of all heads of a kind.

    >>> heading.of_heads(trace, "cross")[0]
    'Bahdanau · additive (en-fr/bahdanau): cross-attention, all heads'
    """
    hidden = not all(trace.visible(heads).all() for heads in trace.maps if heads.kind == kind)
    title = f"{_title(trace.mechanism)} ({trace.model}): {_KINDS[kind]}, all heads"
    return [title, *texts(trace), *_explained(hidden=hidden)]


def of_step(trace, grid, step: int, window=None) -> list[str]:
    """Of the weights of one step (from 0) of a map. window : of local attention, explained if there is one.

    >>> heading.of_step(trace, select.select(trace), 1)[1]
    'Step 2 of 6: ‘chien’'
    """
    return [_map_title(trace, grid), step_names(grid)[step], *texts(trace), *_explained(window=window)]


def of_difference(first, second, grid) -> list[str]:
    """Of the weights of one trace minus those of another, at the map `grid` of either.

    >>> heading.of_difference(first, second, select.select(first))[0].split(": ")
    ['Bahdanau · additive (en-fr/bahdanau) minus Bahdanau · additive (en-fr/bahdanau)', 'cross-attention']
    """
    names = " minus ".join(f"{_title(trace.mechanism)} ({trace.model})" for trace in (first, second))
    return [f"{names}: {_which(first, grid)}", *texts(first), *_explained(hidden=not grid.visible.all())]


def of_trace(name: str, trace) -> list[str]:
    """Of any other picture of a trace. name : what it shows.

    >>> heading.of_trace("Weight by distance", trace)[0]
    'Weight by distance: Bahdanau · additive (en-fr/bahdanau)'
    """
    return [f"{name}: {_title(trace.mechanism)} ({trace.model})", *texts(trace)]


def of_statistics(
    traces: Mapping[str, Any], what: str = "Attention by step", references: Mapping = MappingProxyType({})
) -> list[str]:
    """Of statistics of several traces of one sentence, each by its name in the picture. what : what the statistics are.

    references : as `figures.by_step` marks them; they are explained if there are any.

    >>> heading.of_statistics({"greedy": first, "forced": model.trace(first.text, "Un chien noir.")})[2:]
    ['greedy: → Le chien noir court.', 'forced: → Un chien noir.']
    """
    listed = list(traces.values())
    models = ", ".join(trace.model for trace in listed)
    targets = [f"{name}: → {_plain_or_blank(trace.translation)}" for name, trace in traces.items() if trace.target]
    same = len({trace.translation for trace in listed}) == 1
    shown = [f"{what} ({models})", _plain_or_blank(listed[0].text), *(texts(listed[0])[1:] if same else targets)]
    return shown + _explained(references=references)


def texts(trace) -> list[str]:
    """The sentence, and what was produced, if anything was."""
    return [_plain_or_blank(trace.text), *([f"→ {_plain_or_blank(trace.translation)}"] if trace.target else [])]


def _explained(**marks) -> list[str]:
    """A line for each kind of mark that a picture has."""
    return [MARKS[kind] for kind, marked in marks.items() if marked]


def wrapped(text: str, room: float, measure: Callable[[str], float] = labels.columns) -> list[str]:
    """Lines no wider than `room`, broken at spaces and between CJK characters; a word is broken only if it is wider
    than a line. measure : the width of a text, in columns (a CJK character takes two) unless given."""
    if measure(whole := text.rstrip()) <= room:
        return [whole]
    lines, used = [""], 0.0
    for unit in _UNIT.findall(text):
        wide = measure(unit.rstrip())
        for place, part in enumerate(unit if wide > room else [unit]):
            if lines[-1] and part.strip() and used + (measure(part.rstrip()) if place else wide) > room:
                lines.append("")
                used = 0.0
            lines[-1] += part
            used += measure(part)
    return [line.rstrip() for line in lines]


def folded(lines: Sequence[str], columns: int) -> list[list[str]]:
    """All lines `wrapped`. The first line is bold; bold letters and capitals are counted as wider."""
    rooms = [columns * (1 if place else _BOLD) for place in range(len(lines))]
    capitals = [sum(map(str.isupper, line)) / max(len(line), 1) for line in lines]
    return [
        wrapped(line, int(room * (1 - share * (1 - _CAPITAL)))) for line, room, share in zip(lines, rooms, capitals)
    ]


def changes(figure: go.Figure, lines: Sequence[str], room: int = ROOM) -> dict:
    """Changes of a figure's layout for saving: `lines` above the plot and the names of the axes (`layout.meta["axes"]`:
    x, y, and a line for the meaning of colours). They are for `figure.update_layout`, and for the page when it saves a
    figure.

    room : px in which the lines must fit.
    """
    columns = int(room / (_COLUMN * _SIZE))
    layout = figure.plain_layout if isinstance(figure, Chart) else figure.layout.to_plotly_json()
    axes, margin = layout.get("meta", {}).get("axes", {}), layout["margin"]
    lines = [*lines, f"Colour: {axes['colour']}."] if "colour" in axes else lines
    shown = [[labels.escape(part) for part in parts] for parts in folded(lines, columns)]
    text = "<br>".join([f"<b>{part}</b>" for part in shown[0]] + [part for line in shown[1:] for part in line])
    rise, below = 10 + _LINE * sum(map(len, shown)), _AXIS if "x" in axes else 0
    height = layout["height"] + rise + below
    place = dict(x=0, y=1 - _DOWN / height, xref="container", yref="container", xanchor="left", yanchor="top")
    result = dict(
        height=height,
        title=dict(text=text, font=dict(size=_SIZE), pad=dict(l=2, t=6), **place),
        margin=dict(t=margin["t"] + rise, b=margin["b"] + below, l=margin["l"] + _AXIS * ("y" in axes)),
    )
    if layout.get("legend", {}).get("yref") == "container":
        result["legend"] = dict(y=1 - rise / height)
    for axis in layout:
        if name := axes.get(axis[0]) if axis[1:5] == "axis" else None:
            result[axis] = dict(title=dict(text=labels.escape(name), standoff=6, font=dict(size=12)))
    return result


def above(figure: go.Figure, lines: Sequence[str]) -> go.Figure:
    """The same figure with its `changes`."""
    return figure.update_layout(changes(figure, lines))


def step_names(grid) -> list[str]:
    """Each step of a map in the words of `of_step`."""
    names = labels.named(grid.queries)
    return [STEP.format(step=place, count=len(names), query=name) for place, name in enumerate(names, 1)]


def _title(mechanism: str) -> str:
    return ALL[mechanism].title if mechanism in ALL else mechanism


def _which(trace, grid) -> str:
    """The kind of attention, with layer and head if there are several."""
    return ", ".join(filter(None, (_KINDS[grid.kind], layer_and_head(trace, grid))))


def layer_and_head(trace, grid) -> str:
    """Which map of its kind this one of the trace is, `layer 3 of 3, mean of 4 heads`; "" if it is the only one."""
    layers = sum(attention.kind == grid.kind for attention in trace.maps)
    heads = None if grid.layer is None else len(trace.map(grid.kind, grid.layer).weights)
    return "" if layers == heads == 1 else map_title(grid.layer, grid.head, layers, heads)


def _plain_or_blank(text: str) -> str:
    return plain(text) if text.strip() else text
