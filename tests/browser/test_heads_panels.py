"""Each panel of the page of heads in a real browser: its control, and the data of what is then drawn."""

import numpy as np
import pytest

import attnviz
from attnviz import figures, heads, rollout, select
from attnviz.heads import Head

pytestmark = pytest.mark.xdist_group("browser-heads-panels")  # one process opens its pages and servers

TEXT = "Two boys play with a yellow ball."
OPEN = "/heads?text=Two+boys+play+with+a+yellow+ball."
CHARTS = 9  # overview, close-up (2), compared (2) and their lines, pattern, rollout, distance
DECODER = "&kind=Self-attention+of+the+decoder"
COUNT_SENT = """() => { window.__sent = 0; const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (...rest) { __sent += 1; return send.apply(this, rest); }; }"""


@pytest.fixture(scope="module")
def trace():
    return attnviz.load("en-fr/transformer").trace(TEXT)


def charts(dashboard, panel: str) -> list[dict]:
    """What is drawn in a panel: values of the first trace, names of shapes, tokens, and what is told to those who do not see it."""
    return dashboard.page.evaluate(
        """(panel) => [...document.querySelectorAll(`.st-key-chart-${panel} .plot`)].map((chart) => ({
          z: [...(chart._fullData[0].z ?? [])].map((row) => [...row].map((value) => value ?? NaN)), told: chart.ariaLabel,
          shapes: (chart._fullLayout.shapes ?? []).map((shape) => shape.name), keys: chart._fullLayout.xaxis.ticktext,
          hover: chart._fullData[0].hovertext, heads: chart._fullData[0].customdata, names: chart._fullData[1]?.text }))""",
        panel,
    )


def drawn(dashboard, panel: str, wanted) -> list[dict]:
    """The charts of a panel once `wanted` is true of them: the answer to what was pressed takes its time."""
    found = charts(dashboard, panel)
    for _ in range(600):
        if wanted(found):
            break
        dashboard.page.wait_for_timeout(50)
        found = charts(dashboard, panel)
    return found


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


def test_the_overview_takes_an_order_and_colours(shared, trace):
    shared.show(OPEN, CHARTS)
    pick(shared, "order", "Previous token")
    shared.drawn(CHARTS)
    pick(shared, "color", "Weight on special tokens")
    shared.drawn(CHARTS)
    table = heads.table(trace, "encoder")
    best = heads.most_like(table, "previous", 12)
    names = [f"{layer + 1}·{head + 1}" for layer, head in zip(best.layer, best["head"])]
    [overview] = drawn(
        shared,
        "overview",
        lambda found: found[0]["names"] == names and near(np.ravel(found[0]["z"]), best.special_mass),
    )
    assert overview["names"] == names and near(np.ravel(overview["z"]), best.special_mass)


def test_a_head_is_opened_by_keys_and_special_tokens_can_be_hidden(dashboard, trace):
    dashboard.open(OPEN, CHARTS)
    dashboard.page.locator(".st-key-head").get_by_role("radio", name="1", exact=True).or_(
        dashboard.page.locator(".st-key-head").get_by_role("button", name="1", exact=True)
    ).first.focus()
    dashboard.page.keyboard.press("ArrowRight")
    dashboard.page.keyboard.press("Enter")
    dashboard.page.wait_for_function("location.search.includes('head=2')")
    switch(dashboard, "special")
    dashboard.page.wait_for_function("location.search.includes('special=false')")
    dashboard.drawn(CHARTS)
    grid = select.select(trace, "encoder", -1, 1, special=False)
    closeup = drawn(dashboard, "closeup", lambda found: near(found[0]["z"], grid.weights))[0]
    assert near(closeup["z"], grid.weights) and not any("eos" in key for key in closeup["keys"])
    said = dashboard.page.locator(".st-key-chart-closeup").inner_text()
    assert f"pecial tokens are hidden: {100 * grid.removed.mean():.0f} % of the weight on average" in said


def test_the_pointer_brings_out_a_row_and_a_column_and_asks_nobody(shared, trace):
    shared.show(OPEN, CHARTS)
    weights = trace.map("encoder").weights[0]
    shared.page.evaluate(COUNT_SENT)
    for side, place in ((0, 1), (1, 6), (0, 8)):
        expected = (weights[:, place] if side else weights[place]) >= 0.05
        assert len(point(shared, "closeup", side, place, len(weights))) == expected.sum()
        tip, best = shared.page.locator(".tip").inner_text(), weights[:, place].max() if side else weights[place].max()
        assert f"{best:.2f}" in tip and ("looks at it most" in tip) == bool(side)
    several = point(shared, "compared-lines", 1, 2, len(weights))
    assert len(set(several)) == 2  # a colour a head
    shared.page.mouse.move(2, 2)
    assert shared.page.locator(".lit-lines").count() == 0 and shared.page.evaluate("__sent") == 0


LINES = """() => [...document.querySelectorAll('.st-key-chart-closeup .threads path')].map((path) => {
  const { width, height, x, y } = path.getBoundingClientRect(), chart = path.closest('.plot'), box = chart.getBoundingClientRect();
  const { xaxis, yaxis } = chart._fullLayout;
  return { count: path.getAttribute('d').split('M').length - 1, left: x - box.left - xaxis._offset - xaxis.l2p(0),
    right: x + width - box.left - xaxis._offset - xaxis.l2p(1), over: y - box.top - yaxis._offset, under: y + height - box.top - yaxis._offset - yaxis._length };
})"""


def test_lines_of_another_head_are_drawn_between_the_same_tokens(dashboard, trace):
    dashboard.open(OPEN, CHARTS)
    dashboard.page.evaluate("""() => {
      const react = Plotly.react;
      window.__drawn = [];
      Plotly.react = (chart, ...rest) => { __drawn.push(chart.meta.label); return react(chart, ...rest); };
    }""")
    pick_head(dashboard, 1)
    assert dashboard.page.evaluate("__drawn") == ["heatmap encoder layer 1 head 2"]  # Plotly is not asked for the lines
    dashboard.page.wait_for_function(
        "document.querySelector('.st-key-chart-closeup').getBoundingClientRect().top < innerHeight / 2"
    )
    weights = select.select(trace, "encoder", 0, 1).weights
    for width in (1366, 1100):
        dashboard.page.set_viewport_size({"width": width, "height": 900})
        dashboard.drawn(CHARTS)
        found = dashboard.page.evaluate(LINES)
        assert sum(path["count"] for path in found) == (weights >= 0.05).sum()
        assert all(
            abs(path["left"]) < 4 and abs(path["right"]) < 4 and path["over"] > -4 and path["under"] < 4
            for path in found
        )


def pick_head(dashboard, head: int) -> None:
    """Click on a head of the first layer in the overview."""
    area = dashboard.page.locator(".st-key-chart-overview .nsewdrag").first
    box = area.bounding_box()
    area.click(position={"x": box["width"] * (head + 0.5) / 4, "y": box["height"] / 6})
    dashboard.page.wait_for_function("head => location.search.includes(`head=${head + 1}`)", arg=head)
    dashboard.drawn(CHARTS)


def test_the_browsers_back_goes_to_the_head_before(dashboard, trace):
    dashboard.open(OPEN, CHARTS)
    for head in (1, 2):
        pick_head(dashboard, head)
    dashboard.page.go_back()
    dashboard.page.wait_for_function("location.search.includes('head=2')")
    dashboard.drawn(CHARTS)
    expected = select.select(trace, "encoder", 0, 1).weights
    closeup = drawn(dashboard, "closeup", lambda found: near(found[0]["z"], expected))
    assert near(closeup[0]["z"], expected) and "layer 1, head 2" in closeup[1]["told"]


def test_what_the_pointer_brings_out_is_of_the_head_on_show(dashboard, trace):
    dashboard.open(OPEN, CHARTS)
    point(dashboard, "closeup", 0, 2, len(trace.source))
    assert dashboard.page.locator(".tip").inner_text().startswith("Layer 3, head 1")
    cursor = "getComputedStyle(document.querySelectorAll('.st-key-chart-closeup .plot')[1]).cursor"
    assert dashboard.page.evaluate(cursor) == "pointer"
    dashboard.page.locator(".st-key-head button").last.focus()  # the pointer rests where it is
    dashboard.page.keyboard.press("Enter")
    dashboard.page.wait_for_function("document.querySelector('.tip')?.innerText.startsWith('Layer 3, head 4')")
    expected = select.select(trace, "encoder", 2, 3).weights[2] >= 0.05
    lit = dashboard.page.locator(".lit-lines path").evaluate_all(
        "all => all.map((path) => path.getAttribute('d').split('M').length - 1)"
    )
    assert sum(lit) == expected.sum()


def test_a_click_on_a_token_keeps_its_row(dashboard, trace):
    dashboard.open(OPEN, CHARTS)
    point(dashboard, "closeup", 0, 2, len(trace.source))
    dashboard.page.mouse.down()
    dashboard.page.mouse.up()
    dashboard.page.wait_for_function("location.search.includes('row=3')")
    dashboard.drawn(CHARTS)
    assert "Step 3, ‘play’: looks at" in dashboard.page.locator(".st-key-chart-closeup").inner_text()


def test_heads_compared_and_their_mean(dashboard, trace):
    dashboard.open(OPEN + DECODER, CHARTS)
    pick(dashboard, "compare", "layer 3, head 4")
    dashboard.drawn(CHARTS + 1)
    dashboard.page.keyboard.press("Escape")
    switch(dashboard, "mean")
    dashboard.drawn(CHARTS + 2)
    chosen = [(0, 0), (0, 1), (2, 3)]
    expected = select.mean(trace, "decoder", chosen).weights
    *maps, mean = drawn(dashboard, "compared", lambda found: len(found) == 4 and near(found[-1]["z"], expected))
    assert len(maps) == 3 and near(mean["z"], expected)
    assert all(
        chart["shapes"] == ["hidden"] and np.isnan(chart["z"][0][1]) for chart in (*maps, mean)
    )  # masked is not zero
    said = (
        figures.heatmap(select.mean(trace, "decoder", chosen)).data[0].hovertext
    )  # which the page writes out by itself
    assert mean["hover"] == [list(row) for row in said]
    assert (
        "statistics of a mean are not the mean of the statistics"
        in dashboard.page.locator(".st-key-chart-compared").inner_text().lower()
    )
    far = heads.distances(trace, [Head("decoder", *head) for head in chosen]).iloc[0, 2]
    assert dashboard.page.get_by_role("cell", name=f"{far:.3f}", exact=True).count()


def test_the_heads_most_like_a_pattern_and_most_like_a_head(shared, trace):
    shared.show(OPEN, CHARTS)
    table = heads.table(trace, "encoder")
    pick(shared, "pattern", "Next token")
    shared.drawn(CHARTS)
    [scores] = drawn(shared, "pattern", lambda found: near(np.ravel(found[0]["z"]), table["next"]))
    assert near(np.ravel(scores["z"]), table["next"])
    pick(shared, "pattern", "layer 2, head 3")
    shared.drawn(CHARTS)
    nearest = heads.nearest(trace, Head("encoder", 1, 2))
    expected = nearest.pivot(index="layer", columns="head", values="jensen_shannon")
    [distances] = drawn(shared, "pattern", lambda found: near(found[0]["z"], expected))
    assert near(distances["z"], expected) and np.isnan(distances["z"][1][2])
    best = nearest.iloc[0]
    row = shared.page.get_by_role(
        "row", name=f"layer {best.layer + 1}, head {best['head'] + 1} {best.jensen_shannon:.3f}", exact=True
    )
    assert row.count() == 1


def test_rollout_up_to_a_layer(shared, trace):
    shared.show(OPEN, CHARTS)
    shared.press("depth", "2")
    shared.page.wait_for_function("location.search.includes('depth=2')")
    shared.drawn(CHARTS)
    expected = rollout.rollout(trace).map("encoder", 1).weights[0]
    rolled, far = drawn(shared, "depth", lambda found: near(found[0]["z"], expected))
    assert near(rolled["z"], expected) and "layer 3 most at" in far["told"]


def test_heads_are_switched_off_and_every_chart_has_a_table(dashboard, trace):
    dashboard.open(OPEN + "&tables=true", CHARTS)
    pick(dashboard, "off", "encoder layer 2, head 1")
    dashboard.drawn(CHARTS + 1)
    [without] = charts(dashboard, "without")
    assert without["shapes"] == ["switched off"] and without["told"].endswith(
        "Switched off, crossed out: layer 2, head 1."
    )
    dashboard.page.get_by_text("layer 2, head 1 (switched off)", exact=True).wait_for()
    tables = dashboard.page.locator("table.numbers caption").all_inner_texts()
    for caption in (
        "Every head: mean",
        "Weights of layer 3 head 1",
        "Weights of layer 1, head 1",
        "Weights of layer 1, head 2",
        "Jensen",
        "Pattern scores of every head",
        "Rollout up to layer 3",
        "Share of each layer's weight by distance",
    ):
        assert any(table.startswith(caption) for table in tables), caption
    assert all(
        dashboard.page.locator(".plot[role=figure]").evaluate_all("all => all.map((one) => one.ariaLabel?.length > 20)")
    )


def test_the_table_of_heads_sorts_whole_rows(dashboard, trace):
    dashboard.open(OPEN, CHARTS)
    frame = dashboard.page.locator("[data-testid=stDataFrame]")
    frame.scroll_into_view_if_needed()
    cells = """() => [...document.querySelectorAll('[data-testid=stDataFrame] canvas tbody tr')]
      .map((row) => [...row.querySelectorAll('td')].slice(0, 3).map((cell) => cell.innerText))"""
    dashboard.page.wait_for_function(f"({cells})().length > 3")
    box = frame.locator("canvas").first.bounding_box()
    dashboard.page.mouse.move(box["x"] + 150, box["y"] + 16, steps=4)  # the name of the third column, entropy
    dashboard.page.wait_for_timeout(200)
    dashboard.page.mouse.down()
    dashboard.page.wait_for_timeout(100)
    dashboard.page.mouse.up()
    table = heads.table(trace, "encoder").sort_values("entropy_nats")
    expected = (table[["layer", "head"]] + 1).to_numpy().tolist()
    dashboard.page.wait_for_function(
        f"first => ({cells})()[0]?.slice(0, 2).join() === first", arg=",".join(map(str, expected[0]))
    )
    shown = dashboard.page.evaluate(cells)
    assert [[int(layer), int(head)] for layer, head, _ in shown] == expected[: len(shown)]
    assert [float(entropy) for *_, entropy in shown] == pytest.approx(table["entropy_nats"][: len(shown)].tolist())


def test_the_sentence_goes_along_to_the_other_page_and_back(dashboard):
    dashboard.open("/?text=A+cat+sleeps.&show=Transformer", 3)
    link = dashboard.page.get_by_role("link", name="Heads and layers")
    link.click()
    dashboard.page.wait_for_selector(".st-key-chart-overview")
    dashboard.drawn(CHARTS)
    assert dashboard.sentence.input_value() == "A cat sleeps." and dashboard.translations == ["Un chat dort."]
    assert "text=A+cat+sleeps." in dashboard.page.url
    dashboard.type("A dog sleeps.")
    dashboard.page.wait_for_function("location.search.includes('dog')")
    dashboard.drawn(CHARTS)
    dashboard.page.get_by_role("link", name="One sentence, several models").click()
    dashboard.page.wait_for_selector(".st-key-chart-heatmaps")
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.startsWith('Un chien dort.')")
    assert dashboard.sentence.input_value() == "A dog sleeps." and "text=A+dog+sleeps." in dashboard.page.url


def test_the_label_of_a_sentence_and_the_heads_that_it_used(dashboard):
    dashboard.open("/heads?model=Sentiment+of+a+sentence+%C2%B7+Self-attention&text=A+funny%2C+moving+film.", 11)
    assert dashboard.translations == ["positive"] and len(charts(dashboard, "verdict")) == 1
    used = (
        dashboard.page.locator("table.numbers", has_text="How much each head matters")
        .locator("td:not(:empty)")
        .all_inner_texts()
    )
    assert len(used) == 4 and [float(change) for change in used] == sorted(map(float, used)) and float(used[0]) < 0
