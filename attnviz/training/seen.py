"""Measurements of mechanisms that learn a toy task side by side, and the settings of their training. No torch here,
because the page draws them.

Letters: L layers, H heads, T target letters, S source letters, the <eos> row and column included.
"""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from attnviz.select import Grid, select
from attnviz.trace import Trace
from attnviz.trace.arrays import from_arrays

SHOWN = 3  # sequences whose maps are kept
AT_ONCE = 3  # mechanisms of a race
MOST_PAIRS = 5_000  # of a person's own
MEASURED = ("loss", "exact", "entropy", "alignment_error")
PAD = "<pad>"  # fills up short sequences
ALIGNED = 0.3  # alignment error below which the alignment has appeared


@dataclass(frozen=True)
class Settings:
    """How every mechanism of a race is built and trained. ValueError for a number out of range.

    dropout : of the attention weights. teacher_forcing : share of the letters before that are the right ones; the
    others are the model's own. asks : "before" or "after" the decoder's step, for recurrent models; "" for the
    mechanism's own. causal, masked : False leaves out a mask, to show its effect: the causal mask of a Transformer's
    decoder; the padding mask when using a model that was trained with it.
    """

    width: int = 64
    layers: int = 1
    heads: int = 2
    learning_rate: float = 3e-3
    dropout: float = 0.0
    teacher_forcing: float = 1.0
    asks: str = ""
    seed: int = 1
    causal: bool = True
    masked: bool = True

    def __post_init__(self):
        for name, least, most in (("width", 8, 512), ("layers", 1, 4), ("heads", 1, 8), ("seed", 0, 2**31)):
            value = getattr(self, name)
            if type(value) is not int or not least <= value <= most:
                raise ValueError(f"{name} must be a whole number from {least} to {most}; got {value!r:.80}")
        for name, least, most in (("learning_rate", 1e-6, 10), ("dropout", 0, 0.9), ("teacher_forcing", 0, 1)):
            if not least <= getattr(self, name) <= most:
                raise ValueError(f"{name} must be from {least:g} to {most:g}; got {getattr(self, name)!r:.80}")
        if self.asks not in ("", "before", "after"):
            raise ValueError(f"asks must be before, after or empty; got {self.asks!r:.80}")
        if self.width % self.heads:
            raise ValueError(f"width must be a multiple of heads; got {self.width} and {self.heads}")


class Seen(NamedTuple):
    """The measurements of a mechanism at a moment, on held-out sequences.

    loss : nats a letter. exact : share of the sequences that it writes correctly without teacher forcing. entropy : of
    a row of weights, nats, the mean of all heads. alignment_error : share of the letters whose largest weight is on no
    letter that they are made from, of the best head. Both are None without attention, the last also without a known
    alignment. maps : weights (L, H, T, S) of each sequence shown, with teacher forcing. seconds : of processor time
    that it has trained. problem : why its training ended, or "". title : of the mechanism.
    """

    loss: float
    exact: float
    entropy: float | None
    alignment_error: float | None
    maps: tuple[np.ndarray, ...]
    seconds: float
    problem: str = ""
    title: str = ""


@dataclass(frozen=True)
class Moment:
    """batch : finished batches; 0 is the untrained models. seconds : of processor time of all mechanisms. of : the
    measurements, by mechanism. sequences : source and target letters of the maps, with <eos>."""

    batch: int
    seconds: float
    of: Mapping[str, Seen]
    sequences: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...]

    def trace(self, mechanism: str, sequence: int = 0) -> Trace:
        """The cross-attention of a sequence, for the figures. ValueError for a mechanism without attention."""
        source, target = self.sequences[sequence]
        maps = self.of[mechanism].maps
        if not maps:
            raise ValueError(f"{mechanism} has no attention to show")
        name = f"{self.of[mechanism].title} after {self.batch} batches"
        return from_arrays({"cross": list(maps[sequence])}, source, target, special=["<eos>", PAD], name=name)


@dataclass
class Ring:
    """A bounded store of moments: when full, every second one is dropped, so that it spans the whole run.

    most : number of moments. size : bytes of their maps together; the first and the newest moment are always kept."""

    most: int = 200
    size: int = 32 * 2**20
    moments: list[Moment] = field(default_factory=list)
    _step: int = 1  # of the moments that come, how many make one that is kept
    _came: int = 0

    def add(self, moment: Moment) -> None:
        """Add a moment. The first and the newest are always kept."""
        if len(self.moments) > 1 and (self._came - 1) % self._step:
            self.moments.pop()  # the one before was there as the newest alone
        self.moments.append(moment)
        self._came += 1
        while len(self.moments) > 2 and (len(self.moments) > self.most or self._bytes() > self.size):
            self.moments = [*self.moments[:-1:2], self.moments[-1]]
            self._step *= 2

    def _bytes(self) -> int:
        return sum(map_.nbytes for moment in self.moments for row in moment.of.values() for map_ in row.maps)


def turning_points(moments: Sequence[Moment], mechanism: str) -> tuple[int | None, int | None]:
    """The first batch with an alignment error below ALIGNED, and the first with a loss below half of the untrained
    model's. None if it has not happened."""
    seen = [(moment.batch, moment.of[mechanism]) for moment in moments if mechanism in moment.of]
    aligned = (batch for batch, row in seen if row.alignment_error is not None and row.alignment_error < ALIGNED)
    fell = (batch for batch, row in seen if row.loss < seen[0][1].loss / 2)
    return next(aligned, None), next(fell, None)


def courses(moments: Sequence[Moment]) -> dict[str, dict[str, list]]:
    """The measurements for `figures.learning.over_time`: title of the mechanism -> batch and each measurement."""
    return {
        moments[-1].of[name].title: {
            "batch": [moment.batch for moment in moments],
            **{key: [getattr(moment.of[name], key) for moment in moments] for key in MEASURED},
        }
        for name in moments[-1].of
    }


def marks(moments: Sequence[Moment]) -> dict[str, dict[str, int | None]]:
    """The turning points, for the same figure."""
    points = {name: turning_points(moments, name) for name in moments[-1].of}
    return {
        moments[-1].of[name].title: {"alignment_error": aligned, "loss": fell}
        for name, (aligned, fell) in points.items()
    }


def grids(moments: Sequence[Moment], sequence: int = 0) -> dict[str, list[Grid]]:
    """The maps of a sequence, for `figures.learning.maps_over_time`: the mean of the heads of the last layer.

    Mechanisms without attention are left out. ValueError if none has attention."""
    shown = [name for name, row in moments[-1].of.items() if row.maps]
    if not shown:
        raise ValueError("none of these mechanisms has attention to show")
    return {moments[-1].of[name].title: [select(moment.trace(name, sequence)) for moment in moments] for name in shown}


PACKED = 2**20  # bytes of maps in a packet, about
HIDDEN = 255  # in place of a weight, of which 254 is 1


def packed(moments: Sequence[Moment], after: int = -1, **others: Any) -> bytes:
    """The moments after a batch for a browser (learning.js): the length of a JSON in four bytes, the JSON, then the
    maps that `grids` has, a byte a weight.

    The oldest come first, as many as PACKED allows; `batches` names all moments. others : fields of the JSON."""
    names = list(moments[-1].of) if moments else []
    shown, maps, size = [], [], 0
    for moment in (moment for moment in moments if moment.batch > after):
        if size > PACKED:
            break
        maps += [_bytes(row.maps[i]) for i in range(len(moment.sequences)) for row in moment.of.values() if row.maps]
        size = sum(map(len, maps))
        shown.append(_plain(moment))
    others |= {"batches": [moment.batch for moment in moments], "moments": shown}
    others["points"] = [turning_points(moments, name) for name in names]
    head = json.dumps(others).encode()
    return b"".join([len(head).to_bytes(4, "little"), head, *maps])


def _bytes(layers: np.ndarray) -> bytes:
    """The mean of the heads of the last layer, (L, H, T, S) -> T times S bytes."""
    weights = layers[-1].mean(axis=0)
    return np.where(np.isfinite(weights), np.rint(254 * weights), HIDDEN).astype(np.uint8).tobytes()


def _plain(moment: Moment) -> dict:
    """A moment without its maps. has : number of mechanisms with maps."""
    rows = [[_finite(getattr(row, key)) for key in MEASURED] for row in moment.of.values()]
    problems = [row.problem for row in moment.of.values()]
    sides = [(len(target), len(source)) for source, target in moment.sequences]
    has = sum(bool(row.maps) for row in moment.of.values())
    measured = dict(zip(("batch", "seconds", "rows", "problems"), (moment.batch, moment.seconds, rows, problems)))
    return measured | {"sides": sides, "has": has}


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def telling(moments: Sequence[Moment], count: int) -> list[Moment]:
    """At most `count` moments, including the first and the last, between which the losses fall by about equal
    amounts."""
    if len(moments) <= count:
        return list(moments)
    losses = np.array([[row.loss for row in moment.of.values()] for moment in moments]).mean(axis=1)
    way = np.r_[0, np.cumsum(np.abs(np.diff(np.nan_to_num(losses, nan=0.0, posinf=0.0))) + 1e-3)]
    places = np.searchsorted(way, np.linspace(0, way[-1], count)).clip(0, len(moments) - 1)
    return [moments[place] for place in sorted({0, *places.tolist(), len(moments) - 1})][:count]


def heading(moments: Sequence[Moment], sequence: int = 0) -> list[str]:
    """The heading of a picture of the maps of a sequence."""
    source, target = moments[-1].sequences[sequence]
    source = tuple(letter for letter in source if letter != PAD)
    names = ", ".join(row.title for row in moments[-1].of.values())
    return [
        f"{' '.join(source[:-1])} → {' '.join(target[:-1])}",
        f"{names}, in training; cross-attention with the right letters before, the mean of the heads of the last layer",
    ]


@dataclass(frozen=True)
class Preset:
    """A training that fails on purpose. title, why : one sentence each, for readers. settings : field of Settings ->
    its value, if it is not the default."""

    title: str
    why: str
    mechanisms: tuple[str, ...]
    settings: Mapping[str, Any] = field(default_factory=dict)


PRESETS = {
    "rate": Preset(
        "The learning rate is a hundred times too high",
        "Each step is so large that the loss rises above that of guessing, and no alignment appears.",
        ("bahdanau", "luong-general"),
        {"learning_rate": 0.3},
    ),
    "none": Preset(
        "No attention",
        "One vector has to hold the whole sequence, so the model without attention learns far more slowly beside one "
        "that may look back.",
        ("fixed-context", "luong-general"),
    ),
    "unscaled": Preset(
        "Dot products without scaling, at a large width",
        "The sum of so many products saturates the softmax: the weights are nearly 0 or 1 (entropy near 0) before the "
        "model knows where to look, and it learns later. Divided by the root of the width, they begin flat.",
        ("luong-dot", "scaled-dot"),
        {"width": 256},
    ),
    "future": Preset(
        "No causal mask",
        "In training the decoder sees the letter that it should write, and copies it: the loss soon falls far below "
        "that of guessing. When it writes by itself that letter is not there, so nothing is right.",
        ("transformer",),
        {"causal": False, "heads": 4},
    ),
    "padding": Preset(
        "Padding not masked",
        "The sequences of a batch are filled up to one length. In training a mask hides the fillers; here it is left "
        "out when the models are used, so weights go to fillers and more sequences come out wrong.",
        ("bahdanau", "luong-general", "transformer"),
        {"masked": False},
    ),
}
