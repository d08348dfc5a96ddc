"""Pages and pictures that conf.py makes while the site builds."""

import contextlib
import html
import importlib
import io
import os
import re
import textwrap
from pathlib import Path

import latex2mathml.converter
from docutils import nodes

# What a notebook imports, with what it is for. Each gets a page.
MODULES = {
    "attnviz": "Load a model, take arrays, save and show traces",
    "attnviz.trace": "What a model did: tokens, weights, probabilities",
    "attnviz.select": "One map of a trace",
    "attnviz.stats": "How concentrated attention is",
    "attnviz.reading": "What a map shows, in words",
    "attnviz.figures": "Figures for a page or a notebook",
    "attnviz.export.printed": "Figures for a slide or a paper",
    "attnviz.export.heading": "The lines above a printed figure",
    "attnviz.export.widget": "A trace alive in a notebook",
    "attnviz.heads": "Heads compared",
    "attnviz.patterns": "Patterns of heads",
    "attnviz.syntax": "Heads and dependencies",
    "attnviz.rollout": "Attention through the layers",
    "attnviz.own": "Attention of your own: called, checked, shown",
    "attnviz.training": "Training, and training watched",
    "attnviz.inside": "One step with every number",
    "attnviz.intervene": "Attention changed",
    "attnviz.faithfulness": "Does attention matter?",
    "attnviz.across": "Alignments of a file, and how good they are",
    "attnviz.corpus": "Many sentences",
    "attnviz.confidence": "Is a translation usual for its model?",
    "attnviz.mechanisms": "The mechanisms as objects",
    "attnviz.attention": "The textbook: the scores in torch",
}
# What the examples in docstrings begin with, beside the imports of their modules.
BEGIN = """\
from pathlib import Path
import numpy as np, pandas as pd, torch
import attnviz
model, writer = attnviz.load("en-fr/bahdanau"), attnviz.load("hf:openai-community/gpt2")
trace = first = model.trace("The black dog runs.")
second = model.trace("A man reads.")
itself, before = np.eye(3), np.eye(3)[[0, 0, 1]]  # where two heads look
two_heads = attnviz.from_arrays([[itself, before]], ["a", "black", "dog"])
causal, tokenizer = writer.model, writer.tokenizer
inputs = tokenizer("The dog", return_tensors="pt")
"""
PAGE = "http://localhost:8501/"
PICTURE = re.compile(r"^```python\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FIELD = re.compile(r"(?:^|(?<=[.;)] ))(\w+(?:, \w+)*) : ")  # several may stand in a line


def write(folder: Path) -> None:
    """The pages of the modules, the mechanisms and the questions."""
    folder.mkdir(exist_ok=True)
    for name, title in MODULES.items():
        (folder / f"{name}.rst").write_text(_module(name, title), encoding="utf-8")
    (folder / "mechanisms.md").write_text(_mechanisms(), encoding="utf-8")
    (folder / "questions.md").write_text(_questions(), encoding="utf-8")


def public(module) -> list[str]:
    """The names of a module that its page documents: `__all__`, or what it defines without an underscore."""
    defined = [name for name, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__]
    return getattr(module, "__all__", None) or [name for name in defined if not name.startswith("_")]


def _module(name: str, title: str) -> str:
    """Names that a module imports only when they are asked for are written with the module that defines them."""
    module = importlib.import_module(name)
    lazy = [getattr(module, member) for member in public(module) if member not in vars(module)]
    here = ", ".join(member for member in public(module) if member in vars(module))
    parts = [f"{title}\n{'=' * len(title)}\n\n``{name}``", f".. automodule:: {name}\n   :members: {here}"]
    parts += [f".. autofunction:: {value.__module__}.{value.__qualname__}" for value in lazy]
    if name == "attnviz":
        parts.append(
            f"Examples import their module, or names from it, and begin with::\n\n{textwrap.indent(BEGIN, '   ')}"
        )
    else:
        parts.insert(1, "The names in the examples, such as ``trace``, are those at the end of :doc:`attnviz`.")
    return "\n\n".join(parts) + "\n"


def _mechanisms() -> str:
    from attnviz.mechanisms import ALL

    parts = ["# Mechanisms\n\nEach ships trained. The formula is the one that the page shows."]
    for mechanism in ALL.values():
        parts.append(
            f"## {mechanism.title}\n\n$$\n{mechanism.formula}\n$$" if mechanism.formula else f"## {mechanism.title}"
        )
        parts += [mechanism.words, f"Paper: {mechanism.paper}" * bool(mechanism.paper)]
        if mechanism.terms:
            parts.append(f"The score as a sum:\n\n$$\n{mechanism.terms}\n$$\n\n{mechanism.letters}")
    return "\n\n".join(filter(None, parts)) + "\n"


def _questions() -> str:
    """The questions of the page Learn, each with a link to its chapter on the reader's machine."""
    from dashboard.choices.options import chapter_title
    from dashboard.learn.questions import QUESTIONS, chapter_address

    parts = ["# Questions people ask\n\nThe page *Learn* finds them by their words."]
    for asked in QUESTIONS:
        chapter = f"[{chapter_title(asked.chapter)}]({PAGE}{chapter_address(asked.chapter)})"
        parts.append(f"## {html.escape(asked.question)}\n\n<p>{asked.answer}</p>\n\nMore in the chapter {chapter}.")
    return "\n\n".join(parts) + "\n"


def completed(app, name: str, source: list[str]) -> None:
    """The gallery with what each block shows below it; the first page with the order of all pages; lessons with their
    title, and links to the page on the reader's machine."""
    if name == "docs/gallery":
        folder = Path(app.srcdir) / "docs" / "site" / "made"
        source[0] = PICTURE.sub(lambda block: block[0] + _pictures(folder, block[1], block.start()), source[0])
    elif name == "docs/index":
        source[0] += _contents(source[0])
    elif name.startswith("docs/lessons/"):
        title = re.search(r"^title: (.+)$", source[0], re.MULTILINE)[1]
        _, _, lesson = source[0].split("---\n", 2)
        source[0] = f"# {title}\n" + lesson.replace("](./", f"]({PAGE}")


def _contents(index: str) -> str:
    """What the side of each page lists: the pages that the first page links to, by heading, and those made here."""
    parts = {}
    for section in index.split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        pages = dict.fromkeys(re.findall(r"\]\(([\w./-]+\.md)\)", text))
        parts[heading] = [f"/{os.path.normpath(os.path.join('docs', page))}" for page in pages]
    parts["Start"] = [page.replace("/README.md", "What there is </README.md>") for page in parts["Start"]]
    parts["Lessons and questions"].append("/docs/site/made/questions")
    parts["Look up"].insert(3, "/docs/site/made/mechanisms")
    appendix, pages = parts.popitem()
    parts["Functions and classes"] = [f"/docs/site/made/{name}" for name in MODULES]
    parts[appendix] = pages
    return "".join(_toctree(heading, pages) for heading, pages in parts.items() if pages)


def _toctree(heading: str, pages: list[str]) -> str:
    return "\n".join(["\n```{toctree}", ":hidden:", f":caption: {heading}", "", *pages, "```\n"])


def _pictures(folder: Path, code: str, place: int) -> str:
    from attnviz.export import printed
    from attnviz.figures import Chart

    shown: list[Chart] = []
    before, Chart.show = Chart.show, lambda figure: shown.append(figure)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            exec(compile(code, "docs/gallery.md", "exec"), names := {"__name__": "gallery"})
    finally:
        Chart.show = before
    sheets = [printed.of_figure(figure, (), printed.Style("page")) for figure in shown]
    sheets += [value for value in names.values() if isinstance(value, printed.Sheet)]
    if not sheets:
        raise ValueError(f"a block of docs/gallery.md shows nothing:\n{code}")
    lines = []
    for number, sheet in enumerate(sheets):
        (folder / f"{place}-{number}.svg").write_bytes(sheet.save("svg"))
        lines.append(f"\n\n![What the block shows](site/made/{place}-{number}.svg)")
    return "".join(lines) + "\n"


def formula(self, node) -> None:
    """A formula as MathML, which browsers draw by themselves: no script, no network. For add_html_math_renderer."""
    is_block = isinstance(node, nodes.math_block)
    drawn = latex2mathml.converter.convert(node.astext(), display="block" if is_block else "inline")
    self.body.append(f"<div>{drawn}</div>" if is_block else drawn)
    raise nodes.SkipNode


def front(app, failure: Exception | None) -> None:
    """A server shows the page index.html of a folder first; ours is docs/index.html."""
    if failure is None:
        page = '<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=docs/index.html">'
        page += '<title>attnviz</title><a href="docs/index.html">attnviz</a>\n'
        Path(app.outdir, "index.html").write_text(page, encoding="utf-8")


def as_fields(app, what, name, thing, options, lines: list[str]) -> None:
    """A docstring of this project as reStructuredText.

    `name : what it is` becomes a field, and `Raises …` a paragraph of its own. All other lines stay as they are.
    """
    paragraphs = re.split(r"\n\s*\n", textwrap.dedent("\n".join(lines)).strip("\n"))
    lines[:] = [line for text in paragraphs for line in [*_paragraph(text), ""]]


def _paragraph(text: str) -> list[str]:
    lines = text.splitlines()
    if FIELD.match(text):
        return _fields(lines)
    if any(line.startswith((" ", ">>>")) or re.search(r"\S {2,}\S", line) for line in lines):
        return ["::", "", *textwrap.indent(textwrap.dedent(text), "   ").splitlines()]
    return [_escaped(line) for line in lines]


def _fields(lines: list[str]) -> list[str]:
    """From its name on, all belongs to a field until the next one, or until what is raised."""
    end = next((place for place, line in enumerate(lines) if re.match(r"Raises |\w*Error ", line)), len(lines))
    _, *parts = FIELD.split(" ".join(map(str.strip, lines[:end])))
    listed = [
        f":param {name}: {_escaped(words.strip())}"
        for names, words in zip(parts[::2], parts[1::2])
        for name in names.split(", ")
    ]
    return [*listed, "", *map(_escaped, lines[end:])]


def _escaped(text: str) -> str:
    """Stars, bars and a last underscore stand for themselves, but in `code`."""
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*|\\]|_\b)", r"\\\1", part) for part in parts)
