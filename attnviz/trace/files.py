"""Traces in files: safetensors for any size, JSON for people to read. Reading either runs no code from the file.

In a safetensors file each map is an fp32 tensor with axes [heads, queries, keys], named by kind and layer: `encoder.0`.
Where keys are hidden, its mask is a bool tensor beside it: `encoder.0.mask`.
The entry `trace` of the metadata holds everything but the weights, as the JSON of `Trace.to_dict`.

Files are not trusted. For the page, the size, texts and numbers of a trace are checked before arrays are made: a trace
that could not be drawn, or would fill the memory, is refused in a sentence. `load_trace` only limits the size of the
file.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attnviz import arguments, storage
from attnviz.trace import Trace

FORMATS = (".safetensors", ".json")
LONGEST_ERROR = 300  # characters of an error message, which may quote the file
LARGEST = 2**30  # bytes of a file
LAYERS = 1_000  # maps in a file, and the number of a layer
HEADS = 1_600  # of all maps together; GPT-2 XL has 1,200
TOKENS = 4_096  # of the source, and of the target
CHARACTERS = 200_000  # of a text
WHOLE = 2**53


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace to a file that ends in .safetensors or .json; ValueError for another ending, and for a trace whose
    file would be too large for `load_trace`.

    The file is written whole or not at all. The page Heads and layers reads smaller traces: see `check_limits`.

    >>> attnviz.save_trace(trace, "dog.safetensors")
    """
    arguments.check("trace", trace, Trace)
    path = arguments.path("path", path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"path must end in {' or '.join(FORMATS)}; got {path.name!r:.80}")
    content = (
        pack(trace) if path.suffix.lower() == ".safetensors" else trace.to_json().encode("utf-8", "backslashreplace")
    )
    if len(content) > LARGEST:
        remedy = "; save it as .safetensors" if path.suffix.lower() == ".json" else ""
        raise ValueError(f"the trace would take {len(content):,} bytes, and at most {LARGEST:,} are read again{remedy}")
    storage.replace(path, lambda temporary: temporary.write_bytes(content))


def load_trace(path: str | Path) -> Trace:
    """Read what `save_trace` or `Trace.to_json` wrote.

    ValueError if the file cannot be read or holds no valid trace.

    >>> attnviz.save_trace(trace, "dog.json")
    >>> attnviz.load_trace("dog.json") == trace
    True
    """
    path = arguments.path("path", path)
    return unpack(read(path), path.name)


def read(path: Path) -> bytes:
    """The content of a file. ValueError if it cannot be read, or is too large."""
    try:
        return storage.read(path, LARGEST)
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None


def pack(trace: Trace, others: Mapping[str, np.ndarray] = {}, about: Mapping[str, str] = {}) -> bytes:
    """A trace as the content of a safetensors file. others : more arrays, about : more texts of its header."""
    tensors = {f"{m.kind}.{m.layer}": m.weights for m in trace.maps}
    tensors |= {f"{m.kind}.{m.layer}.mask": m.mask for m in trace.maps if m.mask is not None}
    tensors |= {name: np.ascontiguousarray(values) for name, values in others.items()}  # else written transposed
    return save(tensors, {"trace": json.dumps(trace.to_dict(weights=False), allow_nan=False), **about})


def arrays(content: bytes) -> dict[str, np.ndarray]:
    """All arrays in the content of a safetensors file that `unpack` has read."""
    return load(content)


def unpack(content: bytes, name: str, check: Callable[[object], None] = lambda values: None) -> Trace:
    """The trace in the content of a file of either format. name : the file's name, for errors. Raises ValueError.

    check : raises ValueError for values that are too large, before arrays are made of them.
    """
    if not content:
        raise ValueError(f"the file {name} is empty")
    try:
        binary = content[4:9] == b"\0\0\0\0{"  # the length of a header, 8 bytes, and its beginning
        return _from_safetensors(content, check) if binary else _from_json(content, check)
    except ValueError as error:
        raise ValueError(f"the file {name} holds no valid trace: {_short(str(error))}") from None


def _short(text: str) -> str:
    """One line without control characters, because names of fields may contain anything."""
    text = "".join(character if character.isprintable() else " " for character in text)
    return arguments.cut(text, LONGEST_ERROR)


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text.lstrip().startswith("{"):
        raise ValueError("it is neither safetensors nor a JSON object in UTF-8")
    return text


def _from_json(content: bytes, check: Callable[[object], None]) -> Trace:
    text = _text(content)
    try:
        values = storage.parse_json(text)
    except ValueError as error:
        raise ValueError(f"trace must be JSON; {error}") from None
    check(values)
    return Trace.from_dict(values)


def _from_safetensors(content: bytes, check: Callable[[object], None]) -> Trace:
    try:
        tensors = load(content)
    except SafetensorError:
        raise ValueError("its safetensors data are damaged or incomplete") from None
    except (KeyError, TypeError, AttributeError):  # a number type that NumPy does not have
        raise ValueError("its weights have a number type that traces do not use") from None
    written = header(content).get("trace")
    if not isinstance(written, str):
        raise ValueError("its weights are not those of a trace; attnviz.save_trace() writes traces")
    values = _object(written)
    check(values)
    values |= {"maps": [_map(listed, tensors) for listed in values["maps"]]}
    check(values)
    return Trace.from_dict(values)


def header(content: bytes) -> Mapping[str, str]:
    """The metadata, which `load` does not return. The first 8 bytes are the length of the JSON after them."""
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__") or {}


def _object(text: str) -> dict:
    try:
        values = storage.parse_json(text)
    except ValueError as error:
        raise ValueError(f"the metadata beside its weights must be JSON; {error}") from None
    if not isinstance(values, dict) or not isinstance(values.get("maps"), list):
        raise ValueError("the metadata beside its weights must be an object with a list of maps")
    return values


def _map(listed: Any, tensors: Mapping[str, np.ndarray]) -> dict:
    """A map in the form of `Trace.from_dict`."""
    name = f"{listed.get('kind')}.{listed.get('layer')}" if isinstance(listed, dict) else None
    if name is None or name not in tensors:
        raise ValueError(f"the file must hold weights for each map; got none for {name or listed!s:.60}")
    return {**listed, "weights": tensors[name], "mask": tensors.get(f"{name}.mask")}


def check_limits(values: object) -> None:
    """Raise ValueError if a trace, in the form of `Trace.to_dict`, is too large, or has text that cannot be written."""
    if not isinstance(values, Mapping):
        return  # Trace.from_dict says what is wrong
    maps = values.get("maps")
    if isinstance(maps, list):
        _check_maps(maps)
    for name in ("source", "target", "log_probs", "alternatives"):
        entries = values.get(name)
        if isinstance(entries, list) and len(entries) > TOKENS:
            raise ValueError(f"{name} has {len(entries):,} entries, and at most {TOKENS:,} are read")
    for part in _parts({key: value for key, value in values.items() if key != "maps"}):
        _check_part(part)


def _check_maps(maps: list) -> None:
    if len(maps) > LAYERS:
        raise ValueError(f"it has {len(maps):,} maps, and at most {LAYERS:,} are read")
    heads = 0
    for entry in maps:
        layer = entry.get("layer") if isinstance(entry, dict) else None
        if isinstance(layer, int) and layer >= LAYERS:
            shown = f"{layer:,}" if layer < 10**12 else "a number of more than 12 digits"
            raise ValueError(f"layers are counted from 0 to {LAYERS - 1}; got {shown}")
        weights: Any = entry.get("weights") if isinstance(entry, dict) else None
        heads += len(weights) if hasattr(weights, "__len__") else 0
    if heads > HEADS:
        raise ValueError(f"it has {heads:,} heads, and at most {HEADS:,} are read")


def _check_part(part: object) -> None:
    if isinstance(part, str):
        if len(part) > CHARACTERS:
            raise ValueError(f"a text in it has {len(part):,} characters, and at most {CHARACTERS:,} are read")
    elif isinstance(part, int) and abs(part) > WHOLE:
        raise ValueError("a number in it has more than 15 digits")


def check_texts(values: Mapping) -> None:
    """Raise ValueError for a text that cannot be written in UTF-8, so that no page can show it."""
    for part in _parts(values):
        if isinstance(part, str) and any("\ud800" <= character <= "\udfff" for character in part):
            raise ValueError("a text in it holds half a character (a lone surrogate), which no page can show")


def _parts(value: object) -> Iterator[object]:
    """Every text and number in JSON, the names of fields included."""
    waiting = [value]
    while waiting:
        part = waiting.pop()
        if isinstance(part, dict):
            waiting += part.keys()
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
        else:
            yield part
