"""The calling convention of a user's attention, and the places of weights and context in its result.

Letters: B batch, T queries, S keys, H heads, N = B*H, L layers, D width. The layout of a tensor is a string of axis
names in order, such as `SBD`. Inside, everything is batch-first: query (B, T, D), keys and values (B, S, D), weights
(B, H, T, S), context (B, T, D).
"""

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn

from attnviz.own.capture import Capture, Softmax

QUERY, KEYS, VALUES, MASK, LENGTHS, INPUT = "query", "keys", "values", "mask", "lengths", "input"
BEFORE = "before"  # weights of the steps before, or their sum, as coverage and location-aware attention read them
PAIR, TRIPLE = "query and values", "query, values and keys"  # lists in one parameter, as Keras has them
_ROLES = (  # the first pattern that fits the name of a parameter
    ("", r"past|cache|head_mask|position"),  # as models of the transformers library have them
    (LENGTHS, r"len"),
    (BEFORE, r"coverage|cumul|(prev|last|old)\w*_?(att|align|weight|alpha)|^alignments?$"),
    (MASK, r"mask|pad|visible|hidden_keys"),
    (QUERY, r"quer|dec|^q$|^qs$|^tgt|target"),
    (VALUES, r"^v$|^vs$|value"),
    (KEYS, r"key|^ks?$|enc|memory|annot|src|source|context|^hs$|^h_?s$|outputs?$|states$"),
    (QUERY, r"hidden|state|^s$|^s_|^h$|^h_?t$|prev"),
    (INPUT, r"^x$|input|embed|token|sequence|seq"),
)
# How weights may lie. B1S is BTS with one query. BST and STB: a row for every key. NTS: sentences and heads in one.
WEIGHTS = {
    "batch": ("BHTS", "BTS", "NTS", "BS", "TBS", "BST", "BHST", "SB", "STB", "SBT", "HBTS", "BHS"),
    "alone": ("HTS", "TS", "S", "ST"),
}
CONTEXTS = {"batch": ("BTD", "TBD", "BD"), "alone": ("TD", "D")}
STATES = "(LBD)"  # of a query: the pair of states of an LSTM, of which the first is the query
HEADS = "softmax of each head"
FREE = 9  # the width of what has no matrix to say its width
FORMS = """The forms that are recognised:
  forward(query, keys, values, mask=None): query (B,T,D), (B,1,D) or (B,D); keys and values (B,S,D);
  forward(decoder_hidden, encoder_outputs): in either order, with or without a mask; hidden (B,D) or (layers,B,D);
  forward(x, mask=None): self-attention, with heads or without.
All may be batch-first or sequence-first, or for one sentence without a batch. Weights are (B,S), (B,1,S), (B,T,S) or
(B,H,T,S), and are returned, kept as an attribute, or made by softmax."""


class NotRecognised(ValueError):
    """No form fits; the message describes the result of the trial."""


@dataclass(frozen=True)
class Inputs:
    """query (B, T, Dq), keys (B, S, Dk), values (B, S, Dv), visible (B, S) bool, None: every key. In self-attention the
    query is the keys is the values; a query without values of its own has the keys as values."""

    query: Tensor
    keys: Tensor
    values: Tensor
    visible: Tensor | None = None


@dataclass(frozen=True)
class Outcome:
    """weights (B, H, T, S); context (B, T, D), None if not returned; scores (B, H, T, S) before the softmax, None if it
    is not a softmax of PyTorch."""

    weights: Tensor
    context: Tensor | None
    scores: Tensor | None
    softmaxes: list[Softmax] = field(default_factory=list)


@dataclass(frozen=True)
class Place:
    """A tensor left by a call: its name, such as `result[1]` or `self.attn`, and its axes."""

    name: str
    axes: str


@dataclass(frozen=True)
class MaskForm:
    """The format of a mask. kind : bool, int, additive (0 and -inf), or lengths. hides : does 1 hide a key?"""

    parameter: str
    kind: str
    axes: str
    hides: bool = False

    def make(self, visible: Tensor, queries: int, dtype: torch.dtype) -> Tensor:
        """visible (B, S) -> the mask in the module's format."""
        if self.kind == "lengths":
            return visible.sum(dim=-1)
        keep = visible ^ self.hides
        if self.kind == "bool":
            mask = keep
        elif self.kind == "int":
            mask = keep.long()
        else:
            mask = torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, -torch.inf)
        batch, keys = visible.shape
        shapes = {"BS": (batch, keys), "B1S": (batch, 1, keys), "BTS": (batch, queries, keys)}
        shapes |= {"B11S": (batch, 1, 1, keys), "B1TS": (batch, 1, queries, keys)}
        if self.axes == "SB":
            return mask.T
        if self.axes in ("TS", "S"):  # the same for all sentences
            return mask[0].expand(queries, keys).clone() if self.axes == "TS" else mask[0]
        between = (1,) * (len(self.axes) - 2)
        return mask.view(batch, *between, keys).expand(shapes[self.axes]).clone()


@dataclass(frozen=True)
class Form:
    """How a module is called. roles : parameter -> the tensor passed. query, keys : their axes. many : accepts several
    queries at once. widths : of query, keys and values. causal : a token sees no later token."""

    roles: Mapping[str, str]
    query: str
    keys: str
    many: bool
    widths: tuple[int, int, int]
    weights: Place = Place("", "")  # none in a trial
    context: Place | None = None
    mask: MaskForm | None = None
    needs_mask: bool = False
    causal: bool = False
    extras: Mapping[str, object] = field(default_factory=dict)

    @property
    def given_mask(self) -> MaskForm:
        """The form of its mask. ValueError if it takes none."""
        if self.mask is None:
            raise ValueError("it takes no mask")
        return self.mask

    @property
    def alone(self) -> bool:
        """Takes one sentence without an axis for the batch."""
        return "B" not in self.keys

    @property
    def itself(self) -> bool:
        """Self-attention: one tensor is queries, keys and values."""
        return INPUT in self.roles.values()

    @property
    def separate(self) -> bool:
        """Takes values apart from keys."""
        return bool({VALUES, TRIPLE} & {*self.roles.values()})

    def sentence(self) -> str:
        """The form in one line."""
        keys = self.axes_in_words(self.keys)
        axes = {QUERY: self.axes_in_words(self.query), KEYS: keys, VALUES: keys}
        axes |= {INPUT: keys, BEFORE: f"{'(S)' if self.alone else '(B,S)'} of zeros, as at the first step"}
        axes[PAIR], axes[TRIPLE] = f"[{axes[QUERY]}, {keys}]", f"[{axes[QUERY]}, {keys}, {keys}]"
        given = [f"{name} {axes[role]}" for name, role in self.roles.items()]
        if self.mask is not None:
            given.append(f"{self.mask.parameter} {self.mask_in_words()}")
        comes = [f"context {self.axes_in_words(self.context.axes)}"] if self.context else []
        comes.append(f"weights {self.axes_in_words(self.weights.axes)}{_from(self.weights.name)}")
        order = "sequence-first" if self.keys == "SBD" else "one sentence at a time" if self.alone else "batch-first"
        kind = "self-attention" if self.itself else "attention"
        causal = ", causal: a token sees none after it" if self.causal else ""
        return f"{kind}, {order}: ({', '.join(given)}) -> {', '.join(comes)}{causal}"

    def axes_in_words(self, axes: str) -> str:
        """`BTD` -> `(B,T,D)`; `(B,1,D)` where only one query is taken at once."""
        if axes == STATES:
            return "((L,B,D), (L,B,D))"
        letters = ["1" if letter == "T" and not self.many else letter for letter in axes]
        return f"({','.join('B*H' if letter == 'N' else letter for letter in letters)})"

    def mask_in_words(self) -> str:
        """How the mask is given."""
        mask = self.given_mask
        if mask.kind == "lengths":
            return "(B) numbers of visible keys"
        shape = f"({','.join(mask.axes)})"
        if mask.kind == "additive":
            return f"{shape} added to the scores, -inf hides"
        return f"{shape} {mask.kind}, {'1 hides a key' if mask.hides else '1 keeps a key'}"


def _from(name: str) -> str:
    if name.startswith("softmax"):
        return " seen at its softmax" if name != HEADS else " seen at the softmax of each head"
    return f" kept as {name}" if name.startswith("self.") else ""


def role_of(name: str) -> str | None:
    """The role implied by the name of a parameter; None if there is none."""
    return next((role for role, pattern in _ROLES if re.search(pattern, name.lower())), "") or None


def arrange(tensor: Tensor, axes: str) -> Tensor | tuple[Tensor, Tensor]:
    """A query (B, T, D) or keys (B, S, D) -> a copy with the layout `axes`."""
    if axes == STATES:
        states: Any = arrange(tensor, "LBD")
        return states, states.flip(-1)
    if axes in ("BTD", "BSD"):
        return tensor.clone()
    if axes in ("TBD", "SBD"):  # contiguous, as a network's outputs are, so that a wrong view() runs and is found
        return tensor.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    if axes == "BD":
        return tensor[:, 0].clone()
    if axes == "LBD":  # the last layer's state is the query; the layer below holds other numbers
        last = tensor[:, 0]
        return torch.stack([last.flip(0) * 0.5 - 0.25, last])
    return tensor[0, 0].clone() if axes == "D" else tensor[0].clone()


def as_context(tensor: Tensor, axes: str) -> Tensor:
    """A context with the layout `axes` -> (B, T, D)."""
    if axes == "TBD":
        return tensor.transpose(0, 1)
    if axes == "BTD":
        return tensor
    return tensor.unsqueeze(1) if axes == "BD" else tensor.reshape(1, -1, tensor.shape[-1])


def as_weights(tensor: Tensor, axes: str, batch: int) -> Tensor:
    """Weights with the layout `axes` -> (B, H, T, S). batch : B."""
    if axes == "NTS":
        return tensor.reshape(batch, -1, *tensor.shape[1:])
    for letter in "BHTS":
        if letter not in axes:
            tensor, axes = tensor.unsqueeze(0), letter + axes
    return tensor.permute([axes.index(letter) for letter in "BHTS"])


def fits(shape: torch.Size, axes: str, sizes: Mapping[str, int]) -> bool:
    """Has a tensor these axes? sizes : of B, T and S; other axes may have any."""
    if axes == "NTS":
        return len(shape) == 3 and shape[0] % sizes["B"] == 0 and shape[1:] == (sizes["T"], sizes["S"])
    return len(shape) == len(axes) and all(sizes.get(axis, length) == length for axis, length in zip(axes, shape))


class ShapeChanged(ValueError):
    """For other sizes the module returned a different layout than in the trial."""


class Subject:
    """A user's module, and how it is called. Every call is in evaluation mode and does not change the module."""

    def __init__(self, target: Callable, form: Form, title: str = ""):
        self.target, self.form = target, form
        self.title = title or getattr(target, "__name__", "") or type(target).__name__

    @property
    def module(self) -> nn.Module | None:
        """The module; None for a function."""
        return self.target if isinstance(self.target, nn.Module) else None

    @property
    def dtype(self) -> torch.dtype:
        """Of the parameters."""
        floats = [p.dtype for p in self.module.parameters() if p.is_floating_point()] if self.module else []
        return floats[0] if floats else torch.float32

    def inputs(self, batch: int, queries: int, keys: int, seed: int = 0) -> Inputs:
        """Random inputs of these sizes; in self-attention there are as many queries as keys."""
        generator = torch.Generator().manual_seed(seed)
        widths = self.form.widths
        counts = (keys if self.form.itself else queries, keys, keys)
        tensors = [torch.randn(batch, n, width, generator=generator) for n, width in zip(counts, widths)]
        query, keyed, values = (tensor.to(self.dtype) for tensor in tensors)
        if self.form.itself:
            query = values = keyed
        return Inputs(query, keyed, values if self.form.separate else keyed)

    def run(self, inputs: Inputs, dropout: bool = False, frozen: tuple = (), train: bool = False) -> Outcome:
        """Call the module. dropout : leave its dropout as it is. frozen : see Capture. Raises what the module raises,
        and ShapeChanged."""
        if self.form.alone:
            parts = [self._one(_sentence(inputs, b), dropout, frozen, train) for b in range(len(inputs.query))]
            return _joined(parts, 0)
        if not self.form.many and inputs.query.shape[1] > 1:
            steps = [replace(inputs, query=inputs.query[:, t : t + 1]) for t in range(inputs.query.shape[1])]
            return _joined([self._one(step, dropout, frozen, train) for step in steps], 1)
        return self._one(inputs, dropout, frozen, train)

    def weights(self, inputs: Inputs) -> Tensor:
        """The weights alone (B, H, T, S), in the mode that the module is in. If the module returns or stores them, the
        call is not captured, to save time in training."""
        place = self.form.weights
        if place.name.startswith("softmax") or self.form.alone or (not self.form.many and inputs.query.shape[1] > 1):
            training = self.module is not None and self.module.training
            return self.run(inputs, dropout=training, train=training).weights
        result = _called(self.target, self.given(inputs))
        tensor = left_by(result, self.module if place.name.startswith("self.") else None, []).get(place.name)
        return as_weights(self._fitting(place, tensor, inputs), place.axes, len(inputs.query))

    def _one(self, inputs: Inputs, dropout: bool, frozen: tuple, train: bool) -> Outcome:
        left, softmaxes = self.call(self.given(inputs), dropout, frozen, train)
        place, context, batch = self.form.weights, None, len(inputs.query)
        own = self._fitting(place, left.get(place.name), inputs)
        if self.form.context is not None:
            of_context = self._fitting(self.form.context, left.get(self.form.context.name), inputs)
            context = as_context(of_context, self.form.context.axes)
        scores = _scores(softmaxes, own, place.axes, batch)
        return Outcome(as_weights(own, place.axes, batch), context, scores, softmaxes)

    def _fitting(self, place: Place, tensor: Tensor | None, inputs: Inputs) -> Tensor:
        """The tensor that a call left at a place. ShapeChanged if its layout differs."""
        sizes = {"B": inputs.query.shape[0], "T": inputs.query.shape[1], "S": inputs.keys.shape[1]}
        if tensor is None or not fits(tensor.shape, place.axes, sizes):
            shape = "nothing" if tensor is None else tuple(tensor.shape)
            raise ShapeChanged(f"{place.name} must have the axes {self.form.axes_in_words(place.axes)}; got {shape}")
        return tensor

    def given(self, inputs: Inputs) -> dict:
        """The arguments of a call, by the names of the parameters."""
        form = self.form
        tensors = {QUERY: (inputs.query, form.query), KEYS: (inputs.keys, form.keys)}
        tensors |= {VALUES: (inputs.values, form.keys), INPUT: (inputs.keys, form.keys)}
        tensors[BEFORE] = torch.zeros_like(inputs.keys[..., 0]), "SD" if form.alone else "BSD"
        lists = {PAIR: (QUERY, KEYS), TRIPLE: (QUERY, VALUES, KEYS)}
        arguments = {
            name: [arrange(*tensors[part]) for part in lists[role]] if role in lists else arrange(*tensors[role])
            for name, role in form.roles.items()
        } | dict(form.extras)
        visible = inputs.visible
        if visible is None and form.needs_mask and form.mask:
            visible = torch.ones(inputs.keys.shape[:2], dtype=torch.bool)
        if visible is not None and form.mask is not None:
            arguments[form.mask.parameter] = form.mask.make(visible, inputs.query.shape[1], inputs.keys.dtype)
        return arguments

    def call(self, arguments: dict, dropout: bool = False, frozen: tuple = (), train: bool = False):
        """Arguments by name -> the tensors left by the call, by name, and its softmaxes."""
        modes = {part: part.training for part in self.module.modules()} if self.module else {}
        if self.module:
            self.module.train(train)
        try:
            with Capture(dropout, frozen) as capture:
                result = _called(self.target, arguments)
        finally:
            for part, mode in modes.items():
                part.training = mode
        return left_by(result, self.module, capture.softmaxes), capture.softmaxes


def _called(target: Callable, arguments: dict):
    parameters = inspect.signature(target.forward if isinstance(target, nn.Module) else target).parameters
    positional = [name for name, p in parameters.items() if p.kind is p.POSITIONAL_ONLY]
    first = [arguments[name] for name in positional if name in arguments]
    return target(*first, **{name: value for name, value in arguments.items() if name not in positional})


def left_by(result, module: nn.Module | None, softmaxes: list[Softmax]) -> dict[str, Tensor]:
    """The tensors that a call leaves: returned, kept as attributes, made by softmax."""
    left = {}
    if isinstance(result, Tensor):
        left["result"] = result
    elif isinstance(result, Mapping):
        left |= {f"result[{key!r}]": value for key, value in result.items()}
    elif isinstance(result, tuple | list):
        left |= {f"result[{index}]": value for index, value in enumerate(result)}
    elif hasattr(result, "__dict__"):
        left |= {f"result.{key}": value for key, value in vars(result).items()}
    for path, part in module.named_modules() if module else ():
        prefix = f"self.{path}." if path else "self."
        left |= {prefix + name: value for name, value in vars(part).items() if isinstance(value, Tensor)}
    left |= {f"softmax {index}": softmax.weights for index, softmax in enumerate(softmaxes)}
    if len(softmaxes) > 1 and len({softmax.weights.shape for softmax in softmaxes}) == 1:  # heads one after the other
        left[HEADS] = torch.stack([softmax.weights for softmax in softmaxes], dim=-3)
    return {name: value for name, value in left.items() if isinstance(value, Tensor) and value.is_floating_point()}


def _scores(softmaxes: list[Softmax], weights: Tensor, axes: str, batch: int) -> Tensor | None:
    """The scores whose softmax is these weights, which may since have been transposed or got another axis."""
    for softmax in softmaxes:
        if softmax.scores is None or softmax.weights.numel() != weights.numel():
            continue
        for turned in (False, True) if softmax.weights.ndim > 1 else (False,):
            made, scores = (x.mT if turned else x for x in (softmax.weights, softmax.scores))
            alike = made.squeeze().shape == weights.squeeze().shape
            if alike and torch.allclose(made.reshape(weights.shape).to(weights.dtype), weights, atol=1e-6):
                return as_weights(scores.reshape(weights.shape), axes, batch)
    return None


def _sentence(inputs: Inputs, index: int) -> Inputs:
    rows = slice(index, index + 1)
    visible = None if inputs.visible is None else inputs.visible[rows]
    return Inputs(inputs.query[rows], inputs.keys[rows], inputs.values[rows], visible)


def _joined(parts: list[Outcome], dim: int) -> Outcome:
    """Outcomes of sentences (0) or of queries (1) as the outcome of all."""
    along = 0 if dim == 0 else 2
    weights = torch.cat([part.weights for part in parts], dim=along)
    contexts = [part.context for part in parts if part.context is not None]
    scores = [part.scores for part in parts if part.scores is not None]
    whole = torch.cat(scores, dim=along) if len(scores) == len(parts) else None
    return Outcome(weights, torch.cat(contexts, dim=dim) if contexts else None, whole, parts[0].softmaxes)
