"""A table for a terminal."""

from attnviz.figures.labels import width


def table(rows: list[tuple[str, ...]], sides: str) -> str:
    """Aligned columns, `<` left or `>` right, by the width that each text takes in a terminal."""
    widths = [max(map(width, column)) for column in zip(*rows)]
    lines = []
    for row in rows:
        gaps = [" " * (widest - width(cell)) for widest, cell in zip(widths, row)]
        cells = [gap + cell if side == ">" else cell + gap for cell, gap, side in zip(row, gaps, sides)]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
