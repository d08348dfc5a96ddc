"""A table for a terminal."""

from attnviz.figures.labels import width


def table(rows: list[tuple[str, ...]], sides: str) -> str:
    """Columns lined up, `<` left or `>` right, by the width that text takes in a terminal."""
    widths = [max(map(width, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        gaps = [" " * (most - width(cell)) for most, cell in zip(widths, row)]
        cells = [gap + cell if side == ">" else cell + gap for cell, gap, side in zip(row, gaps, sides)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
