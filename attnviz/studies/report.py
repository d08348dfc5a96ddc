"""What a study writes to the folder of checkpoints: studies/NAME.json, studies/NAME.svg, and its section of
README.md."""

import json
import re
import sys
from pathlib import Path

from attnviz.storage.atomic import replace
from attnviz.studies import pictures, tables

HEAD = "# Trained models\n"  # of a new README.md


def write(name: str, study, results: dict, root: Path) -> None:
    """Write the numbers, the picture and the section of `study`, a module of this package.

    Without matplotlib there is no picture, and the picture of an earlier run is removed; standard error says so.
    """
    folder, panels = Path(root) / "studies", study.panels(results)
    replace(folder / f"{name}.json", lambda path: path.write_text(dumps(results), encoding="utf-8"))
    picture = folder / f"{name}.svg"
    picture.unlink(missing_ok=True)
    if panels and pictures.available():
        svg = pictures.draw(panels, study.COLUMNS, study.DESCRIPTION)
        replace(picture, lambda path: path.write_bytes(svg))
    elif panels:
        print(pictures.INSTALL, file=sys.stderr)
    path = Path(root) / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    updated = insert(text, name, section(name, study, results, picture.exists()), str(path))
    replace(path, lambda temporary: temporary.write_text(updated, encoding="utf-8"))


def section(name: str, study, results: dict, picture: bool) -> str:
    """A study in Markdown: method, results, picture, missing models, and where the numbers are."""
    parts = [f"## {study.TITLE}", study.text(results)]
    parts += [f"![{study.DESCRIPTION}](studies/{name}.svg)"] if picture else []
    parts += [f"These models were missing: {tables.titles(results['missing'])}."] if results["missing"] else []
    parts.append(
        f"Made by `{results['command']}`{_machine(results)}. The raw numbers, with the hashes of models and data: "
        f"[studies/{name}.json](studies/{name}.json)."
    )
    return "\n\n".join(parts)


def _machine(results: dict) -> str:
    """What a study was measured with; nothing of one that measures nothing."""
    if "versions" not in results:
        return ""
    versions = ", ".join(f"{package} {version}" for package, version in results["versions"].items())
    return f" ({versions}; {results['device']})"


def insert(text: str, name: str, section: str, where: str = "the text") -> str:
    """`text` with the section between its marks, or at the end when it has no marks. ValueError for broken marks."""
    first, last = f"<!-- study:{name} -->", f"<!-- /study:{name} -->"
    body = f"{first}\n{section}\n{last}"
    counts = text.count(first), text.count(last)
    if counts == (0, 0):
        return f"{text.rstrip()}\n\n{body}\n" if text.strip() else f"{body}\n"
    if counts != (1, 1) or text.index(first) > text.index(last):
        raise ValueError(f"{where} must have {first} and after it {last}, each once; got {counts[0]} and {counts[1]}")
    return re.sub(f"{re.escape(first)}.*{re.escape(last)}", lambda _: body, text, flags=re.DOTALL)


def dumps(results: dict) -> str:
    """JSON with one record, or one top-level entry, on each line, so that changes show in a diff. ValueError for
    NaN."""
    entries = []
    for key, value in results.items():
        records = value if isinstance(value, list) and value and isinstance(value[0], dict) else None
        lines = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records or [value]]
        entries.append(f"{json.dumps(key)}: " + ("[\n  " + ",\n  ".join(lines) + "\n ]" if records else lines[0]))
    return "{\n " + ",\n ".join(entries) + "\n}\n"
