"""What a study writes to the folder of checkpoints: studies/NAME.json, studies/NAME.svg, and its section of README.md.

Tables are in Markdown: means with their standard deviation, and the number of seeds. A picture is panels of points
and lines, one SVG on white. Every mechanism has its colour from the page (Okabe-Ito, see figures/theme.py), and its own
dash and marker, so that the picture can be read in grey and with every kind of colour vision.
"""

import functools
import io
import json
import math
import re
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from attnviz.figures.theme import LIGHT, LineStyle, lines
from attnviz.figures.wording import listed
from attnviz.mechanisms import MECHANISMS
from attnviz.storage import replace

Row = dict  # name -> number; has a mechanism and a seed
HEAD = "# Trained models\n"  # of a new README.md
_STYLE = {
    "svg.hashsalt": "attnviz",
    "svg.fonttype": "none",
    "font.size": 10,
    "text.color": LIGHT.text,
    "axes.edgecolor": LIGHT.muted,
    "axes.labelcolor": LIGHT.text,
    "xtick.color": LIGHT.muted,
    "ytick.color": LIGHT.muted,
    "xtick.labelcolor": LIGHT.text,
    "ytick.labelcolor": LIGHT.text,
    "axes.axisbelow": True,
}
_PANEL = (3.9, 3.2)  # inches
_NAME = (2.5, 0.25)  # inches, of a name in the legend


def grouped(rows: Iterable[Row], *keys: str) -> dict:
    """Rows by the values of some keys, in the order of their first row. With one key the group's name is no tuple."""
    groups: dict = {}
    for row in rows:
        values = tuple(row[key] for key in keys)
        groups.setdefault(values[0] if len(keys) == 1 else values, []).append(row)
    return groups


def values(rows: Iterable[Row], key: str) -> list[float]:
    """The numbers under `key`; rows without one are left out."""
    numbers = (row.get(key) for row in rows)
    return [float(number) for number in numbers if number is not None and not math.isnan(number)]


def mean(rows: Iterable[Row], key: str) -> float | None:
    return statistics.fmean(numbers) if (numbers := values(rows, key)) else None


def spread(rows: Iterable[Row], key: str, digits: int = 2, scale: float = 1) -> str:
    """`55.60` for one row, `55.60 ± 0.31` (mean and sample standard deviation) for several; a dash without a number."""
    numbers = [scale * value for value in values(rows, key)]
    if not numbers:
        return "–"
    deviation = f" ± {statistics.stdev(numbers):,.{digits}f}" if len(numbers) > 1 else ""
    return f"{statistics.fmean(numbers):,.{digits}f}{deviation}"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table in Markdown; all columns but the first are right-aligned."""
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def titles(mechanisms: Iterable[str]) -> str:
    """`Bahdanau · additive, Luong · dot and Transformer · multi-head`."""
    return listed([MECHANISMS[name].title for name in mechanisms])


def seeds(rows: Iterable[Row]) -> str:
    """A sentence on the number of training runs behind the numbers, and on their variation."""
    runs = {name: len({row["seed"] for row in group}) for name, group in grouped(rows, "mechanism").items()}
    if not runs:
        return "No model was measured."
    if set(runs.values()) == {1}:
        return (
            "One seed: each row is a single training run. The variation between runs is unknown, so small differences "
            "between rows may be chance."
        )
    by_mechanism = "; ".join(f"{MECHANISMS[name].title}: {count}" for name, count in runs.items())
    same = len(set(runs.values())) == 1
    count = f"{min(runs.values())} seeds each" if same else f"Seeds: {by_mechanism}"
    return (
        f"{count}; numbers are means over the seeds ± the sample standard deviation, and bars show the smallest and "
        "largest."
    )


@dataclass(frozen=True)
class Series:
    """Points of one name. low, high : ends of the bar at each point. marks : draw the points? line : draw lines between
    them?"""

    name: str
    x: tuple[Any, ...]  # numbers; None where there is none
    y: tuple[Any, ...]
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    marks: bool = True
    line: bool = True


@dataclass(frozen=True)
class Panel:
    """Series on two axes. rows : names on the vertical axis, the first at the top; bars are then horizontal.

    ticks : labelled values of the horizontal axis. reference : name and points of a dotted line.
    """

    title: str
    series: tuple[Series, ...]
    x: str = ""
    y: str = ""
    rows: tuple[str, ...] = ()
    ticks: tuple[float, ...] = ()
    log: bool = False
    reference: tuple[str, tuple[float, ...], tuple[float, ...]] | None = None


def draw_picture(panels: list[Panel], columns: int, description: str) -> bytes:
    """The picture, with one legend for all panels; the same panels give the same bytes. SVG in UTF-8."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    styles = lines(series.name for panel in panels for series in panel.series)
    references = dict.fromkeys(panel.reference[0] for panel in panels if panel.reference)
    beside = max(1, int(columns * _PANEL[0] / _NAME[0]))
    above = _NAME[1] * -(-(len(styles) + len(references)) // beside)
    count = -(-len(panels) // columns)
    with rc_context(_STYLE):
        figure = Figure((_PANEL[0] * columns, _PANEL[1] * count + above), layout="constrained", facecolor=LIGHT.page)
        axes = list(figure.subplots(count, columns, squeeze=False).flat)
        handles: dict = {}
        for place, (axis, panel) in enumerate(zip(axes, panels)):
            handles = _panel(axis, panel, styles, named=place % columns == 0) | handles
        for axis in axes[len(panels) :]:
            axis.set_axis_off()
        names = [*styles, *references]
        figure.legend(
            [handles[name] for name in names],
            names,
            loc="outside upper left",
            ncols=beside,
            frameon=False,
            handlelength=3.4,
        )
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Title": description})
    return buffer.getvalue()


def _panel(axis, panel: Panel, styles: dict[str, LineStyle], named: bool) -> dict:
    """Draw a panel -> its entries in the legend: name -> handle. named : write the names of the rows."""
    handles = {}
    for series in panel.series:
        handle = _series(axis, series, styles[series.name], bool(panel.rows))
        handles = {series.name: handle} | handles  # the first series of a name has its marks
    if panel.reference:
        name, x, y = panel.reference
        handles[name] = axis.plot(x, y, ":", color=LIGHT.muted, linewidth=1.6)[0]
    axis.set_title(panel.title, loc="left", fontsize=10.5, fontweight="bold")
    axis.set_xlabel(panel.x)
    axis.set_ylabel(panel.y)
    axis.grid(color=LIGHT.grid, axis="both")
    axis.spines[["top", "right"]].set_visible(False)
    if panel.log:
        axis.set_xscale("log")
    if panel.ticks:
        axis.set_xticks(panel.ticks, [f"{tick:g}" for tick in panel.ticks], minor=False)
        axis.minorticks_off()
    if panel.rows:
        axis.set_yticks(range(len(panel.rows)), panel.rows if named else ("",) * len(panel.rows))
        axis.set_ylim(len(panel.rows) - 0.5, -0.5)
        axis.margins(x=0.12)
    return handles


def _series(axis, series: Series, style: LineStyle, horizontal: bool):
    """Draw a series. horizontal : the bars are horizontal."""
    from attnviz.export.printed.canvas import dash
    from attnviz.export.printed.traces import MARKERS

    look = {"color": style.color, "markersize": 7, "linewidth": 1.8, "capsize": 3, "elinewidth": 1.4}
    bars = None
    if series.low:
        middle = series.x if horizontal else series.y
        bars = [[m - low for m, low in zip(middle, series.low)], [high - m for m, high in zip(middle, series.high)]]
    return axis.errorbar(
        series.x,
        series.y,
        xerr=bars if horizontal else None,
        yerr=None if horizontal else bars,
        marker=MARKERS[style.marker] if series.marks else "",
        linestyle=dash(style.dash) if series.line else "",
        **look,
    )


def write(name: str, study, results: dict, root: Path) -> None:
    """Write the numbers, the picture and the section of `study`, a module of this package. A picture of an earlier run
    is removed if there is nothing to draw now."""
    folder, panels = Path(root) / "studies", study.panels(results)
    replace(folder / f"{name}.json", lambda path: path.write_text(dumps(results), encoding="utf-8"))
    picture = folder / f"{name}.svg"
    picture.unlink(missing_ok=True)
    if panels:
        svg = draw_picture(panels, study.COLUMNS, study.DESCRIPTION)
        replace(picture, lambda path: path.write_bytes(svg))
    path = Path(root) / "README.md"
    text = path.read_text(encoding="utf-8") if path.exists() else HEAD
    updated = insert(text, name, section(name, study, results, picture.exists()), str(path))
    replace(path, lambda temporary: temporary.write_text(updated, encoding="utf-8"))


def section(name: str, study, results: dict, picture: bool) -> str:
    """A study in Markdown: method, results, picture, missing models, and where the numbers are."""
    parts = [f"## {study.TITLE}", study.text(results)]
    parts += [f"![{study.DESCRIPTION}](studies/{name}.svg)"] if picture else []
    parts += [f"These models were missing: {titles(results['missing'])}."] if results["missing"] else []
    parts.append(
        f"Made by `{results['command']}`{_machine(results)}. The raw numbers, with the hashes of models and data: "
        f"[studies/{name}.json](studies/{name}.json)."
    )
    return "\n\n".join(parts)


def _machine(results: dict) -> str:
    """The device and versions of a study; "" for a study that measures nothing."""
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
        dump = functools.partial(json.dumps, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        lines = [*map(dump, records or [value])]
        entries.append(f"{json.dumps(key)}: " + ("[\n  " + ",\n  ".join(lines) + "\n ]" if records else lines[0]))
    return "{\n " + ",\n ".join(entries) + "\n}\n"
