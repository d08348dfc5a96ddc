"""The page of heads without a browser, and what is on it."""

from client import chart_cells
from page_script import script_of
from streamlit.testing.v1 import AppTest

SCRIPT = script_of("heads")
HF, SAVED = "A Hugging Face model", "A saved trace"  # what the page offers beside the models of this folder
TEXT = "The black dogs."
PANELS = ("overview", "closeup", "compared", "compared-lines", "depth")


def run(**query) -> AppTest:
    """The page as a link opens it."""
    app = AppTest.from_string(SCRIPT, default_timeout=60)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def run_own_model(folder, family: str, **query) -> AppTest:
    """The page with the model of a family in a folder, and a text."""
    return run(**{"text": TEXT, "model": HF, "own": str(folder(family)), **query})


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


def check_panels_are_drawn(app: AppTest) -> None:
    assert all(cells(sound(app), key) for key in PANELS)


def page(app: AppTest) -> str:
    """All that is written as HTML."""
    return "".join(element.proto.body for element in app.get("html"))
