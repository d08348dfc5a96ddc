"""From a click on a head in the overview to its close-up drawn: `python tests/bench/closeup.py [--runs 20]`.

128 tokens, the heads of the shipped Transformer's encoder, in a real browser; three figures, and their ratios:
    close-up   a click on a map of the overview, until the heatmap and the lines of that head are drawn
    alone      a click on a button of a page that only draws the heatmap of the next head, as on the page
                                                                               bar: close-up / alone <= 1.5
    streamlit  the same by `st.plotly_chart`, which takes longer               for information: close-up / streamlit
The exit status is 1 when the bar is missed. Drawn is what page.py says it is: in the page, not yet in sight. What
follows a drawn close-up is not measured: the page scrolls to it, and its controls take their new values.
"""

import argparse
import statistics
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

sys.path[:0] = [str(Path(__file__).resolve().parents[1] / "helpers"), str(Path(__file__).resolve().parents[2])]
from page import DRAWN, opened  # noqa: E402
from serving import ROOT, browser, server  # noqa: E402

MODEL, TOKENS, BAR = "en-fr/transformer", 128, 1.5
TEXT = " ".join(["a dog runs"] * 42)  # a word is a piece: 126 of them, the full stop below, and <eos>
CLICK = "addEventListener('pointerdown', () => { window.__start = performance.now(); }, { capture: true })"


def text() -> str:
    """A text of as many pieces. AssertionError when the tokenizer cuts it otherwise."""
    import attnviz

    written = f"{TEXT}."
    length = len(attnviz.load(MODEL).trace(written, target="A").source)
    assert length == TOKENS, f"the text has {length} pieces and not {TOKENS}: change TEXT"
    return written


def store(path: Path, written: str) -> None:
    """Write the trace that bare_head_page.py reads."""
    import attnviz

    path.write_text(attnviz.load(MODEL).trace(written, target="A").to_json(), encoding="utf-8")


def click(page, number: int) -> float:
    """Milliseconds from a click on a head, another each time, to its heatmap and its lines."""
    area = page.locator(".st-key-chart-overview .nsewdrag").first
    area.scroll_into_view_if_needed()
    page.wait_for_timeout(400)
    box = area.bounding_box()
    area.click(position={"x": box["width"] * (number % 4 + 0.5) / 4, "y": box["height"] * (number % 3 + 0.5) / 3})
    return page.evaluate(DRAWN, {"selector": ".st-key-chart-closeup .js-plotly-plot", "count": 2, "quiet": 200})


def press(page) -> float:
    """Milliseconds from a click on the button to the heatmap alone."""
    page.wait_for_timeout(400)
    page.get_by_role("button", name="Next head").click()
    return page.evaluate(DRAWN, {"selector": ".st-key-chart-alone .js-plotly-plot", "count": 1, "quiet": 200})


def measure(runs: int) -> dict[str, list[float]]:
    """Milliseconds of each; they take turns, so that whatever else the machine does falls on both alike."""
    times: dict[str, list[float]] = {"close-up": [], "alone": [], "streamlit": []}
    written = text()
    with tempfile.TemporaryDirectory() as folder, browser() as chrome:
        stored = Path(folder) / "trace.json"
        store(stored, written)
        app, given = ROOT / "tests" / "bench" / "apps" / "bare_head_app.py", {"ATTNVIZ_STORED": str(stored)}
        with server() as live, server(app, **given) as bare, server(app, **given, ATTNVIZ_STREAMLIT="1") as streamlit:
            pages = {
                "close-up": opened(chrome, f"{live}/heads?text={quote(written)}", 8),
                "alone": opened(chrome, bare, 1),
                "streamlit": opened(chrome, streamlit, 1),
            }
            for page in pages.values():
                page.evaluate(CLICK)
            for run in range(runs + 2):
                for kind, page in pages.items():
                    page.bring_to_front()
                    taken = click(page, run) if kind == "close-up" else press(page)
                    if run > 1:  # the first two warm up
                        times[kind].append(taken)
    return times


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=20)
    times = measure(parser.parse_args().runs)
    medians = {kind: statistics.median(values) for kind, values in times.items()}
    for kind, values in times.items():
        print(f"{kind:9} median {medians[kind]:6.0f} ms, {min(values):.0f} to {max(values):.0f}")
    share = medians["close-up"] / medians["alone"]
    print(f"close-up / alone: {share:.2f}, bar {BAR}{'' if share <= BAR else ' MISSED'}")
    print(f"for information: close-up / streamlit {medians['close-up'] / medians['streamlit']:.2f}")
    return int(share > BAR)


if __name__ == "__main__":
    sys.exit(main())
