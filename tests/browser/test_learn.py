"""The page Learn in a real browser: every chapter, its answer by keyboard, and where its link leads."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from dashboard.learn.chapters import CHAPTERS

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
WAIT = 60_000  # ms, on a busy machine


def test_all_chapters_and_their_links(dashboard, axe):
    page, links = dashboard.page, []
    page.goto(f"{dashboard.address}/learn")
    for number, chapter in enumerate(CHAPTERS, 1):
        heading = page.get_by_role("heading", name=f"{number}. {chapter.title}")
        expect(heading).to_be_visible(timeout=WAIT)
        expect(page.locator(".st-key-chart-chapter .plot:not([hidden]) .main-svg").first).to_be_visible(timeout=WAIT)
        page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
        expect(page.locator(".answer p")).to_be_hidden()
        page.locator(".answer summary").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".answer p")).to_be_visible()
        assert axe(page) == [], chapter.title
        links.append(page.locator(".exercise").get_by_role("link", name="Open the page").get_attribute("href"))
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        if number < len(CHAPTERS):
            page.locator(".st-key-turn1 button").click()
    assert len(set(links)) == len(CHAPTERS)
    by_page = {link.partition("?")[0]: link for link in links}
    assert len(by_page) == 3
    page.get_by_role("link", name="Open the page in this state ›").click(timeout=WAIT)  # of the last chapter
    page.wait_for_url("**/inside?**", timeout=WAIT)
    expect(page.locator(".st-key-chart-changed .main-svg").first).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("This page has no")).to_have_count(0)
    assert by_page["./inside"] == links[-1]  # tests/dashboard/learn opens all without a browser


def chapter(page, number: int):
    """The heading of a chapter, drawn."""
    heading = page.get_by_role("heading", name=f"{number}. {CHAPTERS[number - 1].title}")
    expect(heading).to_be_visible(timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    return heading


def test_the_chapter_stays_when_one_leaves_and_comes_back(dashboard):
    """By the navigation, and by the browser's back button from another page and from a chapter's own link."""
    page = dashboard.page
    page.goto(f"{dashboard.address}/learn?{urlencode({'chapter': f'2. {CHAPTERS[1].title}'})}")
    chapter(page, 2)
    page.locator(".st-key-turn1 button").click()
    chapter(page, 3)
    page.wait_for_function("location.search.includes('chapter=3')", timeout=WAIT)
    heads = page.get_by_role("link", name="Heads and layers")
    heads.click()
    leave(page, "**/heads**")
    page.get_by_role("link", name="Learn", exact=True).click()
    chapter(page, 3)
    page.wait_for_function("location.search.includes('chapter=3')", timeout=WAIT)
    heads.click()
    leave(page, "**/heads**")
    back(dashboard, "**/learn**")
    chapter(page, 3)
    page.get_by_role("link", name="Open the page in this state ›").click()
    leave(page, "**/inside?**")
    back(dashboard, "**/learn**")
    chapter(page, 3)


def leave(page, address: str) -> None:
    """Another page, drawn."""
    page.wait_for_url(address, timeout=WAIT)
    expect(page.locator("h3").first).to_be_visible(timeout=WAIT)
    expect(page.locator(".st-key-turn1")).to_have_count(0, timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)


def back(dashboard, address: str) -> None:
    """Press Back until the page before is there: what a page writes into its address while it opens may be a stop. A
    person waits for the answer before the next press: else that of the last page may come after it."""
    page = dashboard.page
    for _ in range(4):
        page.go_back()
        dashboard.rest()
        page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
        if "/learn" in page.url:
            break
    page.wait_for_url(address, timeout=WAIT)
