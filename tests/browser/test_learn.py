"""The page Learn in a real browser: chapters, an answer by keyboard, where links lead, and a lesson with a guess."""

from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from dashboard.learn.chapters import CHAPTERS

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
WAIT = 60_000  # ms, on a busy machine


def test_chapters_their_answers_and_a_link(dashboard, axe):
    """tests/dashboard/learn opens all of them, and all links, without a browser; test_accessible.py looks at the
    first."""
    page = dashboard.page
    page.goto(f"{dashboard.address}/learn")
    for number in (4, 7, 10, len(CHAPTERS)):
        title = CHAPTERS[number - 1].title
        page.locator(".st-key-chapter").get_by_text(f"{number}. {title}", exact=True).click(timeout=WAIT)
        chapter(page, number)
        dashboard.rest()
        expect(page.locator(".st-key-chart-chapter .plot:not([hidden]) .main-svg").first).to_be_visible(timeout=WAIT)
        page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
        expect(page.locator(".exercise .answer p")).to_be_hidden()
        page.locator(".exercise .answer summary").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".exercise .answer p")).to_be_visible()
        assert axe(page) == [], title
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    page.get_by_role("link", name="Open the page in this state ›").click(timeout=WAIT)  # of the last chapter
    page.wait_for_url("**/?**trained=untrained**", timeout=WAIT)
    expect(page.locator(".st-key-chart-training .main-svg").first).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("This page has no")).to_have_count(0)


def test_a_lesson_leads_to_a_guess_by_keyboard(dashboard, axe, tmp_path):
    """An answer is typed and saved; a link opens a tab, in which a word is guessed and shown, with keys alone."""
    page = dashboard.page
    page.goto(f"{dashboard.address}/learn?lesson=first-look")
    answer = page.locator("textarea").first
    answer.fill("At dog.", timeout=WAIT)
    page.get_by_text("Show the answer").first.click()  # leaves the field
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    assert axe(page) == []
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Open the sentence with its maps hidden").click()
    guess = opened.value
    by_keys(guess)
    guess.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    findings = {"light": axe(guess)}
    guess.emulate_media(color_scheme="dark")
    guess.wait_for_function("window.__attnviz?.theme === 'dark'")
    guess.wait_for_timeout(700)
    findings["dark"] = axe(guess, rules=["color-contrast"])
    guess.set_viewport_size({"width": 390, "height": 844})
    guess.wait_for_function("document.querySelector('[data-testid=stMain]')?.scrollWidth <= innerWidth")
    assert not any(findings.values()), findings
    guess.close()
    expect(page.get_by_text("rows of guesses will be saved with your answers")).to_be_visible(timeout=WAIT)
    dashboard.rest()
    with page.expect_download(timeout=WAIT) as download:
        page.get_by_role("button", name="Save my answers").click()
    download.value.save_as(tmp_path / "mine.txt")
    words = (tmp_path / "mine.txt").read_text(encoding="utf-8")
    assert "At dog." in words and "guess: dog 1; model: Bahdanau" in words


def by_keys(guess) -> None:
    """A word is guessed and shown, with keys alone."""
    word = guess.get_by_role("button", name="dog", exact=True)
    word.wait_for(timeout=WAIT)
    expect(guess.locator(".plot")).to_have_count(0)
    word.focus()
    guess.keyboard.press("Enter")
    show = guess.get_by_role("button", name="Show", exact=True)
    expect(show).to_be_enabled(timeout=WAIT)
    for _ in range(30):
        guess.keyboard.press("Tab")
        if show.evaluate("part => part === document.activeElement"):
            break
    guess.keyboard.press("Enter")
    expect(guess.locator(".st-key-chart-guess .plot .main-svg").first).to_be_visible(timeout=WAIT)
    expect(guess.get_by_text("of its weight on your words")).to_be_visible()


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
    other = page.get_by_role("link", name="Watch it learn")  # the page that is drawn soonest
    other.click()
    leave(page, "**/train**")
    page.get_by_role("link", name="Learn", exact=True).click()
    chapter(page, 3)
    page.wait_for_function("location.search.includes('chapter=3')", timeout=WAIT)
    other.click()
    leave(page, "**/train**")
    go_back_to_learn(dashboard)
    chapter(page, 3)
    page.get_by_role("link", name="Open the page in this state ›").click()
    leave(page, "**/inside?**")
    go_back_to_learn(dashboard)
    chapter(page, 3)


def leave(page, address: str) -> None:
    """Another page, drawn."""
    page.wait_for_url(address, timeout=WAIT)
    expect(page.locator(".st-key-race, .st-key-chart-opened").first).to_be_visible(timeout=WAIT)
    expect(page.locator(".st-key-turn1")).to_have_count(0, timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)


def go_back_to_learn(dashboard) -> None:
    """Press Back until the page before is there: what a page writes into its address while it opens may be a stop. A
    person waits for the answer before the next press: else that of the last page may come after it."""
    page = dashboard.page
    for _ in range(4):
        page.go_back()
        dashboard.rest()
        page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
        if "/learn" in page.url:
            break
    page.wait_for_url("**/learn**", timeout=WAIT)
