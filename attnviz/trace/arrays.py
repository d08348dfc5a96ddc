"""A Trace of attention that was computed elsewhere; it can be selected, measured, drawn and saved like any other.

Axes: L layers, B texts of a batch, H heads, Q queries (rows), K keys (columns).

The meaning of the tokens depends on the kind of the weights:

    cross     columns are the source `tokens`, rows the `target` tokens.
    encoder   rows and columns are the source `tokens`.
    decoder   causal. Without a target, rows and columns are `tokens`: row i is the attention of token i, the last one
              read. With a target, row t is the attention used to produce target token t; the columns are what the
              decoder had read by then: `start`, then the target without its last token.

The arguments of `from_arrays`:

    weights : a list with one (H, Q, K) or (1, H, Q, K) a layer; a dict, kind -> such weights; a file (.npz, .npy,
        .safetensors, .json); a dict or cache with a name for each layer, such as `blocks.0.attn.hook_pattern`. (Q, K)
        or one (1, Q, K) a layer is the mean of the heads. A list with one row a query is joined. Arrays of NumPy,
        torch, JAX or TensorFlow, or lists. Rows that do not sum to 1 because they were rounded are scaled.
    tokens : of the source. target : the tokens produced; () for a model that only reads.
    kind : of weights that have no name: `cross` (default with a target), `encoder` or `decoder` (default without one,
        where no token sees a later one).
    special : the tokens without text, such as `[CLS]`.
    log_probs : natural log of the probability of each target token; () when not known.
    batch : the number, from 0, of the text to take where arrays are of several: (B, H, Q, K), or (B, Q, K) of means.
    missing : "skip" leaves out layers that are None; the others keep their numbers.
    padding : tokens that are left out: their texts; their places from 0; or a mask of all tokens, in which False of a
        mask of numbers (1 and 0, an attention mask) and True of a mask of bools (a key padding mask) is padding.
    rest : "sink" adds a column that holds what each row lacks of 1, as models with attention sinks need.
    word_ids : the number of each token's word, None for a token without one, so that pieces can be joined to words.
"""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import numpy as np

from attnviz import arguments
from attnviz.trace import AttentionMap, Token, Trace, containers, layers

_MARKS = "##", "Ġ", "▁", "@@"  # in pieces: of the inside or the start of a word

_SINK_NOTE = "The column “sink” holds what each row gives to no token. The statistics count it as one more key."


def from_arrays(
    weights,
    tokens: Sequence[str] | None = None,
    target: Sequence[str] = (),
    *,
    kind: str | None = None,
    special: Collection[str] = (),
    start: str = "<bos>",
    log_probs: Sequence[float] = (),
    name: str = "arrays",
    batch: int | None = None,
    missing: str = "refuse",
    padding=None,
    rest: str | None = None,
    word_ids: Sequence[int | None] = (),
) -> Trace:
    """A Trace of attention weights (after the softmax) between tokens. ValueError when the parts do not fit together.

    The module docstring, `attnviz.trace.arrays.__doc__`, describes the arguments.

    >>> attnviz.from_arrays([[[0.9, 0.1], [0.4, 0.6]]], ["The", "dog"]).map("encoder").weights.shape
    (1, 2, 2)
    """
    _check_options(kind=(kind, str | None), missing=(missing, ("refuse", "skip")), rest=(rest, (None, "sink")))
    _check_name(name)
    if isinstance(weights, str | Path):
        weights, texts = containers.texts_of(containers.read_file(weights))
        tokens, target = texts.get("tokens", ()) if tokens is None else tokens, target or texts.get("target", ())
    tokens, target = _strings("tokens", tokens), _strings("target", target)
    if isinstance(special, str | bytes) or not isinstance(special, Collection) or hasattr(special, "detach"):
        raise ValueError(f"special must be a list of tokens; got {arguments.shown(special)}")
    padding = _padding_of_text(padding, batch)
    real = {"source": _real("tokens", tokens, padding)}
    real["target"] = _real("target", target, _texts_alone(padding)) if target else real["source"]
    source, text = _tokens(tokens, special, _word_ids(word_ids, tokens), real["source"])
    produced, translation = _tokens(target, special, None, real["target"]) if target else ((), "")
    kinds = layers.kinds(weights, kind, layers.Reading(len(tokens), len(target), batch, missing == "skip"))
    maps, notes = _maps(kinds, real, rest, tokens)
    texts = dict(text=text, translation=translation, source=source, target=produced, forced=bool(produced))
    return _trace(padding, **texts, maps=maps, notes=notes, log_probs=log_probs, model=name, start=start)


def _check_options(kind: tuple, **options: tuple) -> None:
    arguments.check("kind", *kind)
    for option, (value, allowed) in options.items():
        if value not in allowed:
            raise ValueError(f"{option} must be {' or '.join(map(repr, allowed))}; got {arguments.shown(value)}")


def _check_name(name) -> None:
    if isinstance(name, str) and any("\ud800" <= character <= "\udfff" for character in name):
        raise ValueError(
            f"name must hold whole characters; got half of one (a lone surrogate): {arguments.shown(name)}"
        )


def _trace(padding, model: str, start: str, **fields) -> Trace:
    try:
        first = Token(start, 0, 0, special=True)
        return Trace(model=model, mechanism=model, start=first, alternatives=(), **fields)
    except ValueError as error:
        raise ValueError(f"{error}{_future_advice(str(error), padding)}") from None


def _future_advice(error: str, padding) -> str:
    if "must be 0 on tokens not yet" not in error:
        return ""
    left = "" if padding is not None else 'if the first tokens are padding, name them with padding=["<pad>"]; '
    return f'; {left}if every token sees all tokens, say kind="encoder"'


def _maps(kinds: Mapping, real: Mapping, rest: str | None, tokens) -> tuple[tuple[AttentionMap, ...], tuple[str, ...]]:
    """{kind: layers} -> the map of every layer, and sentences on how weights were changed."""
    maps, notes = [], {}
    for kind, of_kind in kinds.items():
        rows = real["source" if kind == "encoder" else "target"]
        columns = real["source" if kind in ("encoder", "cross") else "target"]
        for layer in of_kind:
            weights = _without_padding(layer.weights, rows, columns, rest, f"the {kind} map of layer {layer.number}")
            weights, note = layers.unrounded(weights, layer.dtype, rest == "sink")
            notes |= dict.fromkeys([note] if note else [])
            sink = rest == "sink" and weights.ndim == 3
            try:
                weights = layers.with_rest(weights) if sink else weights
                maps.append(AttentionMap(kind, layer.number, weights, sink=sink, averaged=layer.averaged))
            except ValueError as error:
                raise ValueError(f"{error}{layers.likely_cause(str(error), weights, tokens)}") from None
    if not maps:
        raise ValueError("weights must hold at least one layer; got none")
    if rest == "sink":
        notes[_SINK_NOTE] = None
    return tuple(maps), tuple(notes)


def _without_padding(weights, rows: np.ndarray, columns: np.ndarray, rest: str | None, name: str):
    """weights (H, Q, K) without the rows and columns of padding. ValueError if tokens give weight to padding."""
    if rows.all() and columns.all():
        return weights
    if weights.ndim != 3 or weights.shape[1:] != (len(rows), len(columns)):
        raise ValueError(
            f"weights of {name} must have {len(rows)} queries and {len(columns)} keys, padding included; got shape "
            f"{weights.shape}"
        )
    real_queries = weights[:, rows]
    if weights.size and (np.nan_to_num(real_queries[..., columns]).sum(-1) < 0.01).all():
        raise ValueError(
            f"weights of {name} are all on the tokens that padding leaves out: a mask of True and False must be True "
            "on padding, one of 1 and 0 must be 0 there; give the opposite mask"
        )
    lost = real_queries[..., ~columns].sum(-1)
    if rest is None and (lost > 0.01).any():
        head, query = np.argwhere(lost > 0.01)[0]
        raise ValueError(
            f"weights of {name} must be 0 on padding; got {lost[head, query]:.4f} in head {head}, query {query}: the "
            'model was run without its attention mask. Run it with one, or use rest="sink" to show this weight in a '
            "column of its own"
        )
    return real_queries[..., columns]


def _strings(name: str, tokens) -> list[str]:
    texts = list(tokens) if arguments.is_list(tokens) else None
    if texts is None or not all(isinstance(token, str) for token in texts):
        nested = texts and all(arguments.is_list(token) for token in texts)
        batch = (
            f"; these are {len(texts or ())} lists: is it a batch? Give the {name} of one text, and batch=0"
            if nested
            else ""
        )
        raise ValueError(f"{name} must be a list of strings, one per token; got {arguments.shown(tokens)}{batch}")
    return texts


def _padding_of_text(padding, batch: int | None):
    """Of the masks (B, L) of a batch, the one of its text. ValueError where nothing says which."""
    rows = padding if isinstance(padding, list | tuple) and all(map(arguments.is_list, padding)) else ()
    given = np.array(padding) if len({len(row) for row in rows}) == 1 else containers.array(padding)
    if given is None or given.ndim != 2:
        return padding
    if len(given) > 1 and batch is None:
        raise ValueError(f"padding is of {len(given)} texts; choose one with batch=0")
    return given[layers.place(batch, len(given))]


def _texts_alone(padding):
    """The part of `padding` that also applies to the target: texts do; places and masks apply to the source only."""
    texts = [padding] if isinstance(padding, str) else padding
    return texts if arguments.is_list(texts) and all(isinstance(text, str) for text in texts) else None


def _real(name: str, tokens: list[str], padding) -> np.ndarray:
    """bool (tokens,): False for padding."""
    if padding is None:
        return np.ones(len(tokens), dtype=bool)
    if (texts := _texts_alone(padding)) is not None:
        return _some(np.array([token not in texts for token in tokens], dtype=bool))
    given = containers.array(padding)
    marks = np.asarray(list(padding) if given is None and arguments.is_list(padding) else given)
    if marks.ndim == 1 and marks.dtype == bool and len(marks) == len(tokens):
        return _some(~marks)
    if marks.ndim == 1 and marks.dtype.kind in "iuf":
        if len(marks) == len(tokens) and np.isin(marks, (0, 1)).all():
            return _some(marks > 0)
        if np.isin(marks, range(len(tokens))).all() and len(np.unique(marks)) == len(marks):
            return _some(~np.isin(np.arange(len(tokens)), marks))
    raise ValueError(
        f"padding must be texts of tokens, their places from 0, or a mask for the {len(tokens)} {name}; "
        f"got {arguments.shown(padding)}"
    )


def _some(real: np.ndarray) -> np.ndarray:
    if len(real) and not real.any():
        raise ValueError("padding must leave some tokens; it names all of them")
    return real


def _word_ids(word_ids, tokens: list[str]) -> list[int | None] | None:
    given = list(word_ids) if arguments.is_list(word_ids) else [word_ids]
    if not given:
        return None
    numbers = [int(word) if isinstance(word, int | np.integer) else word for word in given]
    if len(numbers) != len(tokens) or not all(word is None or type(word) is int for word in numbers):
        raise ValueError(
            f"word_ids must be a number or None for each of the {len(tokens)} tokens; got {arguments.shown(word_ids)}"
        )
    return numbers


def _tokens(
    texts: Sequence[str], special: Collection[str], words: list | None, real: np.ndarray
) -> tuple[tuple[Token, ...], str]:
    """Tokens with offsets, and their text: words with spaces between them. Each token is a word unless `words` joins
    it to the one before."""
    tokens, text, before = [], "", None
    numbers = list(range(len(texts))) if words is None else words
    for piece, word, is_real in zip(texts, numbers, real):
        if not is_real:
            continue
        if piece in special or word is None:
            tokens.append(Token(piece, len(text), len(text), special=True))
            before = None
            continue
        shown = piece if words is None else _unmarked(piece)
        text += f" {shown}" if text and word != before else shown
        tokens.append(
            Token(shown, len(text) - len(shown), len(text), word=word, piece=None if shown == piece else piece)
        )
        before = word
    return tuple(tokens), text


def _unmarked(piece: str) -> str:
    """A piece without the vocabulary's mark, unless the piece is only the mark."""
    for mark in _MARKS:
        piece = piece.removeprefix(mark) if len(piece) > len(mark) else piece
    return piece.removesuffix("@@") if len(piece) > 2 else piece
