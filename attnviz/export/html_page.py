"""Traces as one HTML page that opens offline: heatmaps, the bars of a step, statistics by step, and their table."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from attnviz import figures, plotlyjs, reading, select, stats
from attnviz import lazy_pandas as pd
from attnviz.arguments import checked
from attnviz.export import bundle, fonts, heading
from attnviz.figures.chart import Chart
from attnviz.figures.labels import shown
from attnviz.figures.theme import DARK, LIGHT
from attnviz.figures.wording import TITLES
from attnviz.select import Grid
from attnviz.trace import KINDS, Trace
from attnviz.trace.visible import escaped

_STYLE = """:root {{ color-scheme: light dark; }}
h1 {{ font-size: 22px; margin: 0; }}
h2 {{ font-size: 19px; margin: 24px 0 0; }}
h3 {{ font-size: 17px; margin: 32px 0 0; }}
.models {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, {column}px), 1fr)); gap: 0 32px; }}
.models > section {{ display: grid; grid-row: span 2; grid-template: subgrid / minmax(0, 1fr); align-content: start; }}
p {{ margin: 4px 0; }}
.quiet {{ color: {light.muted}; }}
label {{ display: flex; gap: 12px; align-items: center; }}
input {{ flex: 1; }}
.table {{ overflow-x: auto; }}
table {{ border-collapse: collapse; font-size: 13px; width: 100%; }}
th, td {{ padding: 4px 8px; text-align: right; border-bottom: 1px solid {light.grid}; white-space: nowrap; }}
th {{ white-space: normal; overflow-wrap: normal; }}
th:nth-child(-n+3), td:nth-child(-n+3) {{ text-align: left; }}
td:nth-child(2), td:nth-child(3) {{ white-space: normal; min-width: 7em; }}
@media screen and (prefers-color-scheme: dark) {{
  body {{ background: {dark.page}; color: {dark.text}; }}
  .quiet, figcaption {{ color: {dark.muted}; }}
  th, td {{ border-color: {dark.grid}; }}
}}
"""
_BODY = """<h1 dir="auto">{title}</h1>
<div class="models">
{parts}
</div>
<script id="plotly" type="text/plain">{plotly}</script>
<script id="figures" type="text/plain">{figures}</script>
<script>
{script}
</script>"""
_SCRIPT = Path(__file__).with_name("html_page.js").read_text(encoding="utf-8")
_HEADINGS = {
    ("target", "source"): "Target looks at source",
    ("source", "source"): "Source looks at source",
    ("target", "input"): "Target looks at the target so far",
    ("input", "input"): "Text looks at the text so far",
}
_BY_STEP = {"cross": "Cross-attention", "encoder": "Self-attention", "decoder": "Self-attention"}
Windows = Sequence[tuple[float, float]]  # centre and reach of each row, in keys from 0
_WIDTH, _NARROWEST = 760, 400  # px of a page of one model; of the narrowest of several: three fit a screen of 1366
_LANGUAGES = re.compile(r"([a-z]{2,3})-([a-z]{2,3})/")
_COLUMNS = ("entropy_nats", "max_weight", "effective_entropy", "gini", "expected_position", "special_mass")


@dataclass(frozen=True)
class _Part:
    """One trace on the page. prefix : of the ids of its elements. bars : the figure of each step. saved : by figure,
    the layout changes when it is saved; headings : the same for the bars of each step."""

    markup: str
    prefix: str
    figures: dict[str, Chart]
    main: str | None
    bars: list[Chart]
    saved: dict[str, dict]
    headings: list[dict]


@checked
def page(
    *traces: Trace,
    notes: Mapping[str, Sequence[str]] | None = None,
    windows: Mapping[str, Windows] | None = None,
    unit: str = "word",
    step: int = 0,
) -> bytes:
    """The page of one trace or several beside each other, UTF-8; the sentence is its title. Every map is of the last
    layer of its kind, the mean of its heads; steps are the rows of the cross-attention, or of the self-attention of a
    model that has no other.

    Light or dark like the reader's browser. A page of four models has under 1.5 MB. notes : model -> lines of plain
    text under its translation. windows : model -> where local attention looks at each step (`inside.windows`), drawn
    over its cross map. unit : the noun for a word of these texts, used under the maps. step : the step (from 0) whose
    bars are shown first; for a shorter text its last step. ValueError without traces or for a step below 0.
    """
    if not traces or step < 0:
        raise ValueError(f"there must be a trace or more, and step at least 0; got {len(traces)} and {step}")
    texts = list(dict.fromkeys(trace.text for trace in traces))
    heads = [_head(trace, len(texts) > 1, (notes or {}).get(trace.model, ())) for trace in traces]
    parts = [
        _part(trace, f"part{place}-" if place else "", unit, (windows or {}).get(trace.model, ()), step, len(traces))
        for place, trace in enumerate(traces)
    ]
    packed, title = _packed(parts), " · ".join(texts)
    body = _body(
        title, [f"<header>{head}</header>\n<div>{part.markup}</div>" for head, part in zip(heads, parts)], packed
    )
    style = _STYLE.format(light=LIGHT, dark=DARK, column=_NARROWEST) + fonts.face(
        body + json.dumps(json.loads(packed), ensure_ascii=False)
    )
    return bundle.document(title, body, LIGHT, max(_WIDTH, (_NARROWEST + 80) * len(traces)), style)


def _body(title: str, columns: Sequence[str], packed: str) -> str:
    """The markup of the page. columns : of each model. packed : as `_packed` gives it."""
    return _BODY.format(
        title=html.escape(escaped(title)),
        parts="\n".join(f"<section>\n{column}\n</section>" for column in columns),
        script="\n".join((plotlyjs.UNPACK, plotlyjs.SAVING, bundle.SAVE_BUTTONS, bundle.THEMED, _SCRIPT)),
        plotly=plotlyjs.packed(plotlyjs.source()),
        figures=plotlyjs.packed(packed),
    )


def _packed(parts: Sequence[_Part]) -> str:
    """JSON for the script: every figure, the bars of each step, and their layout changes when saved."""
    shown = {part.prefix + name: figure for part in parts for name, figure in part.figures.items()}
    steps = ",".join(
        f'"{part.prefix}":{{"main":"{part.main}","bars":[{",".join(_steps(part))}]}}' for part in parts if part.main
    )
    saved = {f"{part.prefix}{name}": changes for part in parts for name, changes in part.saved.items()}
    listed = ",".join(f"{json.dumps(name)}:{figure.text()}" for name, figure in shown.items())
    return f'{{"drawn":{{{listed}}},"steps":{{{steps}}},"saved":{json.dumps(saved)}}}'


def _part(trace: Trace, prefix: str, unit: str, windows: Windows, step: int, columns: int) -> _Part:
    grids = {kind: select.select(trace, kind) for kind in KINDS if any(m.kind == kind for m in trace.maps)}
    if not grids:
        return _Part("<p>No attention: there are no weights to show.</p>", prefix, {}, None, [], {}, [])
    main, grid = next(iter(grids.items()))
    frame = stats.of_grid(grid)
    laid = {kind: {"windows": windows} if windows and kind == "cross" else {} for kind in grids}
    drawn = {kind: figures.heatmap(map_, **laid[kind]) for kind, map_ in grids.items()}
    step = min(step, len(grid.queries) - 1)
    seen = grid.visible.sum(axis=1).tolist()
    drawn["by-step"] = figures.by_step(
        {trace.mechanism: frame}, seen, queries={trace.mechanism: grid.queries}, stacked=columns > 1
    )
    sections = [
        _section(
            _heading(trace, map_, _HEADINGS[map_.sides]), drawn[kind], prefix + kind, _reading(map_, unit, **laid[kind])
        )
        for kind, map_ in grids.items()
    ]
    bars = [figures.step_bars(grid, step) for step in range(len(grid.queries))]
    drawn["bars"] = bars[step]
    sections.insert(1, _bars(bars[step], prefix, step, len(grid.queries)))
    sections.append(_section(_heading(trace, grid, f"{_BY_STEP[main]} by step"), drawn["by-step"], f"{prefix}by-step"))
    sections.append(_table(frame, grid))
    headings = [heading.changes(chart, heading.of_step(trace, grid, step)) for step, chart in enumerate(bars)]
    saved = {
        kind: heading.changes(drawn[kind], heading.of_map(trace, map_, **laid[kind])) for kind, map_ in grids.items()
    }
    saved |= {
        "bars": headings[step],
        "by-step": heading.changes(drawn["by-step"], heading.of_statistics({trace.mechanism: trace})),
    }
    return _Part("\n".join(sections), prefix, drawn, main, bars, saved, headings)


def _steps(part: _Part) -> list[str]:
    """The bars of each step, and their layout changes when saved."""
    return [
        f'{chart.text()[:-1]},"saved":{json.dumps(changes)}}}'
        for chart, changes in zip(part.bars, part.headings, strict=True)
    ]


def _head(trace: Trace, named: bool, notes: Sequence[str]) -> str:
    """The model, the sentence if given, the output, and notes on it."""
    notes_below = "".join(f'<p class="quiet">{html.escape(escaped(note))}</p>\n' for note in notes)
    languages = _LANGUAGES.match(trace.model)
    source, target = languages.groups() if languages else ("", "")
    text = f'<p lang="{source}" dir="auto">{html.escape(escaped(trace.text))}</p>\n' if named else ""
    return (
        f"<h2>Attention of {html.escape(escaped(trace.model))}</h2>\n{text}{_translation(trace, target)}{notes_below}"
    )


def _heading(trace: Trace, grid: Grid, words: str) -> str:
    return ": ".join(filter(None, (words, heading.layer_and_head(trace, grid))))


def _translation(trace: Trace, language: str) -> str:
    """The output and its probability; "" if the model only reads."""
    if not trace.target:
        return ""
    how = "target given" if trace.forced else "the model's translation"
    log_prob = "" if trace.log_prob is None else f", log-probability {f'{trace.log_prob:.2f}'.replace('-', '−')}"
    return (
        f'<p lang="{language}" dir="auto"><b>{html.escape(escaped(trace.translation))}</b></p>\n'
        f'<p class="quiet">{how}{log_prob}</p>\n'
    )


def _section(heading: str, figure: Chart, name: str, below: str = "") -> str:
    caption = html.escape(escaped(figure.description))
    place = _place(figure, name)
    return f"<h3>{html.escape(heading)}</h3>\n<figure>{place}<figcaption>{caption}</figcaption></figure>\n{below}"


def _reading(grid: Grid, unit: str, windows: Windows = ()) -> str:
    """The sentence under a map, and the meaning of its marks."""
    marks = f'<p class="quiet">{heading.MARKS["windows"]}</p>' if windows else ""
    return f"<p>{html.escape(escaped(reading.sentence(grid, unit)))}</p>{marks}"


def _bars(first: Chart, prefix: str, step: int, count: int) -> str:
    """first : of `step`."""
    caption = html.escape(escaped(first.description))
    slider = f'<input id="{prefix}choose" type="range" min="1" max="{count}" value="{step + 1}">'
    return (
        f'<h3>One step</h3>\n<label>Step {slider}<output id="{prefix}step">{step + 1} of {count}</output></label>\n'
        f'<figure>{_place(first, f"{prefix}bars")}<figcaption id="{prefix}caption">{caption}</figcaption></figure>'
    )


def _place(figure: Chart, name: str) -> str:
    """The element in which a figure is drawn. It already has the figure's height, so that nothing moves."""
    return f'<div id="{name}" style="height: {figure.layout.height}px"></div>'


def _table(frame: pd.DataFrame, grid: Grid) -> str:
    names = [TITLES[name] for name in _COLUMNS]
    head = "".join(f'<th scope="col">{name}</th>' for name in ("Step", "Token", "Looks most at", *names))
    rows, queries, keys = [], shown(grid.queries), [*shown(grid.keys), "–"]
    for row in frame.itertuples():
        looks = -1 if pd.isna(row.argmax) else int(row.argmax)
        texts = (str(row.step + 1), html.escape(queries[row.step]), html.escape(keys[looks]))
        values = (f"{getattr(row, name) + (name == 'expected_position'):.2f}" for name in _COLUMNS)  # counted from 1
        rows.append(f"<tr>{''.join(f'<td>{cell}</td>' for cell in (*texts, *values))}</tr>")
    lines = "\n".join(rows)
    return (
        '<h3>The same in numbers</h3>\n<div class="table" tabindex="0" role="group" aria-label="Numbers of each step">'
        f"<table><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{lines}</tbody></table></div>"
    )
