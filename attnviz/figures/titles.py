"""The names of statistics and patterns in charts and tables."""

from attnviz.patterns import PATTERNS

TITLES = {
    "entropy_nats": "Entropy (nats)",
    "entropy_bits": "Entropy (bits)",
    "normalised_entropy": "Normalised entropy",
    "max_weight": "Maximum weight",
    "effective_threshold": "Weights above threshold",
    "effective_entropy": "Effective positions",
    "effective_inverse": "Effective positions, 1/Σα²",
    "gini": "Gini coefficient",
    "expected_position": "Expected position",
    "special_mass": "Weight on special tokens",
    "removed_mass": "Weight on hidden tokens",
    "distance": "Distance (tokens)",
    "change": "Change in log-probability (nats)",
    "jensen_shannon": "Jensen–Shannon distance",
}


def statistic_title(name: str, threshold: float = 0.1) -> str:
    """The title of a statistic or of a pattern's score. threshold : the one that `stats` was given."""
    if name in PATTERNS:
        return PATTERNS[name].title
    return f"Weights above {threshold:g}" if name == "effective_threshold" else TITLES.get(name, name)
