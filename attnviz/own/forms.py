"""The calling convention of a user's attention, and the places of weights and context in its result.

Letters: B batch, T queries, S keys, H heads, N = B*H, L layers, D width. The layout of a tensor is a string of axis
names in order, such as `SBD`. Inside, everything is batch-first: query (B, T, D), keys and values (B, S, D), weights
(B, H, T, S), context (B, T, D).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import torch
from torch import Tensor

QUERY, KEYS, VALUES, MASK, LENGTHS, INPUT = "query", "keys", "values", "mask", "lengths", "input"
STATE = "state"  # of a decoder, beside its output, which is the query
CELL = "cell"  # of an LSTM, beside its state, which is the query: both are of the layout `(LBD)` or so
BEFORE = "before"  # weights of the steps before, or their sum, as coverage and location-aware attention read them
ROWS = "rows"  # a mask (B, T) that lies over queries, and hides none of them
MASK_AXES = ("BS", "B1S", "BTS", "B11S", "B1TS", "SB", "TS", "S", "1SB")
KEEP, HIDE = "keep", "hide"  # what 1 in a mask does
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
_KEEPS_WORDS = re.compile(
    r"\b(1s?|true|ones?|nonzero|non-zero)\b\W{0,6}[^.;,\n]{0,25}?"
    r"\b(keep|keeps|kept|visible|valid|real|attend|attended|allowed?|unmasked)\b",
    re.I,
)
_HIDES_WORDS = re.compile(
    r"[-−](inf|infinity|∞|\d+e\d+)\b.{0,30}mask\w* (has|have|is|are|=|==) (1|true)\b"
    r"|\b(indices|positions|elements|entries|tokens|keys) (that are |which are )?to be (masked|hidden|ignored)"
    r"|\b(1s?|true|ones?|nonzero|non-zero)\b\W{0,6}[^.;,\n]{0,25}?"
    r"\b(hide|hides|hidden|pad|pads|padding|padded|ignored?|masked|excluded?|blocked|forbidden|not allowed)\b",
    re.I,
)
_PYTORCH = re.compile(r"^(src_|tgt_|memory_)?key_padding_mask$|^attn_mask$|^encoder_padding_mask$")
_TIMES = re.compile(
    r"mask\w*(\.\w+\(\))?\s*\*\s*-?\s*(1e|float|torch\.finfo|10\s*\*\*|inf\b|\d{4})", re.I
)  # as in Keras
# How weights may lie. B1S is BTS with one query. BST and STB: a row for every key. NTS: sentences and heads in one.
WEIGHTS = {
    "batch": ("BHTS", "BTS", "NTS", "BS", "TBS", "BST", "BHST", "SB", "STB", "SBT", "HBTS", "BHS", "TSBH"),
    "alone": ("HTS", "TS", "S", "ST"),
}
CONTEXTS = {"batch": ("BTD", "TBD", "BD", "BHD"), "alone": ("TD", "D")}  # BHD: of pooling with H learnt queries
STATES = "(LBD)"  # the states h and c of an LSTM
# What a query may be read from: the output of a decoder, and its states, by layer. One step's output is `h[-1]`.
OUTPUT, TOP = "output", ("output", "h[-1]", "h")
LAYERS = ("h[-1]", "h[-2]", "h[0]")  # of three
PARTS = {"LBD": LAYERS, STATES: (*LAYERS, "c[-1]", "c[0]"), "1BD": ("h[-1]",)}
PARTS |= {"(1BD)": ("h[-1]", "c[-1]"), "(BD)": ("h", "c"), "BD": ("h",)}
HEADS = "softmax of each head"
FREE = 9  # the width of what has no matrix to say its width
FORMS = """The forms that are recognised:
  forward(query, keys, values, mask=None): query (B,T,D), (B,1,D) or (B,D); keys and values (B,S,D);
  forward(decoder_hidden, encoder_outputs): in either order, with or without a mask; hidden (B,D) or (layers,B,D);
  forward(x, mask=None): self-attention, with heads or without; or pooling, with a context (B,D) and weights (B,S).
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

    def sentence(self, index: int) -> "Inputs":
        """Those of one sentence, in a batch of one."""
        rows, visible = slice(index, index + 1), self.visible
        return Inputs(self.query[rows], self.keys[rows], self.values[rows], None if visible is None else visible[rows])

    @property
    def words(self) -> str:
        """Their sizes, such as `1 sentence, 2 queries, 3 keys`."""
        counts = len(self.query), self.query.shape[1], self.keys.shape[1]
        names = zip(counts, ("sentence", "query", "key"), ("sentences", "queries", "keys"))
        return ", ".join(f"{count} {name if count == 1 else several}" for count, name, several in names)


@dataclass(frozen=True)
class Place:
    """A tensor left by a call: its name, such as `result[1]` or `self.attn`, and its axes. log : its logarithms."""

    name: str
    axes: str
    log: bool = False


@dataclass(frozen=True)
class MaskForm:
    """The format of a mask. kind : bool, int, additive (0 and -inf), or lengths. hides : does 1 hide a key?"""

    parameter: str
    kind: str
    axes: str
    hides: bool = False
    number: float = -torch.inf  # that is added for a hidden key

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
            mask = torch.zeros(keep.shape, dtype=dtype).masked_fill(~keep, self.number)
        batch, keys = visible.shape
        shapes = {"BS": (batch, keys), "B1S": (batch, 1, keys), "BTS": (batch, queries, keys)}
        shapes |= {"B11S": (batch, 1, 1, keys), "B1TS": (batch, 1, queries, keys)}
        if self.axes in ("SB", "1SB"):
            return mask.T if self.axes == "SB" else mask.T[None]
        if self.axes in ("TS", "S"):  # the same for all sentences
            return mask[0].expand(queries, keys).clone() if self.axes == "TS" else mask[0]
        between = (1,) * (len(self.axes) - 2)
        return mask.view(batch, *between, keys).expand(shapes[self.axes]).clone()


@dataclass(frozen=True)
class Form:
    """How a module is called. roles : parameter -> the tensor passed. query, keys : their axes. many : accepts several
    queries at once. widths : of query, keys and values. causal : a token sees no later token. state : the axes of a
    decoder's states that come beside the query. reads : of PARTS, what the weights depend on."""

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
    state: str = ""
    reads: tuple[str, ...] = ()

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
    def pools(self) -> bool:
        """Takes no query: that is learnt, or none."""
        return not {INPUT, QUERY, PAIR, TRIPLE} & {*self.roles.values()}

    @property
    def separate(self) -> bool:
        """Takes values apart from keys."""
        return bool({VALUES, TRIPLE} & {*self.roles.values()})

    @property
    def parts(self) -> tuple[str, ...]:
        """What may hold the query; () where that is plain."""
        if self.state:
            return OUTPUT, *PARTS[self.state]
        return () if self.query == "BD" else PARTS.get(self.query, ())

    @property
    def holders(self) -> tuple[str, ...]:
        """The parts of the states that get the query; the others get other numbers."""
        if self.reads and not {*TOP} & {*self.reads}:
            return self.reads[:1]
        return tuple(part for part in self.parts if part in TOP[1:])

    def part(self, arguments: dict, part: str) -> Tensor:
        """A part among the arguments of a call (B, D): a view."""
        names = {role: name for name, role in self.roles.items()}
        if part == OUTPUT:
            output = arguments[names[QUERY]]
            return output if self.query == "BD" else output.select(self.query.index("T"), -1)
        held = arguments[names[STATE if self.state else CELL if part[0] == "c" and CELL in names else QUERY]]
        held = held if isinstance(held, Tensor) else held[part.startswith("c")]
        return held[int(part[2:-1])] if "[" in part else held

    def name_of(self, part: str) -> str:
        """A part in the words of the module, such as `hidden[-1]`."""
        names = {role: name for name, role in self.roles.items()}
        if part == OUTPUT:
            return names[QUERY]
        name = names[STATE if self.state else QUERY]
        axes = self.state or self.query
        part = part[0] if "1" in axes else part
        part = "h[1]" if part == "h[-2]" and "h[0]" in self.reads and "h[-1]" not in self.reads else part
        if CELL in names:
            return part.replace("h", names[QUERY], 1) if part[0] == "h" else part.replace("c", names[CELL], 1)
        return f"{part} of {name}" if axes.startswith("(") else part.replace("h", name, 1)

    def sentence(self) -> str:
        """The form in one line."""
        keys = self.axes_in_words(self.keys)
        own = self.query[1:-1] if CELL in self.roles.values() else self.query
        axes = {QUERY: self.axes_in_words(own), CELL: self.axes_in_words(own), KEYS: keys, VALUES: keys}
        axes |= {INPUT: keys, STATE: self.axes_in_words(self.state)}
        axes[BEFORE] = f"{'(S)' if self.alone else '(B,S)'} of zeros, as at the first step"
        axes[ROWS] = f"{'(T)' if self.alone else '(B,T)'} bool, a row for each query, all 1"
        axes[PAIR], axes[TRIPLE] = f"[{axes[QUERY]}, {keys}]", f"[{axes[QUERY]}, {keys}, {keys}]"
        given = [f"{name} {axes[role]}" for name, role in self.roles.items()]
        if self.mask is not None:
            given.append(f"{self.mask.parameter} {self.mask_in_words()}")
        comes = [f"context {self.axes_in_words(self.context.axes)}"] if self.context else []
        logs = "logarithms of " if self.weights.log else ""
        comes.append(f"{logs}weights {self.axes_in_words(self.weights.axes)}{_from(self.weights.name)}")
        order = "sequence-first" if self.keys == "SBD" else "one sentence at a time" if self.alone else "batch-first"
        kind = "self-attention" if self.itself else "pooling" if self.pools else "attention"
        causal = ", causal: a token sees none after it" if self.causal else ""
        asks = f"; it asks with {' and '.join(map(self.name_of, self.reads))}" if self.state and self.reads else ""
        return f"{kind}, {order}: ({', '.join(given)}) -> {', '.join(comes)}{causal}{asks}"

    def axes_in_words(self, axes: str) -> str:
        """`BTD` -> `(B,T,D)`; `(B,1,D)` where only one query is taken at once."""
        if axes.startswith("("):
            return f"({', '.join([self.axes_in_words(axes[1:-1])] * 2)})"
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


def mask_forms(names: list[str]) -> Iterator[MaskForm]:
    """The formats of a mask, the usual ones first."""
    for name in names:
        if role_of(name) == LENGTHS:
            yield MaskForm(name, "lengths", "B")
    masks = [name for name in names if role_of(name) == MASK or "mask" in name.lower()]
    for name, kind, axes in product(masks, ("bool", "int", "additive"), MASK_AXES):
        yield MaskForm(name, kind, axes)
    for name in names:
        if role_of(name) == MASK:
            yield MaskForm(name, "lengths", "B")


def meant(code: str, mask: MaskForm, stated: str | None = None) -> tuple[str, str]:
    """The meaning of 1 in the mask, and its source: the caller, a docstring or comment, or the name. code : of the
    module."""
    if stated:
        return stated, "you say"
    lines = [line for line in _remarks(code).splitlines() if "#" in line or '"' in line or ":" in line]
    text = "\n".join(line for line in lines if "mask" in line.lower())
    if _HIDES_WORDS.search(text) and not _KEEPS_WORDS.search(text):
        return HIDE, "its docstring or comment says"
    if _KEEPS_WORDS.search(text) and not _HIDES_WORDS.search(text):
        return KEEP, "its docstring or comment says"
    name = mask.parameter.lower()
    if name == "attn_mask" and "scaled_dot_product_attention(" in code:
        return KEEP, "attn_mask means, as in PyTorch's scaled_dot_product_attention,"
    if _PYTORCH.search(name):
        return HIDE, f"{mask.parameter} means, as in PyTorch,"
    if "pad" in name:  # 1 hides in some textbooks and keeps in others
        return HIDE if mask.hides else KEEP, ""
    if _TIMES.search(code):
        return HIDE, "its code, which multiplies it by a large negative number, says"
    return KEEP, "most textbooks mean"


def _remarks(code: str) -> str:
    """Its comments and docstrings; a comment on code of a mask begins with `mask`."""
    commented = [f"{'mask ' * ('mask' in line)}{line[line.index('#') :]}" for line in code.splitlines() if "#" in line]
    documented = re.findall(r'"""(.*?)"""|\'\'\'(.*?)\'\'\'', code, re.S)
    return "\n".join([*commented, *(f'"{line}' for pair in documented for part in pair for line in part.splitlines())])


def arrange(tensor: Tensor, axes: str) -> Tensor | tuple[Tensor, Tensor]:
    """A query (B, T, D) or keys (B, S, D) -> a copy with the layout `axes`."""
    if axes.startswith("("):
        states: Any = arrange(tensor, axes[1:-1])
        return states, states.flip(-1) / 2
    if axes in ("BTD", "BSD"):
        return tensor.clone()
    if axes in ("TBD", "SBD"):  # contiguous, as a network's outputs are, so that a wrong view() runs and is found
        return tensor.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    if axes == "BD":
        return tensor[:, -1].clone()
    if axes == "1BD":
        return tensor[None, :, -1].clone()
    if axes == "LBD":  # three layers, so that no pair is mistaken for them; the query comes to its `holders`
        return torch.randn(3, *tensor[:, -1].shape, generator=torch.Generator().manual_seed(9)).to(tensor)
    return tensor[0, 0].clone() if axes == "D" else tensor[0].clone()


def as_context(tensor: Tensor, axes: str) -> Tensor:
    """A context with the layout `axes` -> (B, T, D)."""
    if axes == "TBD":
        return tensor.transpose(0, 1)
    if axes == "BTD":
        return tensor
    if axes == "BHD":
        return tensor.flatten(1).unsqueeze(1)
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
