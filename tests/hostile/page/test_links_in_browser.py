"""What a link may do in the real server: it reaches no network, and wrong values are named."""

import pytest

pytestmark = pytest.mark.xdist_group("hostile-server")  # one process starts it


@pytest.fixture
def page(watched, tab):
    with tab(watched.address) as page:
        yield page


def test_a_link_reaches_no_network_in_the_real_server(watched, page):
    page.goto(f"{watched.address}/heads?model=A+Hugging+Face+model&own=some/model&text=a+dog")
    page.get_by_role("button", name="Look it up on the Hugging Face hub").wait_for(timeout=60_000)
    page.wait_for_timeout(500)
    assert watched.left == ""


def test_wrong_and_empty_values_are_named_and_the_default_drawn(watched, page):
    """`?beam=` left a group of buttons with none pressed. test_every_parameter.py has every parameter of every page."""
    page.goto(f"{watched.address}/?beam=&show=&kind=&layer=99&units=q&text=a+dog&unknown=1&step=-9")
    page.wait_for_function("() => document.querySelectorAll('.plot').length >= 5", timeout=60_000)
    note = page.get_by_text("It shows the default instead.").inner_text()
    assert "layer = “99”" in note and "units = “q”" in note and "text" not in note
    assert "The link gives no value for " in note and all(name in note for name in ("beam", "show", "kind"))
    assert page.locator(".st-key-notice [role=alert]").count() == 0
    page.goto(f"{watched.address}/?beam=greedy&layer=3&units=pieces&text=a+dog")  # defaults, which are no mistakes
    page.locator(".said").first.wait_for(timeout=60_000)
    assert page.get_by_text("It shows the default instead.").count() == 0
