"""Captures every softmax with its scores during a call of a module, without changing the module. PyTorch passes all its
functions through an active mode.

So the weights are available even if a module returns only its context, or calls a fused kernel (without weights).
"""

import inspect
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

_SOFTMAX = {torch.softmax, F.softmax, Tensor.softmax, torch.special.softmax}
_DROPOUT = {torch.dropout, F.dropout, torch.dropout_}


@dataclass(frozen=True)
class Softmax:
    """One softmax: its scores (None if a kernel does not expose them) and its weights, of the same shape."""

    scores: Tensor | None
    weights: Tensor


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
            return self._keep(scores.clone(), function(*args, **kwargs))
        if function is F.scaled_dot_product_attention:
            return self._fused(*args, **kwargs)
        if function is F.multi_head_attention_forward:
            return self._heads(*args, **kwargs)
        return function(*args, **kwargs)

    def _keep(self, scores: Tensor | None, weights: Tensor) -> Tensor:
        """Record a softmax. The weights are copied, because a module may modify them in place."""
        if self.frozen:
            weights = self.frozen.pop(0)
        self.softmaxes.append(Softmax(scores, weights.clone()))
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
