"""What a study leaves below the folder of checkpoints: studies/NAME.json, studies/NAME.svg, and its section of README.md."""

import json
import re
import sys
from pathlib import Path

from attnviz.atomic import replace
from attnviz.studies import pictures, tables

HEAD = "# Trained models\n"  # of a README.md that is not there yet


def write(name: str, study, found: dict, root: Path) -> None:
    """Figures, picture and section of `study`, a module of this package, as README.md of it says.

    Without matplotlib there is no picture, and none of an earlier run stays; standard error says so.
    """
    folder, panels = Path(root) / "studies", study.panels(found)
    replace(folder / f"{name}.json", lambda path: path.write_text(dumps(found), encoding="utf-8"))
    picture, alternative = folder / f"{name}.svg", study.DESCRIPTION
    picture.unlink(missing_ok=True)
    if panels and pictures.available():
        drawn = pictures.draw(panels, study.COLUMNS, alternative)
        replace(picture, lambda path: path.write_bytes(drawn))
    elif panels:
        print(pictures.INSTALL, file=sys.stderr)
    path = Path(root) / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    new = insert(text, name, section(name, study, found, picture.exists()), str(path))
    replace(path, lambda temporary: temporary.write_text(new, encoding="utf-8"))


def section(name: str, study, found: dict, picture: bool) -> str:
    """A study in Markdown: what was done, what was found, the picture, what is missing, and where the figures are."""
    parts = [f"## {study.TITLE}", study.text(found)]
    parts += [f"![{study.DESCRIPTION}](studies/{name}.svg)"] if picture else []
    parts += [f"Not there when this was measured: {tables.titles(found['missing'])}."] if found["missing"] else []
    made = ", ".join(f"{what} {version}" for what, version in found["versions"].items())
    parts.append(
        f"Made by `{found['command']}` ({made}; {found['device']}). The raw figures, with the hashes of models and data: "
        f"[studies/{name}.json](studies/{name}.json)."
    )
    return "\n\n".join(parts)


def insert(text: str, name: str, section: str, where: str = "the text") -> str:
    """`text` with the section between its marks, at the end when it has none; all else stays. ValueError for broken marks."""
    first, last = f"<!-- study:{name} -->", f"<!-- /study:{name} -->"
    body = f"{first}\n{section}\n{last}"
    counts = text.count(first), text.count(last)
    if counts == (0, 0):
        return f"{text.rstrip()}\n\n{body}\n" if text.strip() else f"{body}\n"
    if counts != (1, 1) or text.index(first) > text.index(last):
        raise ValueError(f"{where} must have {first} and after it {last}, each once; got {counts[0]} and {counts[1]}")
    return re.sub(f"{re.escape(first)}.*{re.escape(last)}", lambda _: body, text, flags=re.DOTALL)


def dumps(found: dict) -> str:
    """JSON with one record, or one entry of the top, a line: it reads, and its changes show. ValueError for NaN."""
    entries = []
    for key, value in found.items():
        records = value if isinstance(value, list) and value and isinstance(value[0], dict) else None
        written = [json.dumps(record, ensure_ascii=False, allow_nan=False) for record in records or [value]]
        entries.append(f"{json.dumps(key)}: " + ("[\n  " + ",\n  ".join(written) + "\n ]" if records else written[0]))
    return "{\n " + ",\n ".join(entries) + "\n}\n"
