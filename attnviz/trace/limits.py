"""How large a trace in a file may be that the page shows, and which texts and numbers it may hold; checked before
arrays are made of it. `load_trace` has only the limit of the file.

A file comes from anywhere. What could not be drawn, or would fill the memory when it is, is refused in a sentence.
"""

from collections.abc import Iterator, Mapping

FILE = 2**30  # bytes
LAYERS = 1_000  # maps in a file, and the number of a layer
HEADS = 1_600  # of all maps together; GPT-2 XL has 1,200
TOKENS = 4_096  # of the source, and of the target
CHARACTERS = 200_000  # of a text
WHOLE = 2**53


def check(values: object) -> None:
    """Raise ValueError for a trace, as `Trace.to_dict` writes it, that is too large, or that no output could write."""
    if not isinstance(values, Mapping):
        return  # Trace.from_dict says what is wrong
    maps = values.get("maps")
    if isinstance(maps, list):
        _check_maps(maps)
    for name in ("source", "target", "log_probs", "alternatives"):
        if isinstance(values.get(name), list) and len(values[name]) > TOKENS:
            raise ValueError(f"{name} has {len(values[name]):,} entries, and at most {TOKENS:,} are read")
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
        weights = entry.get("weights") if isinstance(entry, dict) else None
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
