"""What is run when a person moves something in the middle of a run."""

import pytest
from streamlit.runtime.scriptrunner_utils.script_requests import RerunData

from dashboard.shell.turns import with_interrupted


@pytest.mark.parametrize(
    "asked, running, wanted",
    [
        ([], None, []),
        ([], ["panel"], []),  # the whole page is more
        (["panel"], None, []),  # the whole page was under way, and is not finished
        (["panel"], ["panel"], ["panel"]),
        (["panel"], ["page"], ["page", "panel"]),
    ],
)
def test_what_an_ended_run_had_to_draw_is_drawn(asked, running, wanted):
    data = RerunData(query_string="a=1", fragment_id_queue=asked)
    again = with_interrupted(data, running)
    assert again.fragment_id_queue == wanted and again.query_string == "a=1" and again.fragment_id is None
