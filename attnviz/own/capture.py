"""Captures every softmax with its scores during a call of a module, without changing the module. PyTorch passes all its
functions through an active mode.

So the weights are available even if a module returns only its context, or calls a fused kernel (without weights).
"""

import copy
import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from attnviz.own import forms
from attnviz.own.forms import KEYS, QUERY, Form, Inputs, Place, arrange, as_weights, fits

_SOFTMAX = {torch.softmax, F.softmax, Tensor.softmax, torch.special.softmax, F.gumbel_softmax}
_DROPOUT = {torch.dropout, F.dropout, torch.dropout_}


@dataclass(frozen=True)
class Softmax:
    """One softmax: its scores (None if a kernel does not expose them) and its weights, of the same shape."""

    scores: Tensor | None
    weights: Tensor


@dataclass(frozen=True)
class Outcome:
    """weights (B, H, T, S); context (B, T, D), None if not returned; scores (B, H, T, S) before the softmax, None if it
    is not a softmax of PyTorch."""

    weights: Tensor
    context: Tensor | None
    scores: Tensor | None
    softmaxes: list[Softmax] = field(default_factory=list)

    @property
    def given(self) -> Tensor:
        """The context. ValueError if none is returned."""
        if self.context is None:
            raise ValueError("no context comes back")
        return self.context

    @property
    def mixed(self) -> bool:
        """Are heads mixed after the softmax?"""
        return self.before_mix is not None

    @property
    def turned(self) -> bool:
        """Are the weights, as many rows as columns, those of a softmax, transposed?"""
        own, square = self.weights, self.weights.shape[-2:] == self.weights.mT.shape[-2:]
        made = [x.weights.reshape(own.shape) for x in self.softmaxes if square and x.weights.numel() == own.numel()]
        return any(torch.equal(x.mT, own) and not torch.equal(x, own) for x in made)

    def difference(self, other: "Outcome", sentence: int) -> float:
        """The largest difference of weights and context of one sentence."""
        pairs = [(self.weights, other.weights), (self.context, other.context)]
        return max(float((a[sentence] - b[sentence]).abs().max()) for a, b in pairs if a is not None and b is not None)

    @property
    def before_mix(self) -> Tensor | None:
        """The weights (B, H, T, S) of a softmax if those of each head are a sum of its heads, each times a number, as
        in talking heads; else None."""
        shape = self.weights.shape
        for made in (softmax.weights for softmax in self.softmaxes):
            if shape[1] > 1 and made.ndim == 4 and made.shape[1] > 1 and made[:, 0].shape == self.weights[:, 0].shape:
                parts, mixed = (x.movedim(1, -1).flatten(0, 2).double() for x in (made, self.weights))
                if not bool((parts + mixed.sum()).isfinite().all()):
                    return None
                mix = torch.linalg.lstsq(parts, mixed, driver="gelsd").solution
                apart = mix.shape[0] == mix.shape[1] and torch.allclose(mix, mix.diag().diag(), atol=1e-4)
                if len(parts) > 2 * len(mix) and not apart and torch.allclose(parts @ mix, mixed, atol=1e-5):
                    return made
        return None


class Capture(TorchFunctionMode):
    """While active, `softmaxes` collects the results of every softmax and fused attention.

    dropout : False switches off every dropout, even one that a module applies in evaluation mode. frozen : weights that
    the softmaxes return, in their order, instead of their own.
    """

    def __init__(self, dropout: bool = True, frozen: Sequence[Tensor] = ()):
        super().__init__()
        self.dropout, self.frozen = dropout, list(frozen)
        self.softmaxes: list[Softmax] = []

    def __torch_function__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        if function in _DROPOUT and not self.dropout:
            return args[0] if args else kwargs["input"]
        if function in _SOFTMAX:
            scores = args[0] if args else kwargs["input"]
            return self._keep(None if function is F.gumbel_softmax else scores.clone(), function(*args, **kwargs))
        if function is F.scaled_dot_product_attention:
            return self._fused(*args, **kwargs)
        if function is F.multi_head_attention_forward:
            return self._heads(*args, **kwargs)
        return function(*args, **kwargs)

    def _keep(self, scores: Tensor | None, weights: Tensor) -> Tensor:
        """Record a softmax. The weights are copied, because a module may modify them in place. Of (B, G, R, T, S), with
        R heads for each of G key heads, the heads are one axis."""
        if self.frozen:
            weights = self.frozen.pop(0).view_as(weights) if weights.ndim == 5 else self.frozen.pop(0)
        groups, copied = weights.ndim == 5, weights.clone()
        scores = scores.flatten(1, 2) if groups and scores is not None else scores
        self.softmaxes.append(Softmax(scores, copied.flatten(1, 2) if groups else copied))
        return weights

    def _fused(self, query, key, value, attn_mask=None, dropout_p=0.0, is_causal=False, scale=None, enable_gqa=False):
        """The attention of `F.scaled_dot_product_attention`, with its weights. Shapes as there."""
        if enable_gqa:
            repeats = query.shape[-3] // key.shape[-3]
            key, value = key.repeat_interleave(repeats, -3), value.repeat_interleave(repeats, -3)
        scores = query @ key.transpose(-2, -1) * (query.shape[-1] ** -0.5 if scale is None else scale)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        if attn_mask is not None and attn_mask.dtype == torch.bool:
            scores = scores.masked_fill(~attn_mask, -math.inf)
        elif attn_mask is not None:
            scores = scores + attn_mask
        weights = self._keep(scores, torch.softmax(scores, dim=-1))
        return (F.dropout(weights, dropout_p) if dropout_p and self.dropout else weights) @ value

    def _heads(self, *args, **kwargs):
        """`F.multi_head_attention_forward`, the function below `nn.MultiheadAttention`, with the weights of every head.
        It returns what its caller requested: no weights, their mean, or all."""
        call = inspect.signature(F.multi_head_attention_forward).bind(*args, **kwargs)
        call.apply_defaults()
        wanted, mean = call.arguments["need_weights"], call.arguments["average_attn_weights"]
        call.arguments |= {"need_weights": True, "average_attn_weights": False}
        if not self.dropout:
            call.arguments["dropout_p"] = 0.0
        if call.arguments["is_causal"] and call.arguments["attn_mask"] is None:
            raise ValueError("is_causal needs attn_mask where weights are wanted: give the causal mask itself")
        attend: Any = F.multi_head_attention_forward  # with need_weights it returns a tensor, never None
        context, weights = attend(*call.args, **call.kwargs)
        if self.frozen:
            weights = self.frozen[0]
            context = _context(call.arguments, weights).reshape(context.shape)
        self._keep(None, weights)
        if not wanted:
            return context, None
        return context, weights.mean(dim=-3) if mean else weights


def _context(given: dict, weights: Tensor) -> Tensor:
    """The context (T, B, D) of `F.multi_head_attention_forward` with weights (B, H, T, S) or (H, T, S) in place of its
    own. given : its arguments by name; the keys that `bias_v` and `add_zero_attn` add are left out."""
    value, width = given["value"], given["embed_dim_to_check"]
    weight, bias = given["v_proj_weight"], given["in_proj_bias"]
    if not given["use_separate_proj_weight"]:
        weight = given["in_proj_weight"][2 * width :]
    values = F.linear(value, weight, None if bias is None else bias[2 * width :])  # (S, B, D) or (S, D)
    values = values.unflatten(-1, (given["num_heads"], -1)).movedim(0, -2)  # (B, H, S, d) or (H, S, d)
    context = (weights[..., : values.shape[-2]] @ values).movedim(-2, 0).flatten(-2)
    return F.linear(context, given["out_proj_weight"], given["out_proj_bias"])


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

    def copied(self) -> "Subject":
        """The same with a copy of the module, which may be changed."""
        return Subject(copy.deepcopy(self.target) if self.module else self.target, self.form, self.title)

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
        return self.changed(Inputs(*(tensor.to(self.dtype) for tensor in tensors)))

    def changed(self, inputs: Inputs, **tensors) -> Inputs:
        """Inputs with other tensors. In self-attention keys are queries and values, and elsewhere values, if it takes
        none apart."""
        made, form = replace(inputs, **tensors), self.form
        query, values = made.keys if form.itself else made.query, made.values if form.separate else made.keys
        return replace(made, query=query, values=values)

    def run(self, inputs: Inputs, dropout: bool = False, frozen: tuple = (), train: bool = False) -> Outcome:
        """Call the module. dropout : leave its dropout as it is. frozen : see Capture. Raises what the module raises,
        and ShapeChanged."""
        if self.form.alone and len(inputs.query) > 1:
            parts = [self.run(inputs.sentence(b), dropout, frozen, train) for b in range(len(inputs.query))]
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
        own = self._fitting(place, tensor, inputs)
        return as_weights(own.exp() if place.log else own, place.axes, len(inputs.query))

    def _one(self, inputs: Inputs, dropout: bool, frozen: tuple, train: bool) -> Outcome:
        left, softmaxes = self.call(self.given(inputs), dropout, frozen, train)
        place, context, batch = self.form.weights, None, len(inputs.query)
        own = self._fitting(place, left.get(place.name), inputs)
        own = F.hardshrink(own.exp(), 1e-37) if place.log else own  # 0 where log(0 + 1e-45) was added, as in AllenNLP
        if self.form.context is not None:
            of_context = self._fitting(self.form.context, left.get(self.form.context.name), inputs)
            context = forms.as_context(of_context, self.form.context.axes)
        scores = _scores(softmaxes, own, place.axes, batch, self._beside_keys(place, inputs))
        return Outcome(as_weights(own, place.axes, batch), context, scores, softmaxes)

    def _beside_keys(self, place: Place, inputs: Inputs) -> tuple[int, int]:
        """How many weights there are before and after those of the keys."""
        return place.null[0], place.null[1] + max(self.form.count - inputs.keys.shape[1], 0)

    def _fitting(self, place: Place, tensor: Tensor | None, inputs: Inputs) -> Tensor:
        """The tensor that a call left at a place, of the keys alone. ShapeChanged if its layout differs."""
        keys, beside = inputs.keys.shape[1], self._beside_keys(place, inputs)
        sizes = {"B": inputs.query.shape[0], "T": inputs.query.shape[1], "S": keys + sum(beside)}
        if tensor is None or not fits(tensor.shape, place.axes, sizes):
            shape = "nothing" if tensor is None else tuple(tensor.shape)
            raise ShapeChanged(f"{place.name} must have the axes {self.form.axes_in_words(place.axes)}; got {shape}")
        return tensor.narrow(place.axes.index("S"), beside[0], keys) if any(beside) and "S" in place.axes else tensor

    def given(self, inputs: Inputs) -> dict:
        """The arguments of a call, by the names of the parameters."""
        form, inputs = self.form, self.form.filled(inputs)
        tensors = {QUERY: (inputs.query, form.query), KEYS: (inputs.keys, form.keys)}
        tensors |= {forms.VALUES: (inputs.values, form.keys), forms.INPUT: (inputs.keys, form.keys)}
        sizes = {"B": len(inputs.keys), "S": inputs.keys.shape[1]}
        before = inputs.keys.new_zeros([sizes.get(axis) or int(axis) for axis in form.before])
        tensors[forms.BEFORE] = before, "SD" if form.alone else "BSD"
        tensors[forms.ROWS] = torch.ones_like(inputs.query[..., 0], dtype=torch.bool), "TD" if form.alone else "BTD"
        tensors |= {forms.STATE: (inputs.query, form.state), forms.CELL: (inputs.query, "BD")}  # it comes in a pair
        lists = {forms.PAIR: (QUERY, KEYS), forms.TRIPLE: (QUERY, forms.VALUES, KEYS)}
        arguments = dict(form.extras) | {
            name: [arrange(*tensors[part]) for part in lists[role]] if role in lists else arrange(*tensors[role])
            for name, role in form.roles.items()
        }
        names = {role: name for name, role in form.roles.items()}
        if forms.CELL in names:
            pair: Any = arguments[names[QUERY]]
            arguments |= dict(zip((names[QUERY], names[forms.CELL]), pair))
        for part in form.holders:
            form.part(arguments, part).copy_(inputs.query[:, -1])
        visible = inputs.visible
        if visible is None and form.needs_mask and form.mask:
            visible = torch.ones(inputs.keys.shape[:2], dtype=torch.bool)
        if visible is not None and form.mask is not None:
            arguments[form.mask.parameter] = form.mask.make(visible, inputs.query.shape[1], inputs.keys.dtype)
        return arguments

    def beside(self, inputs: Inputs, added: Mapping[str, float]) -> Tensor:
        """The weights (B, H, S) of the last query, after a vector, times a number each, is added to parts of states."""
        arguments, place = self.given(inputs), self.form.weights
        for part, number in added.items():
            state = self.form.part(arguments, part)
            state.add_(number * torch.linspace(-1, 2, state.shape[-1]).to(state))
        left, _ = self.call(arguments)
        return as_weights(self._fitting(place, left[place.name], inputs), place.axes, len(inputs.query))[:, :, -1]

    def beside_another_key(self) -> tuple[Tensor, Tensor]:
        """The weights of four keys (B, H, 4) before and after a change of a fifth. In one sentence the fifth may happen
        to have the same score as before."""
        inputs, other = (self.inputs(1 if self.form.alone else 12, 1, 5, seed=seed) for seed in (2, 3))
        keys = torch.cat([inputs.keys[:, :4], other.keys[:, 4:]], dim=1)
        before, after = self.run(inputs), self.run(self.changed(inputs, keys=keys))
        return before.weights[..., 0, :4], after.weights[..., 0, :4]

    def mixes(self) -> bool:
        """Does the ratio of two weights change when a third key changes? Not with scores of one query and one key."""
        before, after = (weights / weights.sum(dim=-1, keepdim=True) for weights in self.beside_another_key())
        return float((after - before).abs().max()) > 1e-4

    def dims_later(self) -> bool:
        """Do equal tokens get one weight up to the query's own, and another, not 0, after it? So a causal mask dims."""
        inputs = self.inputs(2, 5, 5)
        keys = inputs.keys[:, :1].expand_as(inputs.keys).clone()
        logs = self.run(self.changed(inputs, keys=keys)).weights.log()[..., :4, :]  # the last sees all
        later = torch.ones(4, 5).triu(1)
        step = (logs * later).sum(-1) / later.sum(-1) - (logs * (1 - later)).sum(-1) / (1 - later).sum(-1)
        flat = logs - step[..., None] * later
        return torch.allclose(flat, flat[..., :1], atol=1e-4) and bool((step.abs() > 1e-3).all())

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

    def shapes(self, inputs: Inputs) -> str:
        """The arguments and their shapes, in words."""
        lists = {name: t if isinstance(t, list | tuple) else [t] for name, t in self.given(inputs).items()}
        tensors = {name: [str(tuple(t.shape)) for t in parts if isinstance(t, Tensor)] for name, parts in lists.items()}
        return ", ".join(f"{name} {' and '.join(shapes)}" for name, shapes in tensors.items() if shapes)


def parameters_of(target: Callable) -> Mapping[str, inspect.Parameter]:
    """The parameters of a call by name; none of a copy of what TorchScript compiled, which has no signature."""
    with suppress(ValueError):
        return inspect.signature(target.forward if isinstance(target, nn.Module) else target).parameters
    return {}


def _called(target: Callable, arguments: dict):
    parameters = parameters_of(target)
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
        left[forms.HEADS] = torch.stack([softmax.weights for softmax in softmaxes], dim=-3)
    return {name: value for name, value in left.items() if isinstance(value, Tensor) and value.is_floating_point()}


def _scores(softmaxes: list[Softmax], weights: Tensor, axes: str, batch: int, beside: tuple[int, int]) -> Tensor | None:
    """The scores whose softmax is these weights, which may since have been transposed or got another axis. beside :
    weights that are left out, before and after."""
    first, last = beside
    for softmax in softmaxes:
        if first or last:
            parts = (softmax.weights, softmax.weights if softmax.scores is None else softmax.scores)
            made, scores = (x[..., first : x.shape[-1] - last] for x in parts)
            softmax = Softmax(None if softmax.scores is None else scores, made)
        if softmax.scores is None or softmax.weights.numel() != weights.numel():
            continue
        for turned in (False, True) if softmax.weights.ndim > 1 else (False,):
            made, scores = (x.mT if turned else x for x in (softmax.weights, softmax.scores))
            alike = made.squeeze().shape == weights.squeeze().shape
            if alike and torch.allclose(made.reshape(weights.shape).to(weights.dtype), weights, atol=1e-6):
                return as_weights(scores.reshape(weights.shape), axes, batch)
    return None


def _joined(parts: list[Outcome], dim: int) -> Outcome:
    """Outcomes of sentences (0) or of queries (1) as the outcome of all."""
    along = 0 if dim == 0 else 2
    weights = torch.cat([part.weights for part in parts], dim=along)
    contexts = [part.context for part in parts if part.context is not None]
    scores = [part.scores for part in parts if part.scores is not None]
    whole = torch.cat(scores, dim=along) if len(scores) == len(parts) else None
    return Outcome(weights, torch.cat(contexts, dim=dim) if contexts else None, whole, parts[0].softmaxes)
