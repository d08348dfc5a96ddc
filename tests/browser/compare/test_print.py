"""The browser's own printing: the PDF has the page without its controls, whole, on A4 and on Letter."""

import pypdfium2
import pytest
from heads_panels import CHARTS, OPEN

pytestmark = pytest.mark.xdist_group("browser-compare")  # one process opens its pages and servers

PAPER = {"A4": (595, 842), "Letter": (612, 792)}  # points
MARGIN = 34  # points: 12 mm
NO_LIGATURES = "@media print { * { font-variant-ligatures: none !important; } }"  # pdfium measures them wrongly


def printed(page, paper: str) -> pypdfium2.PdfDocument:
    """The PDF of a page, once it is seen that no letter stands in the margins, where Chromium would cut it off."""
    page.add_style_tag(content=NO_LIGATURES)
    document = pypdfium2.PdfDocument(page.pdf(format=paper))
    for sheet in document:
        assert [round(side) for side in sheet.get_size()] == pytest.approx(PAPER[paper], abs=1)
        text, (wide, high) = sheet.get_textpage(), sheet.get_size()
        for left, bottom, right, top in map(text.get_charbox, range(text.count_chars())):
            assert MARGIN - 2 <= left <= right <= wide - MARGIN + 2 and 0 <= bottom <= top <= high
    return document


def words(document: pypdfium2.PdfDocument) -> str:
    """All letters, without blanks: small type has them where it has none on the screen."""
    return "".join("".join(sheet.get_textpage().get_text_range().split()) for sheet in document)


def check_heading(document: pypdfium2.PdfDocument, heading: str) -> None:
    """The heading stands on one sheet, no other letter stands over it, and something follows it there."""
    heading, shown = "".join(heading.split()), []
    for text in (sheet.get_textpage() for sheet in document):
        letters = [(text.get_text_range(place, 1), text.get_charbox(place)) for place in range(text.count_chars())]
        letters = [(letter, box) for letter, box in letters if letter.strip()]
        first = "".join(letter for letter, _ in letters).find(heading)
        if first >= 0:
            shown.append(([box for _, box in letters], first))
    [(boxes, first)] = shown
    own, others = boxes[first : first + len(heading)], [*boxes[:first], *boxes[first + len(heading) :]]
    left, bottom, right, top = (pick(sides) for pick, sides in zip((min, min, max, max), zip(*own)))
    assert not [box for box in others if box[0] < right and box[2] > left and box[1] < top and box[3] > bottom]
    assert any(box[3] < bottom for box in others)


@pytest.mark.parametrize("paper", PAPER)
def test_the_page_prints_whole_and_without_controls(view, paper):
    page = view().page
    document = printed(page, paper)
    text, sentence = words(document), page.locator(".st-key-text input").input_value()
    names = page.locator(".st-key-maps .part h3").all_inner_texts()
    for shown in (sentence, *names, "Entropy (nats)", "Effective positions", "Attention is not by itself"):
        assert "".join(shown.split()) in text
    for control in ("Pictures for slides and papers", "Play the steps", "Language pair", "Download", "Enlarge"):
        assert "".join(control.split()) not in text
    assert text.count("<eos>") >= 4 * len(names) - 2  # both ends of each map, and of the bars of the step
    check_heading(document, "Side by side")


def test_the_page_of_heads_prints_whole(view):
    document = printed(view(OPEN, charts=CHARTS).page, "A4")
    for heading in ("Every head", "Close-up", "Compare heads", "Through the layers"):
        check_heading(document, heading)


def test_formulas_of_one_step_are_whole_on_paper(dashboard):
    page = dashboard.page
    page.goto(f"{dashboard.address}/inside?show=Bahdanau&show=Luong+general", timeout=60_000)
    page.locator(".katex-display").first.wait_for(timeout=60_000)
    dashboard.rest()
    document = printed(page, "A4")
    check_heading(document, "Inside one step")
    page.emulate_media(media="print")
    cut = """() => [...document.querySelectorAll(".katex-display")].filter((formula) =>
        formula.scrollWidth > formula.clientWidth + 1 && getComputedStyle(formula).overflowX !== "visible").length"""
    assert page.locator(".katex-display").count() and page.evaluate(cut) == 0
    page.emulate_media(media="screen")
