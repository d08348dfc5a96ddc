"""Dependencies as arcs over a sentence, marked where a head attends along them."""

from __future__ import annotations

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.maps import COLUMN, Keys, all_labels, key_axis
from attnviz.figures.theme import build, layout, note, palette
from attnviz.syntax import RELATIONS, ROOT, Parse
from attnviz.trace import Token

POINTS = 24  # of a curve
_LEVEL, _WORDS, _ABOVE = 26, 72, 22  # px: a word further away, the words below, the label of the highest arc
_LETTER, _LINE = 6.5, 15  # px of the label of an arc
_HIGHEST = 6  # levels; longer arcs are flatter


@checked
def dependency_arcs(parse: Parse, looks: np.ndarray, name: str = "this head", *, dark: bool = False) -> Chart:
    """An arc for each dependency; solid where one of its two words attends to the other most, dotted elsewhere.

    looks : (T,) the word that each word attends to most, -1 for none (a row of `syntax.looks`). An arrow at the
    end of a solid arc points to the word that is looked at. name : of the head, for the description. ValueError unless
    `looks` has a word of the sentence, or -1, for each word.
    """
    looks = np.asarray(looks)
    count = len(parse.words)
    if looks.shape != (count,) or not all(ROOT <= place < count for place in looks.tolist()):
        raise ValueError(f"looks must have a word from 0 to {count - 1}, or -1, for each of {count} words; got {looks}")
    arcs = [
        (word, governor, relation, looks[word] == governor, looks[governor] == word)
        for word, (governor, relation) in enumerate(zip(parse.governors, parse.relations))
        if governor != ROOT and relation != "punct"
    ]
    highest = max((_level(word, governor) for word, governor, *_ in arcs), default=1)
    description = _description(parse, arcs, name)
    tokens = Keys(Token(parse.word(place), *span, word=place) for place, span in enumerate(parse.words))
    left, right, xaxis = key_axis(tokens, "bottom")
    frame = layout(dark, int(highest * _LEVEL + _WORDS + _ABOVE), (left, right, 4, _WORDS), None, description)
    frame["xaxis"] = xaxis
    frame["yaxis"] = dict(range=[0, highest + _ABOVE / _LEVEL], visible=False, fixedrange=True)
    frame["shapes"] = [_shape(arc, dark) for arc in arcs]
    frame["annotations"] = [_label(arc, dark) for arc in _apart(arcs, (COLUMN - left - right) / count)]
    frame["hovermode"] = "x"
    frame["meta"] |= all_labels(tokens, xaxis)
    return build([_words(parse, looks, dark)], frame)


def _level(word: int, governor: int) -> float:
    """The height of an arc: the distance of its words, compressed for long arcs."""
    return min(abs(word - governor), _HIGHEST) ** 0.8


def _title(relation: str) -> str:
    """The label of an arc; "" for a relation that is not measured."""
    kind = RELATIONS.get(relation.split(":")[0])
    return kind.title.lower() if kind else ""


def _apart(arcs: list[tuple], width: float) -> list[tuple]:
    """The arcs whose labels are drawn: labels that overlap no other, with priority for arcs that a head looks along.
    width : px of a word in the narrowest column."""
    shown: list[tuple] = []
    places: list[tuple] = []  # left, right and height of each label in px
    for arc in sorted(filter(lambda arc: _title(arc[2]), arcs), key=lambda arc: not (arc[3] or arc[4])):
        word, governor, relation, *_ = arc
        middle, half = width * (word + governor) / 2, _LETTER * len(_title(relation)) / 2
        left, right, height = middle - half, middle + half, _LEVEL * _level(word, governor)
        if not any(left < b and a < right and abs(height - other) < _LINE for a, b, other in places):
            shown.append(arc)
            places.append((left, right, height))
    return shown


def _shape(arc: tuple, dark: bool) -> dict:
    word, governor, _, up, down = arc
    colors, looked_along = palette(dark), up or down
    along = np.linspace(0, np.pi, POINTS)
    start, end = (word, governor) if up or not down else (governor, word)
    x = (start + end) / 2 - (end - start) / 2 * np.cos(along)
    y = _level(word, governor) * np.sin(along)
    path = "M" + "L".join(f"{a:.4g},{b:.4g}" for a, b in zip(x, y))
    if looked_along:  # the arrow
        path += f"M{end - 0.09:.4g},0.28L{end:.4g},0L{end + 0.09:.4g},0.28"
    color = colors.lines[0] if looked_along else colors.muted
    return dict(
        type="path",
        path=path,
        layer="below",
        line=dict(color=color, width=2.4 if looked_along else 1, dash="solid" if looked_along else "dot"),
        opacity=1 if looked_along else 0.6,
    )


def _label(arc: tuple, dark: bool) -> dict:
    word, governor, relation, *_ = arc
    over = dict(x=(word + governor) / 2, y=_level(word, governor), yanchor="bottom", yshift=1)
    return note(_title(relation), dark, bgcolor=palette(dark).page, **over)


def _words(parse: Parse, looks: np.ndarray, dark: bool) -> dict:
    """A dot over each word; its hover text has the word's dependency and the word that it attends to most."""
    texts = [f"‘{parse.word(place)}’ ({place + 1})" for place in range(len(parse.words))]
    of = [
        f", {_title(relation)} of {texts[governor]}," if governor != ROOT and _title(relation) else ""
        for governor, relation in zip(parse.governors, parse.relations)
    ]
    targets = [f"looks most at {texts[place]}" if place >= 0 else "looks at no word" for place in looks]
    return dict(
        type="scatter",
        mode="markers",
        x=list(range(len(texts))),
        y=[0] * len(texts),
        marker=dict(size=4, color=palette(dark).muted),
        hoverinfo="text",
        hovertext=[labels.escape(f"{text}{role} {target}") for text, role, target in zip(texts, of, targets)],
        cliponaxis=False,
    )


def _description(parse: Parse, arcs: list[tuple], name: str) -> str:
    """Which dependencies the head looks along."""
    along = [
        f"{parse.word(word)} → {parse.word(governor)}" if up else f"{parse.word(governor)} → {parse.word(word)}"
        for word, governor, _, up, down in arcs
        if up or down
    ]
    listed = f": {', '.join(along)}" if along else ""
    count = f"In {len(along)} of {len(arcs)}, {name} looks from one word to the other"
    return f"Dependencies of the sentence. {count}{listed}."
