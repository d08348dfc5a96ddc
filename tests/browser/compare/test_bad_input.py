"""Whatever is typed, the page answers with a plain message or a correct picture; nothing is lost and nothing breaks."""

import pytest
from playwright.sync_api import expect

import attnviz

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers

PICTURES = {
    "emoji, right to left, another alphabet": "😀 👨‍👩‍👧 שלום dog مرحبا 日本語",
    "markup": "<b>x</b>",
    "a script, quotes, a formula, a special token by name": "</script><script>alert(1)//\"'`$y$\\n{{z}} <eos>",
    "one letter": "a",
}
MESSAGES = {
    "empty": ("", "There is no sentence yet"),
    "500 words": ("word " * 500, "the limit is 500"),
    "too many pieces": ("a " * 249, "250 pieces with <eos>, and the models read at most 200"),
}

GOOD = "A dog runs."


@pytest.fixture(scope="module")
def model():
    return attnviz.load("en-fr/transformer")


def healthy(dashboard) -> None:
    text = dashboard.page.locator("body").inner_text()
    assert "Traceback" not in text and "Something went wrong" not in text and "Error:" not in text


def test_a_picture_of_whatever_is_typed(view, model):
    """One after the other on one page, so that what each leaves behind is seen too."""
    dashboard = view("/?show=Transformer", charts=3)
    for what, text in PICTURES.items():
        dashboard.type(text)
        dashboard.page.wait_for_function("text => new URLSearchParams(location.search).get('text') === text", arg=text)
        dashboard.drawn(3)
        healthy(dashboard)
        expect(dashboard.sentence).to_have_value(text)
        assert dashboard.notice == "", what
        pieces = len(model.trace(text).source)
        for heatmap in dashboard.heatmaps():
            assert {len(row) for row in heatmap["weights"]} == {pieces}, what
            assert all(abs(sum(row) - 1) < 1e-3 for row in heatmap["weights"]), what
        if what == "markup":
            assert {"&lt;", "b"} <= set(dashboard.heatmaps()[0]["keys"]), dashboard.heatmaps()[0]["keys"]
            assert dashboard.page.get_by_text("x", exact=True).and_(dashboard.page.locator("b")).count() == 0


def test_a_message_and_the_last_good_picture(view):
    dashboard = view("/?show=Bahdanau", charts=3)
    before = dashboard.heatmaps()
    for text, message in MESSAGES.values():
        dashboard.type(text)
        dashboard.page.get_by_text(message).wait_for()
        dashboard.drawn(3)
        healthy(dashboard)
        expect(dashboard.sentence).to_have_value(text)
        assert dashboard.heatmaps() == before, message
    dashboard.type(GOOD)
    dashboard.page.wait_for_function("!document.querySelector('.st-key-notice [role=alert]')")
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.startsWith('Un chien')")
    dashboard.drawn(3)
    assert dashboard.notice == ""


def test_the_count_follows_the_typing(view):
    dashboard = view("/?show=Bahdanau", charts=3, as_left=True)
    dashboard.sentence.fill("A dog")
    dashboard.page.wait_for_function("document.querySelector('.count')?.innerText.startsWith('2 words · 5 of')")
    dashboard.sentence.fill("dog " * 200)
    expect(dashboard.page.locator(".count.over")).to_have_text(
        "200 words · 800 of at most 500 characters (and 200 pieces)"
    )


def test_a_link_to_characters_that_are_none(dashboard):
    dashboard.open("/?show=Bahdanau&text=%00%FF", charts=3)
    healthy(dashboard)
    expect(dashboard.sentence).to_have_value("\0\ufffd")
    assert dashboard.notice == ""
