"""The first page of a zip: what is in it, with a small picture of each figure and a link to each file. No script."""

import html
from collections.abc import Sequence

from attnviz.trace.visible import escaped

_STYLE = """h1 { font-size: 22px; margin: 0; }
h2 { font-size: 17px; margin: 32px 0 8px; }
p { margin: 4px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 24px; }
.figures img { width: 100%; border: 1px solid #e4e7ec; }
li { margin: 2px 0; }
"""
_FOLDERS = {"traces/": "Traces (attnviz.load_trace reads them)", "cards/": "Cards of the models"}
_TABLES = "Tables and the manifest"
_ABOUT = {  # what is in a file, where its name does not say it
    "confidence.csv": "how usual each translation is for its model, and why",
    "manifest.json": "sentence, settings, versions, and the SHA-256 of each file",
    "statistics-on-screen.csv": "the maps that the page shows, a row a step; counted from 0, not from 1",
    "statistics.csv": "every head, a row a step",
    "summary.csv": "every head, mean and standard deviation over the steps; counted from 0",
    "weights.csv": "every weight of every head; counted from 0",
}


def body(names: Sequence[str], lines: Sequence[str]) -> tuple[str, str]:
    """The page of a zip with the files `names` -> its markup and its style.

    lines : plain text, the first the title. The files of a figure have one name and the endings html, png and svg.
    """
    title, *others = (html.escape(escaped(line)) for line in lines)
    parts = [f"<h1>{title}</h1>", *(f'<p dir="auto">{line}</p>' for line in others), _figures(names)]
    parts += [
        _listed(heading, [name for name in names if name.startswith(folder)]) for folder, heading in _FOLDERS.items()
    ]
    parts.append(_listed(_TABLES, [name for name in names if "/" not in name]))
    return "\n".join(filter(None, parts)), _STYLE


def _figures(names: Sequence[str]) -> str:
    stems = dict.fromkeys(
        name.rpartition(".")[0] for name in names if name.startswith("figures/") and ".min." not in name
    )
    stems = sorted(stems, key=lambda stem: f"{stem}.png" not in names)  # those without a picture last
    figures = "\n".join(_figure(stem, [name for name in names if name.rpartition(".")[0] == stem]) for stem in stems)
    return stems and f'<h2>Figures</h2>\n<div class="figures">\n{figures}\n</div>'


def _figure(stem: str, files: Sequence[str]) -> str:
    name = html.escape(stem.removeprefix("figures/").replace("-", " ").capitalize())
    picture = f"{stem}.png"
    shown = f'<img src="{picture}" alt="{name}" loading="lazy">' if picture in files else ""
    links = " · ".join(f'<a href="{file}">{file.rpartition(".")[2].upper()}</a>' for file in files)
    return f"<figure>{shown}<figcaption>{name}: {links}</figcaption></figure>"


def _listed(heading: str, files: Sequence[str]) -> str:
    if not files:
        return ""
    lines = "\n".join(f'<li><a href="{file}">{file}</a>{_about(file)}</li>' for file in files)
    return f"<h2>{heading}</h2>\n<ul>\n{lines}\n</ul>"


def _about(file: str) -> str:
    return f": {_ABOUT[file]}" if file in _ABOUT else ""
