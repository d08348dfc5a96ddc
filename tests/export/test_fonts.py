"""The Japanese font that goes along with pages and pictures: only the letters they show."""

import base64
import io
import re

import synthetic
from fontTools.ttLib import TTFont

from attnviz import figures, select
from attnviz.export import bundle, fonts, printed
from attnviz.figures.theme import FONT

TRACE = synthetic.trace("The dog", "犬は走る。")


def letters(text: str) -> set[str]:
    """Those of the font within."""
    [data] = re.findall(r"font/woff;base64,([^)]+)", text)
    return set(map(chr, TTFont(io.BytesIO(base64.b64decode(data))).getBestCmap()))


def test_a_face_has_the_japanese_letters_of_a_text_and_no_others():
    face = fonts.face("a dog, 犬は犬 é")
    assert letters(face) == {"犬", "は"} and len(face) < 3000
    assert face.startswith(f'@font-face {{ font-family: "{fonts.FAMILY}"; src: local(') and fonts.face("は犬") == face


def test_other_texts_need_no_face():
    assert fonts.face("") == fonts.face("Ünïcode … “x” שלום") == fonts.face("\U0001f600\ue000") == ""


def test_the_charts_name_the_font_first():
    assert FONT.startswith(f'"{fonts.FAMILY}", ')


def test_a_printed_svg_and_a_figure_as_html_bring_their_letters():
    grid = select.select(TRACE)
    svg = printed.of_map(TRACE, grid).save("svg").decode()
    assert letters(svg) == set("犬は走る。") and fonts.FAMILY in svg.partition("</style>")[2]
    page = bundle.figure_html(figures.heatmap(grid), "x").decode()
    assert letters(page) >= set("犬は走る。")
    english = select.select(synthetic.trace())
    assert b"@font-face" not in printed.of_map(synthetic.trace(), english).save("svg")
    assert b"@font-face {" not in bundle.figure_html(figures.heatmap(english), "x")
