"""Arguments of the functions that notebooks call: a value of the wrong type is a ValueError that says what was wanted.

`checked` reads the annotations of a function, `Checked` those of a dataclass. Numbers of NumPy are numbers, and
what NumPy can read as an array is one.
"""

import difflib
import functools
import inspect
import numbers
import os
import sys
import types
import typing
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Union

SHOWN = 80  # characters of a value in an error
FEW = 4  # entries of a list that `brief` writes out
LARGEST = 2**63  # of whole numbers
PART, WHOLE = 255, 4095  # bytes of a name in a path, and of the path
_WORDS = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "True or False",
    type(None): "None",
    bytes: "bytes",
}
_LISTS = (Sequence, Collection, Iterable, list, tuple)


def checked(function: Callable) -> Callable:
    """Wrap a function so that it raises ValueError for an argument whose type does not match its annotation."""
    signature = inspect.signature(function)
    parameters = signature.parameters.values()
    names = tuple(signature.parameters)
    plain = all(parameter.kind is parameter.POSITIONAL_OR_KEYWORD for parameter in parameters)
    needed = sum(parameter.default is parameter.empty for parameter in parameters)

    def bound(args: tuple, kwargs: dict) -> Iterable[tuple[str, Any]]:
        for name, value in signature.bind(*args, **kwargs).arguments.items():
            several = signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL
            yield from ((name, item) for item in (value if several else (value,)))

    @functools.cache
    def hints_and_types() -> dict[str, tuple[Any, frozenset[type]]]:
        return {name: (hint, _enough(hint)) for name, hint in typing.get_type_hints(function).items()}

    @functools.wraps(function)
    def call(*args, **kwargs):
        annotated = hints_and_types()
        quick = plain and not kwargs and needed <= len(args) <= len(names)  # often, and ten times as fast
        for name, value in zip(names, args) if quick else bound(args, kwargs):
            hint, enough = annotated.get(name, (Any, frozenset()))
            if type(value) not in enough:
                check(name, value, hint)
        return function(*args, **kwargs)

    return call


class Checked:
    """Base of a dataclass whose fields are checked like arguments. A subclass with `__post_init__` must call this
    one."""

    __dataclass_fields__: ClassVar[dict[str, Any]]

    def __post_init__(self):
        hints = typing.get_type_hints(type(self))
        for field in fields(self):
            check(field.name, getattr(self, field.name), hints[field.name])


def check(name: str, value: Any, hint: Any) -> None:
    """ValueError unless the value is of the type `hint`."""
    if not _is(value, hint):
        if closed := getattr(type(value), "why_closed", None) and value.why_closed:
            raise ValueError(f"{name} cannot be used here: {closed}")
        large = isinstance(value, numbers.Integral) and abs(int(value)) >= LARGEST
        raise ValueError(f"{name} must be {_in_words(hint)}; got {shown(value)}{', which is too large' * large}")


def within(name: str, value: Any, least: int, most: int, why: str = "") -> None:
    """ValueError unless it is a whole number from `least` to `most`. why : they are these, after a comma."""
    if not (_is(value, int) and least <= value <= most):
        raise ValueError(f"{name} must be from {least} to {most}{why}; got {shown(value)}")


def path(name: str, value: Any) -> Path:
    """A path from a caller's argument. ValueError for an invalid file name."""
    text = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(text, str) or "\0" in text or not _fits(text):
        raise ValueError(f"{name} must be the path of a file or a folder; got {shown(value)}")
    return Path(text)


def shown(value: Any) -> str:
    """A value in one line of limited length."""
    try:
        text = " ".join(repr(value).split())
    except Exception:  # `repr` is code of the value's class, which may raise anything
        text = f"a value of type {type(value).__name__}"
    return cut(text)


def cut(text: str, most: int = SHOWN) -> str:
    """The text cut to this number of characters; a cut text ends in an ellipsis."""
    return text if len(text) <= most else f"{text[: most - 1]}…"


def brief(value: Any) -> str:
    """The `repr` of a data class or named tuple with arrays: one line, fields shortened, arrays as their shapes."""
    names = value._fields if hasattr(value, "_fields") else [field.name for field in fields(value) if field.repr]
    parts = (f"{name}={_brief(getattr(value, name))}" for name in names)
    return f"{type(value).__name__}({', '.join(parts)})"


def _brief(value: Any) -> str:
    if hasattr(value, "shape"):
        return f"{type(value).__name__} {' × '.join(map(str, value.shape))}"
    many = isinstance(value, Mapping | list | tuple) and not hasattr(value, "_fields") and len(value) > FEW
    return f"{len(value)} values" if many else shown(value)


def listed(names: Iterable[str]) -> str:
    """Names in one line, each of limited length."""
    return ", ".join(" ".join(name.split())[:SHOWN] for name in names)


def check_columns(frame: Any, columns: Sequence[str], name: str) -> None:
    """ValueError when a frame, or a mapping of columns, lacks a column."""
    missing = [column for column in columns if column not in getattr(frame, "columns", frame)]
    if missing:
        raise ValueError(f"the {name} must have the columns {listed(columns)}; {listed(missing)} missing")


def guess(name: object, names: Iterable[str] | Mapping[str, str]) -> str:
    """`; did you mean X` if `name` is close to one of the names, else "". Case is ignored.

    names : a sequence, or a mapping from each name to the text that is suggested.
    """
    if not isinstance(name, str):  # a file may hold anything in the place of a name
        return ""
    meant = names if isinstance(names, Mapping) else {entry: entry for entry in names}
    lower = {entry.lower(): whole for entry, whole in meant.items()}
    similar = difflib.get_close_matches(name.lower()[:SHOWN], lower, n=1, cutoff=0.8)
    return f"; did you mean {lower[similar[0]]}" if similar else ""


def is_list(value: Any) -> bool:
    """Is the value a sequence of entries? Text is not one here, and neither is an array without axes."""
    return isinstance(value, Iterable) and not isinstance(value, str | bytes) and getattr(value, "ndim", 1) != 0


def _fits(text: str) -> bool:
    try:
        encoded = os.fsencode(text)
    except UnicodeEncodeError:
        return False
    return len(encoded) <= WHOLE and all(len(part) <= PART for part in encoded.split(os.fsencode(os.sep)))


def _is(value: Any, hint: Any) -> bool:
    kind: Any = type(value)
    if hint is Any or (kind is hint and _is_enough(kind)):  # often, and ten times as fast
        return True
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return any(_is(value, choice) for choice in inner)
    if origin is None:
        return _is_of(value, type(None) if hint is None else hint)
    if origin is Callable:
        return callable(value)
    if issubclass(origin, Mapping):
        return isinstance(value, Mapping) and all(_is(entry, inner[1]) for entry in value.values())
    return _is_list(value, origin, inner) if origin in _LISTS else isinstance(value, origin)


def _enough(hint: Any) -> frozenset[type]:
    """The types whose values need no further look: most arguments, ten times as fast."""
    members = typing.get_args(hint) if typing.get_origin(hint) in (Union, types.UnionType) else (hint,)
    return frozenset(kind for kind in members if isinstance(kind, type) and (kind is bool or _is_enough(kind)))


@functools.cache
def _is_enough(kind: type) -> bool:
    """Is it enough to check the type of the value? Not where `_is_of` checks more than the type."""
    return not issubclass(kind, int | tuple) and kind.__name__ != "ndarray"


def _is_list(value: Any, origin: Any, inner: tuple) -> bool:
    if isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable) or getattr(value, "ndim", 1) != 1:
        return False
    if origin in (Sequence, list, tuple) and not hasattr(value, "__getitem__"):  # a set has no order
        return False
    if not isinstance(value, Sized):  # an iterator, of which nothing is known before it is used
        return origin is Iterable
    if origin is tuple and inner[1:] != (Ellipsis,):
        return len(value) == len(inner) and all(map(_is, value, inner))
    return all(_is(entry, inner[0]) for entry in value)


def _is_of(value: Any, kind: Any) -> bool:
    if kind is bool:
        return isinstance(value, bool) or type(value).__name__ == "bool_" or type(value).__module__ == "numpy.bool"
    if kind is int:
        return isinstance(value, numbers.Integral) and not isinstance(value, bool) and abs(int(value)) < LARGEST
    if kind is float:
        too_large = isinstance(value, numbers.Integral) and abs(int(value)) > sys.float_info.max
        return isinstance(value, numbers.Real) and not isinstance(value, bool) and not too_large
    if kind.__module__ == "numpy" and kind.__name__ == "ndarray":
        return _is_array(value)
    if getattr(kind, "_is_protocol", False):
        return all(hasattr(value, name) for name in (*kind.__annotations__, *vars(kind)) if not name.startswith("_"))
    if not isinstance(value, kind):
        return False
    if issubclass(kind, tuple) and hasattr(kind, "_fields"):
        hints = typing.get_type_hints(kind)
        return all(_is(entry, hints.get(name, Any)) for name, entry in zip(kind._fields, value))
    return True


def _is_array(value: Any) -> bool:
    import numpy as np

    try:
        array = np.asarray(value)
        return array.ndim > 0 and array.dtype.kind in "fiub"
    except (ArithmeticError, RuntimeError, TypeError, ValueError):
        return False


def _in_words(hint: Any) -> str:
    origin, inner = typing.get_origin(hint), typing.get_args(hint)
    if origin in (Union, types.UnionType):
        return " or ".join(map(_in_words, inner))
    if origin is tuple and inner[1:] != (Ellipsis,):
        return f"({', '.join(map(_in_words, inner))})"
    if origin in _LISTS:
        return f"a list, each {_in_words(inner[0])}"
    if origin is not None:
        return "a function" if origin is Callable else f"a {origin.__name__}"
    named = getattr(hint, "__name__", str(hint))
    article = "an" if named[0] in "AEIOUaeiou" else "a"
    made = f", as {hint.made_by} makes it" if hasattr(hint, "made_by") else ""
    return _WORDS.get(hint) or (
        "None" if hint is None else "an array of numbers" if named == "ndarray" else f"{article} {named}{made}"
    )
