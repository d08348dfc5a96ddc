"""Traces in files: safetensors for any size, JSON for what people read. Nothing in either can run when it is read.

In a safetensors file each map is a tensor of fp32, `encoder.0` (kind and layer), with axes [heads, queries, keys]; beside
them, in the metadata, `trace` holds the JSON of all but the weights, as `Trace.to_dict` has it.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from attnviz import atomic
from attnviz.trace import Trace

FORMATS = (".safetensors", ".json")
LONGEST = 300  # characters of what is wrong with a file, which may quote it


def save_trace(trace: Trace, path: str | Path) -> None:
    """Write a trace, whole or not at all; as JSON where the path ends in .json. ValueError for any end but .safetensors or that."""
    path = Path(path)
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"path must end in {' or '.join(FORMATS)}; got {path.name!r}")
    content = (
        pack(trace) if path.suffix.lower() == ".safetensors" else trace.to_json().encode("utf-8", "backslashreplace")
    )
    atomic.replace(path, lambda temporary: temporary.write_bytes(content))


def load_trace(path: str | Path) -> Trace:
    """The trace that `save_trace` or `Trace.to_json` wrote. ValueError when it cannot be read, or makes no trace."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise ValueError(f"cannot read {path}: {error.strerror or error}") from None
    return unpack(content, Path(path).name)


def pack(trace: Trace) -> bytes:
    """A trace as the content of a safetensors file."""
    tensors = {f"{m.kind}.{m.layer}": m.weights for m in trace.maps}
    return save(tensors, {"trace": json.dumps(trace.to_dict(weights=False), allow_nan=False)})


def unpack(content: bytes, name: str) -> Trace:
    """The trace in the content of a file, of either format; name : of the file, in errors. Raises ValueError."""
    if not content:
        raise ValueError(f"the file {name} is empty")
    try:
        binary = content[4:9] == b"\0\0\0\0{"  # the length of a header, 8 bytes, and its beginning
        return _from_safetensors(content) if binary else Trace.from_json(_text(content))
    except ValueError as error:
        raise ValueError(f"the file {name} holds no trace that can be shown: {_short(str(error))}") from None


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def _text(content: bytes) -> str:
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = ""
    if not text.lstrip().startswith("{"):
        raise ValueError("it is neither safetensors nor a JSON object in UTF-8")
    return text


def _from_safetensors(content: bytes) -> Trace:
    try:
        tensors = load(content)
    except SafetensorError:
        raise ValueError("its safetensors are damaged, or not whole") from None
    except (KeyError, TypeError, AttributeError):  # a type of numbers that numpy has not
        raise ValueError("its weights are numbers of a kind that no trace has") from None
    written = _header(content).get("trace")
    if not isinstance(written, str):
        raise ValueError("its weights are those of something else; a trace is written by attnviz.save_trace()")
    values = _object(written)
    return Trace.from_dict(values | {"maps": [_map(one, tensors) for one in values["maps"]]})


def _header(content: bytes) -> Mapping[str, str]:
    """The metadata, which `load` drops: the first 8 bytes are the length of the JSON that follows."""
    return json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")]).get("__metadata__") or {}


def _object(text: str) -> dict:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"what stands beside its weights must be JSON; {error}") from None
    if not isinstance(found, dict) or not isinstance(found.get("maps"), list):
        raise ValueError("what stands beside its weights must be an object with a list of maps")
    return found


def _map(listed: Any, tensors: Mapping[str, np.ndarray]) -> dict:
    """A map as `Trace.from_dict` takes it."""
    name = f"{listed.get('kind')}.{listed.get('layer')}" if isinstance(listed, dict) else None
    if name not in tensors:
        raise ValueError(f"weights must be there for each of its maps; got none for {str(name or listed):.60}")
    return {**listed, "weights": tensors[name]}
