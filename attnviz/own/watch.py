"""The attention of any PyTorch model, collected during a forward pass and without a change to the model.

A module is attention when it is `nn.MultiheadAttention` or its class's name says so (`SelfAttention`, `Attn`). A
softmax in a module of another name is attention when its shape fits the tokens, as that of the output does not; beside
modules that are called attention, the module must not return it as its result.
"""

import itertools
import re
import warnings
from collections.abc import Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress

import torch
from torch import Tensor, nn

from attnviz.own import forms
from attnviz.own.capture import Capture, left_by
from attnviz.trace import Trace
from attnviz.trace.arrays import from_arrays

_WHOLE = "model"  # the name of the model itself among its modules
_ATTENTION = re.compile(r"att(entio)?n", re.I)
_HEAD = re.compile(r"(.*heads?)\.\d+", re.I)  # one of a list, as in `heads.0`
_AXES = (*forms.WEIGHTS["batch"], *forms.WEIGHTS["alone"], "BSH")  # BSH: several learnt queries, keys in the middle
_NONE = "no attention was seen: no module took a softmax of PyTorch within `with own.watch(model) as seen:`"


class Watched:
    """The attention of a model. calls : name of the module -> the softmaxes of each of its calls. sure : the names of
    the modules that are attention. silent : those of them that were called and have no weights -> their last result.
    runs : how often the whole model was called. longer : how often a module attended, if more than there are tokens.

    >>> attention, words = torch.nn.MultiheadAttention(4, 2), torch.randn(3, 1, 4)
    >>> with own.watch(attention) as seen:
    ...     output = attention(words, words, words)
    >>> [weights.shape for weights in seen.weights["model"]]
    [torch.Size([1, 2, 3, 3])]
    """

    def __init__(self, model: nn.Module, sure: Collection[str] = ()):
        self.sure, self.runs = sure, 0
        self.silent: dict[str, object] = {}
        self.longer: dict[str, int] = {}
        self.calls: dict[str, list[list[Tensor]]] = {}
        numbers = [(name.lower(), value) for part in model.modules() for name, value in vars(part).items()]
        self.heads = {1, *(n for name, n in numbers if ("head" in name or name == "h") and type(n) is int)}

    @property
    def weights(self) -> dict[str, list[Tensor]]:
        """Name of the module -> the weights of each of its calls, in its own layout: its last softmax."""
        return {name: [call[-1] for call in calls] for name, calls in self.calls.items()}

    def trace(self, tokens: Sequence[str], target: Sequence[str] = (), name: str = "watched") -> Trace:
        """The Trace of one sentence, which the model must have read as a batch of one. tokens : read by the encoder, or
        by a model without one. target : a token for every row of the decoder. Layers stand in the order of the calls.

        A loop that writes token by token is read too, whether it reads all tokens again at each step or keeps those
        before. Without a target, attention that sees no later token is a decoder's. Modules in a list `heads` are the
        heads of one layer. Keys after the last token are left out if their weights are all 0.
        ValueError when a module's weights do not fit these tokens; it names the module and the shape. Warns of what is
        left out: modules that are called attention and have no weights, a decoder's that see later tokens, and steps
        after the last target token.
        """
        parts = [name for name in self.calls if name != _WHOLE]
        left_out = []
        if names := [name for name in sorted(self.silent) if not any(_is_within(name, part) for part in parts)]:
            words = "it takes no softmax, and returns and keeps none, as linear attention does"
            left_out.append(f"{', '.join(names)} was called, and has no weights: {words}")
        kinds: dict[str, list] = {}
        problems, self.longer = [] if self.calls else [ValueError(_NONE)], {}
        for module, calls in self._with_heads().items():
            fitting = self._fitting(module, calls, len(tokens), len(target), problems)
            for kind, weights in fitting[-1] if fitting and module in self.sure else itertools.chain(*fitting):
                sees_later = kind == "decoder" and bool(weights.triu(1).any())
                left_out += [f"{module} sees later tokens of the target: it has no causal mask"] if sees_later else []
                kinds.setdefault(kind, []).append(None if sees_later else weights)
        kinds = {kind: layers for kind, layers in kinds.items() if any(layer is not None for layer in layers)}
        if not kinds:
            raise ValueError("; ".join(left_out)) if left_out else problems[0]
        for module, steps in self.longer.items():
            words = f"{module} attended {steps} times, and there are {len(target)} target tokens"
            warnings.warn(f"{words}. The trace has the first {len(target)} of them", stacklevel=2)
        for words in left_out:
            warnings.warn(f"{words}. It is not in the trace", stacklevel=2)
        return from_arrays(kinds, tokens, target, name=name, missing="skip")

    def _with_heads(self) -> dict[str, list[list[Tensor]]]:
        """The calls, in which modules of a list `heads` are one: its name -> their weights, with an axis of heads."""
        groups: dict[tuple[str, str], list[list[list[Tensor]]]] = {}
        for name, calls in self.calls.items():
            shapes = str([[weights.shape for weights in call] for call in calls])
            groups.setdefault((_HEAD.sub(r"\1", name), shapes), []).append(calls)
        self.heads |= {len(group) for group in groups.values()}
        joined = {name: group[0] for (name, _), group in groups.items()}
        for (name, _), group in groups.items():
            if len(group) > 1:
                joined[name] = [[torch.stack(heads, dim=-3) for heads in zip(*call)] for call in zip(*group)]
        return joined

    def _fitting(self, module: str, calls: list, source: int, target: int, problems: list) -> list[list[tuple]]:
        """The layers, each with its kind, of every softmax of a module that fits: at one place of all calls, or else of
        one shape, as in a loop over the steps. What does not fit is added to the problems. ValueError if the module is
        attention and none fits."""
        fitting, rest = [], [] if len({len(call) for call in calls}) == 1 else list(itertools.chain(*calls))
        for place in [] if rest else zip(*calls, strict=True):
            try:
                fitting.append(_fitted(module, [*place], source, target, self))
            except ValueError as error:
                problems.append(error)
                rest += place
        for shape in dict.fromkeys(weights.shape for weights in rest):
            alike = [weights for weights in rest if weights.shape == shape]
            with suppress(ValueError):
                fitting.append(_fitted(module, alike, source, target, self))
        if module in self.sure and not fitting and not self._holds_another(module):
            raise _fails(module, [call[-1] for call in calls], source, target, self.runs)
        return fitting

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
    if scripted := [name for name, part in parts.items() if isinstance(part, torch.jit.RecursiveScriptModule)]:
        reason = "compiled by torch.jit.script, whose modules cannot be watched: watch those that they were made from"
        raise ValueError(f"{', '.join(scripted[:3])} {'are' if len(scripted) > 1 else 'is'} {reason}")
    sure = [name for name, part in parts.items() if _ATTENTION.search(type(part).__name__)]
    # What lies within an attention may be the one that takes the softmax: in an AttnDecoder, a class of any name.
    # Beside them, a class of any name may take one in its forward().
    own = [name for name, part in parts.items() if not type(part).__module__.startswith("torch.nn")]
    seen, capture = Watched(model, sure), Capture()

    def count(module, args):
        seen.runs += 1

    with ExitStack() as hooks, capture:
        hooks.callback(model.register_forward_pre_hook(count).remove)
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
        for silent, scores in [*seen.silent.items()]:
            taken_of = [taken.scores.flatten() for taken in softmaxes if taken.scores is not None]
            if isinstance(scores, Tensor) and any(torch.equal(scores.flatten(), own) for own in taken_of):
                del seen.silent[silent]  # it gives the scores of a softmax in a module around it
        made = [taken.weights for taken in softmaxes if output is None or not torch.equal(taken.weights, output)]
        if not made and (name in seen.sure or isinstance(result, tuple | dict)) and not seen._holds_another(name):
            left = left_by(result, module if name in seen.sure else None, [])
            made = [shares for tensor in left.values() for shares in (tensor, tensor.exp()) if _are_shares(shares)][:1]
            if name in seen.sure and not made:
                seen.silent[name] = first
        if made:
            seen.calls.setdefault(name, []).append([weights.detach() for weights in made])

    return part.register_forward_pre_hook(before), part.register_forward_hook(after)


def _are_shares(tensor: Tensor) -> bool:
    sums = tensor.sum(dim=-1) if tensor.ndim >= 2 else tensor
    return tensor.ndim >= 2 and bool((tensor >= 0).all()) and torch.allclose(sums, torch.ones_like(sums), atol=1e-4)


def _fitted(module: str, calls: list[Tensor], source: int, target: int, seen: Watched) -> list[tuple[str, Tensor]]:
    """The layers of a module's attention, each with its kind and weights (H, Q, K). calls : its weights in every call.
    ValueError if they fit no kind."""
    by_kind: dict[str, list[Tensor]] = {}
    for kind in _kinds(module):
        rows, keys = (source if kind == "encoder" else target), (target if kind == "decoder" else source)
        for axes in _AXES if rows else ():
            # the first axis may be that of two sentences and not of two heads
            heads = {length for length, axis in zip(calls[0].shape, axes) if axis in "HN"}
            if axes not in ("BHTS", "BSH") and len(axes) == calls[0].ndim and not heads <= seen.heads:
                continue
            if kind not in by_kind and (layers := _layers(calls, axes, rows, keys, kind, seen.runs)):
                by_kind[kind] = layers
    alike = len({weights.shape for weights in calls}) == 1
    if not by_kind and seen.runs == 1 and 0 < target < len(calls) and alike:  # a loop that goes on after <eos>
        layers, seen.longer[module] = _fitted(module, calls[:target], source, target, seen), len(calls)
        return layers
    if not by_kind:
        raise _fails(module, calls, source, target, seen.runs)
    kind = next(iter(by_kind))
    causal = {name: all(map(_is_causal, layers)) for name, layers in by_kind.items()}
    if kind == "cross" and causal.get("decoder"):  # as many tokens here as there, and none sees a later one
        kind = "decoder"
    return [("decoder" if not target and causal[kind] else kind, weights) for weights in by_kind[kind]]


def _layers(calls: list[Tensor], axes: str, rows: int, keys: int, kind: str, runs: int) -> list[Tensor]:
    """The weights (H, Q, K) of each layer if these are the axes of a module's calls, otherwise []. Several calls are
    steps of a loop; or layers with the same parameters, if the whole model ran once."""
    read, before = [], 0
    for tensor in calls:
        tensor = _without_padding(tensor, axes, keys, kind)
        lengths = dict(zip(axes, tensor.shape))
        sizes = {"B": 1, "T": lengths.get("T", 1), "S": lengths.get("S", 1)}
        if not forms.fits(tensor.shape, axes, sizes) or (axes == "BSH" and not _are_shares(tensor.mT)):
            return []
        before += sizes["T"]
        # A decoder has as many keys as tokens that it has read, if the loop keeps those before, or reads them again.
        if sizes["S"] != keys and (kind == "cross" or sizes["S"] not in (before, sizes["T"])):
            return []
        weights = forms.as_weights(tensor, axes, 1)[0]
        read.append(nn.functional.pad(weights, (0, keys - sizes["S"])))
    queries = [weights.shape[1] for weights in read]
    if sum(queries) == rows and set(queries[1:]) <= {1}:
        return [torch.cat(read, dim=1)]
    if queries[-1] != rows:
        return []
    again = [torch.allclose(read[-1][:, :n], weights, atol=1e-4) for n, weights in zip(queries, read)]
    if all(again):
        return read[-1:]
    return read if set(queries) == {rows} and runs == 1 else []


def _without_padding(weights: Tensor, axes: str, keys: int, kind: str) -> Tensor:
    """Weights without those of the keys after the last token, if all are 0; of an encoder without their rows too."""
    places = [axes.index(axis) for axis in ("ST" if kind == "encoder" else "S") if axis in axes]
    if weights.ndim != len(axes) or kind == "decoder" or any(weights.shape[axis] <= keys for axis in places):
        return weights
    if not places or bool(weights.narrow(places[0], keys, weights.shape[places[0]] - keys).any()):
        return weights
    for axis in places:
        weights = weights.narrow(axis, 0, keys)
    return weights


def _is_causal(weights: Tensor) -> bool:
    return weights.shape[1] == weights.shape[2] and bool(weights.tril(-1).any()) and not bool(weights.triu(1).any())


def _fails(module: str, calls: list[Tensor], source: int, target: int, runs: int) -> ValueError:
    shapes = ", ".join(dict.fromkeys(str(tuple(tensor.shape)) for tensor in calls))
    times = f"; it ran {runs} times: as a loop, it does not read the token that it writes last" if runs > 1 else ""
    if (places := calls[0].shape[-1]) > max(source, target):
        times += f"; {places} places are more than the tokens: if they are keys, name <pad> or a learnt key too"
    return ValueError(
        f"the weights of {module} fit neither {source} source tokens nor {target} target tokens: {len(calls)} calls of "
        f"shape {shapes}; run the model on one sentence, in a batch of one{times}"
    )


def _kinds(module: str) -> list[str]:
    """The possible kinds of a module; the kind implied by its name comes first."""
    name = module.lower()
    if "encoder" in name and "decoder" not in name:
        return ["encoder", "cross", "decoder"]
    return ["decoder", "cross", "encoder"] if "self" in name else ["cross", "decoder", "encoder"]
