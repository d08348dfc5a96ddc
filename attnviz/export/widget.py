"""Traces as a widget of a notebook: maps side by side and the bars of a step, which follow heads, layers and words.

The browser moves among steps by itself. For small models it has every layer, head and level, so that a saved notebook
and its nbconvert page stay interactive; for large ones it asks the kernel.
"""

from __future__ import annotations

import itertools
import json
from pathlib import Path
from typing import Any

import anywidget
import traitlets

from attnviz import figures, plotlyjs, select
from attnviz.arguments import checked
from attnviz.export import bundle, heading
from attnviz.figures.chart import counts
from attnviz.trace import KINDS, Trace

__all__ = ["View"]

CELLS = 60_000  # of maps, all layers, heads and levels together, that are sent at once
_ASKED = ("layer", "head", "words", "special")
_SCRIPT = "\n".join(
    (
        plotlyjs.UNPACK,
        plotlyjs.SAVING,
        bundle.SAVE_BUTTONS,
        bundle.THEMED,
        Path(__file__).with_name("view.js").read_text(encoding="utf-8"),
    )
)
_ALONE = Path(__file__).with_name("alone.js").read_text(encoding="utf-8")


class View(anywidget.AnyWidget):
    """step : row of the maps, from 0. layer : from 0. head : from 0; None: the mean of all. words : are pieces joined?
    special : are tokens such as <eos> shown? theme : `auto` (that of the notebook), `light` or `dark`. TraitError for a
    value that no trace has.

    >>> view = attnviz.view(first, second)  # shown below the cell
    >>> view.step, view.head = 2, 0  # read and set here, and by the controls below the maps
    """

    _esm = f"const PLOTLY = {json.dumps(plotlyjs.packed(plotlyjs.source()))};\n{_SCRIPT}"
    step = traitlets.Int(0).tag(sync=True)
    layer = traitlets.Int(0).tag(sync=True)
    head = traitlets.Int(None, allow_none=True).tag(sync=True)
    words = traitlets.Bool(False).tag(sync=True)
    special = traitlets.Bool(True).tag(sync=True)
    theme = traitlets.Enum(("auto", "light", "dark"), "auto").tag(sync=True)
    _pictures = traitlets.Dict().tag(sync=True)  # by JSON of _ASKED, packed
    _counts = traitlets.Dict().tag(sync=True)  # heads, layers, steps

    def __init__(self, *traces: Trace, **chosen: Any):
        self.traces = traces
        kinds = [next(kind for kind in KINDS if any(part.kind == kind for part in trace.maps)) for trace in traces]
        self._maps = [[part for part in trace.maps if part.kind == kind] for trace, kind in zip(traces, kinds)]
        layers, parts = max(map(len, self._maps)), [part for maps in self._maps for part in maps]
        counts = {
            "layers": layers,
            "heads": max(len(part.weights) for part in parts),
            "steps": max(part.weights.shape[1] for part in parts),
        }
        super().__init__(_counts=counts, **{"layer": layers - 1} | chosen)
        self._prepare()
        cells = sum(part.weights[0].size * (len(part.weights) + 1) for part in parts) * 4  # two switches
        if cells <= CELLS:
            heads = [None, *range(counts["heads"])] if counts["heads"] > 1 else [None]
            choices = itertools.product(range(layers), heads, (False, True), (False, True))
            self._pictures = {_key(choice): self._picture(*choice) for choice in choices}

    def _ipython_display_(self) -> None:
        """Below a cell: the widget, and the script that draws it in a page of nbconvert."""
        from IPython.display import display

        bundle = self._repr_mimebundle_()
        display(bundle[0] if isinstance(bundle, tuple) else bundle, raw=True)
        display({"text/html": f"<script>{_ALONE}</script>"}, raw=True)

    @traitlets.validate("step", "layer", "head")
    def _is_there(self, proposal: dict) -> int | None:
        name, value = proposal["trait"].name, proposal["value"]
        count = self._counts[f"{name}s"]
        if value is not None and not 0 <= value < count:
            raise traitlets.TraitError(f"{name} must be 0 to {count - 1}; got {value}")
        return value

    @traitlets.observe(*_ASKED)
    def _prepare(self, _: dict | None = None) -> None:
        """Put the picture for the current choice where the browser looks for it."""
        choice = self.layer, self.head, self.words, self.special  # _ASKED
        if (key := _key(choice)) not in self._pictures:
            self._pictures = self._pictures | {key: self._picture(*choice, level=1)}  # somebody waits for it

    def _picture(self, layer: int, head: int | None, words: bool, special: bool, level: int = 9) -> str:
        """Every trace with this layer and head; a trace with fewer shows its last layer and the mean of its heads."""
        shown, cells = [], []
        for trace, maps in zip(self.traces, self._maps):
            part = maps[min(layer, len(maps) - 1)]
            own = head if head is not None and head < len(part.weights) else None
            grid = _grid(trace, (part.kind, part.layer, own, words), special)
            shown.append(_shown(trace, grid))
            cells.append(_bytes(grid))
        parts = json.dumps(shown, allow_nan=False), b"".join(cells)
        return " ".join(plotlyjs.packed(content, level) for content in parts)


def _grid(trace: Trace, choice: tuple, special: bool) -> select.Grid:
    """The map; special tokens are kept if nothing would be left without them."""
    try:
        return select.select(trace, *choice, special)
    except ValueError:
        return select.select(trace, *choice, True)


def _key(choice: tuple) -> str:
    return json.dumps(choice, separators=(",", ":"))


def _shown(trace: Trace, grid: select.Grid) -> dict:
    """The data that view.js draws for a trace, beside the weights."""
    chart, lines = figures.heatmap(grid), heading.of_map(trace, grid)
    shown = json.loads(chart.text())
    del shown["data"][0]["z"]
    return {
        "name": lines[0],
        "text": trace.translation or trace.text,
        "map": shown,
        "columns": len(grid.keys),
        "bars": json.loads(figures.step_bars(grid, 0).text()),
        "steps": heading.step_names(grid),
        "saved": heading.changes(chart, lines),
    }


def _bytes(grid: select.Grid) -> bytes:
    """The weights, row by row, in two bytes each."""
    return counts(grid.masked).tobytes()


@checked
def view(
    *traces: Trace,
    step: int = 0,
    layer: int | None = None,
    head: int | None = None,
    words: bool = False,
    special: bool = True,
    theme: str = "auto",
) -> View:
    """The widget of `attnviz.view`. layer : None: the last one. The other arguments: as in `View`."""
    if not traces or not all(trace.maps for trace in traces):
        raise ValueError(f"there must be a trace or more, each with attention; got {len(traces)}")
    chosen = {} if layer is None else {"layer": layer}
    return View(*traces, step=step, head=head, words=words, special=special, theme=theme, **chosen)
