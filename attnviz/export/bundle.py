"""Figures, traces and tables as bytes to keep: HTML that opens offline, CSV, JSON, and one zip of everything.

PNG and SVG of a figure in HTML are made by the browser that shows it, so no Chrome is needed where this runs.
"""

from __future__ import annotations

import hashlib
import html
import io
import json
import re
import unicodedata
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import plotly.graph_objects as go

from attnviz import lazy_pandas as pd
from attnviz import plotlyjs
from attnviz.arguments import checked
from attnviz.export import fonts, heading
from attnviz.figures.chart import Chart
from attnviz.figures.theme import FONT, Theme, dark_for_light, palette
from attnviz.trace import Trace
from attnviz.trace.visible import escaped, prints_nothing, visible

_BESIDE = '<script src="plotly.min.js"></script>'  # in the same folder of a zip
_DOCUMENT = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
body {{ margin: 24px auto; padding: 0 16px; max-width: {width}px;
  background: {colors.page}; color: {colors.text}; font: 15px/1.5 {font}; }}
main {{ overflow-wrap: anywhere; }}
h1 {{ font-size: 18px; }}
figure {{ margin: 0; }}
figcaption {{ margin-top: 12px; font-size: 14px; color: {colors.muted}; }}
{style}</style>
</head>
<body>
<main>
{body}
</main>
</body>
</html>
"""
# The beginning of what a spreadsheet would run: of a cell, or of what it takes for one where it divides at `;`, tabs or
# line ends. Some drop blanks before it.
_FORMULA = re.compile(r"""(?:\A|(?<=[;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]))(?=[\s'"]*[=+\-@\t\r＝＋－＠])""")
_RESERVED = re.compile(r"(con|prn|aux|nul|com\d|lpt\d)$")  # file names that Windows refuses
_HEIGHT = 450  # px of a figure that does not say it
_STAMP = (1980, 1, 1, 0, 0, 0)  # the earliest that zip knows: the same content gives the same bytes
# `themed(figure, dark)`
THEMED = f"const COLOURS = new Map(Object.entries({json.dumps(dark_for_light())}));\n" + Path(__file__).with_name(
    "themed.js"
).read_text(encoding="utf-8")
SAVE_BUTTONS = Path(__file__).with_name("save_buttons.js").read_text(encoding="utf-8")
_DRAWN = """<div id="%(name)s" style="height: %(height)spx"></div>
<script>(() => {
%(saving)s
const { data, layout } = %(figure)s;
Plotly.newPlot("%(name)s", data, layout, saveButtons("%(name)s", () => (%(changes)s)));
})();</script>"""
_INDEX_STYLE = """h1 { font-size: 22px; margin: 0; }
h2 { font-size: 17px; margin: 32px 0 8px; }
p { margin: 4px 0; }
.figures { display: grid; grid-template-columns: repeat(auto-fill, minmax(340px, 1fr)); gap: 24px; }
.figures img { width: 100%; border: 1px solid #e4e7ec; }
li { margin: 2px 0; }
"""
_FOLDERS = {"traces/": "Traces (attnviz.load_trace reads them)", "cards/": "Cards of the models"}
_OF_TABLES = "Tables and the manifest"
_ABOUT_FILES = {  # what is in a file, where its name does not say it
    "confidence.csv": "how usual each translation is for its model, and why",
    "manifest.json": "sentence, settings, versions, and the SHA-256 of each file",
    "statistics-on-screen.csv": "the maps that the page shows, a row a step; counted from 0, not from 1",
    "statistics.csv": "every head, a row a step",
    "summary.csv": "every head, mean and standard deviation over the steps; counted from 0",
    "weights.csv": "every weight of every head; counted from 0",
}


class Sheet(Protocol):
    """`printed.Sheet`, not imported here, because matplotlib takes half a second to import."""

    def save(self, fmt: str) -> bytes: ...


@checked
def figure_name(text: str) -> str:
    """A file name without extension, safe on every system: `Heatmap: Luong (général)` -> `heatmap-luong-general`."""
    ascii_text = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    name = re.sub(r"[^a-z0-9]+", "-", ascii_text).strip("-")[:60].rstrip("-") or "figure"
    return f"{name}-file" if _RESERVED.match(name) else name


@checked
def figure_html(figure: go.Figure, name: str = "figure") -> bytes:
    """One HTML file that holds everything it needs, plotly.js (1.4 MB) included; UTF-8."""
    return _html(figure, name, f"<script>{plotlyjs.source(_types(figure))}</script>")


def document(title: str, body: str, colors: Theme, width: int, style: str = "") -> bytes:
    """An HTML file around `body`, which is markup, as `style` is CSS; `title` is text. Column of `width` px; UTF-8."""
    page = _DOCUMENT.format(
        title=html.escape(escaped(title)), body=body, width=width, style=style, font=FONT, colors=colors
    )
    return page.encode("utf-8", "xmlcharrefreplace")


@checked
def frame_csv(frame: pd.DataFrame) -> bytes:
    """RFC 4180 in UTF-8 with a byte order mark, so that Excel shows accents; pandas and readr read it as it is. No
    index.

    A text that a spreadsheet would run as a formula (it begins with = + - @, tab or return; tokens do) gets one `'` in
    front. The same holds after `;`, a tab or a line end inside a text, where spreadsheets of many countries divide
    cells. Blanks and quotes before these signs are ignored, so dropping one `'` at such a place always restores the
    text. Columns of tokens show an invisible token by the same sign as the pictures, such as `␣`.
    """
    safe = frame.copy(deep=False)
    safe.columns = [_guard(name) for name in frame.columns]
    for position, dtype in enumerate(frame.dtypes):
        if not pd.api.types.is_numeric_dtype(dtype):
            column = frame.iloc[:, position].astype(object)
            token = str(frame.columns[position]).endswith("token")
            quoted = {value: _guard(_signed(value) if token else value) for value in column.unique()}
            safe.isetitem(position, column.map(quoted))
    return safe.to_csv(index=False, lineterminator="\r\n").encode("utf-8-sig", "replace")


@checked
def trace_json(trace: Trace) -> bytes:
    """`Trace.to_json` in UTF-8; half a surrogate pair stays an escape, so the round trip is exact."""
    return trace.to_json().encode("utf-8", "backslashreplace")


def bundle(
    figures: Mapping[str, go.Figure],
    traces: Iterable[Trace],
    frames: Mapping[str, pd.DataFrame],
    manifest: dict,
    *,
    sheets: Mapping[str, Sheet] | None = None,
    cards: Mapping[str, dict] | None = None,
    lines: Sequence[str] = ("Figures and data",),
) -> bytes:
    """A zip: index.html, figures/NAME.html with one plotly.min.js for all, figures/NAME.png and .svg of the `sheets`,
    traces/MODEL.json, cards/MODEL.json, NAME.csv a frame, manifest.json.

    lines : plain text at the head of index.html. The manifest gets one more entry, `files`: the SHA-256 of each file.
    The same content gives the same bytes.
    """
    files: dict[str, bytes] = {}
    for name, figure in figures.items():
        files[_free(files, "figures/", name, ".html")] = _html(figure, name, _BESIDE)
    for name, sheet in (sheets or {}).items():
        for fmt in ("png", "svg"):
            files[_free(files, "figures/", name, f".{fmt}")] = sheet.save(fmt)
    for trace in traces:
        files[_free(files, "traces/", trace.model, ".json")] = trace_json(trace)
    for model, card in (cards or {}).items():
        files[_free(files, "cards/", model, ".json")] = _json(card)
    for name, frame in frames.items():
        files[_free(files, "", name, ".csv")] = frame_csv(frame)
    if figures:
        types = set().union(*map(_types, figures.values()))
        files["figures/plotly.min.js"] = plotlyjs.source(types).encode()
    markup, style = _index([*sorted(files), "manifest.json"], lines)
    files["index.html"] = document(lines[0], markup, palette(False), 1200, style)
    hashes = {name: hashlib.sha256(files[name]).hexdigest() for name in sorted(files)}
    files["manifest.json"] = _json({**manifest, "files": hashes})
    return _zip(files)


def _index(names: Sequence[str], lines: Sequence[str]) -> tuple[str, str]:
    """The first page of a zip with the files `names` -> its markup and its style: a small picture of each figure and a
    link to each file. No script.

    lines : plain text, the first the title. The files of a figure have one name and the endings html, png and svg.
    """
    first, *others = (html.escape(escaped(line)) for line in lines)
    parts = [f"<h1>{first}</h1>", *(f'<p dir="auto">{line}</p>' for line in others), _index_figures(names)]
    parts += [
        _index_list(title, [name for name in names if name.startswith(folder)]) for folder, title in _FOLDERS.items()
    ]
    parts.append(_index_list(_OF_TABLES, [name for name in names if "/" not in name]))
    return "\n".join(filter(None, parts)), _INDEX_STYLE


def _index_figures(names: Sequence[str]) -> str:
    files: dict[str, list[str]] = {}
    for name in names:
        if name.startswith("figures/") and ".min." not in name:
            files.setdefault(name.rpartition(".")[0], []).append(name)
    stems = sorted(files, key=lambda stem: f"{stem}.png" not in files[stem])  # those without a picture last
    figures = "\n".join(_index_figure(stem, files[stem]) for stem in stems)
    return f'<h2>Figures</h2>\n<div class="figures">\n{figures}\n</div>' if stems else ""


def _index_figure(stem: str, files: Sequence[str]) -> str:
    name = html.escape(stem.removeprefix("figures/").replace("-", " ").capitalize())
    picture = f"{stem}.png"
    shown = f'<img src="{picture}" alt="{name}" loading="lazy">' if picture in files else ""
    links = " · ".join(f'<a href="{file}">{file.rpartition(".")[2].upper()}</a>' for file in files)
    return f"<figure>{shown}<figcaption>{name}: {links}</figcaption></figure>"


def _index_list(title: str, files: Sequence[str]) -> str:
    if not files:
        return ""
    about = {file: f": {_ABOUT_FILES[file]}" if file in _ABOUT_FILES else "" for file in files}
    lines = "\n".join(f'<li><a href="{file}">{file}</a>{words}</li>' for file, words in about.items())
    return f"<h2>{title}</h2>\n<ul>\n{lines}\n</ul>"


def _json(values: dict) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=2).encode("utf-8", "backslashreplace")


def _types(figure: go.Figure) -> set[str]:
    return {trace.type for trace in figure.data}


def _html(figure: go.Figure, name: str, script: str) -> bytes:
    """script : the element that brings plotly.js."""
    description, dark = (figure.description, figure.dark) if isinstance(figure, Chart) else ("", False)
    content = figure.to_json(validate=False)
    drawn = _DRAWN % {
        "name": figure_name(name),
        "height": figure.layout.height or _HEIGHT,
        "saving": f"{plotlyjs.SAVING}\n{SAVE_BUTTONS}",
        "figure": content.replace("<", r"\u003c"),
        "changes": json.dumps(_heading(figure, name, description)).replace("<", r"\u003c"),
    }
    caption = f"<figcaption>{html.escape(escaped(description))}</figcaption>"
    body = f"<h1>{html.escape(escaped(name))}</h1>\n<figure>\n{script}\n{drawn}\n{caption}\n</figure>"
    width = 1200 if "xaxis3" in figure.layout.to_plotly_json() else 720
    texts = json.dumps(json.loads(content), ensure_ascii=False)
    return document(name, body, palette(dark), width, fonts.face(name + description + texts))


def _heading(figure: go.Figure, name: str, description: str) -> dict:
    """The heading added above a saved picture; a figure's own title is kept."""
    if figure.layout.title.text or not isinstance(figure, Chart):
        return {}
    return heading.changes(figure, [name, description])


def _guard(value):
    return _FORMULA.sub("'", value) if isinstance(value, str) else value


def _signed(token):
    return visible(token) if isinstance(token, str) and prints_nothing(token) else token


def _free(taken: Mapping[str, bytes], folder: str, name: str, ending: str) -> str:
    """A path that is not taken yet: NAME, NAME-2, NAME-3 …"""
    stem, number = figure_name(name), 2
    path = f"{folder}{stem}{ending}"
    while path in taken:
        path, number = f"{folder}{stem}-{number}{ending}", number + 1
    return path


def _zip(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in sorted(files):
            entry = zipfile.ZipInfo(name, _STAMP)
            entry.compress_type, entry.create_system, entry.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
            archive.writestr(entry, files[name], compresslevel=1)
    return buffer.getvalue()
