"""Whatever is printed stays on its sheet, and names do not meet: any figure, style, length, script."""

import io
import itertools
import warnings
import xml.etree.ElementTree as ElementTree

import every_figure
import numpy as np
import pypdfium2
import pytest
import synthetic
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from matplotlib.backends.backend_agg import FigureCanvasAgg
from PIL import Image

from attnviz import select, stats
from attnviz.export import fonts, printed
from attnviz.export.printed import letters
from attnviz.export.printed.sheet import settings as sheet_settings
from attnviz.trace import AttentionMap, Token, Trace

SVG = "{http://www.w3.org/2000/svg}"
CHARTS = list(every_figure.all_charts().values())
WORDS = (
    "a",
    "Donaudampfschifffahrt" * 9,
    "犬は走る",
    "مرحبا",
    "שלום",
    "🐕🦺",
    "नमस्ते",
    "<b>$x$",
    "\x07\x85",
    "\ud800",
    "\ufffe",
)


def trace(count: int, word: str, name: str = "en-fr/bahdanau", shorter: int = 0) -> Trace:
    """A map of `count` keys and `count - shorter` queries, each of them `word`."""
    texts = [word] * count
    starts = np.cumsum([0, *(len(text) + 1 for text in texts)]).tolist()
    keys = tuple(Token(text, start, start + len(text), word=i) for i, (text, start) in enumerate(zip(texts, starts)))
    queries = keys[: max(count - shorter, 1)]
    weights = synthetic.softmax(np.random.default_rng(0).normal(size=(1, len(queries), count)))
    text, target = " ".join(texts), " ".join(texts[: len(queries)])
    plain = dict(log_probs=tuple([-1.0] * len(queries)), alternatives=(), maps=(AttentionMap("cross", 0, weights),))
    return Trace(name, "bahdanau", text, target, False, keys, queries, **plain)


def faults(figure) -> list[tuple]:
    """Neighbouring names at an axis that meet, and what is beyond the sheet."""
    renderer = FigureCanvasAgg(figure).get_renderer()
    wrong = [("beyond", text.get_text()) for text in figure.texts if _beyond(text.get_window_extent(renderer), figure)]
    for axes in figure.axes:
        box = axes.get_tightbbox(renderer)
        wrong += [("beyond", axes.get_label())] if box is not None and _beyond(box, figure) else []
        for axis in (axes.xaxis, axes.yaxis):
            shown = [tick for tick in axis.get_major_ticks() if tick.label1.get_text() or tick.label2.get_text()]
            labels = [label for tick in shown for label in (tick.label1, tick.label2) if label.get_visible()]
            labels = [label for label in labels if label.get_text()] if axis.get_visible() else []
            wrong += [
                ("meet", a.get_text(), b.get_text())
                for a, b in itertools.pairwise(labels)
                if _meet(a, b, axis, renderer)
            ]
    return wrong


def plots(figure) -> list:
    return [axes for axes in figure.axes if axes.axison and axes.get_label() != "<colorbar>"]


def _beyond(box, figure) -> bool:
    sheet = figure.bbox
    return box.x0 < -1 or box.y0 < -1 or box.x1 > sheet.x1 + 1 or box.y1 > sheet.y1 + 1


def _meet(first, second, axis, renderer) -> bool:
    """Do parallel labels meet? Those that lean or stand upright, by the distance of their lines."""
    across = axis.axis_name == "x"
    boxes = [label.get_window_extent(renderer) for label in (first, second)]
    if not first.get_rotation():
        low, high = sorted(boxes, key=lambda box: box.x0 if across else box.y0)
        return (low.x1 > high.x0 + 0.5) if across else (low.y1 > high.y0 + 1.5)
    places = [axis.axes.transData.transform((label.get_position()[0], 0))[0] for label in (first, second)]
    lines = abs(places[1] - places[0]) * np.sin(np.radians(first.get_rotation()))
    return lines < max(label.get_fontsize() for label in (first, second)) * axis.get_figure().dpi / 72 - 0.5


def checked(sheet: printed.Sheet) -> printed.Sheet:
    """The sheet, once it is seen that it can be saved, and that all of it is on its pages."""
    style = sheet.style
    for figure in {sheet.figure, *sheet.pages}:  # of one sheet it is the same
        with sheet_settings(style, sheet.families):
            assert faults(figure) == []
        wide, high = (72 * side for side in figure.get_size_inches())
        assert wide == pytest.approx(style.width) and high <= style.height + 0.1
        assert not style.fixed or high == pytest.approx(style.height)
    return sheet


STYLES = st.builds(
    printed.Style, st.sampled_from(sorted(printed.SIZES)), st.sampled_from([None, 4, 12, 32, 40]), st.booleans()
)
PICTURES = {
    "map": lambda made, style: printed.of_map(made, select.select(made), style, step=0),
    "bars": lambda made, style: printed.of_step(made, select.select(made), 0, style),
    "two": lambda made, style: printed.of_maps(
        {"Luong general": (made, select.select(made)), made.text[:400]: (made, select.select(made))}, style
    ),
    "statistics": lambda made, style: printed.of_statistics(
        {"a": made, made.text[:400]: made},
        {name: stats.of_grid(select.select(made)) for name in ("a", made.text[:400])},
        None,
        style,
    ),
}
EXTREMES = [
    ("map", printed.Style("slide", 32), 64, "the"),
    ("map", printed.Style("slide"), 18, "chien"),
    ("map", printed.Style("page"), 200, "mot"),
    ("two", printed.Style("slide", 40), 12, WORDS[1]),
    ("statistics", printed.Style("column", 40), 20, WORDS[1]),
    ("bars", printed.Style("column", 4), 1, WORDS[1]),
]


@pytest.mark.parametrize(("name", "style", "count", "word"), EXTREMES)
def test_what_has_too_little_room_gets_smaller(name, style, count, word):
    checked(PICTURES[name](trace(count, word), style))


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(sorted(PICTURES)),
    STYLES,
    st.sampled_from([1, 2, 7, 30]),
    st.sampled_from(WORDS),
    st.sampled_from(printed.FORMATS),
)
def test_any_trace_in_any_style(name, style, count, word, fmt):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sheet = checked(PICTURES[name](trace(count, word), style))
    assert sheet.save(fmt)


@settings(max_examples=4, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.sampled_from(CHARTS), STYLES, st.sampled_from(WORDS), st.integers(0, 60))
def test_any_figure_in_any_style(chart, style, word, count):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        checked(printed.of_figure(chart, ["Title", " ".join([word] * count)], style))


@pytest.mark.parametrize("size", ["slide", "column"])
def test_names_that_reach_furthest_say_how_much_room_all_names_need(monkeypatch, size):
    made = synthetic.trace(f"a chien {WORDS[1]} Ångström-Maß 犬は走る", f"犬は走る {WORDS[1]} b")
    svg = printed.of_map(made, select.select(made), printed.Style(size)).save("svg")
    monkeypatch.setattr(
        "attnviz.export.printed.axes._outermost", lambda axis, places, *others: list(range(len(places)))
    )
    assert printed.of_map(made, select.select(made), printed.Style(size)).save("svg") == svg


def test_a_heading_that_is_cut_is_whole_in_the_file():
    text = " ".join(f"word{place}" for place in range(600))
    sheet = printed.of_figure(CHARTS[0], ["Title <&>", text], printed.Style("slide", 32))
    assert any(line.get_text().endswith("…") for line in sheet.figure.texts)
    assert "The lines above are cut; the description of the file has them whole." in sheet.notes
    svg = ElementTree.fromstring(sheet.save("svg"))
    assert svg.findtext(f"{SVG}title") == "Title <&>" and text in svg.findtext(f"{SVG}desc")
    assert text in Image.open(io.BytesIO(sheet.save("png"))).text["Description"]
    about = pypdfium2.PdfDocument(sheet.save("pdf")).get_metadata_dict()
    assert about["Title"] == "Title <&>" and text in about["Subject"]


def test_rows_without_room_for_their_names_go_on_over_sheets_of_a_pdf():
    made = trace(40, "mot")
    sheet = printed.of_map(made, select.select(made), printed.Style("slide"))
    sheet.save("svg")
    assert "pages" not in vars(sheet)  # only a PDF draws them
    document = pypdfium2.PdfDocument(sheet.save("pdf"))
    assert len(document) == len(checked(sheet).pages) > 1
    assert sheet.notes[-1] == f"In a PDF the rows go on over {len(document)} sheets, each row with its name."
    rows = [len(axes.get_yticks()) for figure in sheet.pages for axes in figure.axes if axes.get_yticks().size > 9]
    assert sum(rows) == 40
    texts = [page.get_textpage().get_text_range() for page in document]
    assert f"Rows 1 to {rows[0]} of 40" in texts[0] and "of 40" in texts[-1]


def test_two_maps_stand_beside_each_other_on_a_slide_and_below_each_other_in_a_column():
    first, second = trace(6, "dog"), trace(6, "dog", "en-fr/luong-general")
    maps = {"Bahdanau": (first, select.select(first)), "Luong": (second, select.select(second))}
    for size, axis in (("slide", 0), ("column", 1)):
        sheet = checked(printed.of_maps(maps, printed.Style(size)))
        a, b = [axes.get_position().min for axes in plots(sheet.figure)]
        assert a[axis] != pytest.approx(b[axis]) and a[1 - axis] == pytest.approx(b[1 - axis])
        assert {"Bahdanau", "Luong"} <= {text.get_text() for text in sheet.figure.texts}
    four = {f"{place} {name}": shown for place in (1, 2) for name, shown in maps.items()}
    sheet = printed.of_maps(four, printed.Style("slide"))
    places = [axes.get_position() for axes in plots(sheet.figure)]
    assert len(places) == 4 and len({place.y0 for place in places}) == 1 and sheet.further is None
    with pytest.raises(ValueError, match="^there must be at least one map; got none$"):
        printed.of_maps({})


def test_maps_of_one_slide_whose_names_have_no_room_stand_on_several():
    """One name in two was drawn, and that was all."""
    made = trace(17, "mot")
    sheet = printed.of_maps(
        {f"model {place}": (made, select.select(made)) for place in range(4)}, printed.Style("slide")
    )
    assert "In a PDF the 4 figures stand on 2 sheets, larger." in checked(sheet).notes
    rows = [[len(axes.get_yticks()), len(axes.get_xticks())] for page in sheet.pages for axes in plots(page)]
    assert rows == [[len(made.target), len(made.source)]] * 4


def test_more_maps_than_one_sheet_has_room_for_go_on_over_sheets_of_a_pdf():
    made, sheets = trace(24, "mot"), [2, 2, 1]
    maps = {f"model {place}": (made, select.select(made)) for place in range(5)}
    sheet = checked(printed.of_maps(maps, printed.Style("column")))
    assert f"In a PDF the 5 figures stand on {len(sheets)} sheets, larger." in sheet.notes
    texts = [page.get_textpage().get_text_range() for page in pypdfium2.PdfDocument(sheet.save("pdf"))]
    assert [sum(f"model {place}" in text for place in range(5)) for text in texts] == sheets
    first, last = sheet.figure, sheet.pages[-1]
    low, high = (max(axes.bbox.height for axes in plots(page)) / page.dpi for page in (first, last))  # inches
    assert high > 1.2 * low


def test_letters_that_no_font_has_are_named_once(monkeypatch):
    monkeypatch.setattr(letters, "_reported", set())
    made = trace(2, "󠁁𒀀")
    with pytest.warns(UserWarning, match="^No font of this system has ") as warned:
        sheets = [printed.of_map(made, select.select(made), printed.Style("column")) for _ in range(2)]
    for sheet in sheets:
        sheet.save("png")
    assert len(warned) == 1 and "𒀀" in sheets[0].notes[-1]


def test_a_font_of_the_system_is_taken_for_letters_that_the_usual_fonts_lack(monkeypatch):
    monkeypatch.setattr(letters, "FONTS", ("STIXSizeOneSym",))
    names, missing = letters.families("Ж犬")
    assert not missing and len(names) > 2 and names[1] == fonts.FAMILY
