"""Notebook output of a trace or a map: plain HTML tables without script, so that they remain when the notebook is
converted to a page."""

import html
from collections.abc import Sequence

import numpy as np

from attnviz.trace.visible import escaped, shown

MOST = 60  # rows and columns of a table; a larger map is cut, and says so
_INK = "#161850"  # of a weight of 1; a smaller one is as much paler
_LIGHT = 0.55  # weights above it have light digits on them


def document(heading: str, lines: Sequence[str], table: str) -> str:
    """heading, lines : plain text. table : markup."""
    texts = "".join(f'<div dir="auto">{html.escape(escaped(line))}</div>' for line in lines)
    return f"<div><b>{html.escape(escaped(heading))}</b>{texts}{table}</div>"


def token_table(tokens: Sequence, log_probs: Sequence[float]) -> str:
    """Tokens beside each other, with their probabilities below if known."""
    row = "".join(f"<td>{text}</td>" for text in _texts(tokens))
    chances = "".join(f"<td>{np.exp(value):.2f}</td>" for value in log_probs)
    below = f"<tr><th>probability</th>{chances}</tr>" if log_probs else ""
    return f'<div style="overflow-x:auto"><table><tr><th>target</th>{row}</tr>{below}</table></div>'


def weights_table(queries: Sequence, keys: Sequence, weights: np.ndarray, visible: np.ndarray, sides) -> str:
    """A row per query, a column per key; the larger a weight, the darker its cell.

    weights, visible : (queries, keys). A hidden cell is a dot, a cell of a blank row empty.
    """
    rows, columns = queries[:MOST], keys[:MOST]
    head = f"<tr><th>{html.escape(sides[0])} ↓ {html.escape(sides[1])} →</th>"
    head += "".join(f"<th>{text}</th>" for text in _texts(columns)) + "</tr>"
    body = ""
    for i, text in enumerate(_texts(rows)):
        cells = "".join(_cell(float(weights[i, j]), bool(visible[i, j])) for j in range(len(columns)))
        body += f'<tr><th style="text-align:right">{text}</th>{cells}</tr>'
    cut = ""
    if len(rows) < len(queries) or len(columns) < len(keys):
        cut = f"<div>The first {len(rows)} of {len(queries)} rows and {len(columns)} of {len(keys)} columns.</div>"
    return f'<div style="overflow-x:auto"><table>{head}{body}</table></div>{cut}'


def _cell(weight: float, visible: bool) -> str:
    if not visible:
        return "<td>·</td>"
    if not np.isfinite(weight):
        return "<td></td>"
    color = "#ffffff" if weight > _LIGHT else "#262730"
    ground = f"color-mix(in srgb, {_INK} {100 * weight:.0f}%, #ffffff)"
    return f'<td style="background:{ground};color:{color}">{weight:.2f}</td>'


def _texts(tokens: Sequence) -> list[str]:
    texts = map(html.escape, shown(tokens))
    return [f"<i>{text}</i>" if token.special else text for token, text in zip(tokens, texts)]
