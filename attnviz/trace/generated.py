"""A Trace of what `generate(output_attentions=True, return_dict_in_generate=True)` of the transformers library returns.

There the attention is a tuple by step of a tuple by layer. The first step has a row for each token of the prompt, a
later step one row. The rows are joined, so that a map has them all.
"""

from collections.abc import Callable

import numpy as np

from attnviz import arguments
from attnviz.trace import Trace, containers
from attnviz.trace.arrays import from_arrays
from attnviz.trace.layers import NO_WEIGHTS

_FIELDS = {"decoder": ("decoder_attentions", "attentions"), "cross": ("cross_attentions",)}


def from_generate(
    output,
    tokens,
    target=None,
    *,
    source=None,
    batch: int | None = None,
    padding=None,
    special=(),
    name: str = "generate",
) -> Trace:
    """The attention of one text that a model generated. ValueError when the parts do not fit together.

    A decoder alone, such as GPT, gives one causal map over the prompt and what was produced, without the last token. An
    encoder-decoder gives cross, encoder and decoder maps. Of beams, the rows of the chosen hypothesis are taken.

    output : what `generate` returned, with `output_attentions=True` and `return_dict_in_generate=True`.
    tokens : a tokenizer, which names the ids in the output; or the tokens: of a decoder the prompt and what was
        produced, of an encoder-decoder the source.
    target : the tokens that an encoder-decoder produced, without the one it starts with; None: their ids, named by the
        tokenizer.
    source : of an encoder-decoder with a tokenizer, the ids that the encoder read; None: its columns are numbered.
    batch : the number, from 0, of the text in `output.sequences`. padding, special : as in `from_arrays`.

    >>> output = causal.generate(**inputs, output_attentions=True, return_dict_in_generate=True)
    >>> attnviz.from_generate(output, tokenizer).map("decoder", 0).kind
    'decoder'
    """
    for argument, value in (("tokens", tokens), ("target", [] if target is None else target)):
        named = hasattr(value, "convert_ids_to_tokens")
        if not named and not (arguments.is_list(value) and all(isinstance(token, str) for token in value)):
            raise ValueError(f"{argument} must be a list of strings, or a tokenizer; got {arguments.shown(value)}")
    try:
        return _joined_trace(output, tokens, target, source, batch, padding, special, name)
    except (TypeError, IndexError, AttributeError, StopIteration, RuntimeError) as error:  # of what is no such output
        raise ValueError(
            "output must be what generate(..., output_attentions=True, return_dict_in_generate=True) returned; its "
            f"parts are not of the kinds that it has there ({type(error).__name__})"
        ) from None


def _joined_trace(output, tokens, target, source, batch: int | None, padding, special, name: str) -> Trace:
    """As `from_generate`."""
    ids, steps = _ids(output, batch), _steps(output)
    rows = _rows(output, batch or 0, steps)
    maps = {kind: by_layer(value, rows) for kind, value in steps.items() if value is not None}
    names = _namer(tokens)
    special = [*special, *getattr(tokens, "all_special_tokens", ())]
    maps |= _encoder(output, batch or 0)
    if list(maps) == ["decoder"]:
        return _decoder(maps["decoder"], ids, tokens, names, padding, special, name)
    read = _source(tokens, source, (maps.get("cross") or maps["encoder"])[0].shape[-1], names, batch)
    length = (maps["cross"] if "cross" in maps else maps["decoder"])[0].shape[-2]
    produced = (list(target) if target is not None else names(ids[1:]))[:length]
    return from_arrays(maps, read, produced, special=special, start=names(ids[:1])[0], padding=padding, name=name)


def _steps(output) -> dict:
    """The attention of each kind, by step; None for a missing kind."""
    steps = {kind: _first(output, names) for kind, names in _FIELDS.items()}
    if all(value is None for value in steps.values()):
        raise ValueError(
            "the output has no attention; call generate(..., output_attentions=True, return_dict_in_generate=True)"
        )
    if any(value is not None and all(layer is None for step in value for layer in step) for value in steps.values()):
        raise ValueError(f"the output must have the attention of at least one layer; {NO_WEIGHTS}")
    return steps


def _encoder(output, batch: int) -> dict[str, list]:
    """The encoder's weights of that text, by kind; {} where there is no encoder. Beams share those of their text."""
    encoder = _first(output, ("encoder_attentions",))
    if encoder is None:
        return {}
    text = batch * len(containers.numbers(encoder[0])) // max(_count(output), 1)
    return {"encoder": [containers.numbers(layer)[text] for layer in encoder]}


def _decoder(maps, ids, tokens, names, padding, special, name) -> Trace:
    length = maps[0].shape[-2]
    given = names(ids) if hasattr(tokens, "convert_ids_to_tokens") else list(tokens)
    if len(given) not in (length, length + 1):
        raise ValueError(
            f"tokens must be the prompt and what was produced: {length + 1}, or {length} without the last one, which "
            f"the model did not read; got {len(given)}"
        )
    if padding is None and hasattr(tokens, "convert_ids_to_tokens"):
        padding = _left_padding(ids[:length], getattr(tokens, "pad_token_id", None)) or None
    return from_arrays({"decoder": maps}, given[:length], special=special, padding=padding, name=name)


def _left_padding(ids: list[int], pad: int | None) -> list[int]:
    """The places of the padding before a prompt of a batch."""
    return list(range(next((place for place, number in enumerate(ids) if number != pad), 0)))


def _first(output, names):
    for name in names:
        value = output.get(name) if hasattr(output, "get") else getattr(output, name, None)
        if value is not None:
            return value
    return None


def _count(output) -> int:
    sequences = _first(output, ("sequences",))
    return 1 if sequences is None else len(sequences)


def _ids(output, batch: int | None) -> list[int]:
    """The ids of the chosen text."""
    sequences = _first(output, ("sequences",))
    if sequences is None:
        raise ValueError(
            f"output must be what generate(..., return_dict_in_generate=True) returned, with its sequences; got "
            f"{arguments.shown(output)}"
        )
    count = len(sequences)
    arguments.check("batch", batch, int | None)
    if batch is None and count > 1:
        raise ValueError(f"this looks like a batch of {count} texts; choose one with batch=0")
    if not 0 <= (batch or 0) < count:
        raise ValueError(f"batch must be one of 0 to {count - 1}; got {batch}")
    return [int(number) for number in containers.numbers(sequences)[batch or 0]]


def _rows(output, text: int, attentions) -> list[int]:
    """For each step, the row of the batch that produced the chosen token."""
    first = next(value for value in attentions.values() if value is not None)
    texts = [len(containers.numbers(next(layer for layer in step if layer is not None))) for step in first]
    beams = _first(output, ("beam_indices",))
    if beams is None:
        if max(texts) != _count(output):
            raise ValueError(
                f"the attention is of {max(texts)} beams and {_count(output)} texts, and the output has "
                "no beam_indices, which say whose rows were chosen; call generate with num_beams=1"
            )
        return [text] * len(first)
    chosen = [int(row) for row in containers.numbers(beams)[text] if row >= 0]
    return [min(row, count - 1) if count == 1 else row for row, count in zip(chosen[: len(first)], texts)]


def by_layer(steps, rows: list[int]) -> list[np.ndarray]:
    """Steps of layers (B, H, q, k) -> layers (H, Q, K). Row i of a causal map has its keys up to its own place."""
    layers = []
    for number in range(len(steps[0])):
        chosen = [(step[number], row) for step, row in zip(steps, rows)]
        parts = [containers.numbers(layer)[row] for layer, row in chosen if layer is not None]
        if len(parts) < len(chosen) or any(part.ndim != 3 for part in parts):
            raise ValueError(f"layer {number} returned no attention at some step, so its map cannot be joined")
        layers.append(_joined(parts))
    return layers


def _joined(parts: list[np.ndarray]) -> np.ndarray:
    """Rows of all steps (H, q, k) as one map (H, Q, K)."""
    prompt = parts[0].shape[1]
    cross = prompt == 1 and len(parts) > 1 and len({part.shape[2] for part in parts}) == 1 and parts[0].shape[2] > 1
    cross = cross or (len(parts) > 1 and prompt > 1 and parts[0].shape[2] == parts[1].shape[2] != prompt)
    if cross or (len(parts) == 1):
        return np.concatenate([part[:, -1:] if place else part for place, part in enumerate(parts)], axis=1)
    last = prompt + len(parts) - 1
    joined = np.zeros((parts[0].shape[0], last, last), dtype=np.float32)
    for place, part in enumerate(parts):
        end = prompt + place  # keys read by then; a static cache has more, a sliding one fewer
        rows = part if place == 0 else part[:, -1:]
        rows = rows[..., :end]
        joined[:, end - rows.shape[1] : end, end - rows.shape[2] : end] = rows
    return joined


def _namer(tokens) -> Callable[[list[int]], list[str]]:
    """A function from ids to the texts of tokens, as a reader sees them."""
    convert = getattr(tokens, "convert_ids_to_tokens", None)
    if convert is None:
        return lambda ids: [f"#{number}" for number in ids]
    return lambda ids: [
        (str(piece).replace("Ġ", " ").replace("▁", " ").strip() or str(piece)) if piece is not None else f"#{number}"
        for piece, number in zip(convert(list(ids)), ids)
    ]


def _source(tokens, source, columns: int, names, batch: int | None) -> list[str]:
    """The tokens that an encoder read."""
    if source is None:
        if not hasattr(tokens, "convert_ids_to_tokens"):
            return list(tokens)
        return [f"({place + 1})" for place in range(columns)]
    array = containers.numbers(source)
    if array is None and all(isinstance(token, str) for token in source):
        return list(source)
    ids = np.asarray(source if array is None else array)
    if ids.ndim == 2:
        ids = ids[(batch or 0) if len(ids) > 1 else 0]
    return names([int(number) for number in ids])
