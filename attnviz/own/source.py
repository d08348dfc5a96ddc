"""From `FILE.py:Name` to a module: the file is run, and a class gets a width for every parameter named like one.

The file is a program, and it can do what its author can. Only the person who starts attnviz names it.
"""

import contextlib
import inspect
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn

from attnviz import python_file
from attnviz.arguments import guess, shown
from attnviz.models import machine
from attnviz.own.forms import HIDE, KEEP, MaskForm, NotRecognised
from attnviz.python_file import ANYTHING


class Sizes(NamedTuple):
    """The arguments of a class. width : of queries, keys and values if the class has only one."""

    query: int
    key: int
    value: int
    width: int
    heads: int = 2
    longest: int = 512
    dropout: float = 0.5
    key_heads: int = 1

    @property
    def head(self) -> int:
        """The width of one head."""
        return self.width // self.heads


WIDE = 4096  # a size above this is first tried without numbers
CHECKED = Sizes(8, 12, 10, 16)  # all differ, so that a check can tell them apart
# The first pattern that fits the name of a parameter says which size it is.
_SIZES = (
    (r"dropout|^p$|drop_?(rate|prob)|pdrop", "dropout"),
    (r"kv.*heads?$|(key|value)_heads?$|kv_?groups?$|^(n|num)_?(query_?)?groups?$", "key_heads"),
    (r"n_?_?heads?$|^heads?$|num_?heads?|^h$|head_?(num|count)|query_heads?$", "heads"),
    (r"^d_?k$|^d_?v$|^d_?kv$|head_?(dim|size|width)|(^d|dim|size|width)_?(per_|of_)?head$", "head"),
    (r"max_?(seq_?)?len|block_?size|context_?(len|size)", "longest"),
    (r"seq_?len|^max_?(length|positions)|num_(keys|tokens)", "longest"),
    (r"quer|^q_?(dim|size|width)|dec|^d_?q$|tgt|target", "query"),
    (r"key|^k_?(dim|size|width)|enc|memory|annot|src|source|context_?dim|cross", "key"),
    (r"val(ue)?s?_?(dim|size|width)?$|^v_?(dim|size|width)", "value"),
    (r"hid|(^|_)ff|inner|emb|model|dim|size|width|units?|feat|channels|filters|state", "width"),
    (r"^nh$|^d$|^d_?in|^d_?out|^c$", "width"),
)
# What no size says, and what a module is built with where it has no default.
_USUAL = (
    (r"^device$", "cpu"),
    (r"dtype", torch.float32),
    (r"bias|batch_?first|use_scale", True),
    (r"causal|masked|verbose|debug|flash|rope|concat_?bn|add_zero", False),
    (r"kernel", 3),
    (r"window", 2),
    (r"layer_?(idx|id|num|index)?$|n_?layers?$|num_?layers?$", 1),
)
_METHODS = re.compile(r"method|score|kind|mode|type|attn|attention|align")  # a word that chooses the formula
DOCUMENTED = "its docstring or comment says"
METHODS = ("general", "dot", "concat", "additive", "scaled_dot")
_CONFIGS = re.compile(r"config|cfg|^args$|hparams|options")
# What a mask has, and after it nothing of what it has elsewhere.
_ONE = r"\b(1(\.0)?s?|true|ones?|nonzero|non-zero)\b[^\w.;,\n]{,6}((?!\b(0|false|zeros?)\b)[^.;,\n]){,25}?\b"
_KEEPS_WORDS = re.compile(rf"{_ONE}(keep|keeps|kept|visible|valid|real|attend|attended|allowed?|unmasked)\b", re.I)
_HIDES_WORDS = re.compile(
    r"mask for padded|[-−](inf|infinity|∞|\d+e\d+)\b.{0,30}mask\w* (has|have|is|are|=|==) (1|true)\b"
    r"|\b(indices|positions|elements|entries|tokens|keys) (that are |which are )?to be (masked|hidden|ignored)|"
    rf"{_ONE}(hide|hides|hidden|pad|pads|padding|padded|ignored?|masked|excluded?|blocked|forbidden|not allowed)\b",
    re.I,
)
_PYTORCH = re.compile(r"^(src_|tgt_|memory_)?key_padding_mask$|^attn_mask$|^encoder_padding_mask$")
# As in Keras.
_TIMES = re.compile(r"mask\w*(\.\w+\(\))?\s*\*\s*-?\s*(1e|float|torch\.finfo|10\s*\*\*|inf\b|\d{4})", re.I)


@dataclass(frozen=True)
class Built:
    """A module or function, and how it was made, such as `Attn(hidden_size=16)`. again : builds its class in other
    Sizes; None for a function, and for what TorchScript has compiled."""

    target: Callable
    title: str
    again: Callable[..., "Built"] | None = None


def built(module: Any, settings: Mapping[str, object] | None = None) -> Built:
    """A class built in sizes for a check; a module or function unchanged. settings : arguments of the class.
    ValueError for anything else.

    A module can be rebuilt if its class has a size for every argument. Strings and bools that it stores under their
    names, such as `self.method`, are kept.
    """
    if settings is not None and not isinstance(settings, Mapping):
        raise ValueError(f"settings must be a dict, a name and a value for each argument; got {shown(settings)}")
    if isinstance(module, type):
        return build(module, settings)
    if settings:
        raise ValueError(f"settings are arguments of a class; got {shown(module)}, which is built already")
    if isinstance(module, Built):
        return module
    module = getattr(module, "_orig_mod", module)  # what torch.compile has wrapped
    if not callable(module):
        raise ValueError(f"module must be an nn.Module or a function; got {type(module).__name__}")
    if not isinstance(module, nn.Module) or isinstance(module, torch.jit.ScriptModule):
        return Built(module, "")
    own = {parameter.name: getattr(module, parameter.name, None) for parameter in _parameters(type(module))}
    own = {name: value for name, value in own.items() if isinstance(value, str | bool)}
    return Built(module, "", partial(build, type(module), own))


@contextlib.contextmanager
def same_numbers() -> Iterator[None]:
    """In the block, torch draws the same random numbers each time. After it, it goes on as if there had been none."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        yield


def load(place: str, settings: Mapping[str, object] | None = None, sizes: Sizes = CHECKED) -> Built:
    """The module or function that `FILE.py:Name` names; without a name, the only one of the file.

    settings : arguments of the class; the others are `sizes`, chosen by their names. Its random weights are the same
    each time. ValueError, in one sentence.

    >>> Path("mine.py").write_text("def dot(query, keys): return (query @ keys.mT).softmax(-1)")
    >>> own.check(own.load("mine.py:dot")).ok
    True
    """
    path, colon, name = str(place).rpartition(":")
    if not colon or not path.endswith(".py"):
        path, name = str(place), ""
    with same_numbers() if sizes is CHECKED else contextlib.nullcontext():  # a training has its own
        module = python_file.run(Path(path))
        target = _pick(module, Path(path), name)
        if isinstance(target, type):
            return build(target, settings, sizes)
    if settings:
        raise ValueError(f"{name or target} is no class, so it takes no --set; got {', '.join(settings)}")
    return replace(built(target), title=getattr(target, "__name__", "") or f"{type(target).__name__} (an instance)")


def _pick(module: ModuleType, path: Path, name: str):
    """The class, module or function of this name; without a name, the only class or else the only function."""
    own = {key: value for key, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__}
    classes = [key for key, value in own.items() if isinstance(value, type) and issubclass(value, nn.Module)]
    functions = [key for key, value in own.items() if inspect.isfunction(value)]
    if not name:
        likely = classes or functions
        if len(likely) != 1:
            raise ValueError(f"{path} has {_listed(likely)}; say which: {path.name}:NAME")
        name = likely[0]
    if not hasattr(module, name):
        its = _listed([*classes, *functions])
        raise ValueError(f"{path} has no {name!r:.80}{guess(name, [*own])}; it has {its}")
    value = getattr(module, name)
    if isinstance(value, type) and not issubclass(value, nn.Module) and "__call__" not in dir(value):
        raise ValueError(f"{name} must be an nn.Module or a function; it is a class of another kind")
    if not callable(value):
        raise ValueError(f"{name} must be a class, a module or a function; it is {shown(value)}")
    return value


def _listed(names: list[str]) -> str:
    return ", ".join(names[:20]) if names else "no class and no function"


def build(
    kind: type, settings: Mapping[str, object] | None = None, sizes: Sizes = CHECKED, biases: bool = False
) -> Built:
    """An object of a class. A parameter gets its value in `settings`, or the size implied by its name, or its default.
    biases : switch on biases that are off by default. ValueError for any other parameter, and if the class raises.
    """
    settings, chosen, again = dict(settings or {}), {}, partial(build, kind, settings)
    parameters, checked = _parameters(kind), sizes is CHECKED
    if unknown := settings.keys() - {parameter.name for parameter in parameters}:
        names = ", ".join(parameter.name for parameter in parameters) or "none"
        raise ValueError(f"{kind.__name__} has no parameter {', '.join(sorted(unknown))}; its parameters: {names}")
    wide = "query", "key", "value", "width"  # of which 1 is no default, as in Joey NMT
    ones = [p for p in parameters if type(p.default) is int and p.default == 1 and _size_name(p.name) in wide]
    needed = [p.name for p in parameters if p.default is p.empty or p in ones]
    if checked and "key_heads" in map(_size_name, needed):
        sizes = CHECKED._replace(heads=4, key_heads=2)
    unnamed = []
    for name in (name for name in needed if name not in settings):
        value = _value(name, sizes)
        if "temperature" in name.lower():  # the root of a width, if that is all it gets
            value = sizes.width**0.5 if {*map(_size_name, needed)} <= {None, "dropout"} else 1.0
        if value is None and not _METHODS.search(name.lower()):
            unnamed.append(name)
        chosen[name] = METHODS[0] if value is None else value
    if unnamed:
        example = f"--set {unnamed[0]}=VALUE, in Python settings={{'{unnamed[0]}': VALUE}}"
        raise ValueError(f"{kind.__name__} needs {', '.join(unnamed)}, and the name tells no size: give {example}")
    optional = [p.name for p in parameters if p.name not in needed and type(p.default) in (int, float)]
    dropout = [name for name in optional if _size_name(name) == "dropout"]
    if not checked:  # for a network whose widths are given, also what has a default
        others = [p for p in parameters if p.name not in needed and type(p.default) is int and _size_name(p.name)]
        chosen |= {p.name: getattr(sizes, _size_name(p.name) or "") for p in others}
    chosen |= dict.fromkeys(dropout, sizes.dropout)  # so that a dropout that stays on is seen
    off = [p.name for p in parameters if biases and p.default is False and re.search("^(?!add).*bias", p.name)]
    chosen |= dict.fromkeys(off, True)
    chosen |= settings
    chosen = {parameter.name: chosen[parameter.name] for parameter in parameters if parameter.name in chosen}
    methods = [name for name in chosen if chosen[name] == METHODS[0] and name not in settings]
    return replace(_made(kind, chosen, methods), again=again)


def _parameters(kind: type) -> list[inspect.Parameter]:
    try:
        parameters = list(inspect.signature(kind).parameters.values())
    except (TypeError, ValueError):
        return []
    return [p for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]


def _size_name(name: str) -> str | None:
    """The field of Sizes implied by the name of a parameter; None if there is none."""
    if re.search("window|kernel", name.lower()):
        return None
    return next((size for pattern, size in _SIZES if re.search(pattern, name.lower())), None)


def _value(name: str, sizes: Sizes):
    """The value of a required parameter; None if its name implies none."""
    if _CONFIGS.search(name.lower()):
        return Config(sizes)
    size = _size_name(name)
    if size is not None:
        return getattr(sizes, size)
    return next((value for pattern, value in _USUAL if re.search(pattern, name.lower())), None)


class Config:
    """A configuration object or dict: every name that implies a size has it, as in `config.n_embd`."""

    def __init__(self, sizes: Sizes):
        self._sizes = sizes

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(name)
        if name == "bias":
            return False
        if (size := _size_name(name.replace("embd", "embed"))) is None:
            raise AttributeError(f"no size is known for config.{name}")
        return getattr(self._sizes, size)

    def __getitem__(self, name: str):
        return getattr(self, name)

    def get(self, name: str, default: object = None):
        """As in a dict."""
        return getattr(self, name, default)

    def __repr__(self):
        return "Config()"


def _made(kind: type, arguments: dict, methods: list[str]) -> Built:
    """The object. If a string chooses the formula, the first of METHODS that the class accepts."""
    reason = ""
    for method in METHODS if methods else ("",):
        arguments |= dict.fromkeys(methods, method)
        title = f"{kind.__name__}({', '.join(f'{name}={shown(value)}' for name, value in arguments.items())})"
        try:
            machine.check_parameters(_parameter_count(kind, arguments))
        except ValueError as error:
            reason = reason or str(error)
            continue
        try:
            with contextlib.redirect_stdout(sys.stderr):
                return Built(kind(**arguments), title)
        except ANYTHING as error:  # a person's code may raise anything
            reason = reason or in_words(error)
    others = "choose other values with --set NAME=VALUE, in Python settings={'NAME': VALUE}"
    raise ValueError(f"{title} cannot be built: {reason}; {others}")


def _parameter_count(kind: type, arguments: dict) -> int:
    """The number of parameters, counted from shapes alone, because allocating too many may end the program. 0 if the
    class cannot be built this way."""
    if any(type(value) is int and value > WIDE for value in arguments.values()):
        with contextlib.suppress(*ANYTHING), contextlib.redirect_stdout(sys.stderr), torch.device("meta"):
            return sum(parameter.numel() for parameter in kind(**arguments).parameters())
    return 0


def code_of(target: Callable) -> str:
    """The source of the class of a module, or of a function; "" if Python cannot find it."""
    try:
        return inspect.getsource(type(target) if isinstance(target, nn.Module) else target)
    except (OSError, TypeError):
        return ""


def meant(code: str, mask: MaskForm, stated: str | None = None) -> tuple[str, str]:
    """The meaning of 1 in the mask, and its source: the caller, a docstring or comment, or the name. code : of the
    module."""
    if stated:
        return stated, "you say"
    lines = [line for line in _remarks(code).splitlines() if "#" in line or '"' in line or ":" in line]
    text = "\n".join(line for line in lines if "mask" in line.lower())
    if _HIDES_WORDS.search(text) and not _KEEPS_WORDS.search(text):
        return HIDE, DOCUMENTED
    if _KEEPS_WORDS.search(text) and not _HIDES_WORDS.search(text):
        return KEEP, DOCUMENTED
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


@contextlib.contextmanager
def looked_at(target: Callable, title: str) -> Iterator[None]:
    """In this block, exceptions from inspecting a user's code become ValueError. ValueError too for an uninitialised
    nn.Module."""
    try:
        if isinstance(target, nn.Module) and not all(hasattr(target, name) for name in vars(nn.Module())):
            raise NotRecognised(
                f"{title} lacks what nn.Module keeps in every module: call super().__init__() at the start of its "
                "__init__, and leave self.__dict__ as it is"
            )
        yield
    except NotRecognised:
        raise
    except ANYTHING as error:  # a person's code may raise anything
        raise ValueError(f"{title} cannot be tested: its code raises {in_words(error)}") from error


def in_words(error: BaseException, raised: str = "") -> str:
    """An exception of a person's code in one line. raised : text before its name, such as `it raised `."""
    return machine.too_large(error) or f"{raised}{python_file.in_words(error)}"


def call_of(target: Callable) -> Callable:
    """The function that a call runs: of a module, `forward`."""
    return target.forward if isinstance(target, nn.Module) else target


def name_of(target: Callable) -> str:
    """The name of a function, or of the class of a module."""
    return getattr(target, "__name__", type(target).__name__)


def stated_axes(target: Callable) -> tuple[str, ...]:
    """The first shape with the batch first in the docstring and comments of a call, such as `B`, `D`; () if none."""
    text = f"{call_of(target).__doc__ or ''} {' '.join(re.findall('#.*', code_of(call_of(target))))}"
    shape = re.search(r"(?<!\w)[(\[]\s*((?:[BNbn]|bsz?|\w*batch\w*)(?:(?:\s*[,×]\s*| x )\w+)+)\s*[)\]]", text)
    return tuple(re.split(r"\s*[,×]\s*| x ", shape[1])) if shape else ()


def raised(error: BaseException, target: Callable, batch: int = 0, keys: int = 0, *, verb: str = "raises") -> str:
    """The error of a call with its place; keys : not 0 for a query (B, D) beside keys (B, S, D), and what they lack."""
    words, lacks = in_words(error, f"it {verb} "), ""
    place = python_file.place_of(error, getattr(call_of(target), "__module__", ""))
    sizes = {int(number) for number in re.findall(r"tensor [ab] \((\d+)\)", words)}
    if sizes == {batch, keys} or "same number of dimensions" in words:
        lacks = ": unsqueeze(1) of the query is missing"
    elif "must be a 3D tensor" in words or (keys in sizes and "dimension 2" in words):
        three = "bmm multiplies (B,1,S) and (B,S,D), so an unsqueeze(1) is missing"
        lacks = f": {'weights (B,S) times (B,S,D) need unsqueeze(-1)' if sizes else three}"
    return f"{words}{f' ({place})' * bool(place)}{lacks * bool(keys)}"


def within(target: Callable, step: bool) -> str:
    """Which submodule may be the attention, in a sentence, or else, if `step`, that it may be a decoder's; or ""."""
    parts = target.named_modules() if isinstance(target, nn.Module) else ()
    own = ((name, type(part)) for name, part in parts if name)
    names = [(n, kind.__name__) for n, kind in own if kind.__module__[:8] != "torch.nn" or "Att" in kind.__name__]
    inner = [f"{kind} (self.{name})" for name, kind in names if re.search("att", f"{name.split('.')[-1]} {kind}", re.I)]
    if not inner and step:
        return " It seems to be a whole step of a decoder: test its attention in a class of its own, or use own.watch."
    return f" It holds {inner[0]}: test that class by itself." if inner else ""
