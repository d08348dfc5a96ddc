"""Attention that was computed elsewhere, as a Trace: what selects, measures, draws and saves traces works on it.

Axes: L layers, H heads, Q queries (rows), K keys (columns).
"""

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from attnviz.trace import AttentionMap, Token, Trace

_HALF = {
    "float16": 2**-10,
    "bfloat16": 2**-7,
}  # how far from 1 the numbers of a row may sum: twice what rounding each can do


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
    """A Trace of attention weights, after the softmax, and the tokens that they are between.

    weights : (L, H, Q, K), or one (H, Q, K) a layer, which may differ in heads; (1, H, Q, K), a batch of one, will do too.
        Or a dict, kind -> such weights, for a model that has several kinds. NumPy arrays, tensors, or lists; rows that sum to
        1 as nearly as half precision can are scaled to sum to 1.
    tokens : of the source, which are the columns of cross-attention, and both axes of self-attention without a target.
    target : the tokens produced, one a row of cross-attention; () for a model that only reads.
    kind : of weights that are no dict: `cross` (which is meant with a target), `encoder` (without one), or `decoder`, which is
        causal: without a target row i is what token i, read last, looked at; with one, row t is what was looked at to
        produce target token t, and the columns are what was read by then: `start`, then the target but for its last token.
    special : those tokens, in words such as `[CLS]`, that stand for no text.
    log_probs : natural log of the probability of each target token; () when they are not known.

    Raises ValueError when the parts do not fit together. The text of the trace is the tokens with spaces between them.
    """
    tokens, target = _listed("tokens", tokens), _listed("target", target)
    kind = kind or ("cross" if len(target) else "encoder")
    if isinstance(special, str) or not isinstance(special, Collection):
        raise ValueError(f"special must be a list of tokens; got {special!r:.60}")
    layers = weights if isinstance(weights, Mapping) else {kind: weights}
    for given in layers.values():
        _check_layers(given)
    maps = [_map(of, layer, _unbatched(one)) for of, given in layers.items() for layer, one in enumerate(given)]
    if not maps:
        raise ValueError("weights must hold at least one layer; got none")
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
        log_probs=tuple(log_probs),
        alternatives=(),
        maps=tuple(maps),
        start=Token(start, 0, 0, special=True),
    )


def _map(kind: str, layer: int, weights) -> AttentionMap:
    try:
        return AttentionMap(kind, layer, weights)
    except ValueError as error:
        advice = "; give them as they are after the softmax and before dropout" if "sum to 1" in str(error) else ""
        raise ValueError(f"{error}{advice}") from None


def _check_layers(weights) -> None:
    if not isinstance(weights, Iterable) or isinstance(weights, str):
        raise ValueError(f"weights must be one array of axes [heads, queries, keys] a layer; got {weights!r:.60}")
    if getattr(weights, "ndim", 0) == 3:
        raise ValueError(
            f"weights must be a list with one array of axes [heads, queries, keys] a layer; got one array of shape "
            f"{tuple(weights.shape)}: is it one layer? Then put it in a list, [weights]"
        )


def _listed(name: str, tokens) -> list[str]:
    found = None if isinstance(tokens, str) or not isinstance(tokens, Iterable) else list(tokens)
    if found is None or not all(isinstance(token, str) for token in found):
        raise ValueError(f"{name} must be a list of strings, one a token; got {tokens!r:.60}")
    return found


def _unbatched(weights):
    """One layer, out of its batch of one if it is in one; AttentionMap says what else is wrong with it."""
    if not hasattr(weights, "shape"):  # lists
        return weights
    rounding = _HALF.get(str(weights.dtype).removeprefix("torch."), 0)
    weights = np.asarray(weights.detach().cpu().float() if hasattr(weights, "detach") else weights)
    weights = weights[0] if weights.ndim == 4 and len(weights) == 1 else weights
    if rounding and weights.ndim == 3:
        sums = weights.astype(np.float32).sum(-1, keepdims=True)
        return weights / sums if (np.abs(sums - 1) <= rounding).all() else weights
    return weights


def _tokens(texts: Sequence[str], special: Collection[str]) -> tuple[tuple[Token, ...], str]:
    """Tokens with offsets, each a word of its own, and the text that they make."""
    tokens, text = [], ""
    for word, piece in enumerate(texts):
        if piece in special:
            tokens.append(Token(piece, len(text), len(text), special=True))
            continue
        text += f" {piece}" if text else piece
        tokens.append(Token(piece, len(text) - len(piece), len(text), word=word))
    return tuple(tokens), text
