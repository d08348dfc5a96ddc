"""For tests of the documentation: its files, their links and their blocks of code."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "SECURITY.md",
    ROOT / "checkpoints/README.md",
    ROOT / "attnviz/gold/README.md",
    *sorted((ROOT / "docs").glob("*.md")),
]


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def blocks(path: Path, language: str) -> list[tuple[int, str, str]]:
    """Line (from 1), code, and the line before it, of every block of code in a language."""
    text = path.read_text(encoding="utf-8")
    listed = []
    for match in re.finditer(rf"^```{language}\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        before = text[: match.start()]
        listed.append((before.count("\n") + 2, match[1], before.rstrip("\n").rpartition("\n")[2]))
    return listed


def prose(path: Path) -> str:
    """The text without its blocks of code."""
    return re.sub(r"^```.*?^```$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(path: Path) -> list[str]:
    """The targets of links and pictures."""
    text = re.sub(r"`[^`\n]*`", "", prose(path))
    return re.findall(r"\]\(([^)\s]+)\)", text)


def anchors(path: Path) -> set[str]:
    """The anchors of its headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
