"""Where the sentences of the page "Many sentences" come from, their numbers, and the limits. No Streamlit here."""

import functools

from dashboard.choices import settings

LINKED, PASTED, UPLOADED, NAMED, NONE = "linked", "pasted", "uploaded", "named", "none"
SOURCES = {
    LINKED: "Sentences of this project",
    PASTED: "Pasted",
    UPLOADED: "An uploaded file",
    NAMED: "A file on this machine",
    NONE: "No other sentences",
}
_NUMBERS = {
    "source_tokens": "Length of the sentence (tokens)",
    "target_tokens": "Length of the text written (tokens)",
    "log_prob": "Log-probability (nats)",
    "order_swaps": "Order swaps (steps)",
    "coverage": "Coverage (share of tokens)",
    "alignment_error": "Alignment error",
}
ORDERS = {"number": "as given", "largest": "largest first", "smallest": "smallest first"}
IN_ADDRESS = 2000  # characters of pasted sentences that an address can hold


def sources() -> list[str]:
    """Where sentences may come from on this server."""
    here = settings.allowed()
    brought = [PASTED] + [UPLOADED] * (settings.UPLOADS in here) + [NAMED] * (settings.FOLDERS in here)
    return [LINKED, *brought]


def most_sentences() -> int:
    """Of a run."""
    return settings.of(settings.SENTENCES)


def most_megabytes() -> int:
    """Of a file that is uploaded."""
    return settings.of(settings.UPLOAD)


@functools.cache
def sentence_numbers() -> dict[str, str]:
    """The numbers of a sentence: name -> title."""
    from attnviz.across import VALUES  # imports pandas, which other pages need later or not at all
    from attnviz.figures.wording import statistic_title

    return {name: statistic_title(name) for name in VALUES} | _NUMBERS


def words(value: str) -> str:
    """What the page and its address call a choice. KeyError for anything else."""
    return (SOURCES | sentence_numbers() | ORDERS)[value]
