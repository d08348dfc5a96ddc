"""Chapter 1: the bottleneck, with a short and a long sentence and the study of length."""

import pandas as pd

from attnviz.data import corpora
from attnviz.export import heading
from attnviz.figures import heatmap
from attnviz.figures.many import by_length
from attnviz.models import checkpoint_values
from attnviz.select import select
from dashboard.browser.plot import Cell, named
from dashboard.choices.options import title
from dashboard.learn.chapter import LONG, SHORT, Drawn, column, read, state
from dashboard.markup import tables
from dashboard.markup.text import escape, output
from dashboard.session import caches

WITHOUT, WITH = "fixed-context", "bahdanau"


def draw(dark: bool) -> Drawn:
    attending = column(WITH, LONG)
    grid = select(attending.trace)
    words = f'<p class="small">{escape(LONG)}</p>'
    cells: list[Cell] = [(_both("A short sentence", SHORT), None), (_both("A long sentence", LONG), None)]
    map_words = f"<h4>{attending.title} looks back at the long sentence</h4>{words}"
    lines = heading.of_map(attending.trace, grid)
    cells.append((map_words, named(heatmap(grid, dark=dark), "attention on a long sentence", dark, lines=lines)))
    equivalents = tables.grid_table("Weights on the long sentence", grid, attending.languages)
    if rows := _study():
        frame = pd.DataFrame(rows)
        study_words = (
            "<h4>Translation quality by length</h4>"
            '<p class="small">Measured on many test sentences: the study of length of the models of this project. '
            "BLEU (0 to 100) says how much a translation agrees with one by a person.</p>"
        )
        cells.append((study_words, named(by_length(frame, dark=dark), "quality by length", dark)))
        equivalents += _table(rows)
    return Drawn(cells, equivalents)


def _both(heading: str, text: str) -> str:
    outputs = "".join(
        f"<h4>{shown.title}</h4>{output(shown.trace, shown.languages.target, name=shown.title)}"
        for shown in (column(WITHOUT, text), column(WITH, text))
    )
    return f'<h4>{heading}</h4><p class="small">{escape(text)}</p>{outputs}'


def _study() -> list[dict]:
    """Rows of the study of length for both models: single captions, and longer texts joined from captions."""
    return [
        {"mechanism": title(row["mechanism"]), "words": row["words"], "bleu": row["bleu_lc"]}
        for row in caches.study("length").get("rows", ())
        if row.get("mechanism") in (WITHOUT, WITH) and checkpoint_values.numbers(row, "words", "bleu_lc", "high")
        if row.get("joined") or row["high"] <= 10
        if row.get("test") != corpora.EVERYDAY
    ]


def _table(rows: list[dict]) -> str:
    cells = [(f"{row['mechanism']}, {row['words']:.0f} words", [f"{row['bleu']:.1f}"]) for row in rows]
    return tables.table("Translation quality by length of the source", ["BLEU"], cells)


CHAPTER = read("bottleneck", "", state(WITHOUT, WITH, text=LONG), draw)
