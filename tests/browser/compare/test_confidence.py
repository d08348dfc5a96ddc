"""A click on the sign beside a translation says why."""

import pytest

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers


def test_a_click_says_why(page):
    page.open("/?text=The+Narita+is+running.&show=Bahdanau", charts=3)
    sign = page.page.locator("details.sign")
    assert sign.locator("summary").inner_text() == "outside what this model has learnt"
    reason = sign.locator("li").first
    assert not reason.is_visible()
    sign.locator("summary").click()
    reason.wait_for(state="visible")
    assert any(text.startswith("“Narita” is in no training sentence") for text in sign.locator("li").all_inner_texts())
