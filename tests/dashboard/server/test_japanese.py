"""Japanese letters where no font of the system has them: a browser that knows only a Latin font draws them."""

from pathlib import Path

import matplotlib
import programs
import pytest
from starlette.applications import Starlette
from starlette.testclient import TestClient

from attnviz.export import fonts
from dashboard.server import index_page

LATIN = Path(matplotlib.get_data_path()) / "fonts" / "ttf"  # DejaVu, which comes with matplotlib
BODY = """<body style='font: 40px "Source Sans", sans-serif; margin: 0'><span>犬</span><span>猫</span><span>é</span>"""


def test_the_server_has_the_font_and_every_page_names_it():
    client = TestClient(Starlette(routes=index_page.routes))
    assert all(index_page.JAPANESE in client.get(f"/{page.path}").text for page in index_page.PAGES)
    answer = client.get("/japanese.ttf")
    assert answer.content == fonts.JAPANESE.read_bytes() and answer.headers["content-type"] == "font/ttf"
    assert len(answer.content) < 750_000


@pytest.fixture
def latin_browser(chrome, tmp_path):
    """A second Chromium, on a system without Japanese."""
    settings = tmp_path / "fonts.conf"
    settings.write_text(f"<fontconfig><dir>{LATIN}</dir><cachedir>{tmp_path}</cachedir></fontconfig>", encoding="utf-8")
    started = chrome.browser_type.launch(
        executable_path=programs.chromium(), args=["--no-sandbox"], env={"FONTCONFIG_FILE": str(settings)}
    )
    yield started
    started.close()


def drawn(browser, head: str, body: str = BODY) -> tuple[list[bytes], list[str]]:
    """Pictures of the letters, and which files were asked for."""
    page, requested = browser.new_page(), []

    def answer(route):
        name = route.request.url.rpartition("/")[2]
        requested.append(name)
        if name == fonts.JAPANESE.name:
            route.fulfill(body=fonts.JAPANESE.read_bytes(), content_type="font/ttf")
        else:
            route.fulfill(body=f"<!doctype html><meta charset=utf-8>{head}{body}", content_type="text/html")

    page.route("**/*", answer)
    page.goto("http://page.test/")
    page.evaluate("document.fonts.ready")
    pictures = [letter.screenshot() for letter in page.locator("span").all()]
    page.close()
    return pictures, requested


def test_letters_that_the_system_lacks_are_drawn(latin_browser):
    (dog, cat, _), requested = drawn(latin_browser, index_page.JAPANESE)
    assert dog != cat and fonts.JAPANESE.name in requested
    (dog, cat, _), _ = drawn(latin_browser, "")
    assert dog == cat  # without it, two empty boxes


def test_a_page_without_japanese_does_not_ask_for_it(latin_browser):
    _, requested = drawn(latin_browser, index_page.JAPANESE, BODY.replace("犬", "a").replace("猫", "b"))
    assert requested == [""]
