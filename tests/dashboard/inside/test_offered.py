"""What the page of one step offers, without running it."""

from dashboard.inside.panels.change import WHERE, places
from dashboard.pages import PAGES


def test_the_navigation_has_the_page():
    page = next(page for page in PAGES if page.path == "inside")
    assert page.title == "Inside a step" and page.folder == "inside"


def test_steps_of_function_words_need_a_list_of_them():
    assert places("fr") == list(WHERE) and places("zxx") == ["all", "step"]
