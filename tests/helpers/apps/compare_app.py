"""The page that compares translations without a browser, and what is on it."""

import serving
from streamlit.testing.v1 import AppTest

from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs
from dashboard.choices.options import title


def run(**query) -> AppTest:
    app = AppTest.from_file(str(serving.ROOT / "dashboard" / "page.py"), default_timeout=60)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def sound(app: AppTest) -> None:
    assert not app.exception and not app.error, (app.exception, app.error)


def charts(app: AppTest) -> list:
    return [element for element in app.get("bidi_component") if element.proto.component_name == "attnviz_plot"]


def scene(app: AppTest):
    return app.session_state["last scene of compare"]


def mechanisms(app: AppTest) -> list[str]:
    return [column.trace.mechanism for column in scene(app).columns]


def shows(pair, mechanism, units):
    app = run(pair=pairs.of(pair).title, show=[title(mechanism)], units=units, tables="true")
    sound(app)
    [column] = scene(app).columns
    assert column.trace.model == f"{pair}/{mechanism}" and column.trace.text == pairs.of(pair).first
    assert len(charts(app)) == (3 if MECHANISMS[mechanism].kinds else 2)


def htmls(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


def said(app: AppTest, text: str) -> bool:
    return any(text in element.proto.body for element in app.get("html"))
