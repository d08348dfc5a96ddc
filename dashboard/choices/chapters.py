"""The chapters of the page Learn: key -> title, in order. What draws them is imported when one is open."""

TITLES = {
    "bottleneck": "The bottleneck",
    "weights": "Weights and context",
    "scores": "Score functions",
    "who-asks": "Who asks, and when",
    "scaling": "Sharp or flat",
    "heads": "Many heads at once",
    "patterns": "Typical patterns",
    "limits": "What attention does not tell",
}


def numbered(key: str) -> str:
    """`1. The bottleneck`, as in the list and in the address. KeyError for a key that is no chapter's."""
    title = TITLES[key]
    return f"{list(TITLES).index(key) + 1}. {title}"
