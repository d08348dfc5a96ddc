"""Maps for slides and papers: sizes in cm, rectangles and text in the vectors, PNG and SVG the same picture."""

import io
import json
import re
import xml.etree.ElementTree as ElementTree

import matplotlib
import numpy as np
import pypdfium2
import pytest
import synthetic
from fontTools.ttLib import TTFont
from linked import PAIR, forced, sharp
from PIL import Image

from attnviz import alignment, figures, gold, select
from attnviz.export import fonts, printed
from attnviz.export.printed import letters
from attnviz.figures.theme import DARK, LIGHT
from attnviz.models.checkpoint_files import ROOT

TRACE = synthetic.trace("The $5 dog <eos>", "Le chien & noir", kinds=("cross", "decoder"), heads=2, layers=2)
GRID = select.select(TRACE)
SVG = "{http://www.w3.org/2000/svg}"


def picture(trace, grid, fmt="pdf", size="page", *, font=None, dark=False, **marks) -> bytes:
    return printed.of_map(trace, grid, printed.Style(size, font, dark), **marks).save(fmt)


def texts(svg: bytes) -> list[str]:
    return ["".join(node.itertext()).strip() for node in ElementTree.fromstring(svg).iter(f"{SVG}text")]


def size_in_cm(pdf: bytes) -> tuple[float, float]:
    box = re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+) ?\]", pdf)
    return tuple(float(number) / 72 * 2.54 for number in box.groups())


def test_the_picture_names_what_it_shows():
    words = texts(picture(TRACE, GRID, "svg", "slide"))
    for name in (
        "synthetic (synthetic): cross-attention, layer 2 of 2, mean of 2 heads",
        "The $5 dog <eos>",
        "→ Le chien & noir",
        "source →",
        "target ↓",
        "attention weight",
        "$",
        "<eos>",
        "&",
    ):
        assert name in words


def test_cells_of_the_vector_are_paths_and_nothing_is_a_bitmap():
    tree = ElementTree.fromstring(picture(TRACE, GRID, "svg"))
    assert not list(tree.iter(f"{SVG}image"))
    filled = [node for node in tree.iter(f"{SVG}path") if node.get("d", "").count("L") == 3]
    assert len(filled) >= GRID.weights.size


def test_the_pdf_holds_text_in_embedded_fonts_and_no_bitmap():
    pdf = picture(TRACE, GRID, "pdf")
    assert b"/FontFile2" in pdf and b"/ToUnicode" in pdf
    assert b"/Subtype /Image" not in pdf


@pytest.mark.parametrize(("size", "width"), [("column", 8.5), ("page", 17), ("slide", 33.867)])
def test_sizes_are_those_of_the_paper(size, width):
    cm = size_in_cm(picture(TRACE, GRID, "pdf", size))
    assert cm[0] == pytest.approx(width, abs=0.01)
    if size == "slide":
        assert cm[0] / cm[1] == pytest.approx(16 / 9, abs=0.001)


def test_light_and_dark_are_asked_for():
    for dark, theme in ((False, LIGHT), (True, DARK)):
        corner = Image.open(io.BytesIO(picture(TRACE, GRID, "png", dark=dark))).convert("RGB").getpixel((1, 1))
        assert "#{:02x}{:02x}{:02x}".format(*corner) == theme.page


def test_the_same_picture_is_the_same_bytes():
    first, second = (printed.of_map(TRACE, GRID, PAPER) for _ in range(2))
    for fmt in printed.FORMATS:
        assert first.save(fmt) == second.save(fmt)


def test_the_type_has_the_size_that_was_asked_for():
    assert b"font: 11px" in picture(TRACE, GRID, "svg", font=11) or b"font-size: 11px" in picture(
        TRACE, GRID, "svg", font=11
    )


def test_a_row_is_framed_only_on_request():
    outline = LIGHT.outline.encode()
    assert outline not in picture(TRACE, GRID, "svg")
    assert outline in picture(TRACE, GRID, "svg", step=1)


PAPER = printed.Style()


@pytest.mark.filterwarnings("error:Glyph")
def test_japanese_has_letters_where_the_system_has_none(monkeypatch):
    """Only the font that comes with the project is left; matplotlib warns of a letter that no font has."""
    monkeypatch.setattr("attnviz.export.printed.letters.FONTS", ("DejaVu Sans",))
    trace = synthetic.trace("The dog", "犬は走る。")
    pdf = printed.of_map(trace, select.select(trace), PAPER).save("pdf")
    assert b"attnvizJapanese" in pdf


def test_the_font_has_the_characters_of_vocabulary_and_linked_sentences():
    held = set(TTFont(fonts.JAPANESE).getBestCmap())
    vocabulary = json.loads((ROOT / "en-ja" / "tokenizer.json").read_text(encoding="utf-8"))["model"]["vocab"]
    pieces = [piece if isinstance(piece, str) else piece[0] for piece in vocabulary]
    linked = [pair.target for pair in gold.shipped("en-ja")]
    wanted = {letter for text in [*pieces, *linked] for letter in text if "\u3000" <= letter <= "\u9fff"}
    assert len(wanted) > 1500 and {letter for letter in wanted if ord(letter) not in held} == set()


def test_predicted_places_of_local_attention_are_explained():
    windows = [(0.5 + row / 2, 1.5) for row in range(len(GRID.queries))]
    figure = printed.of_map(TRACE, GRID, PAPER, windows=windows).figure
    axes = figure.axes[1]
    assert axes.get_xlim() == (-0.5, len(GRID.keys) - 0.5)  # what is off the map does not widen it
    words = " ".join(texts(picture(TRACE, GRID, "svg", windows=windows)))
    assert "Diamond: the place that the model predicts." in words
    with pytest.raises(ValueError, match="^windows must be one for each of 5 rows; got 1$"):
        printed.of_map(TRACE, GRID, PAPER, windows=[(1, 1)])


def test_links_are_outlined():
    trace = forced(PAIR, sharp(0, 2, 1, 3, size=4)[None])
    grid = select.select(trace)
    drawn = picture(trace, grid, "svg", links=alignment.cells(grid, PAIR))
    assert b"stroke-dasharray" in drawn and b"stroke-dasharray" not in picture(trace, grid, "svg")


def test_hidden_cells_are_hatched_and_blank_rows_empty():
    grid = select.select(TRACE, "decoder", special=False)
    assert np.isnan(grid.weights[0]).all()
    visible = int(grid.visible[1:].sum())
    figure = printed.of_map(TRACE, grid, PAPER).figure
    assert len(figure.axes[1].collections[0].get_paths()) == visible  # the first are the cells of the map


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (dict(fmt="gif"), "format must be one of svg, pdf, png, tex; got 'gif'"),
        (dict(size="poster"), "size must be one of column, page, slide; got 'poster'"),
        (dict(font=99), "font must be 4 to 40 points; got 99"),
        (dict(step=9), "step must be a row of the map, 0 to 4; got 9"),
    ],
)
def test_errors_name_what_was_wanted(options, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        picture(TRACE, GRID, **options)


def test_the_width_the_font_and_the_lines_above_are_chosen():
    style = printed.Style(width_cm=6.3, family="DejaVu Serif", heading=False, title="Figure 2")
    sheet = printed.of_map(TRACE, GRID, style)
    pdf = sheet.save("pdf")
    assert size_in_cm(pdf)[0] == pytest.approx(6.3, abs=0.01) and b"DejaVuSerif" in pdf
    assert sheet.title == "Figure 2" and "<title>Figure 2</title>" in sheet.save("svg").decode()
    assert not {"Figure 2", "The $5 dog <eos>"} & set(texts(sheet.save("svg"))) and sheet.families[0] == "DejaVu Serif"
    titled = texts(printed.of_map(TRACE, GRID, printed.Style(title="Figure 2")).save("svg"))
    assert {"Figure 2", "The $5 dog <eos>"} <= set(titled) and "synthetic (synthetic)" not in "".join(titled)


@pytest.mark.parametrize(
    "wrong, message",
    [
        ({"width_cm": 2}, "width_cm must be 3 to 100, and none of a slide; got 2"),
        ({"width_cm": float("nan")}, "width_cm must be 3 to 100, and none of a slide; got nan"),
        ({"size": "slide", "width_cm": 20}, "width_cm must be 3 to 100, and none of a slide; got 20"),
        (
            {"family": "DejaVu Seriff"},
            "family must be an installed font; got 'DejaVu Seriff'; did you mean DejaVu Serif",
        ),
        ({"family": "serif/../x"}, "family must be an installed font; got 'serif/../x'"),
    ],
)
def test_a_style_that_cannot_be(wrong, message):
    with pytest.raises(ValueError) as error:
        printed.Style(**wrong)
    assert str(error.value).startswith(message)


def test_panels_have_letters_that_a_paper_can_name():
    charts = [figures.heatmap(GRID)] * 3
    words = texts(printed.side_by_side(charts, ["one", "two", "three"], style=printed.Style(heading=False)).save("svg"))
    assert [text for text in words if text.startswith("(")] == ["(a) one", "(b) two", "(c) three"]
    plain = printed.side_by_side(charts[:2], lines=["Maps"], style=printed.Style("column"))
    assert [text for text in texts(plain.save("svg")) if text[0] in "(M"] == ["Maps", "(a)", "(b)"]
    for wrong in ({"names": ["one"]}, {"figures": charts * 9}, {"figures": []}):
        with pytest.raises(ValueError, match="there must be"):
            printed.side_by_side(**{"figures": charts} | wrong)


@pytest.mark.skipif(matplotlib.__version_info__ < (3, 11), reason="an older matplotlib makes the part of a font anew")
def test_texts_of_common_letters_share_the_part_of_a_font_that_a_pdf_holds():
    """It is made once. Other letters are added, and each text can be read in its file."""
    letters._made_part.cache_clear()
    made = []
    for target in ("Le chien", "Der Zug fährt", "Wo?"):
        picture(synthetic.trace("The dog", target), select.select(synthetic.trace("The dog", target)))
        made.append(letters._made_part.cache_info().misses)
    assert made[0] > 0 and made == made[:1] * 3
    trace = synthetic.trace("The dog", "Ωμέγα ñ")
    document = pypdfium2.PdfDocument(picture(trace, select.select(trace)))
    assert letters._made_part.cache_info().misses > made[0]
    assert {"Ωμέγα", "ñ", "dog"} <= set(document[0].get_textpage().get_text_range().split())


def test_tex_has_every_text_and_nothing_of_it_is_a_command():
    """What LaTeX obeys stands with a backslash, and is read back here."""
    trace = synthetic.trace(r"a_b {x} 100% #1 \\input ~ ^ | -- <b>", "Le $x$ & ∅ ␣ `'")
    sheet = printed.of_map(trace, select.select(trace), printed.Style("page"))
    tex = sheet.save("tex").decode()
    lines = tex.splitlines()
    assert lines[0] == f"% {sheet.title}" and r"\usepackage{pgf}" in lines[1]
    assert tex.count(r"\begin{pgfscope}") == tex.count(r"\end{pgfscope}") > GRID.weights.size
    written = {_read(line) for line in lines if line.startswith(r"\pgftext")}
    assert written >= {token for token in texts(sheet.save("svg")) if token}
    titled = printed.of_map(TRACE, GRID, printed.Style("page", title=r"\def\x")).save("tex").decode()
    assert r"\textbackslash{}def\textbackslash{}x" in titled


def _read(line: str) -> str:
    """The text of a line of TeX. AssertionError where LaTeX would find a command in it."""
    text = re.fullmatch(r".*\\def%\{\\%\}(.*)\}\}%", line)[1]
    names = {"backslash": "\\", "asciitilde": "~", "asciicircum": "^", "less": "<", "greater": ">", "bar": "|"}
    for name, letter in (names | {"visiblespace": "␣"}).items():
        text = text.replace(rf"\text{name}{{}}", f"\x01{ord(letter)};")
    text = text.replace(r"$\emptyset$", "∅").replace(r"\ensuremath{-}", "−").replace("~", "\u00a0")
    text = re.sub(r"\{([-`'])\}", r"\1", re.sub(r"\\([{}$&#_%])", lambda match: f"\x01{ord(match[1])};", text))
    assert not re.search(r"[\\{}$&#_%^~<>|]", text), line
    return re.sub("\x01([0-9]+);", lambda match: chr(int(match[1])), text).strip()


def test_many_pictures_are_saved_by_several_processes(tmp_path):
    figure = figures.heatmap(GRID)
    wanted = {tmp_path / "a.pdf": figure, tmp_path / "deep" / "b.svg": [figure, figure], tmp_path / "c.tex": figure}
    places = printed.many(wanted, PAPER, lines={tmp_path / "a.pdf": ["A title"]}, processes=2)
    assert places == list(wanted)
    alone = printed.of_figure(figure, ["A title"], PAPER).save("pdf"), printed.of_figure(figure, (), PAPER).save("tex")
    assert alone == (places[0].read_bytes(), places[2].read_bytes())
    assert places[1].read_bytes() == printed.of_figures([figure] * 2, (), PAPER).save("svg")
    with pytest.raises(ValueError, match=r"a file must end in \.svg, \.pdf, \.png, \.tex; got 'e\.gif'"):
        printed.many({tmp_path / "d.pdf": figure, tmp_path / "e.gif": figure})
    assert not (tmp_path / "d.pdf").exists()


def test_an_image_is_no_tex():
    sheet = printed.of_figure(figures.heatmap(GRID), (), PAPER)
    sheet.figure.figimage(np.zeros((4, 4)))
    with pytest.raises(ValueError, match="this picture is an image, which tex cannot hold: save it as pdf or png"):
        sheet.save("tex")
