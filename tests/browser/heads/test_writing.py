"""A model that writes, in a browser: it plays and pauses, and a candidate is taken. tests/dashboard/heads opens the
link to the text that comes of it."""

from urllib.parse import quote

import pytest
from heads_panels import CHARTS
from playwright.sync_api import expect

from attnviz import patterns

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
MODEL = "Shakespeare by letters · written on · Self-attention"
ROW = "new URLSearchParams(location.search).get('row')"
RESTS = "() => document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
OPEN = f"/heads?model={quote(MODEL)}&written=12"


def test_it_plays_and_pauses_and_goes_another_way(dashboard):
    page = dashboard.page
    dashboard.open(OPEN, CHARTS)  # no syntax, and the next letters
    page.get_by_role("button", name="Skip to the sentence").press("Enter")
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"
    page.keyboard.press("End")
    page.keyboard.type("x")
    page.wait_for_function(
        "() => document.querySelector('.count')?.innerText.endsWith('11 of at most 2,500 characters')"
    )
    page.keyboard.press("Backspace")
    button = page.locator(".st-key-play_writing button")
    button.click()
    page.wait_for_function(
        "() => Number(document.querySelector('.said')?.innerText.match(/(\\d+) letters written/)?.[1]) > 12"
    )
    button.click()
    page.get_by_role("button", name="Play", exact=True).wait_for()
    page.wait_for_function("() => Number(new URLSearchParams(location.search).get('written')) > 12")
    page.locator("[class*=st-key-candidate] button").nth(2).click()
    page.get_by_text("Without it").wait_for()
    page.wait_for_function("() => location.search.includes('way=')")
    dashboard.drawn(CHARTS + 2)  # the other way
    page.wait_for_function(RESTS)
    row = page.evaluate(ROW)
    page.locator(".st-key-examples button").nth(1).click()
    page.wait_for_function(f"row => ![null, row].includes({ROW}) && ({RESTS})()", arg=row)
    page.go_back()
    page.wait_for_function(f"row => {ROW} === row && ({RESTS})()", arg=row)
    # One slider, with that row: that of the text left goes a moment after the script has ended.
    page.wait_for_function(
        "row => [...document.querySelectorAll('.st-key-row input[type=range]')]"
        ".map(({ value }) => value).join() === row",
        arg=row,
    )
    page.get_by_role(
        "button", name="Read random words twice", exact=True
    ).click()  # it stands in a panel that is drawn alone
    expect(page.locator(".st-key-text textarea")).to_have_value(patterns.repeated())
