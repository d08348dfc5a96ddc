"""Each panel of the page of heads in a real browser: its control, and the data of what is then drawn."""

import numpy as np
import pytest
from heads_panels import CHARTS, OPEN, TEXT, charts, charts_once, layers, near, pick, switch
from playwright.sync_api import expect

import attnviz
from attnviz import figures, heads, rollout, select
from attnviz.heads import Head

pytestmark = pytest.mark.xdist_group("browser-others")  # one process opens its pages and servers
DECODER = "&kind=Self-attention+of+the+decoder"


@pytest.fixture(scope="module")
def trace():
    return attnviz.load("en-fr/transformer").trace(TEXT)


def test_heads_compared_and_their_mean_and_heads_off(dashboard, trace):
    dashboard.open(OPEN + DECODER + "&tables=true", CHARTS - 1)  # no syntax
    pick(dashboard, "compare", "layer 3, head 4")
    dashboard.drawn(CHARTS)
    dashboard.page.keyboard.press("Escape")
    switch(dashboard, "mean")
    dashboard.drawn(CHARTS + 1)
    chosen = [(0, 0), (0, 1), (2, 3)]
    expected = select.mean(trace, "decoder", chosen).weights
    *maps, mean = charts_once(dashboard, "compared", lambda shown: len(shown) == 4 and near(shown[-1]["z"], expected))
    assert len(maps) == 3 and near(mean["z"], expected)
    assert all(
        chart["shapes"] == ["hidden"] and np.isnan(chart["z"][0][1]) for chart in (*maps, mean)
    )  # masked is not zero
    sentence = (
        figures.heatmap(select.mean(trace, "decoder", chosen)).data[0].hovertext
    )  # which the page writes out by itself
    assert mean["hover"] == [list(row) for row in sentence]
    assert (
        "statistics of a mean are not the mean of the statistics"
        in dashboard.page.locator(".st-key-chart-compared").inner_text().lower()
    )
    far = heads.distances(trace, [Head("decoder", *head) for head in chosen]).iloc[0, 2]
    expect(dashboard.page.get_by_role("cell", name=f"{far:.3f}", exact=True).first).to_be_visible()
    heads_are_switched_off_and_every_chart_has_a_table(dashboard, trace)


def heads_are_switched_off_and_every_chart_has_a_table(dashboard, trace) -> None:
    pick(dashboard, "off", "decoder layer 2, head 1")
    dashboard.drawn(CHARTS + 2)
    [without] = charts(dashboard, "without")
    assert without["shapes"] == ["switched off"] and without["told"].endswith(
        "Switched off, crossed out: layer 2, head 1."
    )
    dashboard.page.get_by_text("layer 2, head 1 (switched off)", exact=True).wait_for()
    tables = dashboard.page.locator("table.numbers caption").all_inner_texts()
    for caption in (
        "Every head: mean",
        f"Weights of layer {layers(trace, 'decoder')} head 1",
        "Weights of layer 1, head 1",
        "Weights of layer 1, head 2",
        "Jensen",
        "Pattern scores of every head",
        f"Rollout up to layer {layers(trace, 'decoder')}",
        "Share of each layer's weight by distance",
    ):
        assert any(table.startswith(caption) for table in tables), caption
    assert all(
        dashboard.page.locator(".plot[role=figure]").evaluate_all("all => all.map((one) => one.ariaLabel?.length > 20)")
    )


def test_the_heads_most_like_a_pattern_and_most_like_a_head(view, trace):
    dashboard = view(OPEN, CHARTS, as_left=True)
    table = heads.table(trace, "encoder")
    pick(dashboard, "pattern", "Next token")
    dashboard.drawn(CHARTS)
    [scores] = charts_once(dashboard, "pattern", lambda shown: near(np.ravel(shown[0]["z"]), table["next"]))
    assert near(np.ravel(scores["z"]), table["next"])
    pick(dashboard, "pattern", "layer 2, head 3")
    dashboard.drawn(CHARTS)
    nearest = heads.nearest(trace, Head("encoder", 1, 2))
    expected = nearest.pivot(index="layer", columns="head", values="jensen_shannon")
    [distances] = charts_once(dashboard, "pattern", lambda shown: near(shown[0]["z"], expected))
    assert near(distances["z"], expected) and np.isnan(distances["z"][1][2])
    best = nearest.iloc[0]
    row = dashboard.page.get_by_role(
        "row", name=f"layer {best.layer + 1}, head {best['head'] + 1} {best.jensen_shannon:.3f}", exact=True
    )
    expect(row).to_have_count(1)


def test_rollout_up_to_a_layer(view, trace):
    dashboard = view(OPEN, CHARTS, as_left=True)
    dashboard.press("depth", "2")
    dashboard.page.wait_for_function("location.search.includes('depth=2')")
    dashboard.drawn(CHARTS)
    expected = rollout.rollout(trace).map("encoder", 1).weights[0]
    rolled, far = charts_once(dashboard, "depth", lambda shown: near(shown[0]["z"], expected))
    assert near(rolled["z"], expected) and "layer 3 most at" in far["told"]


def test_the_table_of_heads_sorts_whole_rows(view, trace):
    dashboard = view(OPEN, CHARTS, as_left=True)
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


def test_the_label_of_a_sentence_the_heads_that_it_used_and_the_card_of_the_classifier(dashboard, axe):
    dashboard.open("/heads?model=Sentiment+of+a+sentence+%C2%B7+Self-attention&text=A+funny%2C+moving+film.", 12)
    assert dashboard.translations == ["positive"] and len(charts(dashboard, "verdict")) == 1
    used = (
        dashboard.page.locator("table.numbers", has_text="How much each head matters")
        .locator("td:not(:empty)")
        .all_inner_texts()
    )
    changes = [float(change.replace("−", "-")) for change in used]
    assert len(changes) == 4 and changes == sorted(changes) and changes[0] < 0
    shown = dashboard.page.locator("details.card > div")
    expect(shown).to_be_hidden()
    dashboard.page.locator(".model summary").click()
    expect(shown).to_be_visible()
    card = shown.inner_text()
    assert "accuracy %" in card and "Parameters" in card and "distilled from 10 trained models" in card
    dashboard.page.keyboard.press("Escape")
    expect(shown).to_be_hidden()
    dashboard.page.evaluate("document.querySelectorAll('details').forEach((panel) => { panel.open = true; })")
    dashboard.rest()
    dashboard.page.wait_for_function("!document.querySelector('[data-stale=true]')")
    findings = {"light": axe(dashboard.page)}
    dashboard.page.emulate_media(color_scheme="dark")
    dashboard.page.wait_for_function("window.__attnviz?.theme === 'dark'")
    dashboard.page.wait_for_timeout(500)
    dashboard.rest()
    findings["dark"] = axe(dashboard.page, rules=["color-contrast"])  # all that a theme changes
    assert not any(findings.values()), findings
