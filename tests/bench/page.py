"""From Enter to every chart drawn, in a real browser: `python tests/bench/page.py [--runs 30]`.

Five figures, in one run, and their ratios (only these say something about another machine):
    full     the page, three mechanisms, a 12-word sentence
    stored   the same page with the models' work replaced by stored traces           bar: full / stored <= 1.4
    bare     a page of three heatmaps, three bar charts and a table, nothing computed  bar: full / bare <= 1.6
    lean     the same without Streamlit's theme (the page draws without it, too)      for information: full / lean
    step     moving the step on the page                                             bar: step / full <= 0.5
The exit status is 1 when a bar is missed. Drawn means: every chart that must change is finished (by Plotly.react,
or as plot.js says) since the key press, and no Plotly.react is under way.
"""

import argparse
import json
import statistics
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "helpers"), str(Path(__file__).resolve().parents[2])]
from serving import ROOT, browser, server  # noqa: E402

from dashboard.choices.pairs import DEFAULT, FIRST, TASKS  # noqa: E402

SUBJECTS = ("man", "woman", "boy", "girl", "dog")
COLOURS = ("red", "blue", "green", "black", "white", "yellow", "brown")
SENTENCES = [
    f"A young {who} in a {colour} shirt is sitting on a bench." for colour in COLOURS for who in SUBJECTS
]  # 12 words each
WATCH = """() => {
  const react = window.Plotly.react;
  window.__bench = { pending: 0, last: 0 };
  const drawn = (chart) => { __bench.last = performance.now(); if (chart) chart.__drawn = __bench.last; };
  addEventListener("drawn", ({ target }) => drawn(target)); // by plot.js, which does not ask Plotly for everything
  window.Plotly.react = function (chart, ...rest) {
    __bench.pending += 1;
    const done = () => { __bench.pending -= 1; drawn(chart); };
    const result = react.call(this, chart, ...rest);
    Promise.resolve(result).then(done, done);
    return result;
  };
}"""
DRAWN = """async ({ selector, count, quiet }) => {
  const start = window.__start;
  for (;;) {
    await new Promise((next) => requestAnimationFrame(next));
    const charts = [...document.querySelectorAll(selector)].filter((chart) => (chart.__drawn ?? 0) > start);
    const now = performance.now();
    if (charts.length >= count && !__bench.pending && now - __bench.last > quiet) {
      return Math.max(...charts.map((chart) => chart.__drawn)) - start;
    }
    if (now - start > 20000) throw new Error(`drawn ${charts.length} of ${count} charts`);
  }
}"""
BARS = {("full", "stored"): 1.4, ("full", "bare"): 1.6, ("step", "full"): 0.5}
CHARTS, STEPS = ".js-plotly-plot", ".st-key-chart-step .js-plotly-plot"
MARK = (
    "key => addEventListener('keydown', "
    "e => { if (e.key === key) window.__start = performance.now(); }, { capture: true })"
)


def opened(chrome, address: str, count: int):
    """A page at an address, warm and watched."""
    page = chrome.new_page(viewport={"width": 1366, "height": 900})
    page.goto(address)
    page.wait_for_function(
        "n => document.querySelectorAll('.js-plotly-plot').length >= n && window.Plotly", arg=count, timeout=90_000
    )
    page.wait_for_timeout(1500)
    page.evaluate(WATCH)
    for key in ("Enter", "ArrowRight", "ArrowLeft"):
        page.evaluate(MARK, key)
    return page


def enter(page, sentence: str, count: int) -> float:
    """Milliseconds from Enter to `count` charts drawn."""
    field = page.locator(".st-key-text input")
    field.fill(sentence)
    page.wait_for_timeout(150)
    field.press("Enter")
    return page.evaluate(DRAWN, {"selector": CHARTS, "count": count, "quiet": 200})


def move(page, key: str, count: int) -> float:
    """Milliseconds from an arrow key on the step control to the bars drawn."""
    page.locator(".st-key-step input[type=range]").press(key)
    return page.evaluate(DRAWN, {"selector": STEPS, "count": count, "quiet": 200})


def store(path: Path) -> None:
    """Write the traces that stored_app.py reads, one a line."""
    import torch

    import attnviz

    torch.set_num_threads(1)
    models = [attnviz.load(f"{DEFAULT}/{mechanism}") for mechanism in FIRST]
    lines = [model.trace(sentence).to_json() for model in models for sentence in [TASKS[DEFAULT].first, *SENTENCES]]
    path.write_text("\n".join(lines), encoding="utf-8")


def measure(runs: int) -> dict[str, list[float]]:
    """Milliseconds of each kind; the kinds take turns, so that whatever else the machine does falls on all alike."""
    times: dict[str, list[float]] = {"full": [], "stored": [], "bare": [], "lean": [], "step": []}
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        traces = Path(folder) / "traces.jsonl"
        store(traces)
        bench = ROOT / "tests" / "bench" / "apps"
        with (
            server() as live,
            server(bench / "stored_app.py", ATTNVIZ_STORED=str(traces)) as stored,
            server(bench / "bare_app.py") as bare,
            server(bench / "bare_app.py", ATTNVIZ_LEAN="1") as lean,
        ):
            pages = {
                "full": opened(chrome, live, 7),
                "stored": opened(chrome, stored, 7),
                "bare": opened(chrome, bare, 6),
                "lean": opened(chrome, lean, 6),
            }
            for run in range(runs + 2):
                for kind, page in pages.items():
                    page.bring_to_front()
                    taken = enter(page, SENTENCES[run % len(SENTENCES)], 6 if kind in ("bare", "lean") else 7)
                    if run > 1:  # the first two warm up
                        times[kind].append(taken)
                    if kind == "full" and run > 1:
                        times["step"].append(move(page, ("ArrowRight", "ArrowLeft")[run % 2], 3))
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=30)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    times = measure(options.runs)
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    ratios = {f"{a} / {b}": medians[a] / medians[b] for a, b in BARS}
    if options.json:
        print(json.dumps({"median_ms": medians, "ratios": ratios, "all_ms": times}))
    for kind, value in medians.items() if not options.json else ():
        low, high = min(times[kind]), max(times[kind])
        print(f"{kind:7} median {value:6.0f} ms   (of {options.runs}: {low:.0f} to {high:.0f})")
    for (name, value), bar in zip(ratios.items(), BARS.values()) if not options.json else ():
        print(f"{name}: {value:.2f} (at most {bar})")
    if not options.json:
        print(f"for information: full / lean {medians['full'] / medians['lean']:.2f}")
    return int(any(value > bar for value, bar in zip(ratios.values(), BARS.values())))


if __name__ == "__main__":
    sys.exit(main())
