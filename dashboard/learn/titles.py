"""The chapters by their names in the address, in order. Apart from them, so that one is imported when it is open."""

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
