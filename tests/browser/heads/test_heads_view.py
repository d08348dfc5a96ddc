"""The page of heads in a real browser: what is clicked, what is drawn again, what the address keeps."""

from urllib.parse import parse_qs, urlparse

import numpy as np
import pytest

import attnviz

pytestmark = pytest.mark.xdist_group("browser-heads-view")  # one process opens its pages and servers

TEXT = "Two boys play with a yellow ball."
OPEN = "/heads?text=Two+boys+play+with+a+yellow+ball."
CHARTS = 8  # overview, close-up (2), compared (2) and their lines, rollout, distance; the pattern is one more
CLOSE_UP = "() => [...document.querySelector('.st-key-chart-closeup .plot')._fullData[0].z].map((row) => [...row])"


@pytest.fixture(scope="module")
def trace():
    return attnviz.load("en-fr/transformer").trace(TEXT)


def open_page(dashboard, query: str = ""):
    return dashboard.open(OPEN + query, charts=CHARTS + 1)


def click_head(dashboard, layer: int, head: int) -> None:
    """In the overview: the middle of a map, counted from 1, where 3 layers have 4 heads."""
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first
    box = area.bounding_box()
    area.click(position={"x": box["width"] * (head - 0.5) / 4, "y": box["height"] * (layer - 0.5) / 3})


def query(dashboard) -> dict:
    return parse_qs(urlparse(dashboard.page.url).query)


def test_a_click_on_the_overview_opens_the_head(dashboard, trace):
    open_page(dashboard)
    dashboard.page.evaluate("() => { window.kept = document.querySelector('.st-key-chart-overview .plot').figure; }")
    click_head(dashboard, 1, 4)
    dashboard.page.wait_for_function("location.search.includes('layer=1') && location.search.includes('head=4')")
    dashboard.drawn(CHARTS + 1)
    assert np.allclose(dashboard.page.evaluate(CLOSE_UP), trace.map("encoder", 0).weights[3], atol=1e-4)
    box = dashboard.page.locator(".st-key-chart-overview .row-outline").bounding_box()
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first.bounding_box()
    assert box["x"] > area["x"] + 0.7 * area["width"] and box["y"] < area["y"] + 0.1 * area["height"]
    assert dashboard.page.evaluate(
        "() => document.querySelector('.st-key-chart-overview .plot').figure === window.kept"
    )
    dashboard.page.reload()
    dashboard.drawn(CHARTS + 1)
    assert np.allclose(dashboard.page.evaluate(CLOSE_UP), trace.map("encoder", 0).weights[3], atol=1e-4)


def test_a_click_on_a_row_brings_out_its_lines(dashboard):
    open_page(dashboard)
    area = dashboard.page.locator(".st-key-chart-closeup .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    area.click(position={"x": box["width"] / 2, "y": box["height"] * 1.5 / 9})
    dashboard.page.wait_for_function("location.search.includes('row=')")
    dashboard.drawn(CHARTS + 1)
    assert "Row 2, ‘boys’: looks at" in dashboard.page.locator(".st-key-chart-closeup").inner_text()
    assert dashboard.page.locator(".st-key-chart-closeup .row-outline").first.is_visible()


def test_the_two_pages_lead_to_each_other(dashboard):
    dashboard.open()
    dashboard.page.get_by_role("link", name="Heads and layers").click()
    dashboard.drawn(CHARTS + 1)
    assert dashboard.page.url.split("?")[0].endswith("/heads")
    dashboard.page.get_by_role("link", name="One sentence, several models").click()
    dashboard.drawn()
    assert dashboard.step == 1 and dashboard.page.locator(".st-key-chart-heatmaps .row-outline").first.is_visible()


def test_the_card_of_the_classifier_is_one_click_away(dashboard):
    dashboard.open("/heads?model=Sentiment+of+a+sentence+%C2%B7+Self-attention", charts=CHARTS + 3)
    shown = dashboard.page.locator("details.card > div")
    assert not shown.is_visible()
    dashboard.page.locator(".model summary").click()
    told = shown.inner_text()
    assert "accuracy %" in told and "Parameters" in told and "distilled from 10 trained models" in told
    dashboard.page.keyboard.press("Escape")
    assert not shown.is_visible()


def test_each_head_is_measured(dashboard):
    open_page(dashboard)
    dashboard.page.get_by_role("button", name="Measure each head").click()
    dashboard.page.get_by_text("Heads that matter most", exact=True).wait_for()
    dashboard.page.get_by_role("button", name="Measure each head", disabled=True).wait_for()
    dashboard.drawn(CHARTS + 2)
    assert dashboard.page.get_by_text("Heads that matter most", exact=True).is_visible()


# Pressed in the browser itself once something is measured: on a busy machine all may be before a press from here
# arrives. One button, whose words change, not two.
STOP = """() => {
    const buttons = [...document.querySelectorAll('[data-testid="stMainBlockContainer"] button')]
    const named = words => buttons.filter(button => button.innerText.trim() === words)
    const [stop] = named('Stop')
    if (!stop || named('Measure each head').length) return false
    if (!document.body.innerText.includes('heads measured so far')) return false
    stop.click()
    return true
}"""


def test_measuring_can_be_stopped_and_goes_on(dashboard):
    many = "un+chien+et+" * 40  # the model's own text would end after a few, and all heads be measured at once
    dashboard.open(f"/heads?text={'a+dog+and+' * 20}&output={many}", charts=CHARTS + 1)
    dashboard.page.get_by_role("button", name="Measure each head").click()
    dashboard.page.wait_for_function(STOP, timeout=60_000)
    dashboard.page.get_by_role("button", name="Continue").wait_for()
    dashboard.drawn(CHARTS + 2)
    assert "heads measured so far" in dashboard.page.get_by_text("Heads that matter most").inner_text()
    dashboard.page.get_by_role("button", name="Continue").click()
    dashboard.page.wait_for_function("!document.body.innerText.includes('heads measured so far')", timeout=60_000)


def test_an_empty_sentence_leaves_the_picture(dashboard):
    open_page(dashboard)
    dashboard.type("")
    dashboard.page.locator(".st-key-notice").get_by_text("There is no sentence yet").wait_for()
    dashboard.drawn(CHARTS + 1)
    assert TEXT in dashboard.notice
