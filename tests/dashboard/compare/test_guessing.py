"""Guess first: what is hidden until it has been guessed, what is shown then, and what a teacher's link holds."""

import json

import compare_app
import pytest
from client import chart_cells

from attnviz import guess
from attnviz.figures import labels
from attnviz.select import select
from dashboard.compare import guessing

SENTENCE = "The black dog is running across the green grass."
QUERY = {"show": ["Bahdanau", "Luong general"], "text": SENTENCE, "guess": "true", "guess_steps": "2,3"}


@pytest.fixture
def page():
    app = compare_app.run(**QUERY)
    compare_app.sound(app)
    return app


def plots(app) -> list[dict]:
    return [cell for chart in compare_app.charts(app) for cell in chart_cells(chart.proto) if cell["figure"]]


def pressed(app, key):
    app.button(key=key).click().run()
    compare_app.sound(app)


def words_of(app):
    return next(group for group in app.get("button_group") if (group.key or "").startswith("guess_words"))


def test_nothing_is_shown_before_the_guess_and_the_maps_after_the_last(page):
    assert plots(page) == [] and page.button(key="guess_show").disabled
    assert not [button for button in page.get("download_button")]
    columns = compare_app.scene(page).columns
    assert len({column.trace.translation for column in columns}) == 1  # one text
    assert all(column.shown.level == "words" for column in columns)
    words_of(page).set_value([2]).run()  # dog
    assert plots(page) == []
    pressed(page, "guess_show")
    assert len(plots(page)) == 2
    seen = {
        column.title: guess.compare(column.grid, 1, [0, 0, 1, *[0] * (len(column.grid.keys) - 3)]) for column in columns
    }
    assert compare_app.has_text(page, guess.sentence(seen)) and compare_app.has_text(page, "1 of 2 steps")
    pressed(page, "guess_next")
    assert plots(page) == [] and page.query_params["step"] == "3"
    words_of(page).set_value([1]).run()
    pressed(page, "guess_show")
    assert len(plots(page)) > 4 and compare_app.has_text(page, "2 of 2 steps")  # with the maps below
    page.slider(key="step").set_value(5).run()
    assert page.query_params["step"] == "5"


def test_points_are_dealt_out_and_taken_back(page):
    by = next(group for group in page.get("button_group") if group.key == "guess_by")
    by.set_value("10 points").run()
    for _ in range(9):
        pressed(page, "guess_point2")
    pressed(page, "guess_point1")
    assert page.button(key="guess_point2").disabled and compare_app.has_text(page, "0 of 10 points left")
    pressed(page, "guess_none")
    assert page.button(key="guess_show").disabled
    pressed(page, "guess_point2")
    pressed(page, "guess_show")
    [row, _] = page.session_state[guessing.RECORD]
    assert row["token"] == "chien" and row["guess"] == "dog 1" and row["model"] == "Bahdanau"
    trace = compare_app.scene(page).columns[0].trace
    grid = select(trace, words=True)
    assert row["weight_on_guess"] == round(float(grid.weights[1, labels.shown(grid.keys).index("dog")]), 3)


def test_all_is_shown_to_who_gives_up_and_without_the_switch(page):
    pressed(page, "guess_all")
    assert len(plots(page)) >= 5
    page.toggle(key="guess").set_value(False).run()
    compare_app.sound(page)
    assert "guess_steps" not in page.query_params and not compare_app.has_text(page, "Guess first, then look")


def test_a_link_of_a_teacher_hides_its_answer_and_stays_in_the_address():
    question, answer = "Where? <b>", "At ‘dog’ <script>"
    app = compare_app.run(**QUERY, guess_question=question, guess_answer=guessing.hidden(answer))
    compare_app.sound(app)
    shown = " ".join(compare_app.htmls(app))
    assert "Where? &lt;b&gt;" in shown and "At ‘dog’ &lt;script&gt;</p></details>" in shown and "<script>" not in shown
    assert answer not in str(app.query_params) and app.query_params["guess_question"] == question
    made = next(code.value for code in app.code)
    assert "guess=true" in made
    app.text_input(key="text").set_value("A dog runs.").run()  # the question is of another sentence
    assert "Where?" not in " ".join(compare_app.htmls(app)) and "guess_question" not in app.query_params
    app.text_input(key="text").set_value(SENTENCE).run()
    assert app.query_params["guess_question"] == question and compare_app.has_text(app, "0 of 2 steps shown")


@pytest.mark.parametrize("written", ["%%%", "A", "/w==", "é" * 9])
def test_an_answer_that_cannot_be_read_is_said(written):
    assert guessing.revealed(written) == ""
    app = compare_app.run(**QUERY, guess_answer=written)
    compare_app.sound(app)
    assert compare_app.has_text(app, "The answer in this link cannot be read")


def test_the_address_keeps_the_step_at_which_guessing_begins():
    """The slider of the steps goes away, and took the step out of the address."""
    app = compare_app.run(**QUERY | {"guess": "false", "guess_steps": "", "step": "3"})
    app.toggle(key="guess").set_value(True).run()
    assert app.query_params["step"] == "3" and app.session_state["guess_step"] == 2


@pytest.mark.parametrize("steps", ["99,-1,0,1e999,1.5", "two <b>", "2" * 500])
def test_steps_that_are_not_there_are_left_out(steps):
    app = compare_app.run(**QUERY | {"guess_steps": steps})
    compare_app.sound(app)
    target = compare_app.scene(app).columns[0].shown.target
    words = [token for token in target if any(map(str.isalnum, token.text)) and not token.special]
    assert len(words) > 5 and compare_app.has_text(app, f"0 of {len(words)} steps shown")


def test_what_has_no_attention_leaves_nothing_to_guess():
    app = compare_app.run(show=["Fixed context"], text=SENTENCE, guess="true")
    compare_app.sound(app)
    assert compare_app.has_text(app, "There is nothing to guess")


@pytest.mark.parametrize(
    "message", ["", "{", "[]", "5", '["0123456789abcdef", [1]]', '["../etc", [{}]]', '["0123456789abcdef", {"a": 1}]']
)
def test_what_another_tab_could_not_have_said_is_ignored(message):
    session = {}
    guessing.hear(session, message)
    assert guessing.record(session) == []


def test_guesses_of_other_tabs_are_kept_once_and_are_bounded():
    session, rows = {guessing.RECORD: [{"guess": "mine"}]}, [{"guess": "dog", "step": 1}]
    for number in range(guessing._TABS + 5):
        guessing.hear(session, json.dumps([f"{number:016x}", rows]))
    guessing.hear(session, json.dumps([f"{0:016x}", [*rows, {"guess": "x" * 9999}]]))  # a tab says all anew
    guessing.hear(session, json.dumps([f"{1:016x}", rows * 9999]))
    record = guessing.record(session)
    assert record[:2] == [{"guess": "mine"}, {"guess": "dog", "step": "1"}]
    assert record[2] == {"guess": "x" * guessing.MOST} and len(record) == 3 + guessing._ROWS + guessing._TABS - 2
