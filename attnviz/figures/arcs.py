"""Dependencies as arcs over a sentence, and which of them a head looks along."""

from __future__ import annotations

import numpy as np

from attnviz.arguments import checked
from attnviz.figures import labels
from attnviz.figures.chart import Chart
from attnviz.figures.theme import build, layout, note, palette
from attnviz.syntax import RELATIONS, ROOT, Parse

POINTS = 24  # of a curve
_LEVEL, _WORDS, _ABOVE = 26, 34, 22  # px: a word further away, the row of words, the label of the highest arc
_HIGHEST = 6  # levels; longer arcs are flatter


@checked
def dependency_arcs(parse: Parse, looks: np.ndarray, name: str = "this head", *, dark: bool = False) -> Chart:
    """An arc for each dependency; solid where one of its two words attends to the other most, dotted elsewhere.

    looks : (T,) the word that each word attends to most, -1 for none (a row of `syntax.by_head.looks`). An arrow at the
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
    frame = layout(dark, int(highest * _LEVEL + _WORDS + _ABOVE), (8, 8, 4, 4), None, description)
    frame["xaxis"] = dict(range=[-0.5, count - 0.5], visible=False, fixedrange=True)
    frame["yaxis"] = dict(range=[-_WORDS / _LEVEL, highest + _ABOVE / _LEVEL], visible=False, fixedrange=True)
    frame["shapes"] = [_shape(arc, dark) for arc in arcs]
    frame["annotations"] = [_label(arc, dark) for arc in arcs if _named(arc)]
    return build([_words(parse, looks, dark)], frame)


def _level(word: int, governor: int) -> float:
    """The height of an arc: the distance of its words, less where it is long."""
    return min(abs(word - governor), _HIGHEST) ** 0.8


def _named(arc: tuple) -> bool:
    """Is it written on the arc which relation it is?"""
    return arc[2].split(":")[0] in RELATIONS


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
    title = RELATIONS[relation.split(":")[0]].title.lower()
    over = dict(x=(word + governor) / 2, y=_level(word, governor), yanchor="bottom", yshift=1)
    return note(title, dark, bgcolor=palette(dark).page, **over)


def _words(parse: Parse, looks: np.ndarray, dark: bool) -> dict:
    """The words, and where each looks."""
    texts = [parse.word(place) for place in range(len(parse.words))]
    targets = [f"looks most at ‘{texts[place]}’ ({place + 1})" if place >= 0 else "looks at no word" for place in looks]
    return dict(
        type="scatter",
        mode="text",
        x=list(range(len(texts))),
        y=[-0.1] * len(texts),
        text=[labels.escape(text) for text in texts],
        textposition="bottom center",
        textfont=dict(size=12, color=palette(dark).text),
        hoverinfo="text",
        hovertext=[
            labels.escape(f"‘{text}’ ({place + 1}) {target}")
            for place, (text, target) in enumerate(zip(texts, targets))
        ],
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
