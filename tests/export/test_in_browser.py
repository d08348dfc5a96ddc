"""Exported figures in a real browser without a network: they draw, and read as they were typed."""

import io
import itertools
import xml.etree.ElementTree as ElementTree
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from nasty import NASTY, nasty_figure, nasty_grid

import attnviz
from attnviz import figures, select
from attnviz.export import bundle, html_page
from attnviz.trace import Token

SVG = "{http://www.w3.org/2000/svg}"

# --- a real chrome, offline


@pytest.fixture(scope="session")
def offline(chrome, tmp_path_factory):
    """A browser without a network: a page that stays open keeps the scripts compiled for those that follow."""
    context, file = chrome.new_context(offline=True), tmp_path_factory.mktemp("open") / "figure.html"
    file.write_bytes(bundle.figure_html(nasty_figure("heatmap"), "x"))
    context.new_page().goto(file.as_uri())
    return context


def opened(offline, path, width=1280):
    """A page of the file, drawn in a window of this width; no network, no console message, no failed request."""
    page, troubles = offline.new_page(), []
    page.set_viewport_size({"width": width, "height": 720})
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    page.on("dialog", lambda dialog: troubles.append(dialog.message) or dialog.dismiss())
    page.goto(path.as_uri())
    page.wait_for_selector(".main-svg")
    page.wait_for_function("[...document.querySelectorAll('figure > div')].every((figure) => figure.data)")
    assert troubles == []
    return page


@pytest.mark.parametrize("name", ["heatmap", "bars", "difference", "steps", "table"])
def test_exported_html_draws_offline_in_a_browser(offline, tmp_path, name):
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(nasty_figure(name), NASTY[0]))
    page = opened(offline, file)
    assert page.locator("svg b, figcaption b").count() == 0 and page.locator(".main-svg").count() >= 1
    page.close()


def test_tokens_read_in_the_browser_as_they_were_typed(offline, tmp_path):
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(nasty_figure("heatmap"), "x"))
    page = opened(offline, file)
    shown = page.locator(".ytick text").all_text_contents()
    assert {'"', "'", "\\", "<!--", "$x$", "&amp;", "\u2068שלום\u2069"} <= set(shown) and "</script><b…" in " ".join(
        shown
    )
    page.close()


LONG = ["a" * 500, "漢" * 500, "ا" * 500, "-" * 500, "a b " * 125, "." * 500]


@pytest.mark.parametrize("width", [360, 1366])
@pytest.mark.parametrize("maker", ["page", "heatmap", "bars"])
def test_long_tokens_make_a_file_no_wider_than_the_window(offline, tmp_path, maker, width):
    """A file of tokens of 500 letters was 5,321 px wide, and its scripts failed at "axis scaling"."""
    weights = np.full((1, len(LONG), len(LONG)), 1 / len(LONG))
    trace = attnviz.from_arrays([weights], LONG, [token[::-1] for token in LONG], name="m" * 500)
    grid = select.select(trace)
    makers = {
        "page": lambda: html_page.page(trace),
        "heatmap": lambda: bundle.figure_html(figures.heatmap(grid), "n" * 500),
        "bars": lambda: bundle.figure_html(figures.step_bars(grid, 0), "n" * 500),
    }
    (file := tmp_path / "long.html").write_bytes(makers[maker]())
    page = opened(offline, file, width)
    root = "document.documentElement"
    assert page.evaluate(f"{root}.scrollWidth - {root}.clientWidth") <= 0
    page.close()


@pytest.mark.parametrize("count", [9, 17, 18, 40])
def test_labels_of_keys_do_not_meet_in_a_narrow_column(offline, tmp_path, count):
    """The boxes of the drawn texts, turned with them, side by side across the direction in which they run."""
    keys = [Token(word, 0, 1) for word in ("grass", "jumping", "É", "anticonstitutionnel") * count][:count]
    grid = replace(
        nasty_grid(),
        queries=(keys[1],),
        keys=tuple(keys),
        weights=np.full((1, count), 1 / count),
        removed=np.zeros(1),
        visible=np.ones((1, count), bool),
    )
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(figures.heatmap(grid), "x"))
    page = opened(offline, file)
    spans = page.evaluate("""async () => {
        await Plotly.relayout(document.querySelector(".js-plotly-plot"), {width: 310});
        return [...document.querySelectorAll(".xtick text")].map((text) => {
            const {x, y, width, height} = text.getBBox(), turn = text.getScreenCTM();
            const across = [[x, y], [x + width, y], [x, y + height], [x + width, y + height]]
                .map(([x, y]) => new DOMPoint(x, y).matrixTransform(turn)).map((p) => p.y * turn.a - p.x * turn.b);
            return [Math.min(...across), Math.max(...across)];
        });
    }""")
    spans.sort()
    assert len(spans) >= min(count, 9) and all(span[1] <= other[0] for span, other in itertools.pairwise(spans))
    page.close()


def test_a_click_tells_the_cell_under_the_pointer_gaps_included(offline, tmp_path):
    masked = replace(nasty_grid(), visible=np.tri(len(NASTY), dtype=bool))
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(figures.heatmap(masked), "x"))
    page = opened(offline, file)
    page.evaluate("""() => {
        const chart = document.querySelector(".js-plotly-plot");
        chart.on("plotly_click", event => { window.picked = event.points.map(point => [point.x, point.y]); });
    }""")
    box, size = page.locator(".nsewdrag").bounding_box(), len(NASTY)
    for key, query in ((0, 0), (3, 9), (9, 3), (size - 1, size - 1)):
        corner = {
            "x": box["x"] + box["width"] * (key + 0.1) / size,
            "y": box["y"] + box["height"] * (query + 0.9) / size,
        }
        page.mouse.move(**corner)
        page.wait_for_timeout(100)
        page.mouse.click(**corner)
        page.wait_for_function(
            "expected => JSON.stringify(window.picked) === JSON.stringify([expected])", arg=[key, query]
        )
    page.close()


def test_figures_of_the_zip_open_from_the_unpacked_folder(offline, pack, tmp_path):
    zipfile.ZipFile(io.BytesIO(bundle.bundle(*pack))).extractall(tmp_path)
    for name in ("heatmap-a", "heatmap-a-2"):
        page = opened(offline, tmp_path / "figures" / f"{name}.html")
        assert page.locator(".ytick text").count() > 0
        page.close()


@pytest.mark.parametrize("fmt", ["svg", "png"])
def test_the_browser_saves_a_picture_that_says_what_it_shows(offline, tmp_path, fmt):
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(figures.heatmap(nasty_grid()), "Heat map"))
    page = opened(offline, file)
    buttons = page.locator(".modebar-btn")
    assert [button.get_attribute("data-title") for button in buttons.all()] == ["Save as PNG", "Save as SVG"]
    with page.expect_download() as download:
        buttons.nth(int(fmt == "svg")).click()
    assert download.value.suggested_filename == f"heat-map.{fmt}"
    saved = Path(download.value.path()).read_bytes()
    page.close()
    if fmt == "png":
        assert saved.startswith(b"\x89PNG")
        return
    root = ElementTree.fromstring(saved)
    texts = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "Heat map" in " ".join(texts) and "14 target tokens by 14 source tokens" in " ".join(texts)
    assert not list(root.iter(f"{SVG}image"))


def test_a_figure_that_python_writes_has_no_button_for_a_picture_without_words(offline, tmp_path):
    file = tmp_path / "figure.html"
    figures.heatmap(nasty_grid()).write_html(file)
    page = opened(offline, file)
    assert page.locator('[data-title="Download plot as png"]').count() == 0
    page.close()
