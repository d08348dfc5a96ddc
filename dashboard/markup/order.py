"""Who asks, and when: the order in which a decoder steps and attends, as a row of boxes that is a list to a reader."""

import html

# what asks (as `inside.Step.asks`) -> what happens, in order; the box with True is the question
_ORDERS: dict[str, tuple[tuple[str, str, bool], ...]] = {
    "before": (
        ("sₜ₋₁", "the state before this step", False),
        ("asks", "query = sₜ₋₁", True),
        ("cₜ", "weights, then the context", False),
        ("sₜ", "the state steps: it reads yₜ₋₁ and cₜ", False),
        ("yₜ", "the token", False),
    ),
    "after": (
        ("sₜ₋₁", "the state before this step", False),
        ("sₜ", "the state steps first: it reads yₜ₋₁", False),
        ("asks", "query = sₜ", True),
        ("cₜ", "weights, then the context", False),
        ("yₜ", "the token", False),
    ),
    "layer": (
        ("y₁ … yₜ₋₁", "the text so far", False),
        ("sₜ", "its state in this layer", False),
        ("asks", "query q = W sₜ, of one head", True),
        ("cₜ", "weights, then the context", False),
        ("yₜ", "the token, after all layers", False),
    ),
}


def order(asks: str) -> str:
    """HTML. asks : "before" (Bahdanau), "after" (Luong) or "layer" (a Transformer). KeyError for any other."""
    boxes = "".join(
        f"<li{' class=asking' if asking else ''}><b>{html.escape(symbol)}</b><span>{html.escape(words)}</span></li>"
        for symbol, words, asking in _ORDERS[asks]
    )
    return f'<ol class="order" aria-label="Order of one step">{boxes}</ol>'
