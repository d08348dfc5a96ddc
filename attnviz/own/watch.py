"""The attention of any PyTorch model, collected during a forward pass and without a change to the model.

A module is attention when it is `nn.MultiheadAttention` or its class's name says so (`SelfAttention`, `Attn`). A
softmax in a module of another name is attention when its shape fits the tokens, as that of the output does not; beside
modules that are called attention, the module must not return it as its result.
"""

import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager

import torch
from torch import Tensor, nn

from attnviz.own import forms
from attnviz.own.capture import Capture, left_by
from attnviz.trace import Trace
from attnviz.trace.arrays import from_arrays

_WHOLE = "model"  # the name of the model itself among its modules
_ATTENTION = re.compile(r"att(entio)?n", re.I)


class Watched:
    """The attention of a model. calls : name of the module -> the softmaxes of each of its calls. sure : the names of
    the modules that are attention. silent : those of them that were called and have no weights.

    >>> attention, words = torch.nn.MultiheadAttention(4, 2), torch.randn(3, 1, 4)
    >>> with own.watch(attention) as seen:
    ...     output = attention(words, words, words)
    >>> [weights.shape for weights in seen.weights["model"]]
    [torch.Size([1, 2, 3, 3])]
    """

    def __init__(self, model: nn.Module, sure: Collection[str] = ()):
        self.sure, self.silent = sure, set[str]()
        self.calls: dict[str, list[list[Tensor]]] = {}
        numbers = [(name.lower(), value) for part in model.modules() for name, value in vars(part).items()]
        self._heads = {1, *(n for name, n in numbers if ("head" in name or name == "h") and type(n) is int)}

    @property
    def weights(self) -> dict[str, list[Tensor]]:
        """Name of the module -> the weights of each of its calls, in its own layout: its last softmax."""
        return {name: [call[-1] for call in calls] for name, calls in self.calls.items()}

    def trace(self, tokens: Sequence[str], target: Sequence[str] = (), name: str = "watched") -> Trace:
        """The Trace of one sentence, which the model must have read as a batch of one. tokens : read by the encoder.
        target : a token for every row of the decoder. Layers stand in the order of the calls.

        ValueError when a module's weights do not fit these tokens; it names the module and the shape. Warns of modules
        that are called attention and have no weights.
        """
        silent = ""
        parts = [name for name in self.calls if name != _WHOLE]
        if names := [name for name in sorted(self.silent) if not any(_is_within(name, part) for part in parts)]:
            words = "it takes no softmax, and returns and keeps none, as linear attention does"
            silent = f"{', '.join(names)} was called, and has no weights: {words}"
        if not self.calls:
            raise ValueError(silent or "no attention was seen: run the model within `with own.watch(model) as seen:`")
        kinds: dict[str, list] = {}
        problems = []
        for module, calls in self.calls.items():
            fitting = []
            for several in _series(calls):
                try:
                    fitting.append(_fitted(module, several, len(tokens), len(target), self._heads))
                except ValueError as error:
                    problems.append(error)
            if module in self.sure and not fitting and not self._holds_another(module):
                raise _fails(module, self.weights[module], len(tokens), len(target))
            for kind, weights in fitting[-1:] if module in self.sure else fitting:
                kinds.setdefault(kind, []).append(weights)
        if not kinds:
            raise ValueError(silent) if silent else problems[0]
        if silent:
            warnings.warn(f"{silent}. It is not in the trace", stacklevel=2)
        return from_arrays(kinds, tokens, target, name=name)

    def _holds_another(self, module: str) -> bool:
        """Is there an attention within this one? Then its own softmax may be that of the output, as in AttnDecoder."""
        return any(_is_within(other, module) for other in self.weights)


def _is_within(name: str, other: str) -> bool:
    return name != other and (other == _WHOLE or name.startswith(f"{other}."))


@contextmanager
def watch(model: nn.Module) -> Iterator[Watched]:
    """Within the block, collect the weights of every attention of a model, even if it does not return them.

    >>> attention, words = torch.nn.MultiheadAttention(4, 2), torch.randn(3, 1, 4)
    >>> with own.watch(attention) as seen:
    ...     output = attention(words, words, words)
    >>> seen.trace(["the", "black", "dog"]).map("encoder").weights.shape
    (2, 3, 3)
    """
    if not isinstance(model, nn.Module):
        raise ValueError(f"model must be an nn.Module; got {type(model).__name__}")
    parts = {name or _WHOLE: part for name, part in model.named_modules()}
    sure = [name for name, part in parts.items() if _ATTENTION.search(type(part).__name__)]
    # What lies within an attention may be the one that takes the softmax: in an AttnDecoder, a class of any name.
    # Beside them, a class of any name may take one in its forward().
    own = [name for name, part in parts.items() if not type(part).__module__.startswith("torch.nn")]
    seen, capture = Watched(model, sure), Capture()
    with ExitStack() as hooks, capture:
        for name in dict.fromkeys([*sure, *own]) if sure else parts:
            for handle in _hooks(name, parts[name], capture, seen):
                hooks.callback(handle.remove)
        yield seen


def _hooks(name: str, part: nn.Module, capture: Capture, seen: Watched) -> tuple:
    """Hooks that collect the results of the softmaxes in one call of a module, or else the weights that it leaves."""
    started: list[int] = []

    def before(module, args):
        started.append(len(capture.softmaxes))

    def after(module, args, result):
        softmaxes = capture.softmaxes[started.pop() :]
        del capture.softmaxes[len(capture.softmaxes) - len(softmaxes) :]  # a module around this one has none of them
        first = result[0] if isinstance(result, tuple) and result else result
        output = first if isinstance(first, Tensor) and seen.sure and name not in seen.sure else None
        made = [taken.weights for taken in softmaxes if output is None or not torch.equal(taken.weights, output)]
        if not made and (name in seen.sure or isinstance(result, tuple | dict)) and not seen._holds_another(name):
            left = left_by(result, module if name in seen.sure else None, [])
            made = [tensor for tensor in left.values() if _are_shares(tensor)][:1]
            seen.silent |= {name} if name in seen.sure and not made else set()
        if made:
            seen.calls.setdefault(name, []).append([weights.detach() for weights in made])

    return part.register_forward_pre_hook(before), part.register_forward_hook(after)


def _are_shares(tensor: Tensor) -> bool:
    sums = tensor.sum(dim=-1) if tensor.ndim >= 2 else tensor
    return tensor.ndim >= 2 and bool((tensor >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)


def _series(calls: list[list[Tensor]]) -> Iterator[list[Tensor]]:
    """What may be the attention of a module: the softmaxes at one place of all calls, and those of one shape, as in a
    loop over the steps."""
    if len({len(call) for call in calls}) == 1:
        yield from (list(place) for place in zip(*calls, strict=True))
    made = [weights for call in calls for weights in call]
    for shape in dict.fromkeys(weights.shape for weights in made):
        alike = [weights for weights in made if weights.shape == shape]
        if len(alike) > len(calls):
            yield alike


def _fitted(module: str, calls: list[Tensor], source: int, target: int, heads: set[int]) -> tuple[str, Tensor]:
    """The kind of a module's attention, and its weights (H, Q, K). A module that is called step by step has one call
    per row. heads : possible numbers of heads of the model's modules, so that two sentences are not mistaken for two
    heads."""
    for kind in _kinds(module):
        rows, keys = (source if kind == "encoder" else target), (target if kind == "decoder" else source)
        several = len(calls) > 1
        if not rows or (several and len(calls) != rows):
            continue
        sizes = {"B": 1, "T": 1 if several else rows, "S": keys}
        for axes in forms.WEIGHTS["batch"] + forms.WEIGHTS["alone"]:
            if sizes["T"] > 1 and "T" not in axes:
                continue
            if axes != "BHTS" and len(axes) == calls[0].ndim and not _heads(calls[0], axes) <= heads:
                continue  # two sentences, perhaps
            if all(forms.fits(tensor.shape, axes, sizes) for tensor in calls):
                return kind, torch.cat([forms.as_weights(tensor, axes, 1)[0] for tensor in calls], dim=1)
    raise _fails(module, calls, source, target)


def _fails(module: str, calls: list[Tensor], source: int, target: int) -> ValueError:
    shapes = ", ".join(dict.fromkeys(str(tuple(tensor.shape)) for tensor in calls))
    return ValueError(
        f"the weights of {module} fit neither {source} source tokens nor {target} target tokens: {len(calls)} calls of "
        f"shape {shapes}; run the model on one sentence, in a batch of one"
    )


def _heads(weights: Tensor, axes: str) -> set[int]:
    """The possible numbers of heads of weights with these axes; empty if no axis can be that of heads."""
    return {length for length, axis in zip(weights.shape, axes) if axis in "HN"}


def _kinds(module: str) -> list[str]:
    """The possible kinds of a module; the kind implied by its name comes first."""
    if "encoder" in module and "decoder" not in module:
        return ["encoder", "cross", "decoder"]
    return ["decoder", "cross", "encoder"] if "self" in module else ["cross", "decoder", "encoder"]
