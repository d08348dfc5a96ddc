"""plotly.js, which draws figures in a browser: its `cartesian` build, a third of the whole in size and in the time to
start. From https://www.npmjs.com/package/plotly.js-cartesian-dist-min, unchanged, of the version that the plotly
package draws with; MIT licence, beside it.
"""

import base64
import functools
import gzip
import json
from pathlib import Path

SCRIPT = Path(__file__).with_name("plotly-cartesian.min.js")
TRACES = frozenset("scatter bar box heatmap histogram histogram2d image contour violin".split())  # that it draws
# A script or figures, packed by `packed`, as text again.
UNPACK = """function bytesOf(base64) { // as Uint8Array.from(text, letter => …), which takes ten times as long
  const text = atob(base64), bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}
function contentOf(packed) {
  return new Response(new Blob([bytesOf(packed)]).stream().pipeThrough(new DecompressionStream("gzip")));
}
const unpack = (packed) => contentOf(packed).text();"""
MOST_RECTANGLES = 300_000  # of a saved picture; more stay an image, for most programs would not open the file
# `await pictureFile(…)`: a figure as an SVG whose cells are rectangles (`await vectors(svg, chart)`), or as a PNG.
SAVING = "\n".join(
    (
        f"const {{ vectors, pictureFile }} = (() => {{ const MOST_RECTANGLES = {MOST_RECTANGLES};",
        *(Path(__file__).with_name(name).read_text(encoding="utf-8") for name in ("cells.js", "saved.js")),
        "return { vectors, pictureFile }; })();",
    )
)
_PART = """<div id="%(name)s" style="height: %(height)spx"></div>
<script type="text/plain" id="%(name)s-plotly">%(script)s</script>
<script>(() => {
%(unpack)s
async function load() {
  const script = document.createElement("script");
  script.textContent = await unpack(document.getElementById("%(name)s-plotly").textContent);
  document.head.append(script);
}
async function draw() {
  if (!window.Plotly) await (window.attnvizPlotly ??= load()); // of several figures on a page the first loads it
  const { data, layout } = JSON.parse(await unpack("%(figure)s"));
  await Plotly.newPlot("%(name)s", data, layout, { displaylogo: false, responsive: true });
}
draw();
})();</script>"""


def source(types: frozenset[str] | set[str] = frozenset()) -> str:
    """The script that draws traces of these types: the full plotly.js if the cartesian build lacks one."""
    if types <= TRACES:
        return SCRIPT.read_text(encoding="utf-8")
    from plotly.offline import get_plotlyjs

    return get_plotlyjs()


def packed(content: str | bytes, level: int = 9) -> str:
    """gzip data as base64 text for a script element; no character can end the element. level : 1 is quick, 9 small."""
    data = content.encode() if isinstance(content, str) else content
    return base64.b64encode(gzip.compress(data, level, mtime=0)).decode()


@functools.cache
def _packed_source(types: frozenset[str]) -> str:
    return packed(source(types))


def part(figure: str, name: str) -> str:
    """A part of an HTML page that draws a figure by itself, offline (.5 MB). figure : its JSON. name : of its element,
    unique on the page."""
    content = json.loads(figure)
    types = frozenset(trace.get("type", "scatter") for trace in content["data"])
    height = content["layout"].get("height", 450)
    return _PART % {
        "name": name,
        "height": height,
        "script": _packed_source(types),
        "unpack": UNPACK,
        "figure": packed(figure),
    }
