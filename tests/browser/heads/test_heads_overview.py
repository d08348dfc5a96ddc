"""The overview and the close-up of a head in a real browser: controls, keys, the pointer."""

import re

import numpy as np
import pytest
from heads_panels import CHARTS, OPEN, TEXT, charts_once, layers, near, pick, pick_head, point, switch
from playwright.sync_api import expect

import attnviz
from attnviz import heads, select

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
COUNT_SENT = """() => { window.__sent = 0; const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...rest) { __sent += 1; return send.apply(this, rest); }; }"""


@pytest.fixture(scope="module")
def trace():
    return attnviz.load("en-fr/transformer").trace(TEXT)


def test_the_saved_overview_is_rectangles(view, tmp_path):
    dashboard = view(OPEN, CHARTS)
    with dashboard.page.expect_download(timeout=60_000) as download:
        dashboard.page.get_by_role("button", name="Save overview encoder as SVG").click()
    download.value.save_as(tmp_path / "overview.svg")
    svg = (tmp_path / "overview.svg").read_text(encoding="utf-8")
    assert "<image" not in svg and svg.count("v") > 300 and TEXT in svg


def test_the_pointer_brings_out_a_row_and_a_column_and_asks_nobody(view, trace):
    dashboard = view(OPEN, CHARTS)
    weights = trace.map("encoder").weights[0]
    dashboard.page.evaluate(COUNT_SENT)
    for side, place in ((0, 1), (1, 6), (0, 8)):
        expected = (weights[:, place] if side else weights[place]) >= 0.05
        assert len(point(dashboard, "closeup", side, place, len(weights))) == expected.sum()
        tip, best = (
            dashboard.page.locator(".tip").inner_text(),
            weights[:, place].max() if side else weights[place].max(),
        )
        assert f"{best:.2f}" in tip and ("looks at it most" in tip) == bool(side)
    several = point(dashboard, "compared-lines", 1, 2, len(weights))
    assert len(set(several)) == 2  # one colour per head
    dashboard.page.mouse.move(2, 2)
    assert dashboard.page.locator(".lit-lines").count() == 0 and dashboard.page.evaluate("__sent") == 0


LINES = """() => [...document.querySelectorAll('.st-key-chart-closeup .threads path')].map((path) => {
  const { width, height, x, y } = path.getBoundingClientRect();
  const chart = path.closest('.plot'), box = chart.getBoundingClientRect();
  const { xaxis, yaxis } = chart._fullLayout;
  return { count: path.getAttribute('d').split('M').length - 1, left: x - box.left - xaxis._offset - xaxis.l2p(0),
    right: x + width - box.left - xaxis._offset - xaxis.l2p(1), over: y - box.top - yaxis._offset,
    under: y + height - box.top - yaxis._offset - yaxis._length };
})"""


def test_another_head_is_clicked_its_lines_lie_between_the_same_tokens_and_back_goes_to_it(view, trace):
    dashboard = view(OPEN, CHARTS)
    dashboard.page.evaluate("""() => {
      const react = Plotly.react;
      window.__drawn = [];
      Plotly.react = (chart, ...rest) => { __drawn.push(chart.meta.label); return react(chart, ...rest); };
    }""")
    pick_head(dashboard, 1)
    # Plotly is asked for neither the overview nor the lines.
    assert dashboard.page.evaluate("__drawn") == ["heatmap encoder layer 1 head 2"]
    box = dashboard.page.locator(".st-key-chart-overview .row-outline").bounding_box()
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first.bounding_box()
    assert 0.2 < (box["x"] - area["x"]) / area["width"] < 0.3 and box["y"] < area["y"] + 0.1 * area["height"]
    dashboard.page.wait_for_function(
        "document.querySelector('.st-key-chart-closeup')?.getBoundingClientRect().top < innerHeight / 2"
    )
    weights = select.select(trace, "encoder", 0, 1).weights
    for width in (1100, 1366):
        dashboard.page.set_viewport_size({"width": width, "height": 900})
        dashboard.drawn(CHARTS)
        lines = dashboard.page.evaluate(LINES)
        assert sum(path["count"] for path in lines) == (weights >= 0.05).sum()
        assert all(
            abs(path["left"]) < 4 and abs(path["right"]) < 4 and path["over"] > -4 and path["under"] < 4
            for path in lines
        )
    pick_head(dashboard, 2)
    dashboard.page.go_back()
    dashboard.page.wait_for_function("location.search.includes('head=2')")
    dashboard.drawn(CHARTS)
    closeup = charts_once(dashboard, "closeup", lambda shown: near(shown[0]["z"], weights))
    assert near(closeup[0]["z"], weights) and "layer 1, head 2" in closeup[1]["told"]
    dashboard.page.go_back()  # the page of the tests that follow
    dashboard.page.wait_for_function("!location.search.includes('head=')")
    dashboard.drawn(CHARTS)


def test_a_head_is_opened_by_keys_while_the_pointer_rests_on_a_token(view, trace):
    """What the pointer brings out is then of that head; a click keeps the row, and special tokens can be hidden."""
    dashboard = view(OPEN, CHARTS)
    page = dashboard.page
    point(dashboard, "closeup", 0, 2, len(trace.source))
    expect(page.locator(".tip")).to_have_text(re.compile(f"^Layer {layers(trace)}, head 1"))
    cursor = "getComputedStyle(document.querySelectorAll('.st-key-chart-closeup .plot')[1]).cursor"
    assert page.evaluate(cursor) == "pointer"
    head = page.locator(".st-key-head")
    first = {"name": "1", "exact": True}
    head.get_by_role("radio", **first).or_(head.get_by_role("button", **first)).first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function(f"document.querySelector('.tip')?.innerText.startsWith('Layer {layers(trace)}, head 2')")
    expected = select.select(trace, "encoder", -1, 1).weights[2] >= 0.05
    lit = page.locator(".lit-lines path").evaluate_all(
        "all => all.map((path) => path.getAttribute('d').split('M').length - 1)"
    )
    assert sum(lit) == expected.sum()
    page.wait_for_function("location.search.includes('head=2')")
    dashboard.drawn(CHARTS)
    point(dashboard, "closeup", 0, 2, len(trace.source))
    page.mouse.down()
    page.mouse.up()
    page.wait_for_function("location.search.includes('row=3')")
    dashboard.drawn(CHARTS)
    expect(page.locator(".st-key-chart-closeup")).to_contain_text("Row 3, ‘play’: looks at")
    expect(page.locator(".st-key-chart-closeup .row-outline").first).to_be_visible()
    switch(dashboard, "special")
    page.wait_for_function("location.search.includes('special=false')")
    dashboard.drawn(CHARTS)
    grid = select.select(trace, "encoder", -1, 1, special=False)
    closeup = charts_once(dashboard, "closeup", lambda shown: near(shown[0]["z"], grid.weights))[0]
    assert near(closeup["z"], grid.weights) and not any("eos" in key for key in closeup["keys"])
    shown_text = page.locator(".st-key-chart-closeup").inner_text()
    assert f"pecial tokens are hidden: {100 * grid.removed.mean():.0f}% of the weight on average" in shown_text
    switch(dashboard, "special")
    page.wait_for_function("!location.search.includes('special=')")
    dashboard.drawn(CHARTS)


def test_the_overview_takes_an_order_and_colours(view, trace):
    dashboard = view(OPEN, CHARTS, as_left=True)
    pick(dashboard, "order", "Previous token")
    dashboard.drawn(CHARTS)
    pick(dashboard, "color", "Weight on special tokens")
    dashboard.drawn(CHARTS)
    table = heads.table(trace, "encoder")
    best = heads.most_like(table, "previous", len(table))
    names = [f"{layer + 1}·{head + 1}" for layer, head in zip(best.layer, best["head"])]
    [overview] = charts_once(
        dashboard,
        "overview",
        lambda shown: shown[0]["names"] == names and near(np.ravel(shown[0]["z"]), best.special_mass),
    )
    assert overview["names"] == names and near(np.ravel(overview["z"]), best.special_mass)
