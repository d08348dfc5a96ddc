"""The scripts that run in the browser, a file for each thing that they do."""

from pathlib import Path


def read(name: str) -> str:
    """The text of a script, such as `plot.js`."""
    return (Path(__file__).parent / name).read_text(encoding="utf-8")
