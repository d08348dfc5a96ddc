"""Pairs of languages, many mechanisms, cards and links by hand: the controls of the page in a real Chromium."""

from urllib.parse import parse_qs, urlparse

import pytest

from attnviz import gold
from attnviz.data.tasks import TASKS

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers

FOUR = "/?show=Bahdanau&show=Luong+dot&show=Fixed+context&show=Transformer"


def query(dashboard) -> dict:
    return parse_qs(urlparse(dashboard.page.url).query)


def test_the_pair_is_a_control_and_part_of_the_link(page):
    page.open("/?show=Bahdanau", charts=3)
    assert page.page.locator(".said span").first.get_attribute("lang") == "fr" and "pair" not in query(page)
    page.choose("pair", "English → German")
    page.page.wait_for_selector(".said span[lang=de]")
    page.drawn(3)
    assert page.sentence.input_value() == TASKS["en-de"].examples[0]
    assert page.page.get_by_text("German text").count() == 1
    page.type("A dog has caught a ball.")
    page.page.wait_for_function("location.search.includes('caught')")
    page.drawn(3)
    before = page.heatmaps()
    assert query(page)["pair"] == ["English → German"]
    page.page.reload()
    page.drawn(3)
    assert page.heatmaps() == before and page.sentence.input_value() == "A dog has caught a ball."
    page.choose("pair", "English → French")
    page.page.wait_for_selector(".said span[lang=fr]")
    page.drawn(3)
    assert page.sentence.input_value() == "A dog has caught a ball." and "pair" not in query(page)


def test_japanese_reads_properly(page):
    page.open("/?pair=English+%E2%86%92+Japanese&text=I+don%27t+know+where+he+lives.")
    fonts = page.page.evaluate("""() => [getComputedStyle(document.querySelector('.said span[lang=ja]')).fontFamily,
      ...[...document.querySelectorAll('.plot')].map((chart) => chart._fullLayout.font.family)]""")
    assert len(fonts) == 8 and all("Noto Sans JP" in font and "Hiragino Sans" in font for font in fonts)
    shown = page.page.locator("body").inner_text()
    assert "\ufffd" not in shown and "Japanese text" in shown
    assert set(page.page.locator(".step b").evaluate_all("all => all.map((one) => one.lang)")) == {"ja"}


def test_four_columns_stay_whole(page):
    """Every mechanism's name is above its own translation and heatmap, and nothing runs off the side."""
    page.open(FOUR, charts=7)
    for width, across in ((1920, 4), (1366, 2), (800, 1)):
        page.page.set_viewport_size({"width": width, "height": 900})
        page.drawn(7)
        whole(page, across)


def whole(page, across: int) -> None:
    boxes = page.page.evaluate("""() => ['.part', '.said', '.st-key-chart-step .cell'].map((what) =>
      [...document.querySelectorAll(what)].map((element) => element.getBoundingClientRect())
        .map((box) => [box.left, box.top]))""")
    heads, said, steps = boxes
    assert len({left for left, _ in heads}) == len({left for left, _ in steps}) == across
    for part, (head, text, step) in enumerate(zip(heads, said, steps)):
        assert head[0] == text[0] == step[0] and head[1] < text[1] < step[1]
        below = [other[1] for other in heads if other[0] == head[0] and other[1] > head[1]]
        assert all(text[1] < top for top in below), f"column {part}"
    assert page.page.locator(".st-key-chart-step .whose").first.is_visible() == (across < 4)
    main = page.page.locator("[data-testid=stMain]")
    assert main.evaluate("one => one.scrollWidth <= one.clientWidth")


def test_no_attention_no_heatmap(page):
    page.open("/?show=Fixed+context&show=Bahdanau&target=One+text+for+all%3A+Bahdanau%27s", charts=3)
    alone, other = page.page.locator(".st-key-chart-heatmaps .cell").all()
    assert "compressed into one vector of 32 numbers" in alone.inner_text() and "log-probability" in alone.inner_text()
    assert not alone.locator(".plot").is_visible() and other.locator(".plot").is_visible()
    assert page.page.locator(".st-key-difference").count() == 0
    words = page.page.locator(".st-key-chart-step .step").first
    first = words.inner_text()
    assert "with probability" in first
    page.slider.press("ArrowRight")
    page.page.wait_for_function("text => document.querySelector('.step').innerText !== text", arg=first)
    assert not page.page.locator(".st-key-chart-step .plot").first.is_visible()
    page.press("show", "Bahdanau")
    page.page.get_by_text("Fixed context has no attention").wait_for()
    page.drawn(0)


def test_the_card_opens_by_a_click_and_asks_the_server_nothing(view):
    dashboard = view()
    sent = []
    dashboard.page.on("websocket", lambda socket: sent.append("new"))
    dashboard.page.evaluate("""() => { window.__sent = 0; const send = WebSocket.prototype.send;
      WebSocket.prototype.send = function (...rest) { __sent += 1; return send.apply(this, rest); }; }""")
    first, second = (dashboard.page.locator("details.card > div").nth(place) for place in (0, 1))
    assert not first.is_visible()
    dashboard.page.locator(".card summary").first.click()
    assert "Parameters" in first.inner_text() and "BLEU" in first.inner_text() and "nrefs:1" in first.inner_text()
    dashboard.page.locator(".card summary").nth(1).click()
    assert second.is_visible() and not first.is_visible()
    dashboard.page.keyboard.press("Escape")
    assert not second.is_visible()
    dashboard.page.locator(".card summary").first.press("Enter")
    assert first.is_visible()
    dashboard.page.locator(".said").last.click()
    assert not first.is_visible()
    assert sent == [] and dashboard.page.evaluate("__sent") == 0


def test_links_by_hand_over_the_maps(view):
    pair = gold.shipped("en-fr")[0]
    dashboard = view()
    dashboard.choose("gold", pair.source)
    dashboard.page.locator(".linked").first.wait_for()
    dashboard.drawn(8)
    assert dashboard.sentence.input_value() == pair.source and dashboard.translations == [pair.target] * 3
    assert "Alignment error rate on this sentence: 0." in dashboard.page.locator(".linked").first.inner_text()
    assert outlines(dashboard) == [True] * 3
    assert query(dashboard)["gold"] == [pair.source]
    before = dashboard.heatmaps()
    dashboard.page.locator(".st-key-links label").first.click()
    dashboard.page.wait_for_function("!document.querySelector('.linked')")
    dashboard.drawn(8)
    assert outlines(dashboard) == [False] * 3 and dashboard.heatmaps() == before
    dashboard.type("A dog runs.")
    dashboard.page.wait_for_function("document.querySelector('.said').innerText.startsWith('Un chien')")
    dashboard.drawn()
    assert not {"gold", "force", "target"} & query(dashboard).keys()


def outlines(dashboard) -> list[bool]:
    """Does a heatmap have links drawn on it?"""
    return dashboard.page.evaluate("""() => [...document.querySelectorAll('.st-key-chart-heatmaps .plot')]
      .map((chart) => chart.querySelectorAll('.shapelayer path').length > 0)""")
