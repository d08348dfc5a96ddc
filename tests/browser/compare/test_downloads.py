"""What is taken away opens elsewhere, without a network, and shows what the page showed."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree
import zipfile
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import vectors
from playwright.sync_api import BrowserContext, expect

from attnviz.trace import Trace

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers


def saved(dashboard, button, folder: Path) -> Path:
    with dashboard.page.expect_download(timeout=60_000) as download:
        button.click()
    path = folder / download.value.suggested_filename
    download.value.save_as(path)
    return path


def test_every_chart_saves_as(view, tmp_path):
    dashboard = view("/?show=Bahdanau", charts=3)  # after ten downloads of a page Chromium asks before the next
    for kind in ("PNG", "SVG"):
        buttons = dashboard.page.get_by_role("button", name=kind).filter(has_text=kind)
        assert buttons.count() == 3
        paths = [saved(dashboard, buttons.nth(number), tmp_path) for number in range(3)]
        assert len(set(paths)) == 3 and all(path.suffix == f".{kind.lower()}" for path in paths)
        for path in paths:
            assert path.stat().st_size > 3000
            if kind == "PNG":
                assert path.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
            else:
                assert "".join(ElementTree.fromstring(path.read_bytes()).itertext()).strip()


def test_the_saved_heatmap_holds_the_tokens(view, tmp_path):
    dashboard = view()
    button = dashboard.page.get_by_role("button", name="Save heatmap Bahdanau as SVG")
    path = saved(dashboard, button, tmp_path)
    svg = path.read_text(encoding="utf-8")
    vectors.check(path, np.array(dashboard.heatmaps()[0]["weights"]))
    texts = list(ElementTree.fromstring(svg).itertext())
    assert "noir" in texts and "black" in texts
    sentence = dashboard.page.locator(".st-key-text input").input_value()
    assert "Bahdanau · additive (en-fr/bahdanau): cross-attention" in texts and sentence in texts
    assert any(text.startswith("→ Le ") for text in texts)
    [title] = (node for node in ElementTree.fromstring(svg).iter() if node.get("class") == "gtitle")
    assert float(title.get("y")) >= 12  # the baseline of its first line: none of it is cut
    assert dashboard.page.evaluate("document.querySelector('.row-outline').style.border").split(" ")[-1] not in svg


def test_saved_bars_say_which_step_they_show(view, tmp_path):
    dashboard = view()
    dashboard.slider.press("ArrowRight")
    dashboard.page.get_by_role("button", name="Save step 2 Bahdanau as SVG").wait_for()
    texts = list(
        ElementTree.parse(
            saved(dashboard, dashboard.page.get_by_role("button", name="Save step 2 Bahdanau as SVG"), tmp_path)
        )
        .getroot()
        .itertext()
    )
    assert any(re.fullmatch("Step 2 of [0-9]+: ‘.+’", text) for text in texts)
    assert {"attention weight", "source (attended to)"} <= set(texts)
    dashboard.slider.press("Home")  # the page of the tests that follow
    dashboard.page.wait_for_function("!location.search.includes('step=')")


def test_pictures_for_papers_are_vectors_with_their_heading(view, tmp_path):
    dashboard = view()
    dashboard.page.get_by_role("button", name="Pictures for slides and papers").click()
    dashboard.page.locator(".st-key-print_format").get_by_text("SVG", exact=True).click()
    names = ["Heatmap Transformer.svg", "Step bars Bahdanau.svg", "Statistics by step.svg"]
    for name in names:
        dashboard.rest()  # the buttons of the run before are no longer there
        path = saved(dashboard, dashboard.page.get_by_role("button", name=name, exact=True), tmp_path)
        root = ElementTree.parse(path).getroot()
        assert root.get("width").startswith("481.") and not list(
            root.iter("{http://www.w3.org/2000/svg}image")
        )  # 17 cm
        assert dashboard.page.locator(".st-key-text input").input_value() in list(root.itertext())
    fits = "Statistics by step: All of it fits, in the type that was chosen."
    dashboard.page.get_by_role("status").filter(has_text=fits).wait_for()
    dashboard.page.get_by_label("Font size in points").fill("40")
    dashboard.page.get_by_label("Font size in points").press("Enter")
    dashboard.rest()
    saved(dashboard, dashboard.page.get_by_role("button", name=names[0], exact=True), tmp_path)
    noted = dashboard.page.get_by_role("status").filter(has_text="Heatmap Transformer: ")
    noted.filter(has_text="points instead of 40, so that all fits.").wait_for()
    dashboard.page.get_by_label("Font size in points").fill("")
    dashboard.page.get_by_label("Font size in points").press("Enter")
    dashboard.page.keyboard.press("Escape")
    dashboard.rest()  # a file that the next test asks for would go with the buttons of this run


@pytest.fixture(scope="module")
def offline(chrome):
    """A browser with no network at all."""
    context = chrome.new_context(offline=True)
    yield context
    context.close()


def test_a_figure_as_html_opens_offline(view, offline, tmp_path):
    dashboard = view()
    dashboard.page.get_by_role("button", name="One figure as HTML").click()
    path = saved(dashboard, dashboard.page.get_by_role("button", name="Heatmap Transformer", exact=True), tmp_path)
    assert opened(offline, path) == dashboard.heatmaps()[2]["weights"]
    dashboard.page.keyboard.press("Escape")


def opened(offline: BrowserContext, path: Path) -> list | None:
    """Open a file; it must draw and complain of nothing -> the weights, if it is a heatmap."""
    page, errors = offline.new_page(), []
    page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(path.as_uri())
    page.wait_for_selector(".js-plotly-plot .main-svg")
    assert errors == []
    weights = page.evaluate(
        "[...(document.querySelector('.js-plotly-plot')._fullData[0].z ?? [])].map((row) => [...row])"
    )
    page.close()
    return weights or None


def test_the_zip_holds_everything_and_its_manifest_reopens_the_view(dashboard, offline, tmp_path):
    two = "show=Bahdanau&show=Transformer"
    dashboard.open(f"/?{two}&text=%3C%2Fscript%3E+a+%22dog%22+%3D1&units=words&step=2&special=false", charts=5)
    before = dashboard.heatmaps()
    dashboard.slider.press("ArrowRight")  # moves the step, and runs nothing else again
    dashboard.page.wait_for_function("location.search.includes('step=3')")
    dashboard.drawn(5)
    path = saved(dashboard, dashboard.page.get_by_role("button", name="Everything as a zip"), tmp_path)
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        archive.extractall(tmp_path / "unzipped")
        names = archive.namelist()
        manifest = json.loads(archive.read("manifest.json"))
        statistics = pd.read_csv(io.BytesIO(archive.read("statistics.csv")), encoding="utf-8-sig")
        weights = pd.read_csv(io.BytesIO(archive.read("weights.csv")), encoding="utf-8-sig")
        traces = [Trace.from_json(archive.read(name).decode()) for name in names if name.startswith("traces/")]
    pictures = [name for name in names if name.startswith("figures/") and name.endswith(".html")]
    assert len(pictures) == 6  # two heatmaps, two bar charts, statistics by step, the comparison
    assert sum(name.endswith(".svg") for name in names) == sum(name.endswith(".png") for name in names) == 6
    assert sum(name.startswith("cards/") for name in names) == 2
    first = offline.new_page()
    first.goto((tmp_path / "unzipped" / "index.html").as_uri())
    assert first.locator("h1").inner_text() == "Figures and data of attnviz" and first.locator("img").count() == 6
    assert manifest["sentence"] in first.locator("body").inner_text()
    first.close()
    assert {trace.mechanism for trace in traces} == set(statistics["mechanism"]) == {"bahdanau", "transformer"}
    for (_, kind, layer, head, query), rows in weights.groupby(["model", "kind", "layer", "head", "query"]):
        assert rows["weight"].sum() == pytest.approx(1, abs=1e-3), (kind, layer, head, query)
    assert manifest["sentence"] == '</script> a "dog" =1' and set(manifest["models"]) == {
        trace.model for trace in traces
    }
    assert all(len(model["sha256"]) == 64 for model in manifest["models"].values())
    dashboard.page.goto("about:blank")
    dashboard.open("/" + manifest["query"], charts=5)
    expect(dashboard.slider).to_have_value("3")
    assert dashboard.heatmaps() == before


def test_the_link_to_the_view_is_copied(view):
    dashboard = view()
    dashboard.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    button = dashboard.page.locator(".copy-link")
    button.click()
    dashboard.page.get_by_text("Link copied").wait_for()
    assert dashboard.page.evaluate("navigator.clipboard.readText()") == dashboard.page.url
