"""Trace: all attention of one model while it translated (or only read) one text, as plain values and NumPy arrays.

Axes: H heads, Q queries (rows), K keys (columns). Weights of a map are (H, Q, K), after the softmax and before dropout.
The kind of a map says what its queries and keys are:

    cross     queries = target, keys = source. Row t is the attention used to PRODUCE target token t, <eos> included.
    encoder   queries = keys = source.
    decoder   queries = target (row t as above), keys = decoder inputs (start, *target[:-1]), causal.

A model that only reads a text has no target. Its self-attention is over the source:

    encoder   queries = keys = source (BERT and similar models).
    decoder   queries = keys = source, causal (GPT and similar models). Row i is the attention of token i, the last
              token read so far. (With a target, a row has the name of the token that it produced.)

All checks run once, when the Trace is made (`of_model` leaves out those of types).
"""

import functools
import json
from dataclasses import MISSING, asdict, dataclass, fields

import numpy as np

from attnviz import arguments, storage
from attnviz.arguments import checked, shown
from attnviz.trace import checks, notebook
from attnviz.trace.token import BOS, KINDS, SIDES, SINK, Alternative, Token, queries_and_keys, visible_keys

LEVELS = ("pieces", "words")


@dataclass(frozen=True, eq=False)
class AttentionMap:
    """Weights (heads, queries, keys) of one layer, counted from 0. Every weight is at least 0 and every row sums to 1.

    The weights are kept as a read-only float32 copy. Raises ValueError for an unknown kind, layer or bad weights.

    mask : bool (queries, keys), True where a query can see a key, as in a sliding window; None: the default of the
    kind. The weight of a hidden key is 0. sink : is the last column not a key but an attention sink, with the weight
    that each query gives to no key? averaged : is the only head the mean of all heads of the layer? shared : the number
    of query heads that share keys and values (Ainslie et al. 2023); 1 if each has its own.

    >>> attnviz.trace.AttentionMap("encoder", 0, [[[0.5, 0.5], [0, 1]]])
    AttentionMap(encoder, layer 0: 1 heads, 2 queries, 2 keys)
    """

    kind: str
    layer: int
    weights: np.ndarray
    mask: np.ndarray | None = None
    sink: bool = False
    averaged: bool = False
    shared: int = 1

    def __post_init__(self):
        if not isinstance(self.kind, str) or self.kind not in KINDS:
            raise ValueError(f"kind must be one of {', '.join(KINDS)}; got {shown(self.kind)}")
        if not isinstance(self.layer, int) or isinstance(self.layer, bool) or self.layer < 0:
            raise ValueError(f"layer must be an integer of at least 0; got {shown(self.layer)}")
        if self.layer >= 2**31:
            raise ValueError(f"layer must be below {2**31:,}; got a number of {len(str(self.layer))} digits")
        name = f"weights of {self.name}"
        try:
            given = np.asarray(self.weights)
            if given.dtype.kind == "c":
                raise ValueError("they are complex")
            weights = np.array(given, dtype=np.float32, order="C")
        except (TypeError, ValueError, OverflowError):
            raise ValueError(f"{name} must be numbers with axes [heads, queries, keys]") from None
        if weights.ndim != 3 or not weights.size:
            raise ValueError(f"{name} must have axes [heads, queries, keys], none empty; got shape {weights.shape}")
        if not checks.are_rows(weights):
            checks.rows(weights, name)
        weights.setflags(write=False)
        object.__setattr__(self, "weights", weights)
        checks.marks(name, sink=self.sink, averaged=self.averaged)
        if type(self.shared) is not int or self.shared < 1 or len(weights) % self.shared:
            raise ValueError(f"shared must divide the {len(weights)} heads of {self.name}; got {shown(self.shared)}")
        if self.averaged and len(weights) != 1:
            raise ValueError(f"{self.name} must have one head to be a mean of heads; got {len(weights)}")
        if self.mask is not None:
            object.__setattr__(self, "mask", checks.mask(self))

    @classmethod
    def of_layers(cls, kind: str, layers: np.ndarray) -> "tuple[AttentionMap, ...]":
        """A map of each layer from float32 weights (L, H, Q, K) that a model has just made: checked together, and not
        copied. The array becomes read-only."""
        if not layers.size or not checks.are_rows(layers):
            return tuple(cls(kind, layer, weights) for layer, weights in enumerate(layers))  # its error names the place
        layers.setflags(write=False)
        return tuple(_unchecked(cls, kind=kind, layer=layer, weights=weights) for layer, weights in enumerate(layers))

    @property
    def keys(self) -> np.ndarray:
        """The weights on keys alone, without the sink: (heads, queries, keys)."""
        return self.weights[..., :-1] if self.sink else self.weights

    @property
    def name(self) -> str:
        """Its name in error messages."""
        return f"the {self.kind} map of layer {self.layer}"

    def to_dict(self, weights: bool = True) -> dict:
        """Plain values. weights : False leaves out the arrays. Default values are not written."""
        values = {"kind": self.kind, "layer": self.layer}
        usual = {"sink": False, "averaged": False, "shared": 1}
        values |= {name: getattr(self, name) for name, value in usual.items() if getattr(self, name) != value}
        if weights:
            values |= {"weights": self.weights.tolist()} | ({} if self.mask is None else {"mask": self.mask.tolist()})
        return values

    def __repr__(self) -> str:
        """One line: kind, layer and shape."""
        heads, queries, keys = self.weights.shape
        return f"AttentionMap({self.kind}, layer {self.layer}: {heads} heads, {queries} queries, {keys} keys)"

    def __eq__(self, other):
        if not isinstance(other, AttentionMap):
            return NotImplemented
        names = ("kind", "layer", "sink", "averaged", "shared")
        return (
            all(getattr(self, name) == getattr(other, name) for name in names)
            and np.array_equal(self.weights, other.weights)
            and (self.mask is None) == (other.mask is None)
            and (self.mask is None or other.mask is None or np.array_equal(self.mask, other.mask))
        )

    def __hash__(self):
        return hash((self.kind, self.layer, self.weights.tobytes()))


@dataclass(frozen=True, repr=False)
class Trace:
    """One text through one model. Raises ValueError when its parts do not fit together; the message says which.

    source : the tokens of `text`.
    target : the tokens of `translation`; () when the model only reads.
    log_probs : natural log of the probability of each target token; () when not known.
    alternatives : for each target token, what the model could have produced instead, most probable first; () for none.
    forced : True if the target was given, False if the model chose it.
    complete : False if a length limit cut the target short.
    level : "pieces", or "words" (made by `select.words`).
    start : the token that the decoder reads before the first target token.
    read_as : the text as the model read it, if not `text`: words in capitals are read as normal words of equal length.
    "" if the text was read as typed. notes : sentences on changes of the weights at import, such as rows scaled to sum
    to 1. longest : the most pieces (<eos> included) of training texts (except one in a thousand), if this text has
    more; else 0.

    >>> trace.translation, [token.text for token in trace.target]
    ('Le chien noir court.', ['Le', 'chien', 'noir', 'court', '.', '<eos>'])
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
    read_as: str = ""
    longest: int = 0
    notes: tuple[str, ...] = ()

    def __post_init__(self):
        steps = self.alternatives or ((),) * len(self.target)
        frozen = {
            "source": tuple(self.source),
            "target": tuple(self.target),
            "maps": tuple(self.maps),
            "notes": tuple(self.notes),
            "log_probs": checks.numbers("log_probs", self.log_probs),
            "alternatives": tuple(map(tuple, steps)),
        }
        for name, value in frozen.items():
            object.__setattr__(self, name, value)
        checks.strings(self)
        if self.level not in LEVELS:
            raise ValueError(f"level must be one of {', '.join(LEVELS)}; got {shown(self.level)}")
        if self.translation and not self.target:
            raise ValueError(f"target must hold the tokens of the translation, {self.translation!r:.80}; got none")
        if not self.source:
            raise ValueError("source must hold at least one token, if only <eos>; got none")
        self._check_fit()

    @classmethod
    def of_model(cls, **fields) -> "Trace":
        """A trace that a model of this package has made: its parts must fit together; their types are not checked."""
        trace = _unchecked(cls, **fields)
        trace._check_fit()
        return trace

    def _check_fit(self) -> None:
        checks.steps(self)
        checks.tokens("source", self.source, self.text)
        checks.tokens("target", self.target, self.translation)
        checks.maps(self)

    @checked
    def queries(self, attention: AttentionMap) -> tuple[Token, ...]:
        """The tokens of the rows of a map of this trace."""
        return queries_and_keys(attention.kind, self.source, self.target, self.start)[0]

    @checked
    def keys(self, attention: AttentionMap) -> tuple[Token, ...]:
        """The tokens of the columns of a map of this trace."""
        keys = queries_and_keys(attention.kind, self.source, self.target, self.start)[1]
        return (*keys, SINK) if attention.sink else keys

    @property
    def given(self) -> int:
        """For a text that a model continued: the number of target tokens of the prompt. A model without a start token
        has the first token of the text before the target."""
        return len(self.source) - (self.start in self.source[:1])

    @checked
    def sides(self, attention: AttentionMap) -> tuple[str, str]:
        """The names of the rows and the columns of a map: target, source or input."""
        return SIDES[attention.kind] if self.target or attention.kind == "encoder" else ("input", "input")

    @checked
    def visible(self, attention: AttentionMap) -> np.ndarray:
        """bool (Q, K): True where a query can attend to a key.

        In a decoder map row t sees keys 0 to t. A target word of several pieces also sees key t + 1, which is the word
        itself, because its later pieces see its earlier ones. A map's own mask hides more. The column of a sink is
        visible to all.
        """
        queries, keys = queries_and_keys(attention.kind, self.source, self.target, self.start)
        seen = visible_keys(attention.kind, queries, len(keys), words=self.level == "words" and bool(self.target))
        if attention.mask is not None:
            seen = seen & attention.mask
        return np.pad(seen, ((0, 0), (0, 1)), constant_values=True) if attention.sink else seen

    @checked
    def map(self, kind: str = "cross", layer: int = -1) -> AttentionMap:
        """The map of one kind and layer, counted from 0; -1 is the last layer. ValueError if there is none."""
        if not self.maps:
            raise ValueError(f"{self.model} has no attention, so it has no map to show; got {kind:.80}")
        layers = {m.layer: m for m in self.maps if m.kind == kind}
        if layers and layer == -1:
            return layers[max(layers)]
        if layer not in layers:
            have = ", ".join(f"{m.kind} {m.layer}" for m in self.maps)
            what, value = ("layer", f"{kind} {layer}") if layers else ("kind", f"{kind:.80}")
            level = f"has at the level of {self.level} ({have})"
            raise ValueError(f"{what} must be one that the trace of {self.model} {level}; got {value}")
        return layers[layer]

    @property
    def log_prob(self) -> float | None:
        """Natural log of the probability of the whole target; None when it is not known or there is no target."""
        return sum(self.log_probs) if self.log_probs else None

    def __repr__(self) -> str:
        """One line: which model, the texts, and how many tokens and maps."""
        arrow = f" -> {shown(self.translation)}" if self.target else ""
        maps = f"{len(self.maps)} map{'' if len(self.maps) == 1 else 's'}"
        counts = f"{len(self.source)} source and {len(self.target)} target {self.level}, {maps}"
        return f"Trace({self.model}: {shown(self.text)}{arrow}; {counts})"

    def show(self, **chosen):
        """The trace as a widget of a notebook (`attnviz.view`, which takes the arguments and raises the errors)."""
        import attnviz

        return attnviz.view(self, **chosen)

    def _repr_html_(self) -> str:
        """In a notebook: the texts, and the probability of each target token."""
        arrow = [f"→ {self.translation}"] if self.target else []
        maps = ", ".join(f"{m.kind} {m.layer} {m.weights.shape}" for m in self.maps)
        table = notebook.token_table(self.target, self.log_probs) if self.target else ""
        lines = [
            self.text,
            *arrow,
            *self.notes,
            f"maps, each with its layer and (heads, queries, keys): {maps or 'none'}",
        ]
        return notebook.document(self.model, lines, table)

    def to_dict(self, weights: bool = True) -> dict:
        """Plain lists, strings and numbers. float32 weights become the same numbers in double precision. The entry
        `counted_from` says that layers, and heads in their lists, count from 0.

        weights : False leaves out the weights of the maps, which are most of the data.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in ("source", "target"):
            values[name] = [asdict(token) for token in values[name]]
        values["start"] = asdict(self.start)
        values["alternatives"] = [[asdict(choice) for choice in step] for step in self.alternatives]
        values["maps"] = [m.to_dict(weights) for m in self.maps]
        notes = values.pop("notes")
        values |= {"log_probs": list(self.log_probs), "counted_from": 0}
        return values | ({"notes": list(notes)} if notes else {})

    @classmethod
    def from_dict(cls, values: dict) -> "Trace":
        """The inverse of `to_dict`. Unknown fields are ignored. ValueError if a field is missing or does not fit."""
        own = _fields_of(cls, values, "trace")
        try:
            for name in ("source", "target"):
                own[name] = tuple(Token(**_fields_of(Token, value, f"{name} token")) for value in own[name])
            if "start" in own:
                own["start"] = Token(**_fields_of(Token, own["start"], "start token"))
            own["maps"] = tuple(AttentionMap(**_fields_of(AttentionMap, value, "map")) for value in own["maps"])
            own["alternatives"] = tuple(
                tuple(Alternative(**_fields_of(Alternative, choice, "alternative")) for choice in step)
                for step in own.get("alternatives", ())
            )
            return cls(**own)
        except TypeError as error:
            raise ValueError(f"trace must have values of the types that to_dict() writes; {error}") from None

    def to_json(self) -> str:
        """`to_dict` as JSON."""
        return json.dumps(self.to_dict(), allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> "Trace":
        """The inverse of `to_json`; errors as in `from_dict`."""
        arguments.check("text", text, str | bytes)
        try:
            values = storage.parse_json(text)
        except ValueError as error:
            raise ValueError(f"trace must be JSON; {error}") from None
        return cls.from_dict(values)


def _unchecked(cls, **values):
    """A frozen data class of these values, and its defaults, without its checks."""
    made = object.__new__(cls)
    vars(made).update(_defaults(cls), **values)
    return made


@functools.cache
def _defaults(cls) -> dict:
    return {field.name: field.default for field in fields(cls) if field.default is not MISSING}


def _fields_of(cls, values, what):
    """The entries of `values` that are fields of cls. Only `alternatives` and fields with a default may be missing."""
    if not isinstance(values, dict):
        raise ValueError(f"{what} must be an object with named fields; got {type(values).__name__}")
    missing = [
        f.name for f in fields(cls) if f.name not in values and f.default is MISSING and f.name != "alternatives"
    ]
    if missing:
        raise ValueError(f"{what} must have the fields {', '.join(missing)} too; got {', '.join(values) or 'none'}")
    return {field.name: values[field.name] for field in fields(cls) if field.name in values}
