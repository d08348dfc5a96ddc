"""The numbers of a sentence on the page "Many sentences", and their titles. It imports pandas."""

from attnviz.across import VALUES
from attnviz.figures.titles import statistic_title

NUMBERS = {name: statistic_title(name) for name in VALUES} | {
    "source_tokens": "Length of the sentence (tokens)",
    "target_tokens": "Length of the text written (tokens)",
    "log_prob": "Log-probability (nats)",
    "order_swaps": "Order swaps (steps)",
    "coverage": "Coverage (share of tokens)",
    "alignment_error": "Alignment error",
}
