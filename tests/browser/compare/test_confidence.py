"""A click on the sign beside a translation says why."""

import judged
import pytest
import serving

pytestmark = pytest.mark.xdist_group("browser-page")  # one process opens its pages and servers


@pytest.fixture(scope="module")
def judged_address(tmp_path_factory):
    root = judged.write_models(tmp_path_factory.mktemp("judged") / "models")
    with serving.server(ATTNVIZ_CHECKPOINTS=str(root)) as address:
        yield address


@pytest.fixture
def judged_page(look, judged_address):
    with look(judged_address) as dashboard:
        yield dashboard


def test_a_click_says_why(judged_page):
    dashboard = judged_page
    dashboard.open("/?text=The+Narita+is+running.&show=Bahdanau", charts=3)
    sign = dashboard.page.locator("details.sign")
    assert sign.locator("summary").inner_text() == "outside what this model has learnt"
    reason = sign.locator("li").first
    assert not reason.is_visible()
    sign.locator("summary").click()
    reason.wait_for(state="visible")
    assert any(text.startswith("“Narita” is in no training sentence") for text in sign.locator("li").all_inner_texts())
