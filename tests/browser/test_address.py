"""The address holds the view, and Back is one step back."""

import pytest
from playwright.sync_api import expect

DEFAULT = "The black dog is running across the green grass."
BEFORE, TYPED = "Two boys play with a ball.", "A dog runs."
OPEN = "/?text=Two+boys+play+with+a+ball."
DONE = "() => document.querySelector('.stApp')?.dataset.testScriptState === 'notRunning'"
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


def go(dashboard, stops: int) -> None:
    dashboard.page.evaluate("stops => history.go(stops)", stops)
    settled(dashboard)


def is_at(dashboard, path: str, sentence: str) -> None:
    """The page and the sentence, in the field and in what is drawn."""
    expect(dashboard.sentence).to_have_value(sentence, timeout=WAIT)
    assert dashboard.page.evaluate("location.pathname") == path
    held = dashboard.page.evaluate("new URLSearchParams(location.search).get('text')")
    assert held == (None if sentence == DEFAULT else sentence)


@pytest.mark.parametrize("answer", ["No, thanks", "End the tour", "Finish"])
def test_a_sentence_reaches_the_address_whatever_became_of_the_tour(visit, address, answer):
    """Streamlit forgets that a control writes into the address when it has moved."""
    dashboard = visit(address).open("/")
    if answer != "No, thanks":
        press(dashboard, "Take the tour")
        for _ in range(4 if answer == "Finish" else 1):
            press(dashboard, "Next question")
    press(dashboard, answer)
    write(dashboard, TYPED)
    is_at(dashboard, "/", TYPED)
    assert "tour" not in dashboard.page.url
    dashboard.page.reload()
    settled(dashboard)
    is_at(dashboard, "/", TYPED)
    dashboard.page.context.close()


@pytest.mark.parametrize("name, path", [("Inside a step", "/inside"), ("Heads and layers", "/heads")])
def test_back_from_a_page_is_one_step_to_the_page_and_sentence_that_were_there(dashboard, name, path):
    dashboard.open(OPEN)
    write(dashboard, TYPED)
    dashboard.choose("target", "One text for all: Bahdanau's")
    settled(dashboard)
    press(dashboard, name, "link")
    is_at(dashboard, path, TYPED)
    write(dashboard, "A man sleeps.")
    go(dashboard, -1)
    is_at(dashboard, path, TYPED)
    go(dashboard, -1)
    is_at(dashboard, "/", TYPED)
    assert "Bahdanau" in dashboard.page.locator(".st-key-target input").input_value()
    assert dashboard.translations[0] == "Un chien court."
    go(dashboard, -1)
    is_at(dashboard, "/", BEFORE)
    go(dashboard, 3)
    is_at(dashboard, path, "A man sleeps.")


def test_neither_a_reload_nor_a_link_to_the_same_page_makes_a_stop(dashboard):
    """Streamlit makes one of each address that the server writes while a page opens."""
    dashboard.open(OPEN)
    press(dashboard, "Heads and layers", "link")
    write(dashboard, TYPED)
    press(dashboard, "Heads and layers", "link")
    dashboard.page.goto(dashboard.page.url + "&color=nothing&layer=6&nothing=1")
    settled(dashboard)
    dashboard.page.reload()
    settled(dashboard)
    press(dashboard, "Heads and layers", "link")
    is_at(dashboard, "/heads", TYPED)
    go(dashboard, -2)  # one step for the link that was opened, one for the sentence
    is_at(dashboard, "/heads", BEFORE)


@pytest.mark.parametrize("name", ["Learn", "Many sentences"])
def test_back_from_a_page_without_a_sentence_is_one_step_too(dashboard, name):
    dashboard.open(OPEN)
    write(dashboard, TYPED)
    press(dashboard, name, "link")
    go(dashboard, -1)
    is_at(dashboard, "/", TYPED)


def test_an_example_and_another_pair_are_stops_like_a_typed_sentence(dashboard):
    dashboard.open("/")
    press(dashboard, "Tom is not here.")
    is_at(dashboard, "/", "Tom is not here.")
    go(dashboard, -1)
    is_at(dashboard, "/", DEFAULT)
    dashboard.choose("pair", "Reverse the sequence")
    settled(dashboard)
    assert dashboard.sentence.input_value() not in (DEFAULT, "Tom is not here.")
    go(dashboard, -1)
    is_at(dashboard, "/", DEFAULT)
    assert "pair" not in dashboard.page.url


def test_what_cannot_be_drawn_leaves_the_address_of_the_picture(dashboard):
    """A reload, a link and Back show a picture, and never the message that there is none."""
    dashboard.open("/")
    write(dashboard, TYPED)
    opened = dashboard.page.url
    for refused in ("", "far " * 200):
        write(dashboard, refused)
        assert "The page still shows the picture of this text" in dashboard.notice and dashboard.page.url == opened
    dashboard.press("units", "words")  # of the picture that is shown, nothing changes
    settled(dashboard)
    assert dashboard.page.url == opened and "Un chien court." in dashboard.translations
    write(dashboard, "ox " * 160)  # the models count pieces, the page letters
    assert "The page still shows" in dashboard.notice and dashboard.page.url == opened
    write(dashboard, BEFORE)
    assert "units=words" in dashboard.page.url
    is_at(dashboard, "/", BEFORE)
    write(dashboard, "")
    dashboard.page.reload()
    settled(dashboard)
    is_at(dashboard, "/", BEFORE)
    go(dashboard, -1)
    is_at(dashboard, "/", TYPED)


def test_a_control_is_no_stop(dashboard):
    dashboard.open("/")
    write(dashboard, TYPED)
    for option in ("words", "pieces", "words"):
        dashboard.press("units", option)
        settled(dashboard)
    assert "units=words" in dashboard.page.url
    go(dashboard, -1)
    is_at(dashboard, "/", DEFAULT)
    go(dashboard, 1)
    is_at(dashboard, "/", TYPED)
    assert "units=words" in dashboard.page.url


def test_the_step_of_a_sentence_does_not_override_that_of_the_next_stop(dashboard):
    """A slider with another end is new to Streamlit, which then reads the address and not what a callback has set."""
    dashboard.open("/?tour=1")
    assert dashboard.step == 3
    for step in (7, 2, 2, 12):
        press(dashboard, "Next question")
        expect(dashboard.slider).to_have_value(str(step), timeout=WAIT)
        assert f"step={step}" in dashboard.page.url


def test_a_token_that_was_chosen_has_its_name_in_the_next_sentence(dashboard):
    """Streamlit's select box goes on showing the words of the option in the sentence before."""
    dashboard.page.goto(
        dashboard.address + "/inside?show=Bahdanau&text=A+dog+runs.&cell=2+dog&word=2+dog", timeout=WAIT
    )
    expect(dashboard.page.locator(".st-key-word input")).to_have_value("2 dog", timeout=WAIT)
    write(dashboard, "A man sleeps.")
    for key in ("cell", "word"):
        expect(dashboard.page.locator(f".st-key-{key} input")).to_have_value("2 man", timeout=WAIT)
