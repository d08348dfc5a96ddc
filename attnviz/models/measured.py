"""The statistics of a trace, with its texts and tokens but without its weights.

Letters: B batch, H heads, Q queries, K keys, R rows: all maps, their heads, their queries; queries vary fastest.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from attnviz import arguments, lazy_pandas, storage
from attnviz.stats import STATISTICS, measure
from attnviz.trace import BOS, AttentionMap, Token, Trace, checks, files
from attnviz.trace.token import queries_and_keys

if TYPE_CHECKING:
    import pandas as pd


NAMES = (*STATISTICS, "special_mass")  # as stats.steps has them


THRESHOLD = 0.1  # as there


MOST_CELLS = 64  # a side of a pooled map, as in figures.small_maps
LACKS = (
    "This text was reduced while it was read: the file holds the overview and the statistics of every head, and lacks "
    "the full maps (read it with attnviz.models.measured.load_reduced)."
)
COMMON = "model mechanism text translation forced complete source target start read_as longest".split()


@dataclass(frozen=True, eq=False)
class TraceStatistics:
    """The statistics of one trace. Fields that `Trace` also has mean the same.

    maps : kind, layer, heads, queries of each map. values : (NAMES, R) float64, see `stats.rows`. probabilities :
    `log_probs`, or what computes them. trace : the trace itself, if requested.
    """

    model: str
    mechanism: str
    text: str
    translation: str
    forced: bool
    complete: bool
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    start: Token
    maps: tuple[tuple[str, int, int, int], ...]
    values: np.ndarray
    probabilities: tuple[float, ...] | Callable[[], tuple[float, ...]]
    trace: Trace | None = None
    read_as: str = ""
    longest: int = 0

    def __repr__(self) -> str:
        """One line: the translation and the counts of tokens."""
        return (
            f"TraceStatistics({self.translation!r:.80}; {len(self.source)} source and {len(self.target)} target pieces)"
        )

    def __getstate__(self) -> dict:
        return vars(self) | {"probabilities": self.log_probs}

    @property
    def log_probs(self) -> tuple[float, ...]:
        """As in `Trace.log_probs`. Those of a forced target are computed when first read, because attention does not
        need them."""
        return self.probabilities() if callable(self.probabilities) else self.probabilities

    @property
    def log_prob(self) -> float | None:
        """Natural log of the probability of the whole target; None when not known, or there is no target."""
        return sum(self.log_probs) if self.log_probs else None

    def columns(self) -> dict[str, np.ndarray]:
        """kind, layer, head, step, token, argmax_token and NAMES, each (R,)."""
        columns: dict[str, list[np.ndarray]] = {
            name: [] for name in ("kind", "layer", "head", "step", "token", "argmax_token")
        }
        argmax, first = self.values[NAMES.index("argmax")].astype(np.int64), 0
        for kind, layer, heads, steps in self.maps:
            queries, keys = queries_and_keys(kind, self.source, self.target, self.start)
            rows = heads * steps
            columns["kind"].append(np.full(rows, kind, dtype=object))
            columns["layer"].append(np.full(rows, layer))
            columns["head"].append(np.repeat(np.arange(heads), steps))
            columns["step"].append(np.tile(np.arange(steps), heads))
            columns["token"].append(np.tile(_texts(queries), heads))
            columns["argmax_token"].append(_texts(keys)[argmax[first : first + rows]])
            first += rows
        whole = {name: np.concatenate(parts) if parts else np.empty(0) for name, parts in columns.items()}
        return whole | {name: argmax if name == "argmax" else row for name, row in zip(NAMES, self.values)}

    def frame(self) -> "pd.DataFrame":
        """The same table as `stats.steps` of the trace."""
        import pandas as pd  # half a second, which the start of the model process saves

        return pd.DataFrame({"model": self.model, "mechanism": self.mechanism, **self.columns()})


@dataclass(frozen=True, eq=False)
class Reduced:
    """The data shown for the self-attention of a long text, collected layer by layer during the computation, without
    the weights.

    trace : the text without maps. kind : of attention. table : exact, as in `heads.table`. pooled : layer -> (H, q, k),
    at most 64 cells a side, each the largest weight of its block (`small_maps.pool`); NaN where every cell is hidden.
    row_sums : layer -> (H, Q), 1 up to rounding.
    """

    trace: Trace
    kind: str
    table: "pd.DataFrame"
    pooled: Mapping[int, np.ndarray]
    row_sums: Mapping[int, np.ndarray]

    def __repr__(self) -> str:
        """One line: the model, and how much was read."""
        return f"Reduced({self.trace.model}: {len(self.trace.source)} tokens, {len(self.table)} heads)"

    @property
    def nbytes(self) -> int:
        """About the bytes that it takes."""
        return sum(array.nbytes for part in (self.pooled, self.row_sums) for array in part.values())

    def pack(self) -> bytes:
        """As the content of a safetensors file, which `load_trace` reads as a trace without maps, with a note that says
        so, and `load_reduced` whole."""
        trace = replace(self.trace, notes=tuple(dict.fromkeys((*self.trace.notes, LACKS))))
        columns = self.table.drop(columns=["model", "kind"])
        arrays = {f"pooled.{layer}": maps.astype(np.float32) for layer, maps in self.pooled.items()}
        arrays |= {f"row_sums.{layer}": np.asarray(sums, np.float64) for layer, sums in self.row_sums.items()}
        arrays |= {f"table.{name}": columns[name].to_numpy() for name in columns}
        return files.pack(trace, arrays, {"reduced": self.kind})

    def save(self, path: str | Path) -> None:
        """Write it to a file that ends in .safetensors; ValueError for another ending."""
        path = arguments.path("path", path)
        if path.suffix.lower() != ".safetensors":
            raise ValueError(f"path must end in .safetensors; got {path.name!r:.80}")
        storage.replace(path, lambda temporary: temporary.write_bytes(self.pack()))


def load_reduced(path: str | Path) -> Reduced:
    """Read what `Reduced.save` wrote. ValueError if the file cannot be read or holds something else."""
    path = arguments.path("path", path)
    return unpack_reduced(files.read(path), path.name)


def is_reduced(content: bytes) -> bool:
    """Does a file, whose content is that of a trace, hold what was reduced of a long text?"""
    return content[4:9] == b"\0\0\0\0{" and b'"reduced"' in content[8 : 8 + int.from_bytes(content[:8], "little")]


def unpack_reduced(content: bytes, name: str) -> Reduced:
    """What `Reduced.pack` made. name : of the file, for errors. ValueError for anything else; nothing in it is
    trusted."""
    trace = files.unpack(content, name, files.check_limits)
    try:
        files.check_texts(trace.to_dict(weights=False))
        return _reduced(trace, files.arrays(content), files.header(content)["reduced"])
    except (ValueError, KeyError) as error:
        raise ValueError(f"the file {name} holds no reduced trace: {error!s:.300}") from None


def _reduced(trace: Trace, tensors: Mapping[str, np.ndarray], kind: str) -> Reduced:
    """ValueError unless the tensors are of one text and of the same heads; KeyError where one is missing."""
    from attnviz import heads

    names = ["layer", "head", *heads.COLUMNS, *heads.PATTERNS]
    columns = {column: tensors[f"table.{column}"] for column in names if f"table.{column}" in tensors}
    layers, tokens = columns["layer"], len(trace.source)
    if kind not in ("encoder", "decoder") or layers.ndim != 1 or not 0 < len(layers) <= files.HEADS:
        raise ValueError(f"it must be of self-attention, and of 1 to {files.HEADS} heads")
    if any(values.shape != layers.shape or values.dtype.kind not in "fi" for values in columns.values()):
        raise ValueError("the columns of its table must be as long as its heads are many")
    pooled, sums = {}, {}
    for layer in sorted(set(layers.tolist())):
        if layer not in range(files.LAYERS):
            raise ValueError(f"layers must be counted from 0 to {files.LAYERS - 1}; got {layer}")
        maps, rows = tensors[f"pooled.{layer:.0f}"], tensors[f"row_sums.{layer:.0f}"]
        count, cells = int((layers == layer).sum()), -(-tokens // -(-tokens // MOST_CELLS))
        if maps.shape != (count, cells, cells) or rows.shape != (count, tokens) or maps.dtype != np.float32:
            raise ValueError(
                f"layer {layer:.0f} must have {count} maps of {cells} cells a side, and sums of {tokens} rows"
            )
        if sorted(columns["head"][layers == layer]) != list(range(count)) or (maps < 0).any() or (maps > 1.001).any():
            raise ValueError(f"layer {layer:.0f} must have heads from 0 on, and weights from 0 to 1")
        pooled[int(layer)], sums[int(layer)] = maps, rows
    table = lazy_pandas.DataFrame(columns).astype({"layer": int, "head": int})
    table.insert(0, "kind", kind)
    table.insert(0, "model", trace.model)
    return Reduced(trace, kind, table, pooled, sums)


class Reducer:
    """Builds a `Reduced` from the maps of a text, given a few heads of a layer at a time; it stores no map.

    bare : the trace without maps.
    """

    def __init__(self, bare: Trace):
        self.bare, self.kind = bare, ""
        self._tables: list = []
        self._pooled: dict[int, list[np.ndarray]] = {}
        self._sums: dict[int, list[np.ndarray]] = {}

    def take(self, attention: AttentionMap, first: int) -> None:
        """Add heads of a layer, from `first` on. ValueError for weights that do not belong to this text."""
        from attnviz import heads
        from attnviz.figures import small_maps

        part = replace(self.bare, maps=(attention,))
        table = heads.table(part)
        self._tables.append(table.assign(head=table["head"] + first))
        seen = small_maps.pool(part.visible(attention)[None])
        pooled = np.where(seen, small_maps.pool(attention.weights), np.nan)
        self._pooled.setdefault(attention.layer, []).append(pooled)
        self._sums.setdefault(attention.layer, []).append(attention.weights.sum(-1, dtype=np.float64))
        self.kind = attention.kind

    def done(self) -> Reduced:
        """The result. ValueError if no heads were added."""
        if not self._tables:
            raise ValueError("there must be a layer to reduce; got none")
        table = lazy_pandas.concat(self._tables, ignore_index=True)
        joined = ({layer: np.concatenate(parts) for layer, parts in of.items()} for of in (self._pooled, self._sums))
        return Reduced(self.bare, self.kind, table, *joined)


def of_trace(trace: Trace, keep: bool) -> TraceStatistics:
    """The statistics of one trace. keep : keep the trace too."""
    parts = []
    for attention in trace.maps:
        special = np.array([[token.special for token in trace.keys(attention)]])
        weights, visible = attention.weights[None], trace.visible(attention)[None, None]
        parts.append(_measure(weights, visible, special)[:, 0].reshape(len(NAMES), -1))
    return TraceStatistics(
        **{name: getattr(trace, name) for name in COMMON},
        maps=tuple((m.kind, m.layer, *m.weights.shape[:2]) for m in trace.maps),
        values=np.concatenate(parts, axis=1) if parts else np.empty((len(NAMES), 0)),
        probabilities=trace.log_probs,
        trace=trace if keep else None,
    )


def of_batch(maps: Mapping[str, Sequence[np.ndarray]], texts: Sequence[tuple]) -> list[tuple[tuple, np.ndarray]]:
    """`maps` and `values` of each sentence of a batch.

    maps : kind -> weights (B, H, Q, K) of each layer, padded at the ends. texts : the tokens of the source
        and of the target of each sentence.
    """
    sentences: list[tuple[list, list]] = [([], []) for _ in texts]
    for kind, layers in ((kind, layers) for kind, layers in maps.items() if layers):
        sides = [queries_and_keys(kind, source, target, BOS) for source, target in texts]
        visible = _visible(kind, sides, layers[0].shape)
        special = _padded([[token.special for token in keys] for _, keys in sides], layers[0].shape[-1])
        for layer, weights in enumerate(layers):
            if not checks.are_rows(weights):
                for of_sentence, (queries, _) in zip(weights, sides):
                    checks.rows(of_sentence[:, : len(queries)], f"weights of the {kind} map of layer {layer}")
            values = _measure(weights, visible, special)
            for i, (queries, _) in enumerate(sides):
                shapes, parts = sentences[i]
                shapes.append((kind, layer, weights.shape[1], len(queries)))
                parts.append(values[:, i, :, : len(queries)].reshape(len(NAMES), -1))
    empty = np.empty((len(NAMES), 0))
    return [(tuple(shapes), np.concatenate([empty, *parts], axis=1)) for shapes, parts in sentences]


def _visible(kind: str, sides: Sequence[tuple], shape: tuple[int, ...]) -> np.ndarray:
    """bool (B, 1, 1|Q, K): True for keys of the sentence (not padding); in a decoder map only up to the query."""
    if kind == "decoder":
        return np.tri(*shape[-2:], dtype=np.bool_)[None, None]
    return _padded([[True] * len(keys) for _, keys in sides], shape[-1])[:, None, None]


def _padded(rows: Sequence[Sequence[bool]], width: int) -> np.ndarray:
    """bool (B, width): the rows, filled up with False."""
    return np.array([[*row, *[False] * (width - len(row))] for row in rows])


def _measure(weights: np.ndarray, visible: np.ndarray, special: np.ndarray) -> np.ndarray:
    """weights (B, H, Q, K), visible (B, 1, 1|Q, K), special (B, K) -> (NAMES, B, H, Q) float64."""
    measured = measure(weights, visible, THRESHOLD)
    mass = (weights @ special[:, None, :, None].astype(weights.dtype))[..., 0]
    return np.stack([*measured.values(), mass])


def _texts(tokens: Sequence[Token]) -> np.ndarray:
    return np.array([token.text for token in tokens], dtype=object)
