"""Exports of models that learn: a strip of maps over time, an animation, and a page that opens offline.

All take grids : model -> its Grid at each moment, all of one sequence, and moments : the name of each moment. The
pictures are drawn by matplotlib and joined by Pillow, so no browser is needed.
"""

from __future__ import annotations

import html
import io
import json
from collections.abc import Mapping, Sequence

import numpy as np
from PIL import Image

from attnviz import plotlyjs
from attnviz.export import bundle, fonts, printed
from attnviz.figures.chart import Chart
from attnviz.figures.learning import maps_over_time
from attnviz.figures.theme import LIGHT
from attnviz.select import Grid
from attnviz.trace.visible import escaped

FRAME = 350  # ms that an animation shows a moment
_LAST = 4  # times as long for the last
IN_STRIP, IN_ANIMATION, IN_FILM = 8, 30, 60  # moments, at most
_WIDTH = 900  # px of the page
Grids = Mapping[str, Sequence[Grid]]
_STYLE = "#bar{display:flex;gap:12px;align-items:center} #at{flex:1;accent-color:#2369b3} button{font:inherit}"
_BODY = """<h1>{title}</h1>
<div id="bar"><button id="play" type="button">Play</button>
<input id="at" type="range" min="0" max="{last}" value="{last}" aria-label="Moment of the training">
<output id="moment" for="at"></output></div>
{maps}
{curves}
<figcaption>{caption}</figcaption>
<script>(() => {{
const moments = {moments}, batches = {batches}, values = {values};
const [at, output, play] = ["at", "moment", "play"].map((name) => document.getElementById(name));
let timer = 0;
function show() {{
  const place = Number(at.value), maps = document.getElementById("maps"), curves = document.getElementById("curves");
  output.textContent = moments[place];
  if (!maps.data || (curves && !curves.data)) {{ setTimeout(show, 50); return; }}
  Plotly.restyle(maps, {{ z: [values[place]], hoverinfo: "z" }});
  if (!curves) return;
  const change = {{}};
  curves.layout.shapes.forEach((shape, i) => {{
    change[`shapes[${{i}}].x0`] = change[`shapes[${{i}}].x1`] = batches[place];
  }});
  Plotly.relayout(curves, change);
}}
function stop() {{ clearInterval(timer); timer = 0; play.textContent = "Play"; }}
at.addEventListener("input", () => {{ stop(); show(); }});
play.addEventListener("click", () => {{
  if (timer) {{ stop(); return; }}
  if (at.value === at.max) at.value = 0;
  play.textContent = "Pause";
  timer = setInterval(() => {{ at.value = Number(at.value) + 1; show(); if (at.value === at.max) stop(); }}, {pause});
}});
show();
}})();</script>"""


def strip(
    grids: Grids, moments: Sequence[str], lines: Sequence[str], style: printed.Style | None = None
) -> printed.Sheet:
    """The maps of all moments on one sheet. lines : above it, the first is the title. ValueError as in
    `maps_over_time`."""
    style = style or printed.Style()
    return printed.of_figure(maps_over_time(grids, moments, dark=style.dark), lines, style)


def animation(grids: Grids, moments: Sequence[str], lines: Sequence[str], style: printed.Style | None = None) -> bytes:
    """A GIF that shows the moments in an endless loop. ValueError as in `strip`."""
    style, frames = style or printed.Style("column"), []
    for place, moment in enumerate(moments):
        now = {name: [row[place]] for name, row in grids.items()}
        sheet = strip(now, [moment], lines, style)
        frames.append(Image.open(io.BytesIO(sheet.save("png"))).convert("RGB"))
    if not frames:
        raise ValueError("there must be a moment to show; got none")
    size = frames[0].size
    shades = [frame.resize(size).quantize(256) for frame in frames]
    file = io.BytesIO()
    times = [FRAME] * (len(shades) - 1) + [FRAME * _LAST]
    shades[0].save(file, "GIF", save_all=True, append_images=shades[1:], duration=times, loop=0)
    return file.getvalue()


def page(
    grids: Grids, moments: Sequence[str], batches: Sequence[int], lines: Sequence[str], curves: Chart | None = None
) -> bytes:
    """One HTML file with a slider and a play button over the moments; it needs no network.

    batches : of each moment. curves : from `figures.learning.over_time`, made with `at`, whose line follows the slider.
    """
    last = {name: [row[-1]] for name, row in grids.items()}
    shown = maps_over_time(last, [""])
    values = [_values({name: [row[place]] for name, row in grids.items()}) for place in range(len(moments))]
    body = _BODY.format(
        title=html.escape(escaped(lines[0])),
        caption="<br>".join(html.escape(escaped(line)) for line in lines[1:]),
        last=len(moments) - 1,
        maps=plotlyjs.part(shown.text(), "maps"),
        curves=plotlyjs.part(curves.text(), "curves") if curves else "",
        moments=_script(list(moments)),
        batches=_script(list(batches)),
        values=_script(values),
        pause=FRAME,
    )
    return bundle.document(lines[0], body, LIGHT, _WIDTH, _STYLE + fonts.face(body))


def _values(grids: Grids) -> list[list[float | None]]:
    """The cells of a picture of one moment, None for a gap."""
    z = np.asarray(maps_over_time(grids, [""]).data[0].z, dtype=float).round(3)
    return [[None if np.isnan(value) else value for value in row] for row in z.tolist()]


def _script(value: object) -> str:
    """JSON that cannot end a script element."""
    return json.dumps(value, separators=(",", ":")).replace("<", "\\u003c")
