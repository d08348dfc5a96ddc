"""Trace: everything one model looked at while it translated (or only read) one text, as plain values and NumPy arrays.

Axes: H heads, Q queries (rows), K keys (columns). A map's weights are (H, Q, K), after the softmax and before dropout.
    cross     queries = target, keys = source; row t is the attention used to PRODUCE target token t, <eos> included
    encoder   queries = keys = source
    decoder   queries = target (row t as above), keys = decoder inputs (start, *target[:-1]), causal
A model that only reads has no target, and its self-attention is over the source:
    encoder   queries = keys = source (BERT and its like)
    decoder   queries = keys = source, causal (GPT and its like): row i is where the model looked with token i, the last
              that it had read, before it says what follows. Beside a target the rows are named by what they produced.
Everything is checked once, when it is made.
"""

import json
from dataclasses import MISSING, asdict, dataclass, fields

import numpy as np

from attnviz.trace import checks

KINDS = ("cross", "encoder", "decoder")
SIDES = {
    "cross": ("target", "source"),
    "encoder": ("source", "source"),
    "decoder": ("target", "input"),
}  # rows, columns
LEVELS = ("pieces", "words")


@dataclass(frozen=True)
class Token:
    """A piece (or a whole word) and where it stands: `text == typed[start:end]`, or a special such as <eos> (start == end).

    word : index of the word that the piece belongs to; None for a special token, which stands alone.
    pieces : how many pieces it stands for; 1 unless the trace is at the level of words.
    piece : as the vocabulary has it, without a mark for the space before it, where that may not be the text: a lower-cased
        word, or a part of a character. None: the text says it all.
    """

    text: str
    start: int
    end: int
    special: bool = False
    word: int | None = None
    unknown: bool = False
    pieces: int = 1
    piece: str | None = None


BOS = Token("<bos>", 0, 0, special=True)


@dataclass(frozen=True)
class Alternative:
    """A token that the model could have produced at a step, and its probability."""

    text: str
    probability: float

    def __post_init__(self):
        object.__setattr__(self, "probability", float(self.probability))


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights (H, Q, K) of one layer (0-based); kept as a read-only float32 copy. Every row is >= 0 and sums to 1."""

    kind: str
    layer: int
    weights: np.ndarray

    def __post_init__(self):
        if self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {self.kind!r}")
        if not isinstance(self.layer, int) or isinstance(self.layer, bool) or self.layer < 0:
            raise ValueError(f"layer must be an integer of at least 0; got {self.layer!r}")
        name = f"weights of {self.name}"
        try:
            weights = np.array(self.weights, dtype=np.float32, order="C")
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be numbers with axes [heads, queries, keys]") from None
        if weights.ndim != 3 or not weights.size:
            raise ValueError(f"{name} must have axes [heads, queries, keys], none empty; got shape {weights.shape}")
        checks.rows(weights, name)
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)

    @property
    def name(self) -> str:
        return f"the {self.kind} map of layer {self.layer}"

    def __eq__(self, other):
        if not isinstance(other, AttentionMap):
            return NotImplemented
        return (self.kind, self.layer) == (other.kind, other.layer) and np.array_equal(self.weights, other.weights)

    def __hash__(self):
        return hash((self.kind, self.layer, self.weights.tobytes()))


@dataclass(frozen=True)
class Trace:
    """One text through one model. Raises ValueError, with a whole sentence, when its parts do not fit together.

    source : the tokens of `text`. target : those of `translation`; () when the model only reads.
    log_probs : natural log, one a target token; () when not known. alternatives : one tuple a target token, most probable first; () for none.
    forced : the target was given, not chosen by the model. complete : False if a length limit cut the target short.
    level : "pieces", or "words" (made by `select.words`). start : what the decoder reads before the first target token.
    """

    model: str
    mechanism: str
    text: str
    translation: str
    forced: bool
    source: tuple[Token, ...]
    target: tuple[Token, ...]
    log_probs: tuple[float, ...]
    alternatives: tuple[tuple[Alternative, ...], ...]
    maps: tuple[AttentionMap, ...]
    level: str = "pieces"
    complete: bool = True
    start: Token = BOS

    def __post_init__(self):
        steps = self.alternatives or ((),) * len(self.target)
        frozen = {
            "source": tuple(self.source),
            "target": tuple(self.target),
            "maps": tuple(self.maps),
            "log_probs": tuple(map(float, self.log_probs)),
            "alternatives": tuple(map(tuple, steps)),
        }
        for name, value in frozen.items():
            object.__setattr__(self, name, value)
        checks.strings(self)
        if self.level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}; got {self.level!r}")
        if self.translation and not self.target:
            raise ValueError(f"target must hold the tokens of the translation, {self.translation!r}; got none")
        if not self.source:
            raise ValueError("source must hold at least one token, if only <eos>; got none")
        checks.tokens("source", self.source, self.text)
        checks.tokens("target", self.target, self.translation)
        checks.steps(self)
        checks.maps(self)

    def queries(self, attention: AttentionMap) -> tuple[Token, ...]:
        """The tokens of the rows of a map of this trace."""
        return self.source if attention.kind == "encoder" or not self.target else self.target

    def keys(self, attention: AttentionMap) -> tuple[Token, ...]:
        """The tokens of the columns of a map of this trace."""
        return (self.start, *self.target[:-1]) if attention.kind == "decoder" and self.target else self.source

    def sides(self, attention: AttentionMap) -> tuple[str, str]:
        """What the rows and the columns of a map of this trace are, in a word each."""
        return SIDES[attention.kind] if self.target or attention.kind == "encoder" else ("input", "input")

    def visible(self, attention: AttentionMap) -> np.ndarray:
        """bool (Q, K): the keys that each query could attend to. In a decoder map row t sees keys 0..t, and a target word
        of several pieces key t+1 too: itself, for its later pieces see its earlier ones."""
        queries, columns = self.queries(attention), len(self.keys(attention))
        if attention.kind != "decoder":
            return np.ones((len(queries), columns), dtype=bool)
        shifted = self.level == "words" and bool(self.target)
        last = np.array([t + (shifted and token.pieces > 1) for t, token in enumerate(queries)])
        return np.arange(columns) <= last[:, None]

    def map(self, kind: str = "cross", layer: int = -1) -> AttentionMap:
        """The map of that kind and layer (0-based; -1 is the last layer of that kind)."""
        if not self.maps:
            raise ValueError(f"{self.model} has no attention, so it has no map to show; got {kind}")
        found = {m.layer: m for m in self.maps if m.kind == kind}
        if found and layer == -1:
            return found[max(found)]
        if layer not in found:
            have = ", ".join(f"{m.kind} {m.layer}" for m in self.maps) or "none"
            raise ValueError(
                f"map must be one that {self.model} has at the level of {self.level} ({have}); "
                f"got {kind if layer == -1 else f'{kind} {layer}'}"
            )
        return found[layer]

    @property
    def log_prob(self) -> float | None:
        """Natural log of the probability of the whole target; None when not known, or there is no target."""
        return sum(self.log_probs) if self.log_probs else None

    def to_dict(self, weights: bool = True) -> dict:
        """Plain lists, strings and numbers; float32 weights become the same numbers in double precision.

        weights : those of the maps too; all the rest is small.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("source", "target"):
            values[name] = [asdict(token) for token in values[name]]
        values["start"] = asdict(self.start)
        values["alternatives"] = [[asdict(choice) for choice in step] for step in self.alternatives]
        values["maps"] = [
            {"kind": m.kind, "layer": m.layer} | ({"weights": m.weights.tolist()} if weights else {}) for m in self.maps
        ]
        return {**values, "log_probs": list(self.log_probs)}

    @classmethod
    def from_dict(cls, values: dict) -> "Trace":
        """The inverse of `to_dict`. Unknown fields are ignored; ValueError if one is missing or they make no Trace."""
        known = _known(cls, values, "trace")
        try:
            for name in ("source", "target"):
                known[name] = tuple(Token(**_known(Token, value, f"{name} token")) for value in known[name])
            if "start" in known:
                known["start"] = Token(**_known(Token, known["start"], "start token"))
            known["maps"] = tuple(AttentionMap(**_known(AttentionMap, value, "map")) for value in known["maps"])
            known["alternatives"] = tuple(
                tuple(Alternative(**_known(Alternative, choice, "alternative")) for choice in step)
                for step in known.get("alternatives", ())
            )
            return cls(**known)
        except TypeError as error:
            raise ValueError(f"trace must have values of the types that to_dict() writes; {error}") from None

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:  # ValueError: bad JSON, or a number of thousands of digits
            raise ValueError(f"trace must be JSON; {error}") from None
        return cls.from_dict(values)


def _known(cls, values, what):
    """The fields of cls among values; the JSON of a trace may do without alternatives and what has a default."""
    if not isinstance(values, dict):
        raise ValueError(f"{what} must be an object with named fields; got {type(values).__name__}")
    missing = [
        f.name for f in fields(cls) if f.name not in values and f.default is MISSING and f.name != "alternatives"
    ]
    if missing:
        raise ValueError(f"{what} must have the fields {', '.join(missing)} too; got {', '.join(values) or 'none'}")
    return {field.name: values[field.name] for field in fields(cls) if field.name in values}
