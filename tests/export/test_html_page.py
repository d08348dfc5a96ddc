"""Several traces as one page: small, offline, its step sliders apart from each other."""

import html
import operator
import re
import xml.etree.ElementTree as ElementTree

import pytest
import serving
import synthetic
import vectors
from PIL import Image

from attnviz import reading, select, stats
from attnviz.export import html_page
from attnviz.figures.theme import DARK, LIGHT

AXE = serving.ROOT / "tests" / "browser" / "vendor" / "axe.min.js"

TRACES = [
    synthetic.trace("The black dog", "Le chien noir", model="en-fr/a", seed=1),
    synthetic.trace("The black dog", "Un chien", model="en-fr/b", seed=2, kinds=("cross", "encoder")),
    synthetic.trace("The black dog", "Un chien", model="en-fr/c", kinds=()),
]


def test_a_page_without_traces_is_refused():
    with pytest.raises(ValueError, match="^there must be a trace or more, and step at least 0; got 0 and 0$"):
        html_page.page()


def test_all_models_offline_under_a_megabyte_and_a_half(tmp_path, chrome):
    file, troubles = tmp_path / "page.html", []
    file.write_bytes(html_page.page(*TRACES))
    assert file.stat().st_size < 1_500_000
    page = chrome.new_context(offline=True).new_page()
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    page.goto(file.as_uri())
    page.wait_for_function("document.querySelectorAll('.js-plotly-plot').length === 7")
    assert page.title() == page.locator("h1").inner_text() == "The black dog"
    assert page.locator("h2").all_inner_texts() == [f"Attention of {trace.model}" for trace in TRACES]
    check_beside(page)
    assert "No attention" in page.locator("body").inner_text()
    first, second = (page.locator(f"#{name}").inner_text for name in ("caption", "part1-caption"))
    before = first()
    page.locator("#part1-choose").fill("2")  # counted from 1
    page.wait_for_function("document.getElementById('part1-caption')?.textContent.startsWith('Step 2')")
    assert first() == before and second().startswith("Step 2, ‘chien’")
    assert page.locator("output").all_inner_texts() == ["1 of 4", "2 of 3"]
    with page.expect_download() as download:
        page.locator("#part1-bars [data-title='Save as SVG']").dispatch_event("click")
    texts = list(ElementTree.parse(download.value.path()).getroot().itertext())
    assert {"Step 2 of 3: ‘chien’", "The black dog", "→ Un chien", "attention weight"} <= set(texts)
    with page.expect_download() as download:
        page.locator("#cross [data-title='Save as SVG']").dispatch_event("click")
    vectors.check(download.value.path(), select.select(TRACES[0]).weights)
    check_dark(page)
    page.set_viewport_size({"width": 390, "height": 844})
    page.wait_for_function("document.documentElement.scrollWidth <= 390")  # the charts follow
    page.add_script_tag(path=AXE)
    assert page.evaluate("async () => (await axe.run()).violations.map(({ id }) => id)") == []
    assert troubles == []


def check_beside(page) -> None:
    """Models stand beside each other on a screen of a laptop, and on a wide one their maps at one height, as wide as
    their columns."""
    page.set_viewport_size({"width": 1366, "height": 768})
    tops = page.locator(".models > section").evaluate_all("all => all.map((part) => part.getBoundingClientRect().top)")
    assert len(tops) == len(TRACES) and len(set(tops)) == 1
    page.set_viewport_size({"width": 1600, "height": 900})
    page.wait_for_function("document.querySelector('#part1-cross .main-svg')?.clientWidth < 700")
    first, second = (page.locator(f"#{name}").bounding_box() for name in ("cross", "part1-cross"))
    assert first["y"] == second["y"] and first["x"] + first["width"] < second["x"]


def test_the_page_opens_at_a_step():
    page = html_page.page(TRACES[0], TRACES[1], step=3).decode()
    assert [int(value) for value in re.findall(r'max="\d" value="(\d)"', page)] == [4, 3]  # a shorter text: its last
    captions = re.findall(r'caption">(Step \d)', page)
    assert captions == ["Step 4", "Step 3"]


def test_other_sentences_are_named_with_their_models():
    page = html_page.page(TRACES[0], synthetic.trace("A <cat>", "Un chat", model="en-fr/d")).decode()
    assert "<title>The black dog · A &lt;cat&gt;</title>" in page
    assert page.count('dir="auto">The black dog</p>') == 1 == page.count('dir="auto">A &lt;cat&gt;</p>')


def check_dark(page) -> None:
    """Where the reader's browser is dark, the page is, with its charts, and what is saved of it; and light again."""
    light, dark = rgb(LIGHT.page), rgb(DARK.page)
    label = "() => getComputedStyle(document.querySelector('#part1-bars .xtick text')).fill"
    background = "() => getComputedStyle(document.body).backgroundColor"
    assert (page.evaluate(background), page.evaluate(label)) == (light, rgb(LIGHT.text))
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"({label})() === '{rgb(DARK.text)}'")
    assert page.evaluate(background) == dark
    assert page.locator("#part1-caption").inner_text().startswith("Step 2")  # the step stays
    with page.expect_download() as download:
        page.locator("#part1-bars [data-title='Save as PNG']").dispatch_event("click")
    picture = Image.open(download.value.path()).convert("RGB")
    assert (
        f"rgb{picture.getpixel((0, 0))}" == dark
        and picture.width >= 1440
        and len(set(picture.get_flattened_data())) > 50
    )
    page.emulate_media(color_scheme="light")
    page.wait_for_function(f"({label})() === '{rgb(LIGHT.text)}'")


def rgb(color: str) -> str:
    """As a browser writes it."""
    return f"rgb{tuple(int(color[place : place + 2], 16) for place in (1, 3, 5))}"


def test_japanese_letters_come_with_the_page():
    plain, japanese = (
        html_page.page(synthetic.trace("A dog", target)).decode() for target in ("Un chien", "犬は走る。")
    )
    style = re.compile(r'@font-face { font-family: "attnviz Japanese"; src: .*url\(data:font/woff;base64,')
    assert style.search(japanese) and not style.search(plain)
    assert len(japanese) < len(plain) + 10_000


def test_long_sentences_of_four_models_are_under_a_megabyte_and_a_half():
    words = [f"w{place}" for place in range(42)]
    long = [synthetic.trace(" ".join(words), " ".join(reversed(words)), model=f"en-fr/{name}") for name in "abcd"]
    assert len(html_page.page(*long)) < 1_500_000


def test_positions_count_from_one():
    page = html_page.page(TRACES[0]).decode()
    frame = stats.of_grid(select.select(TRACES[0]))
    rows = re.findall(r"<tr>(.*?)</tr>", page)[1:]
    cells = [[float(cell) for cell in re.findall(r"<td>([\d.]+)</td>", row)] for row in rows]
    place = html_page._COLUMNS.index("expected_position") + 1  # the step is the first number
    assert [row[0] for row in cells] == [1, 2, 3, 4]
    assert [row[place] for row in cells] == pytest.approx((frame["expected_position"] + 1).tolist(), abs=0.006)


def test_below_each_map_stands_what_can_be_read_from_it():
    grid = select.select(TRACES[0])
    for unit in ("word", "letter"):
        sentence = html.escape(reading.sentence(grid, unit))
        page = html_page.page(TRACES[0], unit=unit).decode()
        assert page.index('<div id="cross"') < page.index(f"<p>{sentence}</p>") < page.index("<h3>One step")


def test_the_windows_of_local_attention_are_drawn_and_explained():
    trace = synthetic.trace("The black dog", "Un chien", model="en-fr/luong-local", mechanism="luong-local")
    page = html_page.page(trace, windows={trace.model: [(0.5, 1), (1.5, 1), (2.0, 1)]}).decode()
    assert "Diamond: the place that the model predicts" in page
    assert "Diamond" not in html_page.page(trace).decode()


def test_notes_stand_under_the_translation_of_their_model():
    page = html_page.page(*TRACES[:2], notes={"en-fr/b": ["This translation is <b>."]}).decode()
    first, second = re.split(r"(?=<h2>Attention of en-fr/b)", page)
    assert "This translation" not in first
    assert '<p class="quiet">This translation is &lt;b&gt;.</p>\n' in second


LINES = """cells => cells.map((cell) => {
  const text = document.createRange();
  text.selectNodeContents(cell);
  const tops = [...text.getClientRects()].map((box) => Math.round(box.top));
  return [new Set(tops).size, cell.textContent.split(" ").length];
})"""  # of each cell: lines and words


@pytest.mark.parametrize("width", [1280, 360])
def test_long_tokens_do_not_widen_the_page(tmp_path, chrome, width):
    word = "Donaudampfschifffahrtsgesellschaft" * 20
    trace = synthetic.trace(f"The {word} dog", f"Le {word}", heads=2, kinds=("cross", "encoder"))
    file = tmp_path / "long.html"
    file.write_bytes(html_page.page(trace, notes={trace.model: [word]}))
    page, errors = chrome.new_page(viewport={"width": width, "height": 800}), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text) if message.type in ("error", "warning") else None)
    page.goto(file.as_uri())
    page.wait_for_selector("#by-step .main-svg")
    page.locator("#choose").fill("2")
    page.wait_for_function("document.getElementById('step')?.textContent.startsWith('2 of')")
    assert page.evaluate("document.documentElement.scrollWidth") <= width and errors == []
    lines, words = zip(*page.locator("th").evaluate_all(LINES))
    assert len(lines) > 5 and all(map(operator.le, lines, words))  # no heading of a column is broken within a word
    page.close()
