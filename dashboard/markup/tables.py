"""Numbers as plain tables: the text equivalent of charts. Texts of people and models are escaped here."""

import math
import re
from collections.abc import Iterable, Sequence
from itertools import zip_longest

import numpy as np

from attnviz.data.tasks import Task
from attnviz.select import Grid
from attnviz.trace import Token
from attnviz.trace.visible import shown
from dashboard.markup.text import escape

_SIGNED = re.compile(r"[+-]\d+(\.\d+)?")
_CELLS, _LARGEST = 2500, 5  # of a map that is written out as a whole; else so many of each row


def table(
    caption: str,
    columns: list[str],
    rows: list[tuple[str, list[str]]],
    languages: tuple[str, str] = ("en", "en"),
    cells: str = "en",
    links: Sequence[str] = (),
) -> str:
    """A plain table that screen readers can walk; languages : of the names of rows and of columns; cells : of the
    cells. links : the address for the name of each row."""
    row, column, inner = map(escape, (*languages, cells))
    head = "".join(f'<th scope="col" lang="{column}">{escape(name)}</th>' for name in columns)
    look = "" if cells == "en" else f' lang="{inner}" dir="auto"'
    body = "".join(
        '<tr><th scope="row" '
        f'lang="{row}">{_linked(escape(name), address)}</th>'
        f"{''.join(f'<td{look}>{escape(_printed(text))}</td>' for text in texts)}</tr>"
        for (name, texts), address in zip_longest(rows, links)
    )
    return (
        f'<div class="scroll" tabindex="0"><table class="numbers"><caption>{escape(caption)}</caption>'
        f"<thead><tr><td></td>{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _linked(name: str, address: str | None) -> str:
    return name if address is None else f'<a href="{escape(address)}" target="_self">{name}</a>'


def _printed(text: str) -> str:
    """A number with a typographic minus, and no sign before 0: `−0.17`, `0.00`. Other text is unchanged."""
    return _signed(text) if _SIGNED.fullmatch(text) else text


def _signed(text: str) -> str:
    return text.replace("-", "−") if text.strip("+-0.,%") else text.lstrip("+-")


def cell(value: float, form: str, seen: bool = True) -> str:
    """A number with a typographic minus, and no sign before 0; a dash for a hidden or undefined one."""
    return _signed(format(value, form)) if seen and math.isfinite(value) else "–"


def of_numbers(names: Iterable[str], values: Iterable[Iterable[float]], form: str) -> list[tuple[str, list[str]]]:
    """Rows for `table`: each name with its numbers, as `cell` writes them."""
    return [(name, [cell(value, form) for value in row]) for name, row in zip(names, values, strict=True)]


def numbered(tokens: Sequence[Token], first: int = 1) -> list[str]:
    """Tokens as names of rows, with their numbers: `3 black`."""
    return [f"{number} {token}" for number, token in enumerate(shown(tokens), first)]


def grid_table(caption: str, grid: Grid, languages: Task, form: str = ".2f", values: np.ndarray | None = None) -> str:
    """A map with its tokens; of a large one only the largest of each row. values : (Q, K), instead of its weights."""
    values = grid.weights if values is None else values
    if values.size > _CELLS:
        return _largest_table(caption, grid, languages, values, form)
    rows = [
        (token, [cell(value, form, seen) for value, seen in zip(row, visible)])
        for token, row, visible in zip(shown(grid.queries), values.tolist(), grid.visible.tolist())
    ]
    return table(caption, shown(grid.keys), rows, tags(grid, languages))


def _largest_table(caption: str, grid: Grid, languages: Task, values: np.ndarray, form: str) -> str:
    """The keys with the largest absolute values in each row."""
    sizes = np.where(grid.visible, np.nan_to_num(np.abs(values), nan=-1), -1)
    order = np.argsort(-sizes, axis=1, kind="stable")[:, :_LARGEST]
    keys = shown(grid.keys)
    rows = [
        (name, [f"{keys[key]} {cell(float(values[i, key]), form, grid.visible[i, key])}" for key in order[i]])
        for i, name in enumerate(numbered(grid.queries))
    ]
    row, column = tags(grid, languages)
    caption = (
        f"{caption}: the {_LARGEST} largest of each row; all {values.size:,} are in the trace, which can be downloaded"
    )
    return table(caption, [str(i + 1) for i in range(order.shape[1])], rows, (row, "en"), column)


def tags(grid: Grid, languages: Task) -> tuple[str, str]:
    """Languages of a map's rows and columns."""
    source, target = languages.source, languages.target
    return (source if grid.kind == "encoder" else target, target if grid.kind == "decoder" else source)
