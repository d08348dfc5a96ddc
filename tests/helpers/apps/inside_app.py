"""The page of one step under Streamlit's test driver: opened with parameters of its address, and what it shows."""

from client import chart_cells
from streamlit.testing.v1 import AppTest

TEXT = "The black dog runs."
SCRIPT = """import streamlit as st
from dashboard.inside import sidebar, view

with st.sidebar:
    chosen = sidebar.show()
view.show(chosen)
"""


def opened(**query) -> AppTest:
    app = AppTest.from_string(SCRIPT, default_timeout=120)
    for key, value in {"text": TEXT, "show": "Bahdanau", **query}.items():
        app.query_params[key] = value
    return app.run()


def run(**query) -> AppTest:
    app = opened(**query)
    assert not app.exception and not app.error, (app.exception, app.error)
    return app


def cells(app: AppTest, key: str) -> list[dict]:
    for element in app.get("bidi_component"):
        if f"chart-{key}" in element.proto.id:
            return chart_cells(element.proto)
    return []


def figures(app: AppTest, key: str) -> list[dict]:
    return [cell["figure"] for cell in cells(app, key) if cell["figure"]]


def described(app: AppTest, key: str) -> list[str]:
    return [figure["layout"]["meta"]["description"] for figure in figures(app, key)]


def page(app: AppTest) -> str:
    html = "".join(element.proto.body for element in app.get("html"))
    charts = [element for element in app.get("bidi_component") if element.proto.component_name == "attnviz_plot"]
    return html + "".join(cell["words"] for chart in charts for cell in chart_cells(chart.proto))
