"""The page that compares translations without a browser, and what is on it."""

from collections.abc import Iterable

import serving
from streamlit.testing.v1 import AppTest

from attnviz.mechanisms import MECHANISMS
from dashboard.choices import pairs
from dashboard.choices.options import MOST, title


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


def shown_together(models: Iterable[tuple[str, str]]) -> list[tuple[str, list[str]]]:
    """(pair, mechanism) of each model -> pairs, each with mechanisms that one page shows beside each other."""
    by_pair = {}
    for pair, mechanism in models:
        by_pair.setdefault(pair, []).append(mechanism)
    return [(pair, names[i : i + MOST]) for pair, names in by_pair.items() for i in range(0, len(names), MOST)]


def shows(pair: str, names: list[str], units: str) -> None:
    """A page has a column for each of these mechanisms, of the model itself, and all charts."""
    app = run(pair=pairs.task(pair).title, show=[title(name) for name in names], units=units, tables="true")
    sound(app)
    columns = scene(app).columns
    assert {column.trace.model for column in columns} == {f"{pair}/{name}" for name in names}
    assert all(column.trace.text == pairs.task(pair).first for column in columns)
    assert len(charts(app)) == (3 if any(MECHANISMS[name].kinds for name in names) else 2)


def htmls(app: AppTest) -> list[str]:
    return [element.proto.body for element in app.get("html")]


def has_text(app: AppTest, text: str) -> bool:
    return any(text in element.proto.body for element in app.get("html"))
