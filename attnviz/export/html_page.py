"""One trace as one HTML page that opens offline: heatmaps, the bars of a step, statistics by step, and their table."""

import html
import re

import pandas as pd
import plotly.graph_objects as go
import plotly.io as pio
from plotly.offline import get_plotlyjs

from attnviz import figures, select, stats
from attnviz.export import bundle
from attnviz.figures.labels import plain
from attnviz.figures.theme import palette
from attnviz.figures.titles import TITLES
from attnviz.trace import KINDS, Trace

_STYLE = """h1 {{ font-size: 22px; margin: 0; }}
h2 {{ font-size: 17px; margin: 32px 0 0; }}
p {{ margin: 4px 0; }}
.quiet {{ color: {muted}; }}
label {{ display: flex; gap: 12px; align-items: center; }}
input {{ flex: 1; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; width: 100%; }}
th, td {{ padding: 4px 8px; text-align: right; border-bottom: 1px solid {grid}; white-space: nowrap; }}
th {{ white-space: normal; }}
th:nth-child(-n+3), td:nth-child(-n+3) {{ text-align: left; }}
"""
_BODY = """<script>{plotly}</script>
<h1>{title}</h1>
<p lang="{source}" dir="auto">{sentence}</p>
{translation}{sections}
<script>
const steps = {steps}, choose = document.getElementById("choose");
function show(step) {{
  choose.value = step;
  Plotly.react("bars", steps[step].data, steps[step].layout);
  document.getElementById("caption").textContent = steps[step].layout.meta.description;
}}
choose.addEventListener("input", () => show(Number(choose.value)));
document.getElementById("{main}").on("plotly_click", event => show(event.points[0].y));
</script>"""
_HEADINGS = {
    ("target", "source"): "Target looks at source",
    ("source", "source"): "Source looks at source",
    ("target", "input"): "Target looks at the target so far",
    ("input", "input"): "Text looks at the text so far",
}
_BY_STEP = {"cross": "Cross-attention", "encoder": "Self-attention", "decoder": "Self-attention"}
_LANGUAGES = re.compile(r"([a-z]{2,3})-([a-z]{2,3})/")
_COLUMNS = ("entropy_nats", "max_weight", "effective_entropy", "gini", "expected_position", "special_mass")


def page(trace: Trace) -> bytes:
    """The page of a trace, UTF-8, 5 MB of it plotly.js. Every map is of the last layer of its kind, the mean of its
    heads; steps are the rows of the cross-attention, or of the self-attention of a model that has no other."""
    grids = {kind: select.select(trace, kind) for kind in KINDS if any(m.kind == kind for m in trace.maps)}
    main, grid = next(iter(grids.items()))
    frame = stats.of_grid(grid)
    sections = [
        _section(_heading(trace, kind, _HEADINGS[drawn.sides]), figures.heatmap(drawn), kind)
        for kind, drawn in grids.items()
    ]
    sections.insert(1, _bars(grid))
    by_step = figures.by_step({trace.mechanism: frame}, grid.visible.sum(axis=1).tolist())
    sections.append(_section(_heading(trace, main, f"{_BY_STEP[main]} by step"), by_step, "by-step"))
    sections.append(_table(frame))
    steps = f"[{','.join(_json(figures.step_bars(grid, step)) for step in range(len(grid.queries)))}]"
    languages = _LANGUAGES.match(trace.model)
    source, target = languages.groups() if languages else ("", "")
    title, colors = f"Attention of {trace.model}", palette(False)
    body = _BODY.format(
        title=html.escape(title),
        sentence=html.escape(trace.text),
        source=source,
        translation=_translation(trace, target),
        sections="\n".join(sections),
        steps=steps,
        main=main,
        plotly=get_plotlyjs(),
    )
    return bundle.document(title, body, colors, 760, _STYLE.format(muted=colors.muted, grid=colors.grid))


def which(trace: Trace, kind: str = "cross") -> str:
    """Which map of that kind `select` takes when it is not told: `layer 3 of 3, mean of 4 heads`."""
    layers = sum(m.kind == kind for m in trace.maps)
    heads = len(trace.map(kind).weights)
    return f"layer {layers} of {layers}, " + (f"mean of {heads} heads" if heads > 1 else "its one head")


def _heading(trace: Trace, kind: str, words: str) -> str:
    only = len(trace.map(kind).weights) == 1 and sum(m.kind == kind for m in trace.maps) == 1
    return words if only else f"{words}: {which(trace, kind)}"


def _translation(trace: Trace, language: str) -> str:
    """What was produced, and how probable it is; nothing when the model only read."""
    if not trace.target:
        return ""
    how = "target given" if trace.forced else "the model's translation"
    chance = "" if trace.log_prob is None else f", log-probability {trace.log_prob:.2f}"
    return (
        f'<p lang="{language}" dir="auto"><b>{html.escape(trace.translation)}</b></p>\n'
        f'<p class="quiet">{how}{chance}</p>\n'
    )


def _section(heading: str, figure: go.Figure, name: str) -> str:
    drawn = pio.to_html(figure, config=bundle.config(name), include_plotlyjs=False, full_html=False, div_id=name)
    caption = html.escape(figure.layout.meta["description"])
    return f"<h2>{html.escape(heading)}</h2>\n<figure>{drawn}<figcaption>{caption}</figcaption></figure>"


def _bars(grid: select.Grid) -> str:
    first = figures.step_bars(grid, 0)
    drawn = pio.to_html(first, config=bundle.config("step"), include_plotlyjs=False, full_html=False, div_id="bars")
    caption = html.escape(first.layout.meta["description"])
    last = len(grid.queries) - 1
    return (
        f'<h2>One step</h2>\n<label>Step <input id="choose" type="range" min="0" max="{last}" value="0"></label>\n'
        f'<figure>{drawn}<figcaption id="caption">{caption}</figcaption></figure>'
    )


def _table(frame: pd.DataFrame) -> str:
    names = [TITLES[name] for name in _COLUMNS]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Token", "Looks most at", *names))
    rows = []
    for row in frame.itertuples():
        texts = (str(row.step + 1), html.escape(plain(row.token)), html.escape(plain(row.argmax_token)))
        values = (f"{getattr(row, name):.2f}" for name in _COLUMNS)
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in (*texts, *values))}</tr>")
    lines = "\n".join(rows)
    return (
        f'<h2>The same in numbers</h2>\n<div class="table"><table><thead><tr>{head}</tr></thead>\n'
        f"<tbody>{lines}</tbody></table></div>"
    )


def _json(figure: go.Figure) -> str:
    """A figure for a script element: nothing in it can end the element."""
    return pio.to_json(figure, validate=False).replace("<", "\\u003c").replace("\u2028", "\\u2028")
