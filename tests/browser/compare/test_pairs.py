"""Pairs of languages, many mechanisms, cards and links by hand: the controls of the page in a real Chromium."""

import re
from urllib.parse import parse_qs, urlparse

import pytest
from playwright.sync_api import expect

from attnviz import gold
from attnviz.data.tasks import TASKS

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers

FOUR = "/?show=Bahdanau&show=Luong+dot&show=Fixed+context&show=Transformer"


def query(dashboard) -> dict:
    return parse_qs(urlparse(dashboard.page.url).query)


def test_the_pair_is_a_control_and_part_of_the_link_and_a_click_on_the_sign_says_why(dashboard):
    dashboard.open("/?show=Bahdanau", charts=3)
    assert dashboard.page.locator(".said span").first.get_attribute("lang") == "fr" and "pair" not in query(dashboard)
    dashboard.choose("pair", "English → German")
    dashboard.page.wait_for_selector(".said span[lang=de]")
    dashboard.drawn(3)
    expect(dashboard.sentence).to_have_value(TASKS["en-de"].examples[0])
    expect(dashboard.page.get_by_text("German text")).to_have_count(1)
    dashboard.type("A dog has caught a ball.")
    dashboard.page.wait_for_function("location.search.includes('caught')")
    dashboard.drawn(3)
    before = dashboard.heatmaps()
    assert query(dashboard)["pair"] == ["English → German"]
    dashboard.page.reload()
    dashboard.drawn(3)
    expect(dashboard.sentence).to_have_value("A dog has caught a ball.")
    assert dashboard.heatmaps() == before
    dashboard.choose("pair", "English → Japanese")
    dashboard.page.wait_for_selector(".said span[lang=ja]")
    dashboard.drawn(3)
    japanese_reads_properly(dashboard.page)
    dashboard.choose("pair", "English → French")
    dashboard.page.wait_for_selector(".said span[lang=fr]")
    dashboard.drawn(3)
    expect(dashboard.sentence).to_have_value("A dog has caught a ball.")
    assert "pair" not in query(dashboard)
    dashboard.type("Narita Brexit quux.")
    dashboard.page.wait_for_function("location.search.includes('Brexit')")
    dashboard.drawn(3)
    sign_says_why(dashboard.page)


def sign_says_why(page) -> None:
    """The sign beside a translation, once it is clicked."""
    sign = page.locator("details.sign")
    expect(sign.locator("summary")).to_have_text("outside what this model has learnt")
    expect(sign.locator("li").first).to_be_hidden()
    sign.locator("summary").click()
    expect(sign.locator("li").first).to_be_visible()
    assert any(text.startswith("“Brexit” is in no training sentence") for text in sign.locator("li").all_inner_texts())


def japanese_reads_properly(page) -> None:
    fonts = page.evaluate("""() => [getComputedStyle(document.querySelector('.said span[lang=ja]')).fontFamily,
      ...[...document.querySelectorAll('.plot')].map((chart) => chart._fullLayout.font.family)]""")
    assert len(fonts) == 4 and all("Noto Sans JP" in font and "Hiragino Sans" in font for font in fonts)
    shown = page.locator("body").inner_text()
    assert "\ufffd" not in shown and "Japanese text" in shown
    assert set(page.locator(".step b").evaluate_all("all => all.map((one) => one.lang)")) == {"ja"}


def test_four_columns_stay_whole(dashboard):
    """Every mechanism's name is above its own translation and heatmap, and nothing runs off the side."""
    dashboard.open(FOUR, charts=7)
    for width, across in ((1920, 4), (1366, 2), (800, 1)):
        dashboard.page.set_viewport_size({"width": width, "height": 900})
        dashboard.drawn(7)
        columns_do_not_overlap(dashboard, across)


def columns_do_not_overlap(dashboard, across: int) -> None:
    boxes = dashboard.page.evaluate("""() => ['.part', '.said', '.st-key-chart-step .cell'].map((what) =>
      [...document.querySelectorAll(what)].map((element) => element.getBoundingClientRect())
        .map((box) => [box.left, box.top]))""")
    heads, texts, steps = boxes
    assert len({left for left, _ in heads}) == len({left for left, _ in steps}) == across
    for part, (head, text, step) in enumerate(zip(heads, texts, steps)):
        assert head[0] == text[0] == step[0] and head[1] < text[1] < step[1]
        below = [other[1] for other in heads if other[0] == head[0] and other[1] > head[1]]
        assert all(text[1] < top for top in below), f"column {part}"
    assert dashboard.page.locator(".st-key-chart-step .whose").first.is_visible() == (across < 4)
    dashboard.page.wait_for_function(  # charts follow the width a moment later
        "() => (main => main.scrollWidth <= main.clientWidth)(document.querySelector('[data-testid=stMain]'))"
    )


def test_no_attention_no_heatmap(dashboard):
    dashboard.open("/?show=Fixed+context&show=Bahdanau&target=One+text+for+all%3A+Bahdanau%27s", charts=3)
    alone, other = dashboard.page.locator(".st-key-chart-heatmaps .cell").all()
    shown = alone.inner_text()
    assert re.search("compressed into one vector of [0-9]+ numbers", shown) and "log-probability" in shown
    assert not alone.locator(".plot").is_visible() and other.locator(".plot").is_visible()
    assert dashboard.page.locator(".st-key-difference").count() == 0
    words = dashboard.page.locator(".st-key-chart-step .step").first
    first = words.inner_text()
    assert "with probability" in first
    dashboard.slider.press("ArrowRight")
    dashboard.page.wait_for_function(
        "text => ![undefined, text].includes(document.querySelector('.step')?.innerText)", arg=first
    )
    assert not dashboard.page.locator(".st-key-chart-step .plot").first.is_visible()
    dashboard.press("show", "Bahdanau")
    dashboard.page.get_by_text("Fixed context has no attention").wait_for()
    dashboard.drawn(0)


def test_the_card_opens_by_a_click_and_asks_the_server_nothing(view):
    dashboard = view(as_left=True)
    sent = []
    dashboard.page.on("websocket", lambda socket: sent.append("new"))
    dashboard.page.evaluate("""() => { window.__sent = 0; const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (...rest) { __sent += 1; return send.apply(this, rest); }; }""")
    first, second = (dashboard.page.locator("details.card > div").nth(place) for place in (0, 1))
    expect(first).to_be_hidden()
    dashboard.page.locator(".card summary").first.click()
    expect(first).to_be_visible()
    assert "Parameters" in first.inner_text() and "BLEU" in first.inner_text() and "nrefs:1" in first.inner_text()
    dashboard.page.locator(".card summary").nth(1).click()
    expect(second).to_be_visible()
    expect(first).to_be_hidden()
    dashboard.page.keyboard.press("Escape")
    expect(second).to_be_hidden()
    dashboard.page.locator(".card summary").first.press("Enter")
    expect(first).to_be_visible()
    dashboard.page.locator(".said").last.click()
    expect(first).to_be_hidden()
    assert sent == [] and dashboard.page.evaluate("__sent") == 0


def test_links_by_hand_over_the_maps(view):
    pair = gold.shipped("en-fr")[0]
    dashboard = view(as_left=True)
    dashboard.choose("gold", pair.source)
    dashboard.page.locator(".linked").first.wait_for()
    dashboard.drawn(8)
    expect(dashboard.sentence).to_have_value(pair.source)
    assert dashboard.translations == [pair.target] * 3
    expect(dashboard.page.locator(".linked").first).to_contain_text("Alignment error rate on this sentence: 0.")
    assert outlines(dashboard) == [True] * 3
    assert query(dashboard)["gold"] == [pair.source]
    before = dashboard.heatmaps()
    dashboard.page.locator(".st-key-links label").first.click()
    dashboard.page.wait_for_function("!document.querySelector('.linked')")
    dashboard.drawn(8)
    assert outlines(dashboard) == [False] * 3 and dashboard.heatmaps() == before
    dashboard.type("A dog runs.")
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.startsWith('Un chien')")
    dashboard.drawn()
    assert not {"gold", "force", "target"} & query(dashboard).keys()


def outlines(dashboard) -> list[bool]:
    """Does a heatmap have links drawn on it?"""
    return dashboard.page.evaluate("""() => [...document.querySelectorAll('.st-key-chart-heatmaps .plot')]
      .map((chart) => chart.querySelectorAll('.shapelayer path').length > 0)""")
