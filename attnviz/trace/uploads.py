"""A file uploaded to the page: a saved trace, or arrays of weights with the sender's description.

Nothing in it is trusted: its size, numbers and texts are checked before they are shown.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from attnviz import storage
from attnviz.trace import containers, files
from attnviz.trace.arrays import from_arrays
from attnviz.trace.trace import Trace

ENDINGS = tuple(dict.fromkeys((*files.FORMATS, *containers.FILES)))
NUMBERS = 2**24  # weights of a file, unpacked: 12 layers of 12 heads of 340 tokens


class TokensMissing(ValueError):
    """The file has arrays without their tokens."""


@dataclass(frozen=True)
class Reading:
    """The sender's description of arrays, as in `from_arrays`. Tokens are separated by spaces, or a JSON list.

    Typed tokens take precedence over those of the file. sink : add a column with the remainder of each row to 1.
    """

    tokens: str = ""
    target: str = ""
    padding: str = ""
    kind: str | None = None
    batch: int | None = None
    sink: bool = False


def is_trace(content: bytes) -> bool:
    """Is it a (possibly damaged) file of a trace? Otherwise it is one of arrays."""
    if content[4:9] == b"\0\0\0\0{":
        try:
            header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
        except (ValueError, RecursionError):
            return True
        return not isinstance(header, dict) or "trace" in (header.get("__metadata__") or {})
    if content.lstrip()[:1] == b"[" or content.startswith((b"PK", b"\x93NUMPY", b"\x80")):  # the last: a pickle
        return False
    try:
        values = storage.parse_json(content)
    except ValueError:
        return True
    return not isinstance(values, dict) or not values or not values.keys().isdisjoint(("maps", "mechanism"))


def unpack(content: bytes, name: str, reading: Reading = Reading()) -> Trace:
    """The trace in a file, not too large, and with texts that can be shown. name : of the file, for errors.

    Raises TokensMissing for arrays without tokens, ValueError for any other problem.
    """
    trace = files.unpack(content, name, files.check_limits) if is_trace(content) else _of_arrays(content, name, reading)
    try:
        files.check_texts(trace.to_dict(weights=False))
    except ValueError as error:
        raise ValueError(f"the file {name} holds no valid trace: {error}") from None
    return trace


def described(content: bytes, name: str) -> set[str]:
    """What a file of arrays says beside its weights, such as `tokens`; nothing if it cannot be read."""
    try:
        return set(_parts(content, name)[1])
    except ValueError:
        return set()


def _parts(content: bytes, name: str) -> tuple[dict, dict]:
    """The arrays of a file, and its other entries."""
    return containers.texts_of(containers.unpack(content, name, NUMBERS))


def _of_arrays(content: bytes, name: str, reading: Reading) -> Trace:
    weights, texts = _parts(content, name)
    _check_parameters(weights, name)
    tokens = _tokens(reading.tokens) or texts.get("tokens")
    if tokens is None:
        raise TokensMissing(f"the file {name} holds weights and no tokens")
    trace = from_arrays(
        weights,
        tokens,
        _tokens(reading.target) or texts.get("target", ()),
        kind=reading.kind or texts.get("kind"),
        special=texts.get("special", ()),
        padding=_tokens(reading.padding) or texts.get("padding"),
        word_ids=texts.get("word_ids", ()),
        batch=reading.batch,
        missing="skip",
        rest="sink" if reading.sink else None,
        name=PurePath(name).stem,
    )
    maps = [{"layer": attention.layer, "weights": attention.weights} for attention in trace.maps]
    files.check_limits(trace.to_dict(weights=False) | {"maps": maps})
    return trace


def _check_parameters(weights, name: str) -> None:
    """ValueError for arrays that are not the output of a softmax, such as a model's parameters."""
    arrays = weights.items() if isinstance(weights, Mapping) else [("weights", weights)]
    for key, values in arrays:
        array = values if isinstance(values, np.ndarray) else np.empty(0)
        if array.dtype.kind == "f" and array.size and array.min() < -0.01:
            raise ValueError(
                f"the file {name} holds {float(array.min()):.3f} in {key!r:.60}, and attention weights are at least 0. "
                "Are these the parameters of a model? Choose the model under “Model”, with its folder"
            )


def _tokens(text: str) -> list[str]:
    """`the dog` or `["the", "dog"]` -> two tokens."""
    if text.lstrip().startswith("["):
        try:
            values = storage.parse_json(text)
        except ValueError:
            return text.split()
        if isinstance(values, list) and all(isinstance(value, str) for value in values):
            return values
    return text.split()
