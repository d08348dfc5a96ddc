"""A plotly figure with its description in words; and the same figure in larger type."""

from __future__ import annotations

import base64
import html
import json
import math
import re
import tempfile
import textwrap
import threading
import uuid
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io as pio

from attnviz import plotlyjs
from attnviz.arguments import checked
from attnviz.figures.labels import columns

PATIENCE = 2.0  # seconds that a script is held up for a browser, at most
PER, GAP = 10_000, 65_535  # weights are sent to a browser as whole ten-thousandths, and NaN as GAP
_NOTEBOOK = "plotly_mimetype"  # what Plotly chooses in Jupyter

_TYPED = {np.dtype(f"<{kind}"): kind for kind in ("f4", "f8", "i1", "i2", "i4", "u1", "u2", "u4")}  # as in plotly.js
_REPR = 160  # characters of the description in a representation
_FONTS = ("font", "tickfont", "textfont")
_LINE = 1.26  # height of a line of text, as a share of its size
_LEAST = 9  # px of the smallest type, of a figure that is not enlarged


class Chart(go.Figure):
    """A figure, with a `description` of what it shows (plain text, not escaped), whether it is `dark`, and the `name`
    that it has on a page or in a file, once it has one.

    >>> figures.heatmap(select.select(trace)).description
    '6 target tokens by 6 source tokens; strongest: ‘noir’ looks at ‘black’, 0.80.'

    All are also in `layout.meta`, for the browser. A Chart from `of_parts` becomes a Plotly figure when a part of it is
    first read; the page reads no part and sends `text()`.
    """

    @classmethod
    def of_parts(cls, data: list[dict], layout: dict, description: str, dark: bool, name: str = "") -> Chart:
        """A chart from the parts of Plotly's JSON. Plotly does not check them, and copies them only when a part is
        first read.

        Copying takes longer than everything else. The tests check our figures in full.
        """
        chart = cls.__new__(cls)
        parts = {"data": data, "layout": layout}
        chart.__dict__.update(_parts=parts, _description=description, _dark=dark, _name=name)
        return chart

    def __getattr__(self, name: str):
        """Called for a missing attribute: make this a Plotly figure if it is not one yet."""
        parts = self.__dict__.pop("_parts", None)
        if parts is None:
            raise AttributeError(f"a Chart has no attribute {name!r}")
        go.Figure.__init__(self, **parts, _validate=False)
        for part in (self, self.layout, *self.data):
            part._validate = True  # later changes are checked as usual
        return getattr(self, name)

    def __repr__(self) -> str:
        """What it shows, in a line; Plotly's own prints all numbers."""
        return f"Chart({textwrap.shorten(self.description, _REPR, placeholder=' …')!r})"

    @property
    def plain_layout(self) -> dict:
        """The layout as in JSON; do not modify it."""
        parts = self.__dict__.get("_parts")
        return parts["layout"] if parts else self.layout.to_plotly_json()

    def mark(self, meta: dict) -> None:
        """Add entries to `layout.meta`; other entries are kept."""
        if parts := self.__dict__.get("_parts"):
            parts["layout"]["meta"] = meta | parts["layout"]["meta"]
        else:
            self.layout.meta = meta | self.layout.meta

    def text(self, default: Callable[[Any], Any] | None = None) -> str:
        """JSON, as of `to_json(validate=False)`, arrays of numbers in base64. default : writes an array otherwise, as
        in `json.dumps`, while no part of the chart was read."""
        if parts := self.__dict__.get("_parts"):
            try:
                return json.dumps(
                    _without_none(parts), default=default or typed, allow_nan=False, separators=(",", ":")
                )
            except (TypeError, ValueError):  # numbers that JSON does not have, outside of arrays
                pass
        return self.to_json(validate=False)

    def __init__(self, *args, description: str = "", dark: bool = False, name: str = "", **kwargs):
        super().__init__(*args, **kwargs)
        self._description, self._dark, self._name = description, dark, name

    def __reduce__(self):
        """Pickle and copy with the arrays; Plotly's own method turns them into text that only a browser can read."""
        data = self._parts["data"] if "_parts" in self.__dict__ else [trace.to_plotly_json() for trace in self.data]
        return Chart.of_parts, (data, self.plain_layout, self.description, self.dark, self.name)

    @property
    def description(self) -> str:
        return self._description

    @property
    def dark(self) -> bool:
        return self._dark

    @property
    def name(self) -> str:
        return self._name

    @name.setter
    def name(self, name: str) -> None:
        self._name = name

    def show(self, renderer: str | None = None, **options) -> None:
        """Show the figure: in a notebook where Plotly finds one, else in a browser.

        In a script it never waits. Plotly's own method serves the page once and waits until a browser requests it, for
        ever if none does (for instance on a server). Here the page is a file that a browser opens; its name is printed.
        renderer, options : as in `plotly.graph_objects.Figure.show`.
        """
        if renderer is None and pio.renderers.default == _NOTEBOOK:
            from IPython.display import display

            display(self._repr_mimebundle_(), raw=True)
            return
        if renderer is not None or pio.renderers.default not in ("browser", ""):
            super().show(renderer, **options)
            return
        with tempfile.NamedTemporaryFile(
            "w", encoding="utf-8", suffix=".html", prefix="attnviz-", delete=False
        ) as file:
            file.write(self.to_html(**options))
        print(f"the figure is in {file.name}")
        # A browser in the terminal keeps its caller waiting; the others are there at once.
        opening = threading.Thread(target=webbrowser.open, args=[Path(file.name).as_uri()], daemon=True)
        opening.start()
        opening.join(PATIENCE)

    def _repr_mimebundle_(self, include=None, exclude=None, **options) -> dict[str, Any]:
        """The representations stored in a notebook: Plotly's JSON, which Jupyter draws, and HTML that draws itself
        offline. A notebook converted to HTML shows the latter; Plotly's own figures would be lost there."""
        shown = super()._repr_mimebundle_(include, exclude, **options)
        if pio.renderers.default == _NOTEBOOK:
            shown["text/html"] = plotlyjs.part(self.text(), f"attnviz-{uuid.uuid4().hex}")
        return shown

    def _ipython_display_(self) -> None:
        if pio.renderers.render_on_display:
            self.show()
        else:
            print(repr(self))


def _without_none(parts: dict) -> dict:
    """The value without entries that are None, as Plotly does for traces and layout."""
    traces = [{name: value for name, value in trace.items() if value is not None} for trace in parts["data"]]
    return {"data": traces, "layout": {name: value for name, value in parts["layout"].items() if value is not None}}


def counts(values: np.ndarray) -> np.ndarray:
    """Numbers from 0 to 6.5 as whole ten-thousandths, in two bytes each; GAP for NaN. The browser divides by PER."""
    scaled = np.asarray(values, dtype=np.float64) * PER
    return np.where(np.isnan(scaled), GAP, np.rint(scaled)).astype("<u2")


def typed(value: Any) -> Any:
    """An array in the form that plotly.js reads: https://plotly.com/javascript/reference (`bdata`). TypeError for other
    types that JSON lacks."""
    if isinstance(value, np.generic):
        return value.item()
    kind = _TYPED.get(value.dtype) if isinstance(value, np.ndarray) else None
    if kind is None:
        raise TypeError(f"no JSON for {type(value).__name__}")
    shape = {"shape": ", ".join(map(str, value.shape))} if value.ndim > 1 else {}
    return {"dtype": kind, "bdata": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode(), **shape}


@checked
def large(figure: Chart, factor: float, most: float | None = None) -> Chart:
    """The same figure with type and margins `factor` times as large, as a new figure.

    most : the largest height (px) of the plot between the margins; rows of a map and their names are then smaller, and
    the room above is no larger than the column names need. ValueError unless factor is above 0.

    >>> figure = figures.heatmap(select.select(trace))
    >>> figure.layout.font.size, figures.large(figure, 2).layout.font.size
    (12, 24)
    """
    if not factor > 0:
        raise ValueError(f"factor must be above 0; got {factor}")
    values = _scaled(figure.to_plotly_json(), factor)
    layout = values["layout"]
    before = figure.layout.margin
    inner = (figure.layout.height - before.t - before.b) * factor
    height = inner if most is None else min(inner, most)
    layout["margin"] = {side: round(before[side] * factor) for side in "lrtb"} | {"pad": 0}
    if most is not None:
        layout["margin"]["t"] = min(layout["margin"]["t"], _room_above(layout.get("xaxis", {})))
    layout["height"] = round(height + layout["margin"]["t"] + layout["margin"]["b"])
    _fit_names(layout.get("yaxis", {}), height, _LEAST * max(factor, 1))
    return Chart.of_parts(values["data"], layout, figure.description, figure.dark, figure.name)


def _scaled(value: Any, factor: float, font: bool = False) -> Any:
    """Every `size` of a font times the factor."""
    if isinstance(value, dict):
        return {
            name: round(inner * factor, 1)
            if font and name == "size" and isinstance(inner, int | float)
            else _scaled(inner, factor, name in _FONTS)
            for name, inner in value.items()
        }
    return [_scaled(inner, factor) for inner in value] if isinstance(value, list) else value


def _room_above(axis: dict) -> float:
    """Px that upright names of columns need above a map, at least two lines for the corner; no limit for names
    below."""
    if axis.get("side") != "top" or not axis.get("ticktext"):
        return math.inf
    longest = max(columns(html.unescape(re.sub("</?[bi]>", "", name))) for name in axis["ticktext"])
    return round(axis["tickfont"]["size"] * max(0.6 * longest + 1, 3))


def _fit_names(axis: dict, height: float, least: float) -> None:
    """Make row names no larger than their rows; if that is below `least` px, show only every second, third … name."""
    names = len(axis.get("ticktext") or ())
    if names and axis.get("tickfont"):
        every = math.ceil(least * _LINE * names / height)
        axis["tickvals"], axis["ticktext"] = axis["tickvals"][::every], axis["ticktext"][::every]
        axis["tickfont"]["size"] = max(least, min(axis["tickfont"]["size"], every * height / names / _LINE))
