"""What runs in the browser: scripts/ has a file for each thing that it does there."""

from pathlib import Path


def script(name: str) -> str:
    """The text of a script, such as `plot.js`."""
    return (Path(__file__).parent / "scripts" / name).read_text(encoding="utf-8")
