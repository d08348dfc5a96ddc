"""Going from step to step in the browser: keys after a click on a row, and the button that plays all steps."""

import pytest
from playwright.sync_api import expect

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers

SHORT = "/?text=A+dog+runs.&show=Luong+local"


def at_step(dashboard, step: int) -> None:
    """Wait until the slider, the bars and the outline of the map all show this step."""
    dashboard.page.wait_for_function(
        """step => {
          const slider = document.querySelector('.st-key-step input[type=range]');
          const bars = [...document.querySelectorAll('.plot')]
            .some((plot) => plot.meta?.name?.startsWith(`step-${step}-`));
          return slider?.value == step && bars && window.__attnviz.row === step - 1;
        }""",
        arg=step,
        timeout=20_000,
    )


def test_keys_go_from_row_to_row_after_a_click(view):
    dashboard = view(SHORT, charts=3)
    chart = dashboard.page.locator(".plot").first
    chart.scroll_into_view_if_needed()
    x, y = chart.evaluate("""chart => {
      const box = chart.getBoundingClientRect(), { xaxis: x, yaxis: y } = chart._fullLayout;
      return [box.left + x._offset + x.l2p(1), box.top + y._offset + y.l2p(1)];
    }""")
    dashboard.page.mouse.click(x, y)
    at_step(dashboard, 2)
    top = dashboard.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop")
    dashboard.page.keyboard.press("ArrowDown")
    dashboard.page.keyboard.press("ArrowDown")
    at_step(dashboard, 4)
    dashboard.page.keyboard.press("ArrowUp")
    at_step(dashboard, 3)
    assert dashboard.page.evaluate("document.querySelector('[data-testid=stMain]').scrollTop") == top
    shapes = dashboard.page.evaluate("""() => [...document.querySelectorAll('.plot')]
      .map((plot) => (plot._fullLayout.shapes ?? []).map((shape) => shape.name))""")
    assert shapes[:2] == [["predicted places"] * 2, ["window", "predicted place"]]
    pointed(dashboard, key=0)
    label = dashboard.page.locator(".hoverlayer .hovertext")
    label.wait_for()
    query = dashboard.page.locator(".step b").first.inner_text()
    assert label.text_content().startswith(f"‘{query}’ (")


def pointed(dashboard, key: int) -> None:
    """The pointer goes to the top of a column of the bars, above the bar itself."""
    bars = dashboard.page.locator(".plot").nth(1)
    bars.scroll_into_view_if_needed()
    x, y = bars.evaluate(
        """(chart, key) => {
          const box = chart.getBoundingClientRect(), { xaxis: x, yaxis: y } = chart._fullLayout;
          return [box.left + x._offset + x.l2p(key), box.top + y._offset + y.l2p(1) + 2];
        }""",
        key,
    )
    dashboard.page.mouse.move(x, y, steps=3)


def test_all_steps_are_played_until_the_last_or_until_it_is_stopped(view):
    dashboard = view(SHORT, charts=3, as_left=True)
    dashboard.slider.press("Home")
    dashboard.slider.press("ArrowRight")
    at_step(dashboard, 2)
    last = int(dashboard.slider.get_attribute("max"))
    play = dashboard.page.locator(".play")
    play.click()
    expect(play).to_have_text("❚❚ Pause")
    at_step(dashboard, last)
    dashboard.page.wait_for_function("document.querySelector('.play')?.textContent === '▶ Play the steps'")
    play.click()  # from the first again
    at_step(dashboard, 1)
    dashboard.page.keyboard.press("Escape")
    expect(play).to_have_text("▶ Play the steps")
