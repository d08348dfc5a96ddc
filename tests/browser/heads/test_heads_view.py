"""The page of heads in a real browser: what is clicked, what is drawn again, what the address keeps."""

import numpy as np
import pytest

import attnviz

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers

TEXT = "Two boys play with a yellow ball."
OPEN = "/heads?text=Two+boys+play+with+a+yellow+ball."
CHARTS = 9  # overview, close-up (2), compared (2) and their lines, pattern, rollout, distance
CLOSE_UP = "() => [...document.querySelector('.st-key-chart-closeup .plot')._fullData[0].z].map((row) => [...row])"


@pytest.fixture(scope="module")
def trace():
    return attnviz.load("en-fr/transformer").trace(TEXT)


def click_head(dashboard, layer: int, head: int) -> None:
    """In the overview: the middle of a map, counted from 1, where 3 layers have 4 heads."""
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first
    box = area.bounding_box()
    area.click(position={"x": box["width"] * (head - 0.5) / 4, "y": box["height"] * (layer - 0.5) / 3})


def test_a_click_on_the_overview_opens_the_head(view, trace):
    dashboard = view(OPEN, CHARTS)
    dashboard.page.evaluate("() => { window.kept = document.querySelector('.st-key-chart-overview .plot').figure; }")
    click_head(dashboard, 1, 4)
    dashboard.page.wait_for_function("location.search.includes('layer=1') && location.search.includes('head=4')")
    dashboard.drawn(CHARTS)
    assert np.allclose(dashboard.page.evaluate(CLOSE_UP), trace.map("encoder", 0).weights[3], atol=1e-4)
    box = dashboard.page.locator(".st-key-chart-overview .row-outline").bounding_box()
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first.bounding_box()
    assert box["x"] > area["x"] + 0.7 * area["width"] and box["y"] < area["y"] + 0.1 * area["height"]
    assert dashboard.page.evaluate(
        "() => document.querySelector('.st-key-chart-overview .plot').figure === window.kept"
    )
    dashboard.page.reload()
    dashboard.drawn(CHARTS)
    assert np.allclose(dashboard.page.evaluate(CLOSE_UP), trace.map("encoder", 0).weights[3], atol=1e-4)


def test_a_click_on_a_row_brings_out_its_lines(view):
    dashboard = view(OPEN, CHARTS, as_left=True)
    area = dashboard.page.locator(".st-key-chart-closeup .nsewdrag").first
    area.scroll_into_view_if_needed()
    box = area.bounding_box()
    area.click(position={"x": box["width"] / 2, "y": box["height"] * 1.5 / 9})
    dashboard.page.wait_for_function("location.search.includes('row=')")
    dashboard.drawn(CHARTS)
    assert "Row 2, ‘boys’: looks at" in dashboard.page.locator(".st-key-chart-closeup").inner_text()
    assert dashboard.page.locator(".st-key-chart-closeup .row-outline").first.is_visible()


def test_an_empty_sentence_leaves_the_picture(view):
    dashboard = view(OPEN, CHARTS, as_left=True)
    dashboard.type("")
    dashboard.page.locator(".st-key-notice").get_by_text("There is no sentence yet").wait_for()
    dashboard.drawn(CHARTS)
    assert TEXT in dashboard.notice
    dashboard.type(TEXT)
    dashboard.page.wait_for_function("!document.querySelector('.st-key-notice [role=alert]')")
    dashboard.drawn(CHARTS)
