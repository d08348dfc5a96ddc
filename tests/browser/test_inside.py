"""The page of one step in a real browser on the real server: what is chosen there is drawn there, and stands in the
address."""

import zipfile

import pytest
import serving
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
WAIT = 60_000  # ms, on a busy machine
ONE = "show=Bahdanau"  # one model: quicker


def test_the_step_of_the_first_page_is_one_click_away_and_on_a_phone_controls_are_in_the_menu(dashboard):
    page = dashboard.open("?step=3&show=Bahdanau&show=Transformer", charts=5).page
    page.get_by_role("link", name="Open this step ›").click()
    expect(page.locator(".st-key-chart-opened h4", has_text="Bahdanau: who asks")).to_be_visible(timeout=WAIT)
    expect(page.locator(".st-key-chart-opened .what", has_text="Step 3 of Bahdanau writes noir").first).to_be_visible()
    expect(page.locator(".st-key-chart-opened h4", has_text="Transformer: weights, mean of heads")).to_be_visible()
    assert "head=mean" in page.url
    page.set_viewport_size({"width": 390, "height": 844})
    words = page.locator(".st-key-chart-opened .what", has_text="The mean of heads has weights")
    expect(words).to_contain_text("Choose a head in the menu › to open them.", timeout=WAIT)
    page.set_viewport_size(serving.SCREEN)
    expect(words).to_contain_text("Choose a head on the left to open them.", timeout=WAIT)


def test_attention_is_changed_by_bars_that_stand_in_the_address_and_made_uniform(dashboard):
    page = dashboard.page
    page.goto(f"{dashboard.address}/inside?step=3&{ONE}&change=by+hand:+drag+the+bars")
    expect(page.locator(".st-key-chart-changed .main-svg").first).to_be_visible(timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    bar = page.get_by_role("slider", name="weight of source token 3, dog")
    bar.press("End")
    numbers = weights_by_hand(page)
    expect(bar).to_be_focused()  # the next key moves the same bar
    assert float(numbers[2]) == 1 and len(numbers) == page.locator(".drag-bars input").count()
    bar.press("ArrowDown")  # by .01, which goes to the others
    page.wait_for_function("location.search.includes('0.99')", timeout=WAIT)
    assert sum(map(float, weights_by_hand(page))) == pytest.approx(1, abs=1e-3)
    expect(page.locator(".drag-sum")).to_have_text("Sum of the weights of Bahdanau: 1.00")
    page.get_by_role("button", name="The model’s weights").click()
    expect(page.locator(".st-key-given input")).to_have_value("", timeout=WAIT)
    page.wait_for_function("!location.search.includes('given=')", timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')", timeout=WAIT)
    drag_to_the_top(page, "weight of source token 2, black")
    assert float(weights_by_hand(page)[1]) == 1
    page.set_viewport_size({"width": 390, "height": 844})  # no bar stands beyond the right edge of a phone
    bars = page.locator(".drag-bars label").all()
    assert max(sum(map(bar.bounding_box().get, ("x", "width"))) for bar in bars) <= 390
    page.set_viewport_size(serving.SCREEN)
    dashboard.choose("change", "uniform")
    page.wait_for_function("location.search.includes('change=uniform')", timeout=WAIT)
    expect(page.locator(".st-key-chart-changed .main-svg").nth(2)).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("The unchanged translation, forced under the change")).to_be_visible(timeout=WAIT)


def weights_by_hand(page) -> list[str]:
    """The weights given by hand, once they are drawn and in the address."""
    page.wait_for_function("location.search.includes('given=')", timeout=WAIT)
    expect(page.locator(".st-key-given input")).not_to_have_value("", timeout=WAIT)
    expect(page.locator(".st-key-chart-changed .main-svg").first).to_be_visible(timeout=WAIT)
    return page.locator(".st-key-given input").input_value().split(",")


def drag_to_the_top(page, name: str) -> None:
    """Drag a bar with the mouse from its middle to its top: all the weight that it can have."""
    bar = page.get_by_role("slider", name=name)
    bar.scroll_into_view_if_needed()
    box = bar.bounding_box()
    middle = box["x"] + box["width"] / 2
    page.mouse.move(middle, box["y"] + box["height"] / 2)
    page.mouse.down()
    page.mouse.move(middle, box["y"] + 2, steps=6)
    page.mouse.up()
    expect(bar).to_have_value("1")


def test_a_word_is_replaced_and_everything_is_saved(dashboard, tmp_path):
    """Other score functions and the spread of dot products are drawn, and saved, where they are opened."""
    page = dashboard.page
    page.goto(f"{dashboard.address}/inside?{ONE}&word=2+black&instead=white&functions=true&scaled=true")
    for panel in ("functions", "spread"):
        expect(page.locator(f".st-key-chart-{panel} .main-svg").first).to_be_visible(timeout=WAIT)
    expect(page.locator(".st-key-chart-replaced mark").first).to_be_visible(timeout=WAIT)
    page.wait_for_function("!document.querySelector('[data-stale=true]')")
    with page.expect_download(timeout=WAIT) as download:
        page.get_by_role("button", name="Everything as a zip").click()
    download.value.save_as(tmp_path / "step.zip")
    with zipfile.ZipFile(tmp_path / "step.zip") as archive:
        assert {"manifest.json", "step.csv", "replaced.csv", "functions.csv", "spread.csv"} <= set(archive.namelist())
