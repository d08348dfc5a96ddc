"""The address is written from what the controls hold."""

import re

import pytest
import serving
from streamlit.testing.v1 import AppTest
from streamlit.testing.v1.element_tree import ElementTree

PAGE = str(serving.ROOT / "dashboard" / "page.py")


def test_every_part_of_a_page_that_runs_alone_writes_the_address():
    """A fragment of Streamlit's own would leave the address as it is."""
    for file in (serving.ROOT / "dashboard").rglob("*.py"):
        if file.name != "address.py":
            assert not re.search(r"^@st\.fragment", file.read_text(encoding="utf-8"), re.MULTILINE), file


def script() -> None:
    import streamlit as st

    from dashboard.session import address

    st.session_state.setdefault("page", "")
    address.begin()
    address.also("last", lambda held: ", ".join(held) or None)
    st.slider("length", 1, 9, key="length", bind="query-params")
    st.slider("step", 1, st.session_state["length"] + 2, key="step", bind="query-params")
    st.pills("names", ["a", "b"], selection_mode="multi", default=["a"], key="names", bind="query-params")
    if not st.session_state.get("without"):
        st.text_input("text", "none", key="text", bind="query-params")
    st.button("set", key="set", on_click=lambda: st.session_state.update(step=2, length=5))
    address.settle()


@pytest.fixture
def app() -> AppTest:
    return AppTest.from_function(script)


def query(app: AppTest) -> dict:
    return dict(app.query_params)


def test_what_is_not_a_default_is_in_the_address_in_the_words_of_the_control(app):
    app.run()
    assert query(app) == {}
    app.text_input(key="text").set_value("a & b").run()
    app.slider(key="length").set_value(3).run()
    assert query(app) == {"text": "a & b", "length": "3", "last": "text, length"}


def test_nothing_chosen_is_said_and_a_control_that_has_gone_is_not(app):
    app.query_params["text"] = "x"
    app.run()
    app.session_state["names"] = []
    app.run()
    assert query(app) == {"text": "x", "names": "", "last": "text, names"}
    app.session_state["without"] = True
    assert query(app.run()) == {"names": "", "last": "names"}


def test_what_a_callback_sets_wins_over_the_address_where_a_control_is_new(app):
    app.query_params["step"] = "3"
    app.run()
    assert app.slider(key="step").value == 3
    app.button(key="set").click().run()
    assert (app.slider(key="step").value, query(app)["step"]) == (2, "2")


def longer() -> None:
    """A slider that gets other ends and another value, as where a text is written on."""
    import streamlit as st

    from dashboard.session import address
    from dashboard.shell.frame import slider_value

    st.session_state.setdefault("page", "")
    address.begin()
    end = st.session_state.get("end", 5)
    if st.session_state.pop("lit", False):
        address.put("row", end, str(end))
    slider_value("row", 0, end)
    st.slider("row", 0, end, key="row", bind="query-params")
    address.settle()


def test_a_slider_keeps_its_value_where_the_browser_does_not_have_it_yet_and_its_address_is_behind():
    app = AppTest.from_function(longer)
    app.query_params["row"] = "3"
    app.run()
    app.session_state["end"], app.session_state["lit"] = 9, True
    assert app.run().slider(key="row").value == 9
    app.query_params["row"] = "3"  # something was clicked before the answer came
    app._tree = ElementTree()
    app._tree._runner = app
    assert (app.run().slider(key="row").value, query(app)) == (9, {"row": "9"})


def pages() -> None:
    """Two pages with a sentence, of which they draw those with at most 9 letters."""
    import streamlit as st

    from dashboard.session import address

    address.arrive(st.session_state.get("turned to", ""), st.session_state)
    address.begin()
    with st.container(key=st.session_state["page"] or "first"):
        text = st.text_input("text", "none", key="text", bind="query-params")
    (address.drawn if 0 < len(text) < 9 else address.stay)()
    address.settle()


def turn(app: AppTest, page: str) -> AppTest:
    app.session_state["turned to"] = page
    return app.run()


@pytest.mark.parametrize("refused", ["", "over nine", "far " * 200])
def test_what_a_page_cannot_draw_stays_there_and_is_there_again(refused):
    app = AppTest.from_function(pages).run()
    app.text_input(key="text").set_value("short").run()
    app.text_input(key="text").set_value(refused).run()
    assert query(app) == {"text": "short"}
    turn(app, "inside")
    assert (app.text_input(key="text").value, query(app)) == ("short", {"text": "short"})
    turn(app, "")
    assert (app.text_input(key="text").value, query(app)) == (refused, {"text": "short"})
    turn(app, "inside").text_input(key="text").set_value("other").run()
    turn(app, "")
    assert (app.text_input(key="text").value, query(app)) == ("other", {"text": "other"})
