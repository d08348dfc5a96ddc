"""The tour: each stop is a state of the page, its question comes first, and its answer is true of what is shown."""

import re

import pytest
import serving
from streamlit.testing.v1 import AppTest

from dashboard.choices.options import title
from dashboard.compare import tour
from dashboard.compare.tour import STOPS

# What the answer of each stop must say of the shipped models, beside numbers that may change.
SAID = (
    (
        "‘herbe’ looks at ‘grass’",
        "in the source their order is reversed, ‘green grass’",
        "Two dark cells have changed places",
    ),
    ("Luong general is sharper", "Their texts differ"),
    ("rows look most at &lt;eos&gt;", "of all weight is on"),
    ("on ‘motorc’", "on ‘·ists’", "Bahdanau: ", "Transformer: "),
    ("échelle", "maison", "The model is also less sure"),
)


def run(**query) -> AppTest:
    app = AppTest.from_file(str(serving.ROOT / "dashboard" / "page.py"), default_timeout=120)
    for key, value in query.items():
        app.query_params[key] = value
    return app.run()


def html_of(app: AppTest) -> str:
    assert not app.exception and not app.error, (app.exception, app.error)
    return " ".join(element.proto.body for element in app.get("html"))


def scene(app: AppTest):
    return app.session_state["last scene of compare"]


@pytest.mark.parametrize("place", range(len(STOPS)))
def test_a_link_to_a_stop_shows_its_view_its_question_and_its_answer(place):
    app = run(tour=str(place + 1))
    words, stop = html_of(app), STOPS[place]
    assert stop.is_shown(scene(app)) and app.session_state["step"] == stop.view["step"]
    assert f"Tour, stop {place + 1} of {len(STOPS)}" in words and words.index("question") < words.index(
        "Show the answer"
    )
    _, values, names = tour._VIEWS[place]
    assert [*values(scene(app))] == names.split()
    answer = words.partition("Show the answer")[2].partition("</details>")[0]
    for part in SAID[place]:
        assert part in answer, answer


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("Where do", "\n\nWhere do", "“Word order”, must have a question and its answer, one paragraph each, not 3"),
        ("## Word order", "## More\n\n## Word order", "must have 5 headings, one for each stop; it has 6"),
        ("{crossing}", "{look}", "“Word order”, has the placeholder {look}; known are "),
        ("{missing}", "{looks}", "“Why attention was invented”, has the placeholder {looks}; known are "),
        ("Where do", "{look} Where do", "“Word order”, has the placeholder {look}; known are "),
    ],
)
def test_words_of_another_form_are_refused_with_the_file_and_the_heading(old, new, message, tmp_path):
    words = tour._FILE.read_text(encoding="utf-8")
    assert words.count(old) == 1
    (file := tmp_path / "tour.md").write_text(words.replace(old, new), encoding="utf-8")
    with pytest.raises(ValueError) as refused:
        list(tour._read(file))
    assert re.match(rf"tour.md,? {re.escape(message)}", str(refused.value)), refused.value


def test_from_the_offer_to_the_end():
    app = run()
    assert "New here?" in html_of(app)
    app.button(key="tour_yes").click().run()
    assert "stop 1 of 5" in html_of(app) and list(app.query_params["tour"]) == ["1"]
    app.button(key="tour_next").click().run()
    assert STOPS[1].is_shown(scene(app)) and app.session_state["show"] == STOPS[1].view["show"]
    app.button(key="tour_back").click().run()
    assert STOPS[0].is_shown(scene(app))
    app.button(key="tour_end").click().run()
    assert "tour" not in app.query_params and "Tour, stop" not in html_of(app) and "New here?" not in html_of(app)
    app.button(key="tour_begin").click().run()
    assert "stop 1 of 5" in html_of(app)


def test_each_stop_on_the_way_begins_at_its_own_step():
    """The address still has the step of the stop before when texts of another length come."""
    app = run()
    app.button(key="tour_yes").click().run()
    steps = [app.slider(key="step").value]
    for _ in STOPS[1:]:
        app.button(key="tour_next").click().run()
        steps.append(app.slider(key="step").value)
    assert steps == [stop.view["step"] for stop in STOPS]
    app.slider(key="step").set_value(5).run()
    assert app.slider(key="step").value == 5 and list(app.query_params["step"]) == ["5"]


def test_a_link_copied_at_a_stop_shows_its_step_unless_it_says_another():
    words = {"tour": "4", "text": STOPS[3].view["text"], "show": ["Bahdanau", "Transformer"]}
    assert run(**words).slider(key="step").value == STOPS[3].view["step"]
    assert run(**words, step="5").slider(key="step").value == 5


def test_a_link_copied_at_the_first_step_shows_the_first_step():
    app = run(tour="2")
    assert STOPS[1].view["step"] != 1 and list(app.query_params["tour"]) == ["2"]
    app.slider(key="step").set_value(1).run()
    written_stop = "".join(app.query_params["tour"])
    link = {"tour": written_stop, "show": [title(name) for name in STOPS[1].view["show"]]}
    copied = run(**link)
    assert copied.slider(key="step").value == 1 and "Tour, stop 2 of" in html_of(copied)
    copied.slider(key="step").set_value(3).run()
    assert list(copied.query_params["tour"]) == ["2"]


def test_the_offer_is_made_once_and_not_to_who_comes_with_a_link():
    app = run()
    app.button(key="tour_no").click().run()
    assert "New here?" not in html_of(app.run())
    assert "New here?" not in html_of(run(text="A dog runs."))


def test_a_link_that_says_more_than_the_stop_is_left_as_it_is():
    app = run(tour="2", text="A dog runs.")
    assert scene(app).text == "A dog runs."
    assert "You have changed the view" in html_of(app)
    app.button(key="tour_again").click().run()
    assert STOPS[1].is_shown(scene(app)) and "Show the answer" in html_of(app)


def test_a_link_to_a_picture_that_stays_does_not_bring_the_sentence_of_the_stop():
    app = run(tour="1")
    app.selectbox(key="pair").set_value("reverse").run()
    app.text_input(key="text").set_value("").run()
    assert "".join(app.query_params["tour"]) == "1-as-shown" and "text" not in app.query_params


@pytest.mark.parametrize("written", ["", "0", "6", "abc", "-1", "²"])
def test_a_stop_that_there_is_not_is_no_stop(written):
    assert tour.stop_number(written) is None


def test_without_the_models_there_is_no_tour():
    assert tour.is_offered({"en-fr": ["fixed-context", "bahdanau", "luong-general", "transformer"]})
    assert not tour.is_offered({"en-fr": ["bahdanau"]}) and not tour.is_offered({})


def test_the_browser_remembers_the_answer_under_the_name_that_is_asked_for():
    script = (serving.ROOT / "dashboard/browser/scripts/tour.js").read_text(encoding="utf-8")
    assert f"{tour.COOKIE}=answered" in script
