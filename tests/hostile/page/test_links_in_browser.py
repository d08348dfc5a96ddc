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


def test_a_wrong_value_is_named_and_the_default_drawn(watched, page):
    page.goto(f"{watched.address}/?beam=x&layer=99&units=q&text=a+dog&unknown=1&step=-9")
    page.get_by_text("It shows the default instead.").wait_for(timeout=60_000)
    said = page.get_by_text("It shows the default instead.").inner_text()
    assert "beam = “x”" in said and "layer = “99”" in said and "units = “q”" in said and "text" not in said
    page.goto(f"{watched.address}/?beam=greedy&layer=3&units=pieces&text=a+dog")  # defaults, which are no mistakes
    page.locator(".said").first.wait_for(timeout=60_000)
    assert page.get_by_text("It shows the default instead.").count() == 0


@pytest.mark.parametrize(
    "path, charts, named",
    [
        ("/?text=a+dog", 5, "units"),
        ("/heads?text=a+dog", 5, "units"),
        ("/inside?text=a+dog", 1, "step"),
        ("/many?find=dog", 1, "kind"),
    ],
)
def test_empty_values_are_none(watched, page, path, charts, named):
    """`?beam=` left a group of buttons with none pressed, and the page with nothing to draw."""
    page.goto(f"{watched.address}{path}&beam=&units=&layer=&head=&kind=&pair=&model=&depth=&row=&step=&target=")
    page.wait_for_function("n => document.querySelectorAll('.plot').length >= n", arg=charts, timeout=60_000)
    assert (
        page.get_by_text("Something went wrong").count() == 0
        and page.locator(".st-key-notice [role=alert]").count() == 0
    )
    said = page.get_by_text("It shows the default instead.").inner_text()
    assert said.startswith("The link gives no value for ") and named in said and "text" not in said
