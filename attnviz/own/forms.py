"""The calling convention of a user's attention, and the places of weights and context in its result.

Letters: B batch, T queries, S keys, H heads, N = B*H, L layers, D width. The layout of a tensor is a string of axis
names in order, such as `SBD`; `BDS` and `BD1S` are channels first, `BS` are numbers. Inside, everything is batch-first:
query (B, T, D), keys and values (B, S, D), weights (B, H, T, S), context (B, T, D).
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import permutations, product
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

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
    (BEFORE, r"coverage|cumul|(prev|last|old)\w*_?(att|align|weight|alpha)|^alignments?$|weights_cat"),
    (MASK, r"mask|pad|visible|hidden_keys|^adj"),
    (QUERY, r"quer|dec|^q$|^qs$|^tgt|target"),
    (VALUES, r"^v$|^vs$|value"),
    (KEYS, r"key|^ks?$|enc|memory|annot|src|source|context|^hs$|^h_?s$|outputs?$|states$"),
    (QUERY, r"hidden|state|^s$|^s_|^h$|^h_?t$|prev"),
    (INPUT, r"^x$|input|embed|token|sequence|seq"),
)
# Of the parameters of a decoder's step: its output or its input, beside its states; and the cell of an LSTM.
_OUTPUTS = re.compile(r"^((rnn|lstm|gru|dec(oder)?|cell)_?)?out(put)?s?(_?t)?$|^inputs?$|embed|_emb$")
_CELLS = re.compile(r"^c$|^c_[tn0x]|cell")
_STATES = re.compile(r"hid|state|^h$|^h[_xnct]|^hs?$")
# How weights may lie. B1S is BTS with one query. BST and STB: a row for every key. NTS: sentences and heads in one.
WEIGHTS = {
    "batch": ("BHTS", "BTS", "NTS", "BS", "TBS", "BST", "BHST", "SB", "STB", "SBT", "HBTS", "BHS", "TSBH"),
    "alone": ("HTS", "TS", "S", "ST"),
}
CONTEXTS = {"batch": ("BTD", "TBD", "BD", "BHD"), "alone": ("TD", "D", "BTD")}  # BHD: of pooling with H learnt queries
CONTEXTS |= {"BDS": ("BTD", "BD", "BDT"), "BD1S": ("BD1T",), "BS": ("B",)}  # by the axes of the keys
BEFORE_AXES = ("BS", "B2S", "B1S")  # B2S: the weights of the step before, and their sum over all steps
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
All may be batch-first, sequence-first, channels first, or for one sentence without a batch. Weights are (B,S),
(B,1,S), (B,T,S) or (B,H,T,S), and are returned, kept as an attribute, or made by softmax."""


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
    """A tensor left by a call: its name, such as `result[1]` or `self.attn`, and its axes. log : its logarithms. null :
    how many learnt keys, or zeros, come before and after the keys."""

    name: str
    axes: str
    log: bool = False
    null: tuple[int, int] = (0, 0)


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
    decoder's states that come beside the query. reads : of PARTS, what the weights depend on. before : the axes of the
    weights of the steps before. count : of the keys that it takes, to which zeros fill up; 0 for any."""

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
    before: str = "BS"
    count: int = 0

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

    def filled(self, inputs: Inputs) -> Inputs:
        """Inputs with zeros after the keys, up to `count`. ValueError for more keys."""
        if (more := self.count and self.count - inputs.keys.shape[1]) < 0:
            raise ValueError(f"it is built for {self.count} keys; got {inputs.keys.shape[1]}: build it for more")
        keys, values = (F.pad(x, (0, 0, 0, more)) if more else x for x in (inputs.keys, inputs.values))
        return Inputs(inputs.query, keys, values, None if inputs.visible is None else F.pad(inputs.visible, (0, more)))

    @property
    def filling(self) -> str:
        """What becomes of fewer keys than `count`, in words; "" for any number."""
        words = "it takes {} keys: zeros fill up fewer, as in PyTorch's older tutorial, and get weight"
        return words.format(self.count) * bool(self.count)

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
        axes[BEFORE] = f"{'(S)' if self.alone else self.axes_in_words(self.before)} of zeros, as at the first step"
        axes[ROWS] = f"{'(T)' if self.alone else '(B,T)'} bool, a row for each query, all 1"
        axes[PAIR], axes[TRIPLE] = f"[{axes[QUERY]}, {keys}]", f"[{axes[QUERY]}, {keys}, {keys}]"
        given = [f"{name} {axes[role]}" for name, role in self.roles.items()]
        if self.mask is not None:
            given.append(f"{self.mask.parameter} {self.mask_in_words()}")
        comes = [f"context {self.axes_in_words(self.context.axes)}"] if self.context else []
        logs, own = "logarithms of " if self.weights.log else "", self.axes_in_words(self.weights.axes)
        if extra := sum(self.weights.null):
            place = f"{'first' if self.weights.null[0] else 'last'}{' 2' * (extra > 1)}"
            own = own.replace("S", f"S+{extra}, the {place} to no key")
        comes.append(f"{logs}weights {own}{_from(self.weights.name)}")
        order = {"SBD": "sequence-first", "BDS": "channels first", "BD1S": "channels first", "BS": "of numbers"}
        words = "one sentence at a time" if self.alone else order.get(self.keys, "batch-first")
        kind = "self-attention" if self.itself else "pooling" if self.pools else "attention"
        causal = ", causal: a token sees none after it" if self.causal else ""
        asks = f"; it asks with {' and '.join(map(self.name_of, self.reads))}" if self.state and self.reads else ""
        return f"{kind}, {words}: ({', '.join(given)}) -> {', '.join(comes)}{causal}{asks}"

    def axes_in_words(self, axes: str) -> str:
        """`BTD` -> `(B,T,D)`; `(B,1,D)` where only one query is taken at once."""
        if axes.startswith("("):
            return f"({', '.join([self.axes_in_words(axes[1:-1])] * 2)})"
        words = {"N": "B*H"} | ({} if self.many else {"T": "1"}) | ({"B": "1"} if self.alone else {})
        words |= {"S": str(self.count)} if self.count else {}
        return f"({','.join(words.get(letter, letter) for letter in axes)})"

    def mask_in_words(self) -> str:
        """How the mask is given."""
        mask = self.given_mask
        if mask.kind == "lengths":
            return "(B) numbers of visible keys"
        shape = f"({','.join(mask.axes)})"
        bits = f"{mask.kind}, 1 {'hides' if mask.hides else 'keeps'} a key"
        return f"{shape} {'added to the scores, -inf hides' if mask.kind == 'additive' else bits}"


def per_head(form: Form, weights: Tensor, made: list[Tensor]) -> Place:
    """The place of the weights (B, H, T, S); where they are the mean of heads, that of the heads. made : by softmax."""
    for index, heads in enumerate(made if form.many and weights.shape[1] == 1 else ()):
        axes = "HTS" if form.alone else ("NTS", "BHTS")[heads.ndim == 4]
        if len(axes) != heads.ndim or heads.shape[-2:] != weights.shape[-2:] or len(heads) % len(weights):
            continue
        mean = as_weights(heads, axes, len(weights)).mean(dim=1, keepdim=True)
        several = heads.shape[-3] > 1 and (heads.ndim == 4 or len(heads) > len(mean)) and mean.shape == weights.shape
        if several and torch.allclose(mean, weights, atol=1e-6):
            return Place(f"softmax {index}", axes)
    return form.weights


def _from(name: str) -> str:
    place = f" kept as {name}" if name.startswith("self.") else " seen at its softmax"
    return f" seen at the {HEADS}" if name == HEADS else place if name[:4] in ("self", "soft") else ""


def role_of(name: str) -> str | None:
    """The role implied by the name of a parameter; None if there is none."""
    return next((role for role, pattern in _ROLES if re.search(pattern, name.lower())), "") or None


def assignments(parameters: dict) -> Iterator[dict[str, str]]:
    """Which parameter may be which tensor, the likely first."""
    roles = {name: role_of(name) for name in parameters}
    needed = [name for name, p in parameters.items() if p.default is p.empty and roles[name] not in (MASK, LENGTHS)]
    before = {name: BEFORE for name in needed if roles[name] == BEFORE}
    needed = [name for name in needed if name not in before]
    more = [name for name in parameters if name not in needed and roles[name] in (QUERY, KEYS, VALUES)]
    for names in (needed + more, needed) if more else (needed,):
        if len(names) == 1:
            yield from ({names[0]: role} | before for role in (INPUT, PAIR, TRIPLE, KEYS))
        elif len(names) in (2, 3):
            yield from (order | before for order in (*_with_states(names, roles), *_orders(names, roles)))


def _with_states(names: list[str], roles: dict) -> Iterator[dict[str, str]]:
    """Roles of the output of a decoder, its states, and keys, or of state, cell and keys, where the names say so."""
    outputs = [name for name in names if _OUTPUTS.search(name.lower())]
    states = [name for name in names if roles[name] == QUERY and name not in outputs and _STATES.search(name.lower())]
    cells = [name for name in names if _CELLS.search(name.lower()) and name not in (*outputs, *states)]
    for first, role, second in ((outputs, STATE, states), (states, CELL, cells)):
        if len(names) == 3 and len(first) == len(second) == 1:
            own = {first[0]: QUERY, second[0]: role}
            yield {name: own.get(name, KEYS) for name in names}


def _orders(names: list[str], roles: dict) -> Iterator[dict[str, str]]:
    """Roles of two or three tensors. A role implied by a name is fixed, unless another name implies the same role."""
    wanted = (QUERY, KEYS, VALUES)[: len(names)]
    says = {name: KEYS if roles[name] == VALUES and len(names) == 2 else roles[name] for name in names}
    projected = [name for name in names if "proj" in name or name.startswith("processed")]
    if len(names) == 3 and [says[name] for name in projected] == [KEYS]:  # so the others are values, as in Tacotron 2
        says |= {name: VALUES for name in names if says[name] == KEYS and name not in projected}
    for order in permutations(wanted):
        if all(says[name] == role or says[name] not in wanted for name, role in zip(names, order)):
            yield dict(zip(names, order))
    if len({says[name] for name in names} & set(wanted)) < sum(says[name] in wanted for name in names):
        yield from (dict(zip(names, order)) for order in permutations(wanted))  # two names say the same


def mask_forms(names: list[str]) -> Iterator[MaskForm]:
    """The formats of a mask, the usual ones first."""
    yield from (MaskForm(name, "lengths", "B") for name in names if role_of(name) == LENGTHS)
    masks = [name for name in names if role_of(name) == MASK or "mask" in name.lower()]
    yield from (MaskForm(*parts) for parts in product(masks, ("bool", "int", "additive"), MASK_AXES))
    yield from (MaskForm(name, "lengths", "B") for name in names if role_of(name) == MASK)


def arrange(tensor: Tensor, axes: str) -> Tensor | tuple[Tensor, Tensor]:
    """A query (B, T, D) or keys (B, S, D) -> a copy with the layout `axes`."""
    if axes.startswith("("):
        states: Any = arrange(tensor, axes[1:-1])
        return states, states.flip(-1) / 2
    if axes in ("BTD", "BSD", "1SD"):
        return tensor.clone()
    if axes in ("BDT", "BDS", "BD1T", "BD1S"):
        channels = tensor.mT.clone(memory_format=torch.contiguous_format)
        return channels.unsqueeze(2) if "1" in axes else channels
    if axes in ("B", "BS"):
        return tensor[:, -1, 0].clone() if axes == "B" else tensor[..., 0].clone()
    if axes in ("TBD", "SBD"):  # contiguous, as a network's outputs are, so that a wrong view() runs and is found
        return tensor.transpose(0, 1).clone(memory_format=torch.contiguous_format)
    if axes in ("BD", "1BD"):
        return tensor[:, -1].clone() if axes == "BD" else tensor[None, :, -1].clone()
    if axes == "LBD":  # three layers, so that no pair is mistaken for them; the query comes to its `holders`
        return torch.randn(3, *tensor[:, -1].shape, generator=torch.Generator().manual_seed(9)).to(tensor)
    return tensor[0, 0].clone() if axes == "D" else tensor[0].clone()


def as_context(tensor: Tensor, axes: str) -> Tensor:
    """A context with the layout `axes` -> (B, T, D)."""
    if axes == "TBD":
        return tensor.transpose(0, 1)
    if axes in ("BDT", "BD1T", "B"):
        return tensor.mT if axes == "BDT" else tensor[:, :, 0].mT if "T" in axes else tensor[:, None, None]
    if axes == "BHD":
        return tensor.flatten(1).unsqueeze(1)
    return tensor if axes == "BTD" else tensor.unsqueeze(1) if axes == "BD" else tensor.reshape(1, -1, tensor.shape[-1])


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
