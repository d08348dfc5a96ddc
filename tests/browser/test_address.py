"""The address holds the view, and Back is one step back."""

import functools
import re
import time

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers
DEFAULT = "The black dog is running across the green grass."
FIRST_PAGE = "One sentence, several models"
BEFORE, TYPED = "Two boys play with a ball.", "A dog runs."
OPEN = "?text=Two+boys+play+with+a+ball.&show=Bahdanau"  # one model: quicker
DONE = "() => document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
AT = "([path, text]) => location.pathname === path && new URLSearchParams(location.search).get('text') === text"
HAS = "([key, value]) => new URLSearchParams(location.search).get(key) === value"
WAIT = 60_000


def settled(dashboard) -> None:
    """Wait until the server has answered and the page is at rest."""
    for _ in range(2):
        dashboard.rest()
        dashboard.page.wait_for_function(DONE, timeout=WAIT)


def write(dashboard, text: str) -> None:
    dashboard.type(text)
    settled(dashboard)
    expect(dashboard.sentence).to_have_value(text, timeout=WAIT)


def press(dashboard, name: str, role: str = "button") -> None:
    dashboard.page.get_by_role(role, name=name, exact=True).first.click()
    settled(dashboard)


def go_in_history(dashboard, stops: int) -> None:
    dashboard.page.evaluate("stops => history.go(stops)", stops)
    settled(dashboard)


def is_at(dashboard, path: str, sentence: str) -> None:
    """The page and the sentence, in the field and in the address, which may follow a moment later."""
    expect(dashboard.sentence).to_have_value(sentence, timeout=WAIT)
    dashboard.page.wait_for_function(AT, arg=[path, None if sentence == DEFAULT else sentence], timeout=WAIT)


def test_a_sentence_reaches_the_address_whatever_became_of_the_tour(dashboard):
    """Streamlit forgets that a control writes into the address when it has moved. And a slider with another end is new
    to it: then it reads the address and not what a callback has set. (“End the tour” is the button “Finish”.)"""
    dashboard.page.context.clear_cookies()  # so that the tour is offered
    dashboard.open("/")
    press(dashboard, "No, thanks")
    write_without_tour(dashboard, TYPED)
    press(dashboard, "Take the tour")
    for step in (3, 7, 2, 2, 12):
        expect(dashboard.slider).to_have_value(str(step), timeout=WAIT)
        dashboard.page.wait_for_url(f"**step={step}**", timeout=WAIT)
        press(dashboard, "Finish" if step == 12 else "Next question")
    write_without_tour(dashboard, BEFORE)
    dashboard.page.reload()
    settled(dashboard)
    is_at(dashboard, "/", BEFORE)


def write_without_tour(dashboard, text: str) -> None:
    write(dashboard, text)
    is_at(dashboard, "/", text)
    dashboard.page.wait_for_function("!location.search.includes('tour')", timeout=WAIT)


def test_back_from_a_page_is_one_step_to_the_page_and_sentence_that_were_there(dashboard):
    dashboard.open(OPEN, charts=3)
    write(dashboard, TYPED)
    dashboard.choose("target", "One text for all: Bahdanau's")
    settled(dashboard)
    press(dashboard, "Inside a step", "link")
    is_at(dashboard, "/inside", TYPED)
    write(dashboard, "A man sleeps.")
    for name in ("Heads and layers", "Learn", "Watch it learn"):
        press(dashboard, name, "link")
    go_in_history(dashboard, -2)
    is_at(dashboard, "/heads", "A man sleeps.")
    expect(dashboard.page.locator(".said").first).to_contain_text("Un homme dort.", timeout=WAIT)
    write(dashboard, "Two dogs sleep.")
    for sentence, path in (("A man sleeps.", "/heads"), ("A man sleeps.", "/inside"), (TYPED, "/inside"), (TYPED, "/")):
        go_in_history(dashboard, -1)
        is_at(dashboard, path, sentence)
    expect(dashboard.page.locator(".st-key-target input")).to_have_value(re.compile("Bahdanau"))
    expect(dashboard.page.locator(".said").first).to_contain_text("Un chien court.", timeout=WAIT)
    press(dashboard, "Learn", "link")
    go_in_history(dashboard, -1)
    is_at(dashboard, "/", TYPED)
    go_in_history(dashboard, -1)
    is_at(dashboard, "/", BEFORE)
    go_in_history(dashboard, 2)
    assert dashboard.page.url.startswith(f"{dashboard.address}/learn")


def test_neither_a_reload_nor_a_link_to_the_same_page_makes_a_stop(dashboard):
    """Streamlit makes one of each address that the server writes while a page opens."""
    dashboard.page.goto(f"{dashboard.address}/inside{OPEN}", timeout=WAIT)
    settled(dashboard)
    write(dashboard, TYPED)
    press(dashboard, "Inside a step", "link")
    dashboard.page.goto(dashboard.page.url + "&change=nothing&layer=6&nothing=1")
    settled(dashboard)
    dashboard.page.reload()
    settled(dashboard)
    press(dashboard, "Inside a step", "link")
    is_at(dashboard, "/inside", TYPED)
    go_in_history(dashboard, -2)  # one step for the link that was opened, one for the sentence
    is_at(dashboard, "/inside", BEFORE)


def test_an_example_and_another_pair_are_stops_like_a_typed_sentence_and_a_control_is_none(dashboard):
    dashboard.open("/?show=Bahdanau", charts=3)
    write(dashboard, TYPED)
    for option in ("words", "pieces", "words"):
        dashboard.press("units", option)
        settled(dashboard)
    assert "units=words" in dashboard.page.url
    go_in_history(dashboard, -1)
    is_at(dashboard, "/", DEFAULT)
    go_in_history(dashboard, 1)
    is_at(dashboard, "/", TYPED)
    assert "units=words" in dashboard.page.url
    press(dashboard, "Tom is not here.")
    is_at(dashboard, "/", "Tom is not here.")
    go_in_history(dashboard, -1)
    is_at(dashboard, "/", TYPED)
    dashboard.choose("pair", "Reverse the sequence")
    settled(dashboard)
    expect(dashboard.sentence).not_to_have_value("", timeout=WAIT)  # as Streamlit draws it first
    assert dashboard.sentence.input_value() not in (TYPED, "Tom is not here.")
    go_in_history(dashboard, -1)
    is_at(dashboard, "/", TYPED)
    assert "pair" not in dashboard.page.url


def test_what_cannot_be_drawn_leaves_the_address_of_the_picture(dashboard):
    """A reload, a link and Back show a picture, and never the message that there is none. On another page it is that
    sentence, and what was typed is still in its field."""
    dashboard.open("/?show=Bahdanau", charts=3)
    write(dashboard, TYPED)
    opened, notice = dashboard.page.url, dashboard.page.locator(".st-key-notice")
    for refused in ("", "far " * 200):
        write(dashboard, refused)
        expect(notice).to_contain_text("The page still shows the picture of this text", timeout=WAIT)
        assert dashboard.page.url == opened
    write(dashboard, "ox " * 160)  # the models count pieces, the page letters
    expect(notice).to_contain_text("The page still shows", timeout=WAIT)
    assert dashboard.page.url == opened
    for comes in (functools.partial(go_in_history, stops=-1), functools.partial(press, name=FIRST_PAGE, role="link")):
        press(dashboard, "Inside a step", "link")
        is_at(dashboard, "/inside", TYPED)
        comes(dashboard)
        expect(dashboard.sentence).to_have_value("ox " * 160, timeout=WAIT)
        expect(notice).to_contain_text("The page still shows", timeout=WAIT)
        dashboard.page.wait_for_function(AT, arg=["/", TYPED], timeout=WAIT)
        expect(dashboard.slider).to_have_value("1")
        expect(dashboard.page.locator(".st-key-chart-heatmaps .row-outline").first).to_be_visible()
    dashboard.press("units", "words")  # of the picture that is shown, nothing changes
    settled(dashboard)
    expect(dashboard.page.locator(".said").first).to_contain_text("Un chien court.", timeout=WAIT)
    assert dashboard.page.url == opened
    how_it_is_drawn_follows(dashboard)
    write(dashboard, BEFORE)
    assert "units=words" in dashboard.page.url
    is_at(dashboard, "/", BEFORE)
    write(dashboard, "")
    dashboard.page.reload()
    settled(dashboard)
    is_at(dashboard, "/", BEFORE)
    go_in_history(dashboard, -1)
    is_at(dashboard, "/", TYPED)


LATE = """() => {
    const listen = WebSocket.prototype.addEventListener;
    WebSocket.prototype.addEventListener = function (type, heard, ...more) {
        const later = event => window.late ? setTimeout(() => heard(event), window.late) : heard(event);
        return listen.call(this, type, type === "message" ? later : heard, ...more);
    };
}"""


def test_an_address_that_is_on_its_way_does_not_undo_a_click(dashboard):
    """The last message of a run reached the browser after the next click, and its address stayed."""
    dashboard.page.add_init_script(f"({LATE})()")
    dashboard.open("/?show=Bahdanau", charts=3)
    write(dashboard, TYPED)
    write(dashboard, "ox " * 160)
    dashboard.press("units", "words")  # not of the picture that stays, so the address is written
    settled(dashboard)
    dashboard.page.evaluate("window.late = 1500")
    for key in ("tables", "present"):
        dashboard.page.locator(f".st-key-{key} label").first.click()
        dashboard.page.wait_for_timeout(700)
    dashboard.page.wait_for_timeout(3000)
    settled(dashboard)
    for key in ("tables", "present"):
        dashboard.page.wait_for_function(HAS, arg=[key, "true"], timeout=WAIT)
    dashboard.page.evaluate("window.late = 0")


def how_it_is_drawn_follows(dashboard) -> None:
    """The switches of tables and presentation count for the picture that stays, and in its address."""
    for key, charts in (("tables", 3), ("present", 2)):
        dashboard.page.locator(f".st-key-{key} label").first.click()
        dashboard.page.wait_for_function(HAS, arg=[key, "true"], timeout=WAIT)
        expect(dashboard.page.locator(".js-plotly-plot")).to_have_count(charts, timeout=WAIT)
    press(dashboard, "Leave the presentation (Esc)")
    dashboard.page.wait_for_function(HAS, arg=["present", None], timeout=WAIT)
    expect(dashboard.page.locator(".js-plotly-plot")).to_have_count(3, timeout=WAIT)
    expect(dashboard.page.locator("table").first).to_be_attached()


def test_a_token_that_was_chosen_has_its_name_in_the_next_sentence(dashboard):
    """Streamlit's select box goes on showing the words of the option in the sentence before."""
    dashboard.page.goto(
        dashboard.address + "/inside?show=Bahdanau&text=A+dog+runs.&cell=2+dog&word=2+dog", timeout=WAIT
    )
    expect(dashboard.page.locator(".st-key-word input")).to_have_value("2 dog", timeout=WAIT)
    write(dashboard, "A man sleeps.")
    for key in ("cell", "word"):
        expect(dashboard.page.locator(f".st-key-{key} input")).to_have_value("2 man", timeout=WAIT)


def test_a_page_that_goes_back_while_its_test_ends_is_empty_for_the_next(tab, address):
    """It ended the visit to the empty page, and the test failed."""
    with tab(address) as page:
        page.goto(f"{address}/_stcore/health")
        page.route("**/_stcore/health", lambda route: (time.sleep(0.3), route.continue_()))
        page.evaluate("history.pushState({}, '', '?a'); setTimeout(() => history.back(), 100)")
    page.unroute("**/_stcore/health")
    assert page.url == f"{address}/_stcore/health"
