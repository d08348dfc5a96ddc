"""All heads of 12 layers × 12 heads: `python tests/bench/heads.py [--runs 5] [--bertviz FOLDER]`.

For 32, 128 and 512 tokens of seeded random attention (the worst case for a packed picture): processor time of Python
from Trace to JSON, bytes, and wall time from JSON to drawn in Chromium; for the overview, for one head close up and as
lines, and for the widget of a notebook. FOLDER holds BertViz and, in two other packages, the scripts that it asks the
network for (`pip install --no-deps --target FOLDER bertviz mpld3 nbclassic`). BertViz's model view is then
measured too, at 32 and at 128 tokens:
    python, bytes    overview / BertViz at 128 tokens                                              bar: 1 / 50 each
    drawn            overview at 128 / BertViz at 128, overview at 512 / BertViz at 32              bars: 1 / 100, 1 / 5
Without it too, python and drawn together:
    widget           widget at 512 / overview at 512                                                bar: 1
The exit status is 1 when a bar is missed.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
import types
from functools import partial
from pathlib import Path

import numpy as np

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "helpers"), str(Path(__file__).resolve().parents[2])]
from serving import browser  # noqa: E402

from attnviz import figures, plotlyjs  # noqa: E402
from attnviz.export.widget import View  # noqa: E402
from attnviz.select import select  # noqa: E402
from attnviz.trace import AttentionMap, Token, Trace  # noqa: E402

LAYERS = HEADS = 12
SCRIPTS = {
    "require.min.js": "nbclassic/static/components/requirejs/require.js",
    "d3.min.js": "mpld3/js/d3.v5.min.js",
    "jquery.min.js": "nbclassic/static/components/jquery/jquery.min.js",
}
BERTVIZ_DRAWN = """async () => {
  while (!document.querySelector('svg line')) await new Promise((next) => requestAnimationFrame(next));
  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  return performance.now() - window.__start;
}"""
CLEARED = """const plot = document.getElementById("plot");
  Plotly.purge(plot);
  plot.replaceChildren();
  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  const start = performance.now();"""  # what was drawn before is gone
DRAW = (
    f"async (text) => {{{CLEARED}"
    + """
  const { data, layout } = JSON.parse(text);
  await Plotly.newPlot(plot, data, layout);
  const images = [...plot.querySelectorAll("image")];
  await Promise.all(images.map((image) => Object.assign(new Image(), { src: image.href.baseVal }).decode()));
  await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
  return performance.now() - start;
}"""
)
DRAW_WIDGET = (
    f"async ([text, whole]) => {{{CLEARED}"
    + """
  const state = JSON.parse(text);
  delete plot.dataset.drawn;
  let taken;
  const seen = new MutationObserver(() => { taken ??= performance.now() - start; });
  seen.observe(plot, { attributeFilter: ["data-maps"] });
  const end = widget.default.render({ el: plot, model: { get: (name) => state[name], on() {}, off() {} } });
  while (!plot.dataset.drawn) await new Promise((next) => requestAnimationFrame(next));
  if (whole) {
    await new Promise((next) => requestAnimationFrame(() => requestAnimationFrame(next)));
    taken = performance.now() - start;
  }
  seen.disconnect();
  (await end)();
  plot.replaceChildren();
  return taken;
}"""
)
LOAD_WIDGET = """async (code) => {
  window.widget = await import(URL.createObjectURL(new Blob([code], { type: "text/javascript" })));
}"""
STATE = ("step", "layer", "head", "words", "special", "theme", "_counts", "_pictures")  # of the widget
DRAWINGS = {
    "overview": lambda trace: figures.overview(trace).to_json(),
    "close-up": lambda trace: figures.heatmap(select(trace, "encoder", 0, 0)).to_json(),
    "lines": lambda trace: figures.token_lines([select(trace, "encoder", 0, 0)]).to_json(),
    "widget": lambda trace: json.dumps(View(trace).get_state(STATE)),  # its map is seen
    "widget with bars": lambda trace: json.dumps(View(trace).get_state(STATE)),
}


def random_trace(size: int) -> Trace:
    generator = np.random.default_rng(0)
    text = " ".join(f"w{i:03}" for i in range(size))
    tokens = tuple(Token(f"w{i:03}", 5 * i, 5 * i + 4, word=i) for i in range(size))
    maps = []
    for layer in range(LAYERS):
        weights = np.exp(2 * generator.standard_normal((HEADS, size, size), dtype=np.float32))
        maps.append(AttentionMap("encoder", layer, weights / weights.sum(-1, keepdims=True, dtype=np.float64)))
    eos = Token("<eos>", 0, 0, special=True)
    return Trace("synthetic", "transformer", text, "", False, tokens, (eos,), (0.0,), (), tuple(maps))


def timed(make, runs: int) -> tuple[float, str]:
    """Median ms of processor time, and what was made."""
    times = []
    for _ in range(runs):
        start = time.process_time()
        text = make()
        times.append(1000 * (time.process_time() - start))
    return statistics.median(times), text


def bertviz(folder: str):
    """Its model view, Trace -> HTML. Of IPython it uses three names, which stand in here."""
    sys.path.append(folder)
    shim = types.ModuleType("IPython.display")
    shim.display = shim.HTML = shim.Javascript = lambda text: types.SimpleNamespace(data=text)
    sys.modules.setdefault("IPython", types.ModuleType("IPython"))
    sys.modules["IPython.display"] = shim
    import torch
    from bertviz.model_view import model_view

    def draw(trace: Trace) -> str:
        attention = [torch.tensor(m.weights).unsqueeze(0) for m in trace.maps]
        return model_view(attention, [token.text for token in trace.source], html_action="return").data

    return draw


def _answer(file: Path, route) -> None:
    route.fulfill(path=file)


def drawn_by_bertviz(chrome, text: str, folder: str) -> float:
    """ms from its HTML's being read to all heads drawn; it draws them in one go."""
    page = chrome.new_page(viewport={"width": 1000, "height": 900})
    for name, place in SCRIPTS.items():
        page.route(f"**/{name}", partial(_answer, Path(folder) / place))
    page.set_default_timeout(900_000)
    with tempfile.NamedTemporaryFile("w", suffix=".html", encoding="utf-8") as file:
        file.write(f"<!doctype html><meta charset=utf-8><script>window.__start = performance.now()</script>{text}")
        file.flush()
        page.goto(f"file://{file.name}", wait_until="commit")
        taken = page.evaluate(BERTVIZ_DRAWN)
    page.close()
    return taken


def drawn_by_turns(page, texts: dict, runs: int) -> dict:
    """Median ms of each: all are drawn once, then all again, so that what else the machine does meets all alike."""
    given = {
        (name, tokens): (DRAW_WIDGET, [text, "bars" in name]) if name.startswith("widget") else (DRAW, text)
        for (name, tokens), text in texts.items()
    }
    times = [{key: page.evaluate(*arguments) for key, arguments in given.items()} for _ in range(runs + 1)][1:]
    return {key: statistics.median(turn[key] for turn in times) for key in given}


def bars(python: dict, size: dict, drawn: dict) -> list[tuple[str, float, float]]:
    """What is compared, ours as a share of BertViz's, and the most that it may be."""
    ours, theirs = ("overview", 128), ("BertViz", 128)
    return [
        ("drawn at 128 / BertViz", drawn[ours] / drawn[theirs], 1 / 100),
        ("drawn at 512 / BertViz at 32", drawn["overview", 512] / drawn["BertViz", 32], 1 / 5),
        ("python at 128 / BertViz", python[ours] / python[theirs], 1 / 50),
        ("bytes at 128 / BertViz", size[ours] / size[theirs], 1 / 50),
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--bertviz", metavar="FOLDER")
    options = parser.parse_args()
    python, size, drawn, texts = {}, {}, {}, {}
    model_view = bertviz(options.bertviz) if options.bertviz else None
    with browser() as chrome:
        page = chrome.new_page(viewport={"width": 1000, "height": 900})
        page.set_content("<div id=plot></div>")
        page.add_script_tag(path=plotlyjs.SCRIPT)
        page.evaluate(LOAD_WIDGET, str(View._esm))
        for tokens in (32, 128, 512):
            trace = random_trace(tokens)
            for name, draw in DRAWINGS.items():
                key = name, tokens
                python[key], texts[key] = timed(lambda: draw(trace), options.runs)
                size[key] = len(texts[key])
            drawn |= drawn_by_turns(page, {key: text for key, text in texts.items() if key[1] == tokens}, options.runs)
            if model_view and tokens < 512:
                key = "BertViz", tokens
                python[key], text = timed(lambda: model_view(trace), 1)
                size[key], drawn[key] = len(text), drawn_by_bertviz(chrome, text, options.bertviz)
    for (name, tokens), ms in python.items():
        print(
            f"{name:9} {tokens:4} tokens: python {ms:8.0f} ms, {size[name, tokens]:11,} bytes, drawn "
            f"{drawn[name, tokens]:6.0f} ms"
        )
    widget, overview = (python[name, 512] + drawn[name, 512] for name in ("widget", "overview"))
    shares = [("widget at 512 / overview", widget / overview, 1.0)] + (bars(python, size, drawn) if model_view else [])
    for name, share, bar in shares:
        print(f"{name}: {share:.3g}, bar {bar:.3g}{'' if share <= bar else ' MISSED'}")
    return int(any(share > bar for _, share, bar in shares))


if __name__ == "__main__":
    sys.exit(main())
