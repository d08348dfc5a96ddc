"""From a Trace to one map as it is drawn: its kind, layer and head; pieces or words; with or without special tokens.

Axes: Q queries (rows), K keys (columns). Nothing is drawn here and no statistic is computed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from attnviz.arguments import checked
from attnviz.trace import SIDES, AttentionMap, Token, Trace, notebook

__all__ = ["Grid", "difference", "mean", "select", "words"]


@dataclass(frozen=True, eq=False, repr=False)
class Grid:
    """One map as it is drawn. The arrays are read-only.

    >>> select.select(trace)
    Grid(en-fr/bahdanau: cross, layer 0, mean of heads; 6 target by 6 source tokens)

    weights : (Q, K) float32. Each row sums to 1, or is NaN (blank) where all its weight was on hidden tokens.
    visible : (Q, K) bool, True where the query can attend to the key.
    removed : (Q,) float32, the weight that was on hidden special tokens; 1 for a blank row, NaN for a row that `select`
        would have read beyond the first or the last.
    head : None for the mean of heads.
    layer : None for the mean of heads of several layers.
    sides : what the rows and the columns are; as in a translation unless given.
    sink : the last column is a sink (see `AttentionMap`).
    """

    model: str
    mechanism: str
    kind: str
    layer: int | None
    head: int | None
    queries: tuple[Token, ...]
    keys: tuple[Token, ...]
    weights: np.ndarray
    removed: np.ndarray
    visible: np.ndarray
    sides: tuple[str, str] = ("", "")
    sink: bool = False

    made_by: ClassVar[str] = "select.select(trace)"  # in the error of a function that is given a trace

    def __post_init__(self):
        object.__setattr__(self, "sides", self.sides if self.sides and any(self.sides) else SIDES[self.kind])
        shape = (len(self.queries), len(self.keys))
        for name, wanted in (("weights", shape), ("visible", shape), ("removed", shape[:1])):
            array = np.array(getattr(self, name), dtype=bool if name == "visible" else np.float32)
            if array.shape != wanted:
                raise ValueError(f"{name} must have shape {wanted}, as the tokens do; got {array.shape}")
            array.setflags(write=False)
            object.__setattr__(self, name, array)

    def __repr__(self) -> str:
        """One line: which map of which model, and its size."""
        layer = "several layers" if self.layer is None else f"layer {self.layer}"
        head = "mean of heads" if self.head is None else f"head {self.head}"
        rows, columns = (f"{len(tokens)} {side}" for tokens, side in zip((self.queries, self.keys), self.sides))
        return f"Grid({self.model}: {self.kind}, {layer}, {head}; {rows} by {columns} tokens)"

    @property
    def masked(self) -> np.ndarray:
        """(Q, K): the weights, NaN where the query cannot attend to the key."""
        return np.where(self.visible, self.weights, np.nan)

    @property
    def title(self) -> str:
        """The map in words, counted from 1: `layer 2, head 3`."""
        return map_title(self.layer, self.head)

    def _repr_html_(self) -> str:
        """In a notebook: the map as a table."""
        table = notebook.weights_table(self.queries, self.keys, self.weights, self.visible, self.sides)
        return notebook.document(repr(self), (), table)


def map_title(layer: int | None, head: int | None, layers: int | None = None, heads: int | None = None) -> str:
    """A map in words, counted from 1: `layer 2, head 3`; with the numbers of both, `layer 2 of 3, mean of 4 heads`.

    layer, head : from 0; None for the mean, as of `Grid`.
    """
    if layer is None:
        return "mean of heads of several layers"
    place = f"layer {layer + 1}{f' of {layers}' if layers else ''}"
    if heads == 1:
        return f"{place}, its one head"
    if head is None:
        return f"{place}, mean of {f'{heads} ' if heads else ''}heads"
    return f"{place}, head {head + 1}{f' of {heads}' if heads else ''}"


@checked
def words(trace: Trace) -> Trace:
    """The same trace with words as tokens: weights SUMMED over key pieces and AVERAGED over query pieces.

    Rows still sum to 1. The log-probability of a word is the sum over its pieces. Alternatives are dropped: they are
    pieces.

    Decoder keys are the inputs (<bos>, *target[:-1]), grouped into words too. A word of several pieces then attends to
    itself (see `Trace.visible`). If a length limit cut the target inside a word, the last input is part of a word and
    has no key; such a trace loses its decoder maps. If the model only reads, the inputs are the source.

    >>> trace = model.trace("Snowboarders jump.")
    >>> len(trace.source), [word.text for word in select.words(trace).source]
    (7, ['Snowboarders', 'jump', '.', '<eos>'])
    """
    if trace.level == "words":
        return trace
    source, target = _starts(trace.source), _starts(trace.target)
    cut = trace.target and target[-1] < len(trace.target) - 1
    decoder = (target, np.concatenate([[0], target[:-1] + 1])) if trace.target else (source, source)
    axes = {"cross": (target, source), "encoder": (source, source), "decoder": decoder}
    maps = tuple(_joined(m, *axes[m.kind]) for m in trace.maps if not (cut and m.kind == "decoder"))
    log_probs = tuple(np.add.reduceat(trace.log_probs, target).tolist()) if trace.log_probs else ()
    return replace(
        trace,
        source=_join(trace.source, source, trace.text),
        target=_join(trace.target, target, trace.translation),
        log_probs=log_probs,
        alternatives=(),
        maps=maps,
        level="words",
    )


_words = words  # `select` has a parameter of this name


def _starts(tokens):
    """The index of the first piece of every word. A token without a word stands alone."""
    return np.array(
        [i for i, token in enumerate(tokens) if i == 0 or token.word is None or token.word != tokens[i - 1].word],
        dtype=int,
    )


def _join(tokens, starts, text):
    joined = []
    for first, after in zip(starts, [*starts[1:], len(tokens)]):
        group = tokens[first:after]
        if len(group) == 1:
            joined.append(group[0])
            continue
        end = group[-1].end
        word = text[group[0].start : end].lstrip() or text[group[0].start : end]  # the first piece may be a blank
        joined.append(
            replace(
                group[0],
                text=word,
                start=end - len(word),
                end=end,
                pieces=len(group),
                piece=_spelt(group),
                unknown=any(token.unknown for token in group),
            )
        )
    return tuple(joined)


def _spelt(group) -> str | None:
    """A word as the vocabulary spells it, if that may differ from the text."""
    return (
        "".join((token.piece or token.text).removeprefix("##") for token in group)
        if any(token.piece for token in group)
        else None
    )


def _joined(m: AttentionMap, queries, keys) -> AttentionMap:
    """A map between words: a word sees another if one of its pieces sees one of the other's."""
    mask = m.mask if m.mask is None else _pool(m.mask[None].astype(float), queries, keys)[0] > 0
    return replace(m, weights=_pool(m.weights, queries, _columns(m, keys)), mask=mask)


def _columns(m: AttentionMap, keys: np.ndarray) -> np.ndarray:
    """The first column of each word, and that of a sink."""
    return np.append(keys, m.weights.shape[2] - 1) if m.sink else keys


def _pool(weights, queries, keys):
    """weights (H, Q, K) and the first piece of each group -> (H, query words, key words)."""
    sums = np.add.reduceat(np.add.reduceat(weights, keys, axis=2, dtype=np.float64), queries, axis=1)
    return sums / np.diff(queries, append=weights.shape[1])[:, None]


@checked
def select(
    trace: Trace,
    kind: str | None = None,
    layer: int = -1,
    head: int | None = None,
    words: bool = False,
    special: bool = True,
    shift: int = 0,
) -> Grid:
    """One map of a trace as it is drawn.

    kind : None is cross-attention or, of a trace without it, the first kind that it has.
    layer : -1 is the last one. head : None is the mean of heads. words : True joins pieces to words (see `words`).
    special : False leaves out special tokens. Each row is then divided by its remaining sum, and `Grid.removed` has the
        weight that was left out. The first row of a translation's decoder map is then blank: it sees only <bos>.
    shift : of cross-attention: the row of target piece t is read t + shift steps on, as in some alignments (Chen et al.
        2020). A row beyond the first or the last is blank; a word is the mean of its pieces that have a row.

    Raises ValueError if there is no such map or head, or if no row or no column would be left.

    >>> [key.text for key in select.select(trace, words=True, special=False).keys]
    ['The', 'black', 'dog', 'runs', '.']
    """
    if kind is None:
        kind = min((m.kind for m in trace.maps), key=lambda kind: kind != "cross", default="cross")
    if shift and (trace.level == "words" or kind != "cross"):
        raise ValueError(f"shift must be 0 but for cross-attention of a trace of pieces; got {shift}")
    pieces, trace = trace, _words(trace) if words else trace
    grid = _grid(trace, trace.map(kind, layer), head)
    if shift:
        attention = pieces.map(kind, layer)
        rows = shifted_rows(_grid(pieces, attention, head).weights, shift)
        if words:
            axes = _starts(pieces.target), _columns(attention, _starts(pieces.source))
            has_row = np.repeat(~np.isnan(rows[:, :1]), rows.shape[1], axis=1).astype(float)
            counts = _pool(has_row[None], axes[0], np.arange(rows.shape[1]))[0, :, :1]
            with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, the blank row
                rows = _pool(np.nan_to_num(rows)[None], *axes)[0] / counts
        grid = replace(grid, weights=rows, removed=np.where(np.isnan(rows[:, 0]), np.nan, 0))
    return grid if special else _without_special(grid)


def _grid(trace: Trace, attention: AttentionMap, head: int | None) -> Grid:
    """A head of a map, with all its tokens. ValueError if there is no such head."""
    heads = len(attention.weights)
    if head is not None and not 0 <= head < heads:
        raise ValueError(f"head must be None, for the mean, or one of 0 to {heads - 1}; got {head}")
    head = None if attention.averaged else head
    weights = attention.weights.mean(0, dtype=np.float64) if head is None else attention.weights[head]
    return Grid(
        trace.model,
        trace.mechanism,
        attention.kind,
        attention.layer,
        head,
        trace.queries(attention),
        trace.keys(attention),
        weights,
        np.isnan(weights[:, 0]),
        trace.visible(attention),
        trace.sides(attention),
        attention.sink,
    )


def shifted_rows(weights: np.ndarray, shift: int) -> np.ndarray:
    """weights (..., Q, K) with row t + shift in place of row t, float64; NaN where that row does not exist."""
    rows = np.arange(weights.shape[-2]) + shift
    exists = (rows >= 0) & (rows < len(rows))
    return np.where(exists[:, None], weights[..., np.where(exists, rows, 0), :].astype(np.float64), np.nan)


@checked
def mean(trace: Trace, kind: str, heads: Sequence[tuple[int, int]], words: bool = False, special: bool = True) -> Grid:
    """The mean of chosen heads, each (layer, head), as one map. words, special and errors : as in `select`.

    A statistic of the mean is not the mean of the heads' statistics.

    >>> select.mean(two_heads, "decoder", [(0, 0), (0, 1)]).weights.tolist()
    [[1.0, 0.0, 0.0], [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]]
    """
    if not heads:
        raise ValueError("heads must hold at least one (layer, head); got none")
    grids = [select(trace, kind, layer, head, words) for layer, head in heads]
    layers = {grid.layer for grid in grids}
    weights = np.mean([grid.weights for grid in grids], axis=0, dtype=np.float64)
    grid = replace(grids[0], layer=layers.pop() if len(layers) == 1 else None, head=None, weights=weights)
    return grid if special else _without_special(grid)


def _without_special(grid):
    rows, columns = (np.array([not token.special for token in tokens]) for tokens in (grid.queries, grid.keys))
    for side, tokens, ordinary in zip(grid.sides, (grid.queries, grid.keys), (rows, columns)):
        if not ordinary.any():
            name = "translation" if side == "target" else side
            special = ", ".join(dict.fromkeys(token.text for token in tokens))
            raise ValueError(f"the {name} is empty, it has only {special}; show special tokens to see this map")
    weights = grid.weights[rows].astype(np.float64)
    remaining, hidden = weights[:, columns].sum(-1), weights[:, ~columns].sum(-1)
    with np.errstate(invalid="ignore"):  # 0 / 0 is NaN, the blank row
        shown = weights[:, columns] / remaining[:, None]
    return replace(
        grid,
        weights=shown,
        removed=np.where(np.isnan(hidden), grid.removed[rows], hidden),
        visible=grid.visible[rows][:, columns],
        queries=tuple(token for token in grid.queries if not token.special),
        keys=tuple(token for token in grid.keys if not token.special),
        sink=False,
    )


@checked
def difference(a: Grid, b: Grid) -> np.ndarray:
    """The weights of a minus those of b, (Q, K), from -1 to 1. ValueError unless queries and keys are the same.

    >>> select.difference(select.select(two_heads, head=0), select.select(two_heads, head=1)).tolist()
    [[0.0, 0.0, 0.0], [-1.0, 1.0, 0.0], [0.0, -1.0, 1.0]]
    """
    for name in ("queries", "keys"):
        first, second = ([(token.text, token.start, token.end) for token in getattr(grid, name)] for grid in (a, b))
        if first != second:
            raise ValueError(
                f"two maps must share queries and keys to be subtracted; the {name} of {a.model} "
                f"({' '.join(text for text, _, _ in first)}) are not those of {b.model} "
                f"({' '.join(text for text, _, _ in second)}): force the same target on both"
            )
    return a.weights - b.weights
