"""The page of one step in a real browser on the real server: what is chosen there is drawn there, and stands in the
address."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-inside")  # one process opens its pages and servers
WAIT = 60_000  # ms, on a busy machine


def test_a_step_is_opened_and_changed(dashboard):
    page = dashboard.page
    page.goto(f"{dashboard.address}/inside?step=3")
    expect(page.locator(".st-key-chart-opened .main-svg").first).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Step 3 writes noir.")).to_be_visible(timeout=WAIT)
    dashboard.choose("change", "uniform")
    expect(page.locator(".st-key-chart-changed .main-svg").first).to_be_visible(timeout=WAIT)
    expect(page.get_by_text("Under the change, the original words forced")).to_be_visible()
    page.wait_for_function("location.search.includes('change=uniform')")
    assert not dashboard.errors
