"""Memory of the server with 12 layers x 12 heads x 512 tokens: `tests/bench/memory.py [--redraws 100] [--sessions 6]`.

A Hugging Face model of that size, with small random weights, on the page of heads in a real browser; resident memory of
the server's process (Linux):
    a session    what one more open page adds, each with another text           no bar; it ends where caches are full
    redraws      another head, another order of the overview, many times, on one page       bar: within 5 % of before
The exit status is 1 when the bar is missed.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from urllib.parse import quote

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS / "helpers"), str(TESTS / "helpers" / "models"), str(TESTS.parent)]
import families  # noqa: E402
from serving import browser, running  # noqa: E402

TOKENS, BAR, WARM = 512, 0.05, 20
SIZE = dict(
    hidden_size=48, num_hidden_layers=12, num_attention_heads=12, intermediate_size=48, max_position_embeddings=TOKENS
)
REST = """n => document.querySelectorAll('.plot.js-plotly-plot').length >= n
    && !document.querySelector('[data-stale=true]')
  && document.querySelector('[data-testid=stApp]')?.dataset.testScriptState === 'notRunning'"""


def text(number: int) -> str:
    """One of many texts of TOKENS tokens, with [CLS] and [SEP]."""
    words = families.WORDS.lower().split()
    return " ".join(words[(number + i * (number + 1)) % len(words)] for i in range(TOKENS - 2))


def resident(process: int) -> float:
    """MB that a process holds."""
    lines = Path(f"/proc/{process}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmRSS")) / 1024


def opened(chrome, address: str, folder: Path, number: int):
    page = chrome.new_page(viewport={"width": 1366, "height": 900})
    page.goto(f"{address}/heads?model=A+Hugging+Face+model&own={quote(str(folder))}&text={quote(text(number))}")
    page.wait_for_function(REST, arg=5, timeout=180_000)
    page.wait_for_timeout(3000)
    return page


def redraw(page, number: int) -> None:
    """Another head is opened by a click on the overview; every tenth time the overview is put in another order
    first."""
    if number % 10 == 0:
        page.locator(".st-key-order [role=combobox], .st-key-order input").first.click()
        page.get_by_role("option").nth(1 + number // 10 % 5).click()
        page.wait_for_timeout(1500)
        page.wait_for_function(REST, arg=5, timeout=60_000)
    area = page.locator(".st-key-chart-overview .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    area.click(
        position={"x": box["width"] * (number * 7 % 12 + 0.5) / 12, "y": box["height"] * (number * 5 % 12 + 0.5) / 12}
    )
    page.wait_for_timeout(700)
    page.wait_for_function(REST, arg=5, timeout=60_000)


def measure(redraws: int, sessions: int) -> dict[str, list[float]]:
    megabytes: dict[str, list[float]] = {"sessions": [], "redraws": []}
    with tempfile.TemporaryDirectory() as name, browser() as chrome:
        folder = families.write(Path(name) / "model", "bert", **SIZE)
        with running() as (address, process):
            megabytes["sessions"].append(resident(process))
            pages = []
            for number in range(sessions):
                pages.append(opened(chrome, address, folder, number))
                megabytes["sessions"].append(resident(process))
            for number in range(WARM + redraws):
                if number >= WARM and not (number - WARM) % 20:
                    megabytes["redraws"].append(resident(process))
                redraw(pages[-1], number)
            megabytes["redraws"].append(resident(process))
    return megabytes


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--redraws", type=int, default=100)
    parser.add_argument("--sessions", type=int, default=6)
    options = parser.parse_args()
    megabytes = measure(options.redraws, options.sessions)
    print("MB when started and after each session:", *(f"{value:.0f}" for value in megabytes["sessions"]))
    print(f"MB along {options.redraws} redraws:", *(f"{value:.0f}" for value in megabytes["redraws"]))
    grown = megabytes["redraws"][-1] / megabytes["redraws"][0] - 1
    print(f"{options.redraws} redraws: {grown:+.1%}, bar ±{BAR:.0%}{'' if abs(grown) <= BAR else ' MISSED'}")
    return int(abs(grown) > BAR)


if __name__ == "__main__":
    sys.exit(main())
