"""The page Watch it learn in a real browser: attention appears, is gone back over, and the training ends with its
tab."""

import io
import os
import time
import zipfile
from pathlib import Path

import numpy as np
import processes
import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
WAIT = 60_000  # ms, on a busy machine
RACE = "/train?racers=Luong+dot&racers=Transformer&width=16&task=Sort+the+sequence"
MAPS = """() => [...document.querySelectorAll('.st-key-chart-learning-maps .plot')]
  .map((chart) => [...chart._fullData[0].z].map((row) => [...row].join()).join())"""
DRAWN = """batch => { const charts = [...document.querySelectorAll('.st-key-chart-learning-maps .plot')];
  return charts.length === 6 && charts.every((chart) => chart._fullData?.length && !chart.hidden
    && chart.meta.saved.title.text.includes(`after ${batch} batches`)); }"""
PLACES = """() => [...document.querySelectorAll('.st-key-chart-learning-maps .cell')]
  .map((cell) => cell.getBoundingClientRect()).map(({ left, top, width }) => [left, top, width].map(Math.round))"""
LIVE = """() => {
  const plot = document.querySelector('.st-key-chart-learning-maps .plot');
  const canvas = plot?.querySelector('canvas.moment');
  const moments = document.querySelector('.moments output');
  if (!canvas || !moments) return null;
  const { xaxis: x, yaxis: y } = plot._fullLayout, pen = canvas.getContext('2d'), rows = [...plot._fullData[0].z];
  const at = (axis, place, count) => axis._offset + ((place + 0.5) * axis._length) / count;
  const color = (i, j, columns) => [...pen.getImageData(at(x, j, columns), at(y, i, rows.length), 1, 1).data];
  const react = Plotly.react;
  window.__redrawn = 0;
  Plotly.react = (...asked) => { window.__redrawn += 1; return react(...asked); };
  const colors = rows.map((row, i) => [...row].map((_, j) => color(i, j, row.length)));
  const saves = getComputedStyle(plot.querySelector('.save') ?? plot).visibility; // of the chart below
  return { batch: moments.value, colors, saves }; }"""
STILL = """() => {
  const [{ z }] = document.querySelector('.st-key-chart-learning-maps .plot')._fullData;
  const { colors } = document.querySelector('.moments').run;
  return [...z].map((row) => [...row].map((weight) => colors[Math.round(254 * weight)])); }"""
MOVED = "words => ![undefined, words].includes(document.querySelector('.moments output')?.value)"
LEARNT = """() => [...document.querySelectorAll('caption')]
  .some((caption) => Number(caption.textContent.match(/After (\\d+) batches/)?.[1]) >= 20)"""
FITS = "() => { const m = document.querySelector('[data-testid=stMain]'); return m?.scrollWidth <= m?.clientWidth; }"


def trainings() -> list[int]:
    """The processes that train for the servers of the tests, which are forks of the first process of the tests."""
    first = os.getppid() if "PYTEST_XDIST_WORKER" in os.environ else os.getpid()
    return [pid for pid in processes.family(first) if "attnviz.training.apart" in processes.command(pid)]


def test_attention_appears_and_the_training_ends_with_its_tab(dashboard, axe, tmp_path):
    page, before = dashboard.page, set(trainings())
    page.goto(dashboard.address + RACE, timeout=WAIT)
    expect(page.get_by_text("correct alignment is on the letter that is written")).to_be_visible(timeout=WAIT)
    batch, live = paused(page)
    goes_back_to(page, live)
    page.get_by_role("button", name="One batch").click()
    newest = maps(page, batch + 1)
    assert len(set(newest)) == 6  # three sequences of two mechanisms
    places = page.evaluate(PLACES)
    assert len({left for left, *_ in places}) == 2 and len({top for _, top, _ in places}) == 3
    slider = page.locator(".moments input")
    slider.press("Home")
    untrained = maps(page, 0)
    assert not set(untrained) & set(newest)
    slider.press("End")
    assert maps(page, batch + 1) == newest
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    assert axe(page) == []
    page.emulate_media(color_scheme="dark")
    page.wait_for_function("window.__attnviz?.theme === 'dark'")
    page.wait_for_timeout(1000)
    assert axe(page, rules=["color-contrast"]) == []  # all that a theme changes
    assert "sort/transformer/card.json" in zipfile.ZipFile(io.BytesIO(saved_models(page, tmp_path))).namelist()
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function(f"new Set(({PLACES})().map(([left]) => left)).size === 1")
    page.wait_for_function(FITS)
    (training,) = set(trainings()) - before  # it rests, and is there as long as the page is
    opened_on_the_first_page(page)
    page.get_by_role("link", name="Watch it learn").filter(visible=True).click()
    expect(page.get_by_text("Paused.")).to_be_visible(timeout=WAIT)
    page.goto("about:blank")
    end = time.monotonic() + 60
    while Path(f"/proc/{training}").exists():
        assert time.monotonic() < end
        time.sleep(0.2)


def paused(page) -> tuple[int, dict]:
    """Start, and pause when something was learnt: the first batches change less than a map shows -> batches read, and
    a moment as it was seen in between."""
    page.get_by_role("button", name="Start", exact=True).click()
    live = page.wait_for_function(LIVE, timeout=WAIT).json_value()
    assert live["saves"] == "hidden"
    page.wait_for_function(MOVED, arg=live["batch"], timeout=WAIT)
    page.wait_for_function(LEARNT, timeout=WAIT)
    assert page.evaluate("window.__redrawn") == 0  # the charts of the page; the moments are drawn over them
    page.get_by_role("button", name="Pause", exact=True).click(timeout=WAIT)
    expect(page.get_by_text("Paused.")).to_be_visible(timeout=WAIT)
    return at_rest(page), live


def goes_back_to(page, live: dict) -> None:
    """The slider goes back to what was seen; then it plays to the end."""
    slider, output = page.locator(".moments input"), page.locator(".moments output")
    for _ in range(int(slider.get_attribute("max"))):
        if output.inner_text() != live["batch"]:
            slider.press("ArrowLeft")
    maps(page, int(live["batch"].split()[1]))
    assert np.abs(np.array(page.evaluate(STILL)) - live["colors"]).max() <= 3
    expect(page.get_by_role("button", name="Enlarge").first).to_be_visible()
    page.get_by_role("button", name="Play it again").click()
    expect(page.get_by_role("button", name="Stop playing")).to_be_visible()
    expect(page.get_by_role("button", name="Play it again")).to_be_visible(timeout=WAIT)


def saved_models(page, folder: Path) -> bytes:
    with page.expect_download(timeout=WAIT) as download:
        page.get_by_role("button", name="Keep the models as a zip").click()
    download.value.save_as(folder / "models.zip")
    return (folder / "models.zip").read_bytes()


def opened_on_the_first_page(page) -> None:
    """What was trained stands on the first page, with the text of the task. Others have no such pair:
    tests/dashboard/train."""
    page.get_by_role("button", name="Open on the first page").click()
    page.wait_for_url("**/?pair=Sort+the+sequence+*+trained+in+this+visit**", timeout=WAIT)
    expect(page.locator(".st-key-text input")).to_have_value("a b c d e f", timeout=WAIT)
    expect(page.locator(".st-key-chart-heatmaps .plot .main-svg").first).to_be_visible(timeout=WAIT)


def maps(page, batch: int) -> list[str]:
    """The weights of each map after so many batches, as Plotly has them."""
    expect(page.locator("caption", has_text=f"After {batch} batches, ")).to_be_visible(timeout=WAIT)
    page.wait_for_function(DRAWN, arg=batch, timeout=WAIT)
    page.wait_for_timeout(300)
    return page.evaluate(MAPS)


def at_rest(page) -> int:
    """The batch that the page shows, when it has shown the same for a second."""
    words, count = "", 0
    while count < 3:
        now = page.locator("caption", has_text="s of computing").inner_text(timeout=WAIT)
        words, count = now, count + 1 if now == words else 0
        page.wait_for_timeout(350)
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    return int(words.split()[1])
