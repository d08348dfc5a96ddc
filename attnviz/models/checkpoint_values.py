"""The config and the card of a checkpoint, checked and cleaned: any JSON -> valid values.

This is the only place that does so. An error in a config is refused, because it decides what is built. A card only
informs, so a wrong entry is left out, and the model stays on the page. But a model whose files do not match the hashes
on its card is refused, as is one whose card is not JSON (see checkpoints.py).
"""

import math
from dataclasses import fields
from typing import Any

from attnviz.mechanisms import Config

# far above any model here; a page with more could not be drawn
LAYERS, HEADS, WIDTH, PIECES = 64, 256, 16_384, 2_000_000
DEEPEST, MOST, LONG = 8, 100_000, 5_000  # of a card: values in values, entries of a list, characters of a text
WHOLE = 2**53  # as large as a whole number may be to be the same as a float
# option -> the largest that is built; every other whole number is a width
_MOST = {
    "layers": LAYERS,
    "encoder_layers": LAYERS,
    "heads": HEADS,
    "longest": 100_000,
    "reach": 100_000,
    "classes": 1_000,
}
SIZES = ("layers", "encoder_layers", "heads", "width", "hidden", "embedding_width", "longest", "reach", "classes")
# field of a card -> what it must be to be shown
_FIELDS: dict[str, Any] = {
    **dict.fromkeys(("pair", "mechanism", "command", "device", "precision", "remark"), str),
    **dict.fromkeys(("weights_sha256", "tokenizer_sha256"), str),
    **dict.fromkeys(("seed", "parameters", "epochs", "seconds", "peak_memory_mb", "training_pairs"), (int, float)),
    **dict.fromkeys(("ms_per_sentence", "ms_per_token"), (int, float)),
    **dict.fromkeys(
        ("data", "settings", "options", "versions", "best", "scores", "alignment", "start", "unfinished"), dict
    ),
    **dict.fromkeys(("confidence", "copied"), dict),
    **dict.fromkeys(("history", "teachers", "examples"), list),
}


def config(content: dict) -> Config:
    """The config of a checkpoint. Raises ValueError, TypeError (a value of the wrong type)."""
    _check_keys(content)
    made = Config(**content)
    _check_count("vocabulary", made.vocabulary, PIECES)
    for name, value in made.options.items():
        if isinstance(value, str):
            if len(value) > 40:
                raise ValueError(f"{name} must be a short word; got one of {len(value):,} characters")
        elif isinstance(value, float):
            if not 0 <= value < 1:  # a share of what is dropped; nothing else has a fraction
                raise ValueError(f"{name} must be a whole number, or a share from 0 to below 1; got {value}")
        elif value is not None and not isinstance(value, bool) and (name in SIZES or value != 0):
            _check_count(name, value, _MOST.get(name, WIDTH))
    for name in SIZES:
        if isinstance(made.options.get(name), float | str):
            raise ValueError(f"{name} must be a whole number; got {made.options[name]}")
    return made


def _check_keys(content: dict) -> None:
    allowed = [field.name for field in fields(Config)]
    missing = [name for name in ("mechanism", "vocabulary") if name not in content]
    unknown = [name for name in content if name not in allowed]
    if missing:
        raise ValueError(f"it must say {' and '.join(missing)}")
    if unknown:
        raise ValueError(f"it may say {', '.join(allowed)}; got {unknown[0]!r:.80} too")


def _check_count(name: str, value: object, most: int) -> None:
    if type(value) is not int:
        raise ValueError(
            f"{name} must be a whole number; got "
            f"{str(value)[:40] if isinstance(value, float) else type(value).__name__}"
        )
    if not 1 <= value <= most:
        raise ValueError(
            f"{name} must be from 1 to {most:,}; got "
            f"{value if abs(value) < 10**12 else 'a number of more than 12 digits'}"
        )


def card(content: dict) -> dict:
    """A card without entries that cannot be shown: fields of a wrong type, and numbers that are not finite."""
    plain = {str(key): _plain(value, DEEPEST) for key, value in content.items()}
    return {
        key: value
        for key, value in plain.items()
        if value is not None
        and isinstance(value, _FIELDS.get(key, object))
        and not (key in _FIELDS and isinstance(value, bool))
    }


def study(content: Any) -> dict:
    """The results of a study: `models` and `rows` are lists of objects, and everything in them can be shown."""
    plain = _plain(content, DEEPEST) if isinstance(content, dict) else {}
    lists: dict[str, Any] = {
        name: plain.get(name) if isinstance(plain.get(name), list) else [] for name in ("models", "rows")
    }
    return plain | {name: [entry for entry in lists[name] if isinstance(entry, dict)] for name in lists}


def numbers(row: dict, *names: str) -> bool:
    """Does an object have a number under all of these names?"""
    return all(isinstance(row.get(name), int | float) and not isinstance(row[name], bool) for name in names)


def _plain(value: Any, depth: int) -> Any:
    """Any JSON value with finite numbers and valid texts; None in place of any other."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, int):
        return value if abs(value) <= WHOLE else None
    if isinstance(value, float):
        return value if math.isfinite(value) and abs(value) <= WHOLE else None
    if isinstance(value, str):
        return _readable(value)
    if depth == 0:
        return None
    if isinstance(value, list):
        return [_plain(entry, depth - 1) for entry in value[:MOST]]
    return {_readable(key): _plain(entry, depth - 1) for key, entry in list(value.items())[:MOST]}


def _readable(text: str) -> str:
    """A text of limited length without halves of surrogate pairs, which cannot be written in UTF-8."""
    return text[:LONG].encode("utf-8", "replace").decode("utf-8")
