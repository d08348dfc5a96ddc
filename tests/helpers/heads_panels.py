"""What browser tests of the page of heads share: its charts as Plotly holds them, and its controls."""

import numpy as np

TEXT = "Two boys play with a yellow ball."
OPEN = "/heads?text=Two+boys+play+with+a+yellow+ball."
CHARTS = 10  # overview, close-up (2), compared (2) and their lines, pattern, syntax, rollout, distance


def layers(trace, kind="encoder"):
    """How many layers a trace has of a kind of attention."""
    return sum(attention.kind == kind for attention in trace.maps)


def charts(dashboard, panel: str) -> list[dict]:
    """What is drawn in a panel: values of the first trace, names of shapes, tokens, and the description for those who
    do not see it."""
    return dashboard.page.evaluate(
        """(panel) => [...document.querySelectorAll(`.st-key-chart-${panel} .plot`)].map((chart) => ({
          z: [...(chart._fullData[0].z ?? [])].map((row) => [...row].map((value) => value ?? NaN)),
          told: chart.ariaLabel, shapes: (chart._fullLayout.shapes ?? []).map((shape) => shape.name),
          keys: chart._fullLayout.xaxis.ticktext, hover: chart._fullData[0].hovertext,
          heads: chart._fullData[0].customdata, names: chart._fullData[1]?.text }))""",
        panel,
    )


def charts_once(dashboard, panel: str, wanted) -> list[dict]:
    """The charts of a panel once `wanted` is true of them: the answer to what was pressed takes its time."""
    shown = charts(dashboard, panel)
    for _ in range(600):
        if wanted(shown):
            break
        dashboard.page.wait_for_timeout(50)
        shown = charts(dashboard, panel)
    return shown


def near(values, expected) -> bool:
    """Do the values of a chart become those expected? NaN stands for a gap."""
    return np.shape(values) == np.shape(expected) and np.allclose(
        np.nan_to_num(values), np.nan_to_num(expected), atol=1e-4
    )


def pick(dashboard, key: str, option: str) -> None:
    """Take an option of a long list, of which the page holds only what is in sight."""
    field = dashboard.page.locator(f".st-key-{key} input").first
    field.click()
    field.fill(option)
    dashboard.page.get_by_role("option", name=option, exact=True).click()


def switch(dashboard, key: str) -> None:
    dashboard.page.locator(f".st-key-{key} label").first.click()


def point(dashboard, panel: str, side: int, place: int, count: int) -> list[str]:
    """Point at the text of a token beside lines -> the colour of each line that stands out then."""
    chart = dashboard.page.locator(f".st-key-chart-{panel} .plot").last
    chart.scroll_into_view_if_needed()
    left, top, width, height = chart.evaluate("""(chart) => {
      const box = chart.getBoundingClientRect(), { xaxis: x, yaxis: y } = chart._fullLayout;
      return [box.left + x._offset, box.top + y._offset, x._length, y._length];
    }""")
    dashboard.page.mouse.move(left + (width + 30 if side else -30), top + height * (place + 0.5) / count)
    return dashboard.page.evaluate("""() => [...document.querySelectorAll('.lit-lines path')].flatMap(
      (path) => path.getAttribute('d').split('M').slice(1).map(() => path.getAttribute('stroke')))""")


def pick_head(dashboard, head: int) -> None:
    """Click on a head of the first layer in the overview."""
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first
    box = area.bounding_box()
    area.click(position={"x": box["width"] * (head + 0.5) / 4, "y": box["height"] / 6})
    dashboard.page.wait_for_function("head => location.search.includes(`head=${head + 1}`)", arg=head)
    dashboard.drawn(CHARTS)
