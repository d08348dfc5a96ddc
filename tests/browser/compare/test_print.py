"""The browser's own printing: the PDF has the page without its controls, whole, on A4 and on Letter."""

from typing import NamedTuple

import pypdfium2
import pypdfium2.raw as pdfium_c
import pytest
from heads_panels import CHARTS, OPEN
from playwright.sync_api import expect

from dashboard.heads.scene import COLUMNS

COMPARE = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers

PAPER = {"A4": (595, 842), "Letter": (612, 792)}  # points
MARGIN = 34  # points: 12 mm
NO_LIGATURES = "@media print { * { font-variant-ligatures: none !important; } }"  # pdfium measures them wrongly


class Sheet(NamedTuple):
    """All letters without blanks, for small type has them where it has none on the screen; and the box of each."""

    words: str
    boxes: list[tuple[float, float, float, float]]  # left, bottom, right, top in points


def printed(page, paper: str) -> list[Sheet]:
    """The sheets of a page, once it is seen that no letter stands in the margins, where Chromium would cut it off."""
    page.add_style_tag(content=NO_LIGATURES)
    sheets = []
    for sheet in pypdfium2.PdfDocument(page.pdf(format=paper)):
        assert [round(side) for side in sheet.get_size()] == pytest.approx(PAPER[paper], abs=1)
        text, (wide, high) = sheet.get_textpage(), sheet.get_size()
        places = range(text.count_chars())
        boxes = [text.get_charbox(place) for place in places]
        for left, bottom, right, top in boxes:
            assert MARGIN - 2 <= left <= right <= wide - MARGIN + 2 and 0 <= bottom <= top <= high
        letters = [chr(pdfium_c.FPDFText_GetUnicode(text, place)) for place in places]
        seen = [place for place in places if letters[place].strip()]
        sheets.append(Sheet("".join(letters[place] for place in seen), [boxes[place] for place in seen]))
    return sheets


def words(sheets: list[Sheet]) -> str:
    return "".join(sheet.words for sheet in sheets)


def check_heading(sheets: list[Sheet], heading: str) -> None:
    """The heading stands on one sheet, no other letter stands over it, and something follows it there."""
    heading = "".join(heading.split())
    shown = [(sheet.boxes, sheet.words.find(heading)) for sheet in sheets if heading in sheet.words]
    [(boxes, first)] = shown
    own, others = boxes[first : first + len(heading)], [*boxes[:first], *boxes[first + len(heading) :]]
    left, bottom, right, top = (pick(sides) for pick, sides in zip((min, min, max, max), zip(*own)))
    assert not [box for box in others if box[0] < right and box[2] > left and box[1] < top and box[3] > bottom]
    assert any(box[3] < bottom for box in others)


MODELS = ("Bahdanau", "Luong local", "Luong general", "Transformer")
PAGES = {  # address, what is drawn last, headings, paper: pages whose layout is wider are tried on both
    "inside": (
        "/inside?tests=true&show=Bahdanau&show=Luong+general&text=A+dog+runs.",
        ".st-key-chart-tests .main-svg",
        ("Inside one step", "Change attention", "Replace a word", "Does it matter?"),
        "A4",
    ),
    "many": (
        "/many?show=Bahdanau",
        ".st-key-chart-points .main-svg",
        ("How a statistic is spread", "Two numbers of each sentence", "The sentences"),
        "Letter",
    ),
    "learn": ("/learn", ".st-key-chart-chapter .main-svg", ("1. The bottleneck",), "A4"),
}


CONTROLS = ("Pictures for slides and papers", "Play the steps", "Language pair", "Download", "Enlarge")


@COMPARE
def test_the_page_prints_whole_and_without_controls(dashboard):
    shown = "&".join(f"show={name.replace(' ', '+')}" for name in MODELS)
    page = dashboard.open(f"/?{shown}", charts=9).page
    expect(page.locator(".st-key-text input")).not_to_have_value("")  # as Streamlit draws it first
    sentence, names = page.locator(".st-key-text input").input_value(), page.locator(".part h3").all_inner_texts()
    assert len(names) == len(MODELS) and page.locator(".st-key-subtract").is_visible()
    for paper in PAPER:
        document = printed(page, paper)
        text = words(document)
        for expected in (sentence, *names, "Entropy (nats)", "Effective positions", "Attention is not by itself"):
            assert "".join(expected.split()) in text
        for control in (*CONTROLS, "Difference of two maps", "can be subtracted"):
            assert "".join(control.split()) not in text
        assert text.count("<eos>") >= 3 * len(names)  # both ends of each map, and the end of the bars of the step
        check_heading(document, "Side by side")


@pytest.mark.xdist_group("browser-others")  # which has the page open
def test_the_page_of_heads_prints_whole(view):
    page = view(OPEN, charts=CHARTS).page
    for paper in PAPER:
        document = printed(page, paper)
        for heading in ("Every head", "Close-up", "Compare heads", "Through the layers"):
            check_heading(document, heading)
        table = words(document).partition("Statisticsofeveryhead")[2]
        titles = [*COLUMNS.values(), "the subject to its verb"]  # the last is one of the study of syntax
        assert [title for title in titles if "".join(title.split()) not in table] == []
        assert table.count("layer5,head4") >= len(COLUMNS) // 10  # a row of each part


HELD = """(() => {
  const later = window.setTimeout;
  window.setTimeout = (...given) => (given.length === 1 && /new Promise/.test(new Error().stack) ? 0 : later(...given));
})()"""
DRAWN = "() => [...document.querySelectorAll('.plot:not([hidden])')].map((plot) => Boolean(plot._fullLayout))"


@COMPARE
def test_charts_that_wait_for_their_turn_are_drawn_before_the_page_is_printed(dashboard):
    with dashboard.page.context.new_page() as page:  # of its own: the script stays with a page
        page.add_init_script(HELD)  # their turn never comes
        page.goto(f"{dashboard.address}/?show=Bahdanau", timeout=60_000)
        page.wait_for_function("document.querySelectorAll('.plot:not([hidden])').length > 2", timeout=60_000)
        page.wait_for_function("!document.querySelector('[data-stale=true]')")
        assert not any(page.evaluate(DRAWN))
        page.pdf()
        assert all(page.evaluate(DRAWN))


@COMPARE
@pytest.mark.parametrize("name", PAGES)
def test_a_page_prints_whole(dashboard, name):
    address, last, headings, paper = PAGES[name]
    page = dashboard.page
    page.goto(dashboard.address + address, timeout=60_000)
    page.locator(last).first.wait_for(timeout=60_000)
    page.wait_for_function("!document.querySelector('[data-stale=true]')")
    dashboard.rest()
    document = printed(page, paper)
    for heading in headings:
        check_heading(document, heading)
    page.emulate_media(media="print")
    cut = """() => [...document.querySelectorAll(".stMainBlockContainer *")].filter((part) =>
        part.clientWidth > 30 && part.scrollWidth > part.clientWidth + 2 &&
        getComputedStyle(part).overflowX !== "visible")
      .map((part) => `${part.className}: ${part.scrollWidth} of ${part.clientWidth}`)"""
    assert page.evaluate(cut) == []
    framed = page.locator(".exercise, .stElementContainer:has(.stTextInput)")
    breaks = framed.evaluate_all("all => all.map((each) => getComputedStyle(each).breakInside)")
    assert set(breaks) == {"avoid"}  # else a frame goes on over the next sheet
    page.emulate_media(media="null")
