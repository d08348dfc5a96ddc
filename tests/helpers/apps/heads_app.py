"""The page of heads without a browser, and what is on it."""

from client import chart_cells
from page_script import script_of
from streamlit.testing.v1 import AppTest

SCRIPT = script_of("heads")


def run(**query) -> AppTest:
    """The page as a link opens it."""
    app = AppTest.from_string(SCRIPT, default_timeout=60)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def sound(app: AppTest) -> AppTest:
    assert not app.exception and not app.error, (app.exception, app.error)
    return app


def heads_scene(app: AppTest):
    return app.session_state["last scene of heads"]


def cells(app: AppTest, key: str) -> list[dict]:
    """The words and figures of a row of figures; [] when it is not on the page."""
    for element in app.get("bidi_component"):
        if f"chart-{key}" in element.proto.id:
            return chart_cells(element.proto)
    return []


def page(app: AppTest) -> str:
    """All that is written as HTML."""
    return "".join(element.proto.body for element in app.get("html"))
