"""A Trace of attention that was computed elsewhere, to be selected, measured, drawn and saved like any other.

Axes: L layers, H heads, Q queries (rows), K keys (columns).

What the tokens name depends on the kind of the weights:

    cross     columns are the source `tokens`, rows the `target` tokens.
    encoder   rows and columns are the source `tokens`.
    decoder   causal. Without a target, rows and columns are `tokens`: row i is the attention of token i, the last one
              read. With a target, row t is the attention used to produce target token t; the columns are what the
              decoder had read by then: `start`, then the target without its last token.
"""

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from attnviz import arguments
from attnviz.trace import AttentionMap, Token, Trace

# How far from 1 a row may sum in half precision: twice the rounding error of each type.
_ROUNDING = {"float16": 2**-10, "bfloat16": 2**-7}


def from_arrays(
    weights,
    tokens: Sequence[str],
    target: Sequence[str] = (),
    *,
    kind: str | None = None,
    special: Collection[str] = (),
    start: str = "<bos>",
    log_probs: Sequence[float] = (),
    name: str = "arrays",
) -> Trace:
    """A Trace of attention weights (after the softmax) between tokens. ValueError when the parts do not fit together.

    weights : (L, H, Q, K), or a list with one (H, Q, K) or (1, H, Q, K) a layer; or a dict, kind -> such weights. NumPy
        arrays, tensors or lists. Half-precision rows are scaled to sum to 1.
    tokens : of the source. target : the tokens produced; () for a model that only reads.
    kind : of weights that are no dict: `cross` (default with a target), `encoder` (default without one) or `decoder`.
    special : the tokens that stand for no text, such as `[CLS]`.
    log_probs : natural log of the probability of each target token; () when not known.
    """
    tokens, target = _strings("tokens", tokens), _strings("target", target)
    arguments.check("kind", kind, str | None)
    kind = kind or ("cross" if target else "encoder")
    if isinstance(special, str | bytes) or not isinstance(special, Collection) or hasattr(special, "detach"):
        raise ValueError(f"special must be a list of tokens; got {arguments.shown(special)}")
    source, text = _tokens(tokens, special)
    produced, translation = _tokens(target, special)
    return Trace(
        model=name,
        mechanism=name,
        text=text,
        translation=translation,
        forced=bool(produced),
        source=source,
        target=produced,
        log_probs=log_probs,
        alternatives=(),
        maps=_maps(weights if isinstance(weights, Mapping) else {kind: weights}),
        start=Token(start, 0, 0, special=True),
    )


def _maps(kinds: Mapping) -> tuple[AttentionMap, ...]:
    """{kind: layers of weights} -> the map of every layer."""
    for layers in kinds.values():
        _check_layers(layers)
    maps = [_map(kind, i, _unbatched(layer)) for kind, layers in kinds.items() for i, layer in enumerate(layers)]
    if not maps:
        raise ValueError("weights must hold at least one layer; got none")
    return tuple(maps)


def _map(kind: str, layer: int, weights) -> AttentionMap:
    try:
        return AttentionMap(kind, layer, weights)
    except ValueError as error:
        advice = "; give them as they are after the softmax and before dropout" if "sum to 1" in str(error) else ""
        raise ValueError(f"{error}{advice}") from None


def _check_layers(weights) -> None:
    if not arguments.is_list(weights):
        raise ValueError(
            f"weights must be one array of axes [heads, queries, keys] a layer; got {arguments.shown(weights)}"
        )
    if getattr(weights, "ndim", 0) == 3:
        raise ValueError(
            f"weights must be a list with one array of axes [heads, queries, keys] a layer; got one array of shape "
            f"{tuple(weights.shape)}: is it one layer? Then put it in a list, [weights]"
        )


def _strings(name: str, tokens) -> list[str]:
    texts = list(tokens) if arguments.is_list(tokens) else None
    if texts is None or not all(isinstance(token, str) for token in texts):
        raise ValueError(f"{name} must be a list of strings, one per token; got {arguments.shown(tokens)}")
    return texts


def _unbatched(weights):
    """The weights (H, Q, K) of one layer, taken out of a batch of one. AttentionMap makes all other checks."""
    if not hasattr(weights, "shape"):  # lists
        return weights
    rounding = _ROUNDING.get(str(weights.dtype).removeprefix("torch."), 0)
    weights = np.asarray(weights.detach().cpu().float() if hasattr(weights, "detach") else weights)
    weights = weights[0] if weights.ndim == 4 and len(weights) == 1 else weights
    if rounding and weights.ndim == 3:
        sums = weights.astype(np.float32).sum(-1, keepdims=True)
        return weights / sums if (np.abs(sums - 1) <= rounding).all() else weights
    return weights


def _tokens(texts: Sequence[str], special: Collection[str]) -> tuple[tuple[Token, ...], str]:
    """Tokens with offsets, each a word of its own, and their text: the tokens with spaces between them."""
    tokens, text = [], ""
    for word, piece in enumerate(texts):
        if piece in special:
            tokens.append(Token(piece, len(text), len(text), special=True))
            continue
        text += f" {piece}" if text else piece
        tokens.append(Token(piece, len(text) - len(piece), len(text), word=word))
    return tuple(tokens), text
