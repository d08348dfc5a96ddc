"""The page in a real Chromium on the real server: what a person does, and what they see."""

import json
import re
from urllib.parse import parse_qs, quote, urlparse

import numpy as np
import pytest
from playwright.sync_api import expect

import attnviz
from attnviz import select
from attnviz.export import heading
from attnviz.figures.labels import escape
from attnviz.figures.wording import row_sentences
from dashboard.browser import script
from dashboard.browser.plot import FORMS, rows_of

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers
BLACK_DOG = "The black dog is running across the green grass."


def looks_at(heatmap: dict, query: str) -> str:
    """The source token with the most weight in the row of a target token."""
    row = heatmap["weights"][heatmap["queries"].index(query)]
    return heatmap["keys"][row.index(max(row))]


def test_a_good_example_is_drawn_before_anything_is_typed(view):
    dashboard = view()
    expect(dashboard.sentence).to_have_value(BLACK_DOG)
    expect(dashboard.page.locator(".count")).to_have_text("9 words · 48 of at most 500 characters (and 200 pieces)")
    heatmaps = dashboard.heatmaps()
    assert len(heatmaps) == 3
    for heatmap in heatmaps:
        assert looks_at(heatmap, "noir") == "black"
        assert looks_at(heatmap, "chien") == "dog"
    for translation in dashboard.translations:
        assert re.match(r"(Le|Un) chien noir court .*herbe verte\.$", translation), translation


def test_the_words_are_counted_when_the_page_itself_changes_the_field_last(view):
    """After Back, the server's count may come before the text of the field, which React writes like this."""
    dashboard = view()
    for text, count in (("A dog runs.", "3 words · 11 of"), (BLACK_DOG, "9 words · 48 of")):
        dashboard.sentence.evaluate(
            """(field, text) => {
              Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, "value").set.call(field, text);
              field.setAttribute("value", text);
            }""",
            text,
        )
        expect(dashboard.page.locator(".count")).to_contain_text(count)


PULSES = """new MutationObserver(() => {
  for (const grey of document.querySelectorAll(".stApp [data-testid=stSkeleton]")) {
    (window.__pulses ??= new Set()).add(getComputedStyle(grey).animationDelay);
  }
}).observe(document, { childList: true, subtree: true });"""


def test_enter_redraws_and_the_link_reopens_the_view(dashboard, look):
    """Our scripts and styles, which are as long as all charts, come with the index page and not with the charts. The
    places of what is not drawn yet do not pulse in the first second: that would be a tenth of what a load costs."""
    dashboard.page.add_init_script(PULSES)
    frames, scripts = [], (b"function watchTheme", b"function unpacked", b".row-outline")
    dashboard.page.on("websocket", lambda socket: socket.on("framereceived", lambda frame: frames.append(bytes(frame))))
    dashboard.open("/?show=Bahdanau", charts=3)
    assert dashboard.page.evaluate("[...window.__pulses]") == ["1s"]
    dashboard.type("A man is reading a book.")  # of another number of steps
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.startsWith('Un homme')")
    dashboard.drawn(3)
    assert frames and not any(script in frame for script in scripts for frame in frames)
    before = dashboard.heatmaps()
    assert parse_qs(urlparse(dashboard.page.url).query)["text"] == ["A man is reading a book."]
    with look(dashboard.address) as elsewhere:
        elsewhere.open(dashboard.page.url.removeprefix(dashboard.address), charts=3)
        expect(elsewhere.sentence).to_have_value("A man is reading a book.")
        assert elsewhere.heatmaps() == before and elsewhere.translations == dashboard.translations


def test_the_step_moves_the_bars_and_redraws_no_heatmap(view):
    dashboard = view()
    dashboard.page.evaluate("""() => {
      const react = Plotly.react;
      window.__drawn = [];
      Plotly.react = (chart, data, layout, ...rest) => {
        __drawn.push(chart.meta.name);
        return react(chart, data, layout, ...rest);
      };
    }""")
    dashboard.slider.press("ArrowRight")
    dashboard.slider.press("ArrowRight")
    dashboard.page.wait_for_function("document.querySelector('.step b')?.innerText === 'noir'")
    dashboard.drawn()
    drawn = set(dashboard.page.evaluate("__drawn"))
    assert {"step-3-bahdanau", "step-3-luong-general", "step-3-transformer"} <= drawn
    assert all(name.startswith("step-") for name in drawn)
    assert dashboard.step == 3
    assert outlined(dashboard) == [2, 2, 2]
    assert "step=3" in dashboard.page.url
    shown = dashboard.page.locator(".step").first.inner_text()
    probability, highest = map(float, re.search(r"probability ([\d.]+)\s+noir ([\d.]+)", shown).groups())
    assert probability == highest > 0.5
    dashboard.slider.press("Home")  # the page of the tests that follow
    dashboard.page.wait_for_function("!location.search.includes('step=')")


SENTENCES = """(rows) => {
  const charts = window.__attnvizCharts;
  SCRIPT
  window.__attnvizCharts = charts;
  const said = (row, i) => [sentenceOf(row, i, row.forms), stepName(row, i, row.forms)];
  return rows.map((row) => row.looks.map((_, i) => said(row, i)));
}"""


def test_the_browser_says_of_each_row_what_python_says(view):
    """Ties, rows without weights or below 0.005, halves of a hundredth, hidden cells and tokens, markup, Japanese."""
    rng = np.random.default_rng(3)
    causal = np.tril(rng.dirichlet(np.full(6, 0.2), (2, 6)).astype("f4") + 1e-3)
    exact = np.array([[0.125, 0.375, 0.5, 0], [0.004, 0.996, 0, 0], [0, 0, 0, 1], [1 / 3, 1 / 3, 1 / 3, 0]], "f4")
    tokens = ["<b>&amp;", "$x$", "\u202eab", "{query}", "犬", "<eos>"]
    traces = [
        attnviz.from_arrays([causal / causal.sum(-1, keepdims=True)], tokens, special=["<eos>"]),
        attnviz.from_arrays([exact[None]], ["a", "a", "b", "<eos>"], kind="encoder", special=["<eos>"]),
        attnviz.from_arrays([np.full((1, 4, 300), 1 / 300)], ["a"] * 300, ["走る", "犬", "が", "。"]),
        attnviz.from_arrays([np.eye(3)[[[0, 2, 1]]] * 0.9964 + 0.0012], ["Ein", "·", "\u200d"], ["un", "⁇", "x"]),
    ]
    grids = [select.select(trace, special=special) for trace in traces for special in (True, False)]
    page, rows = view().page, [json.loads(json.dumps(rows_of(grid) | {"forms": FORMS})) for grid in grids]
    shown = page.evaluate(SENTENCES.replace("SCRIPT", script("plot.js")), rows)
    wanted = [
        [
            list(pair)
            for pair in zip(row_sentences(grid, range(len(grid.queries))), map(escape, heading.step_names(grid)))
        ]
        for grid in grids
    ]
    assert shown == wanted
    assert any("all its weight is on special tokens" in sentence for sentence, _ in wanted[3])
    assert wanted[2][0][0] == "Row 1, ‘a’: looks at ‘b’ 0.50, ‘a’ 0.38, ‘a’ 0.12."
    assert wanted[4][0][0] == "Step 1, ‘走る’: looks at no token with 0.005 or more."


def outlined(dashboard) -> list[int]:
    """The row under the outline of each heatmap, from where it stands on the page."""
    return dashboard.page.evaluate("""() => [...document.querySelectorAll('.row-outline')].map((box) => {
      const chart = box.closest('.plot'), y = chart._fullLayout.yaxis;
      const middle = box.offsetTop + box.offsetHeight / 2 - y._offset;
      return Math.round(y.p2l(middle));
    })""")


def test_layer_head_and_kind_of_the_transformer(view):
    dashboard = view("/?show=Transformer", charts=3, as_left=True)
    dashboard.type(BLACK_DOG)
    dashboard.page.wait_for_function("!location.search.includes('text=')")
    dashboard.drawn(3)
    note = dashboard.page.locator(".what")
    expect(note).to_contain_text("mean of its 4 heads")
    mean = dashboard.heatmaps()
    dashboard.press("head", "2")
    dashboard.press("layer", "1")
    note.filter(has_text="layer 1, head 2 of 4").wait_for()
    dashboard.drawn(3)
    assert dashboard.heatmaps() != mean
    dashboard.choose("kind", "Self-attention of the encoder")
    note.filter(has_text="Self-attention of the encoder").wait_for()
    dashboard.drawn(3)
    [heatmap] = dashboard.heatmaps()
    assert heatmap["queries"] == heatmap["keys"]
    dashboard.choose("kind", "Self-attention of the decoder")
    note.filter(has_text="Self-attention of the decoder").wait_for()
    dashboard.drawn(3)
    [heatmap] = dashboard.heatmaps()
    assert heatmap["keys"][0] == "<i>&lt;bos&gt;</i>"


def test_one_target_for_all_and_the_difference_of_two_maps(dashboard):
    dashboard.open("/?show=Bahdanau&show=Transformer", charts=5)
    dashboard.choose("target", "One text for all: typed")
    dashboard.page.get_by_text("Type the French text").wait_for()
    assert len(dashboard.heatmaps()) == 2  # the last good picture stays
    field = dashboard.page.locator(".st-key-force input")
    field.fill("Un chien noir court dans l'herbe.")
    field.press("Enter")
    dashboard.drawn(6)
    assert dashboard.translations == ["Un chien noir court dans l'herbe."] * 2
    expect(dashboard.page.locator(".said").first).to_contain_text("forced")
    a, b = dashboard.heatmaps()
    shown = dashboard.page.evaluate("""() => [...document.querySelectorAll('.plot')]
      .filter((chart) => chart.meta.name.startsWith('difference'))
      .map((chart) => [...chart._fullData[0].z].map((row) => [...row]))""")
    for row, left, right in zip(shown[0], a["weights"], b["weights"]):
        assert row == pytest.approx([x - y for x, y in zip(left, right)], abs=2e-4)
    dashboard.choose("target", "One text for all: Bahdanau's")
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.includes('herbe verte')")
    dashboard.drawn(6)
    assert len(set(dashboard.translations)) == 1
    pointer_says_where_a_click_does_something(dashboard, {"heatmap-bahdanau", "heatmap-transformer"})


def pointer_says_where_a_click_does_something(dashboard, maps: set[str]) -> None:
    pointers = {}
    for chart in dashboard.page.locator(".plot:not([hidden])").all():
        chart.scroll_into_view_if_needed()
        box = chart.evaluate("""chart => {
          const box = chart.getBoundingClientRect(), { xaxis: x, yaxis: y } = chart._fullLayout;
          return [box.left + x._offset + x._length / 2, box.top + y._offset + y._length / 2];
        }""")
        dashboard.page.mouse.move(*box)
        pointers[chart.evaluate("chart => chart.meta.name")] = dashboard.page.evaluate(
            "([x, y]) => getComputedStyle(document.elementFromPoint(x, y)).cursor", box
        )
    assert len(pointers) == 6
    assert {name for name, cursor in pointers.items() if cursor == "pointer"} == maps, pointers


def test_numbers_behind_a_chart(view):
    dashboard = view()
    dashboard.page.get_by_text("Charts as tables too").click()
    table = dashboard.page.locator("table.numbers:not(.card *)").first
    dashboard.page.wait_for_function("document.querySelectorAll('table.numbers:not(.card *)').length === 11")
    cells = [float(cell) for cell in table.locator("tbody tr").nth(2).locator("td").all_inner_texts()]
    assert cells == pytest.approx(dashboard.heatmaps()[0]["weights"][2], abs=0.006)
    dashboard.page.get_by_text("Charts as tables too").click()  # the page of the tests that follow
    dashboard.page.wait_for_function("!location.search.includes('tables=')")
    dashboard.drawn()


def test_a_click_on_a_heatmap_row_goes_to_that_step(view):
    dashboard = view("/?show=Bahdanau", charts=3)
    chart = dashboard.page.locator(".plot").first
    chart.scroll_into_view_if_needed()
    for row in (4, 1, 1):
        place = chart.evaluate(
            """(chart, row) => {
          const box = chart.getBoundingClientRect(), { xaxis: x, yaxis: y } = chart._fullLayout;
          return [box.left + x._offset + x.l2p(3), box.top + y._offset + y.l2p(row)];
        }""",
            row,
        )
        dashboard.page.mouse.click(*place)
        dashboard.page.wait_for_function(
            "n => document.querySelector('.st-key-step input[type=range]')?.value == n", arg=row + 1
        )
        assert outlined(dashboard.drawn(3))[0] == row  # at rest: the map stays where the next click goes
    assert "step=2" in dashboard.page.url
    dashboard.slider.press("Home")
    dashboard.page.wait_for_function("!location.search.includes('step=')")


def test_an_example_is_one_click_away(view):
    dashboard = view("/?show=Bahdanau", charts=3)
    dashboard.page.get_by_role("button", name="Mary left Boston in 1987.").click()
    dashboard.page.wait_for_function("document.querySelector('.said')?.innerText.includes('1987')")
    dashboard.drawn(3)
    expect(dashboard.sentence).to_have_value("Mary left Boston in 1987.")
    assert parse_qs(urlparse(dashboard.page.url).query)["text"] == ["Mary left Boston in 1987."]
    dashboard.type(BLACK_DOG)
    dashboard.page.wait_for_function("!location.search.includes('text=')")


def test_words_and_hidden_specials_are_said_plainly(view):
    dashboard = view("/?show=Bahdanau", charts=3)
    dashboard.type("The skateboarder is photographing windsurfers.")
    dashboard.page.wait_for_function("location.search.includes('skateboarder')")
    dashboard.drawn(3)
    pieces = dashboard.heatmaps()[0]
    assert any(key.startswith("·") for key in pieces["keys"])
    dashboard.press("units", "words")
    dashboard.page.wait_for_function("location.search.includes('units=words')")
    dashboard.drawn(3)
    words = dashboard.heatmaps()[0]
    assert words["keys"][:3] == ["The", "skateboarder", "is"]
    assert all(abs(sum(row) - 1) < 1e-3 for row in words["weights"])
    dashboard.page.locator(".st-key-special label").first.click()
    dashboard.page.wait_for_function("location.search.includes('special=false')")
    dashboard.drawn(3)
    assert "<i>&lt;eos&gt;</i>" not in dashboard.heatmaps()[0]["keys"]
    assert re.search(
        r"Special tokens are hidden: \d+% of the weight on average", dashboard.page.locator(".what").first.inner_text()
    )
    assert "units=words" in dashboard.page.url and "special=false" in dashboard.page.url


def test_a_long_text_is_translated_sentence_by_sentence(dashboard):
    """The address holds the sentence that is chosen; the text stays whole."""
    sentences = (
        "Mr. Hill has two old dogs and a very small white cat.",
        "The dogs run across the green grass in the park every day.",
        "The cat sleeps on a red chair by the window and dreams of fish.",
    )
    dashboard.open(f"/?show=Bahdanau&text={quote(' '.join(sentences))}", charts=3)
    page = dashboard.page
    page.get_by_text(f"Sentence 1 of 3: {sentences[0]}").wait_for()
    first = dashboard.translations[0]
    page.locator(".st-key-sentence").get_by_text("2", exact=True).click()
    page.get_by_text(f"Sentence 2 of 3: {sentences[1]}").wait_for()
    page.wait_for_function(
        "first => ![undefined, first].includes(document.querySelector('.said')?.innerText)", arg=first
    )
    page.wait_for_url("**sentence=2**")
    dashboard.open(page.url.removeprefix(dashboard.address), charts=3)
    page.get_by_text(f"Sentence 2 of 3: {sentences[1]}").wait_for()
    whole = page.get_by_text("The whole text, sentence by sentence").inner_text()
    assert first.split("\n")[0] in whole and dashboard.translations[0].split("\n")[0] in whole
    assert page.locator(".notice").filter(has_text="too long").count() == 0
    expect(dashboard.sentence).to_have_value(" ".join(sentences))
