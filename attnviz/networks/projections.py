"""Output projections: the linear layers that read the contexts of all heads of a layer, (B, Q, H*d), side by side.

In models of this project it is that of attention.MultiHead. Families of the transformers library name it differently.
In the families of ENDS it is the last step of attention, and a head is a slice of its input.
"""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple, Self

import torch
from torch import Tensor, nn

from attnviz.attention import MultiHead

_PLACES = {"encoder": ("encoder", "attention"), "decoder": ("decoder", "attention"), "cross": ("decoder", "cross")}
ENDS = {  # how the name of such a module ends -> is it of cross-attention
    "attention.output.dense": False,
    "crossattention.output.dense": True,  # BERT, RoBERTa, ELECTRA and their like
    "attention.out_lin": False,  # DistilBERT
    "attn.c_proj": False,
    "crossattention.c_proj": True,  # GPT-2
    "attn.out_proj": False,
    "attn.attention.out_proj": False,  # GPT-J, GPT-Neo
    "attention.dense": False,  # GPT-NeoX, Pythia
    "self_attn.dense": False,  # Phi
    "self_attn.o_proj": False,  # Llama, Mistral, Qwen, Gemma
    "self_attn.out_proj": False,
    "self_attn.output": False,  # LED's encoder
    "encoder_attn.out_proj": True,  # BART, Marian, Pegasus, OPT
    "SelfAttention.o": False,
    "EncDecAttention.o": True,  # T5
}
# Families that use such a name and do something more before it, so that a slice is not a head: a convolution laid
# beside the heads, differences of heads, a norm over all of them.
OTHERWISE = ("convbert", "diffllama", "bitnet")


class Projection(NamedTuple):
    """path : of the module, below the model. heads : of its layer."""

    kind: str
    layer: int
    path: str
    heads: int


def own(model: nn.Module) -> list[Projection]:
    """The projections of a model of this project, by kind and layer; [] without multi-head attention."""
    projections = []
    for kind, (stack, name) in _PLACES.items():
        layers = getattr(model, stack, ())
        for layer, block in enumerate(layers if isinstance(layers, nn.ModuleList) else ()):
            # the layer's own, or the layer itself
            path = f"{stack}.{layer}.{name}" if hasattr(block, name) else f"{stack}.{layer}"
            attention = model.get_submodule(path)
            if isinstance(attention, MultiHead):
                projections.append(Projection(kind, layer, f"{path}.output", attention.heads))
    return projections


def named(
    model: Any,
    counts: Mapping[str, Sequence[int]],
    numbers: Mapping[str, Sequence[int]] | None = None,
    used: Collection[str] = (),
) -> list[Projection]:
    """The projections of a model of the transformers library. counts : kind -> number of heads of each layer.

    numbers : kind -> the numbers of these layers, if not all. used : the paths of the modules that read a
    text; () for all.

    ValueError unless there is exactly one for each layer, as wide as its heads need; otherwise heads cannot be located.
    """
    paths = defaultdict(list)
    for path, module in model.named_modules():
        end = next((end for end in ENDS if f".{path}".endswith(f".{end}")), None)
        # a decoder alone may have cross-attention and not use it
        if end and _width(module) and ("cross" in counts or not ENDS[end]) and (not used or path in used):
            paths[_kind(path.split("."), ENDS[end], counts)].append(path)
    projections = [
        Projection(kind, layer, path, heads)
        for kind, of_layers in counts.items()
        for layer, path, heads in zip((numbers or {}).get(kind) or range(len(of_layers)), paths[kind], of_layers)
    ]
    fit = all(len(paths[kind]) == len(of_layers) for kind, of_layers in counts.items())
    if (
        not fit
        or model.config.model_type in OTHERWISE
        or any(_width(model.get_submodule(projection.path)) % projection.heads for projection in projections)
    ):
        raise ValueError(
            "heads of its family cannot be switched off: attnviz does not know where in its layers they end"
        )
    return projections


def _kind(path: list[str], cross: bool, counts: Mapping[str, Sequence[int]]) -> str:
    """The kind of a projection. In a model with one stack there is only one kind."""
    if len(counts) == 1:
        return next(iter(counts))
    return "cross" if cross else "decoder" if "decoder" in path else "encoder"


def _width(module: Any) -> int:
    """The input width of a linear layer; 0 for another module. (GPT-2 has a class of its own for linear layers.)"""
    return getattr(module, "in_features", 0) or getattr(module, "nx", 0)


class Watched:
    """Records the inputs and outputs (B, T, …) of modules while it is open, in the order of the modules."""

    def __init__(self, modules: list[nn.Module]):
        self.modules = modules
        self.inputs: list[Any] = [None] * len(modules)
        self.outputs: list[Any] = [None] * len(modules)

    def __enter__(self) -> Self:
        self._handles = [m.register_forward_hook(partial(self._keep, place)) for place, m in enumerate(self.modules)]
        return self

    def __exit__(self, *problem: object) -> None:
        for handle in self._handles:
            handle.remove()

    def _keep(self, place: int, _module: nn.Module, inputs: tuple, output: Any) -> None:
        self.inputs[place], self.outputs[place] = inputs[0], output[0] if isinstance(output, tuple) else output


def of_heads(projection: Any, contexts: Tensor, heads: int) -> Tensor:
    """contexts (T, H*d) -> what each head adds (H, T, D). GPT-2 stores its projection matrix transposed."""
    matrix = projection.weight if isinstance(projection, nn.Linear) else projection.weight.T  # (D, H*d)
    return torch.einsum(
        "thd,khd->htk", contexts.unflatten(1, (heads, -1)).float(), matrix.unflatten(1, (heads, -1)).float()
    )


def bias_of(projection: Any) -> Tensor:
    """(D,): its bias, or 0."""
    bias = projection.bias
    return bias.float() if bias is not None else torch.zeros(projection.weight.shape[0])
