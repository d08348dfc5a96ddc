"""Where the sentences of the page "Many sentences" come from, and its limits. No Streamlit here."""

from dashboard.choices import allowed, settings

LINKED, PASTED, UPLOADED, NAMED, NONE = "linked", "pasted", "uploaded", "named", "none"
SOURCES = {
    LINKED: "Sentences of this project",
    PASTED: "Pasted",
    UPLOADED: "An uploaded file",
    NAMED: "A file on this machine",
    NONE: "No other sentences",
}
ORDERS = {"number": "as given", "largest": "largest first", "smallest": "smallest first"}
IN_ADDRESS = 2000  # characters of pasted sentences that an address can hold


def sources() -> list[str]:
    """Where sentences may come from on this server."""
    here = allowed.allowed()
    brought = [PASTED] + [UPLOADED] * (allowed.UPLOADS in here) + [NAMED] * (allowed.FOLDERS in here)
    return [LINKED, *brought]


def most_sentences() -> int:
    """Of a run."""
    return settings.of(settings.SENTENCES)


def most_megabytes() -> int:
    """Of a file that is uploaded."""
    return settings.of(settings.UPLOAD)


def words(value: str) -> str:
    """What the page and its address call a choice. KeyError for anything else."""
    from dashboard.choices.sentence_numbers import NUMBERS

    return (SOURCES | NUMBERS | ORDERS)[value]
