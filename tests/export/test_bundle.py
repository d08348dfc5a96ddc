"""What leaves the page must open elsewhere: names, pages, tables and the zip, the same bytes each time."""

import csv
import hashlib
import io
import json
import re
import zipfile

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from nasty import NASTY, nasty_figure, trace

from attnviz.export import bundle
from attnviz.trace import Trace
from attnviz.trace.visible import visible

# --- names and config


@pytest.mark.parametrize(
    "text, name",
    [
        ("Heatmap: Luong (général)", "heatmap-luong-general"),
        ("en-fr/bahdanau", "en-fr-bahdanau"),
        ("../../x", "x"),
        ("שלום", "figure"),
        ("", "figure"),
        ("CON", "con-file"),
        ("lpt1", "lpt1-file"),
        ("console", "console"),
        ("x" * 200, "x" * 60),
    ],
)
def test_figure_name_is_safe(text, name):
    assert bundle.figure_name(text) == name


# --- HTML


@pytest.mark.parametrize("name", ["heatmap", "bars", "difference", "steps", "table"])
def test_no_token_can_end_the_script(name):
    """The file has as many script elements as with harmless tokens, and the tokens' markup appears nowhere."""
    page = bundle.figure_html(nasty_figure(name), name=NASTY[0]).decode()
    after = page[page.rindex("Plotly.newPlot") :]
    assert after.count("</script>") == 1 and "<b>x</b>" not in page and "<!--" not in after


def test_html_needs_nothing_else_and_says_what_it_shows():
    figure = nasty_figure("heatmap")
    page = bundle.figure_html(figure, "Heatmap").decode()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    assert "<title>Heatmap</title>" in page and 'lang="en"' in page
    assert "14 target tokens by 14 source tokens" in page and page == bundle.figure_html(figure, "Heatmap").decode()


def test_html_takes_the_page_colour_of_its_theme():
    assert "background: #0e1117" in bundle.figure_html(nasty_figure("bars")).decode()
    assert "background: #ffffff" in bundle.figure_html(nasty_figure("heatmap")).decode()


# --- CSV


def read(data):
    return list(csv.reader(io.StringIO(data.decode("utf-8-sig"), newline="")))


def test_csv_reads_back_in_pandas_with_accents_and_numbers_untouched():
    frame = pd.DataFrame(
        {"token": ["été", "a,b", 'x"y', "l\ni"], "weight": np.array([-0.5, 1e-9, 0.1, np.nan], np.float32)}
    )
    data = bundle.frame_csv(frame)
    assert data.startswith(b"\xef\xbb\xbftoken,weight\r\n")
    back = pd.read_csv(io.BytesIO(data), dtype={"weight": np.float32})
    pd.testing.assert_frame_equal(back, frame, check_dtype=False)


@pytest.mark.parametrize(
    "text, cell",
    [
        ("=1+1", "'=1+1"),
        ("+", "'+"),
        ("-", "'-"),
        ("@x", "'@x"),
        ("\tx", "'\tx"),
        ("\rx", "'\rx"),
        ("＝1", "'＝1"),
        (" =1", "' =1"),
        ("\u00a0' =1", "'\u00a0' =1"),
        ("a; =1;b;'@c", "a;' =1;b;''@c"),
        ("a\n=1\r\n+2", "a\n'=1\r'\n'+2"),
        ("17 - 4; a = b", "17 - 4; a = b"),
        ("'=1", "''=1"),
        ("'", "'"),
        ("l'", "l'"),
        ("a=b", "a=b"),
    ],
)
def test_csv_cells_are_no_formulas_and_can_be_undone(text, cell):
    shown = read(bundle.frame_csv(pd.DataFrame({"token": [text]})))[1][0]
    assert shown == cell
    assert unguarded(shown) == text


def unguarded(cell):
    """The text of a cell, as `frame_csv` says."""
    return re.sub(r"""(\A|(?<=[;\t\n\v\f\r\x1c-\x1e\x85\u2028\u2029]))'(?=[\s'"]*[=+\-@\t\r＝＋－＠])""", "", cell)


@given(st.lists(st.text("=+-@'; \n\r\ta,\"", max_size=8), min_size=1, max_size=4))
def test_no_cell_is_a_formula_wherever_a_spreadsheet_divides_it(texts):
    data = bundle.frame_csv(pd.DataFrame({text: [text] for text in dict.fromkeys(texts)}))
    for divider in ",;\t":
        for row in csv.reader(io.StringIO(data.decode("utf-8-sig"), newline=""), delimiter=divider):
            assert not any(re.match(r"\s*[=+\-@]", cell) for cell in row)
    assert [unguarded(cell) for cell in read(data)[1]] == list(dict.fromkeys(texts))


def test_a_token_that_prints_nothing_has_its_sign_of_the_pictures_in_a_csv_too():
    tokens = ["", " ", "\n", "\u200d", "\u2800", "a\u200db"]
    rows = read(bundle.frame_csv(pd.DataFrame({"argmax_token": tokens, "translation": tokens})))[1:]
    assert [row[0] for row in rows] == [visible(token) for token in tokens[:-1]] + tokens[-1:]
    assert [row[1] for row in rows] == tokens


def test_csv_leaves_the_frame_alone():
    frame = pd.DataFrame({"token": ["=x", None], "token2": pd.Categorical(["-", "b"])})
    before = frame.copy(deep=True)
    assert read(bundle.frame_csv(frame)) == [["token", "token2"], ["'=x", "'-"], ["", "b"]]
    pd.testing.assert_frame_equal(frame, before)


# --- JSON and the zip


@pytest.mark.parametrize("text", ["aé", "a\ud800", "a😀", "aש"])
def test_trace_json_returns_the_same_trace(text):
    assert Trace.from_json(bundle.trace_json(trace(text=text)).decode()) == trace(text=text)


def test_bundle_holds_everything_under_safe_names(pack):
    archive = zipfile.ZipFile(io.BytesIO(bundle.bundle(*pack)))
    assert archive.namelist() == [
        "figures/heatmap-a-2.html",
        "figures/heatmap-a.html",
        "figures/plotly.min.js",
        "index.html",
        "manifest.json",
        "statistics.csv",
        "traces/en-fr-bahdanau.json",
        "traces/en-fr-luong.json",
        "weights.csv",
    ]
    assert archive.testzip() is None
    assert Trace.from_json(archive.read("traces/en-fr-luong.json").decode()).model == "en-fr/luong"
    assert all(len(archive.read(f"figures/heatmap-a{n}.html")) < 100_000 for n in ("", "-2"))


def test_the_manifest_keeps_what_it_was_given_and_lists_the_files(pack):
    archive = zipfile.ZipFile(io.BytesIO(bundle.bundle(*pack)))
    manifest = json.loads(archive.read("manifest.json"))
    files = manifest.pop("files")
    assert manifest == pack[3] and "été" in archive.read("manifest.json").decode()
    assert files == {
        name: hashlib.sha256(archive.read(name)).hexdigest() for name in archive.namelist() if name != "manifest.json"
    }


def test_the_same_content_gives_the_same_bytes(pack):
    assert bundle.bundle(*pack) == bundle.bundle(*pack)


def test_an_empty_bundle_is_its_first_page_and_a_manifest():
    archive = zipfile.ZipFile(io.BytesIO(bundle.bundle({}, [], {}, {})))
    assert archive.namelist() == ["index.html", "manifest.json"]


class Drawn:
    """A sheet that says which format it was asked for."""

    def save(self, fmt):
        return fmt.encode()


def test_a_bundle_holds_pictures_and_cards_and_its_first_page_leads_to_every_file(pack):
    content = bundle.bundle(
        *pack, sheets={"Heatmap: a": Drawn()}, cards={"en-fr/x": {"note": "é"}}, lines=["Title", "<b>sentence</b>"]
    )
    archive = zipfile.ZipFile(io.BytesIO(content))
    assert archive.read("figures/heatmap-a.png") == b"png" and archive.read("figures/heatmap-a.svg") == b"svg"
    assert json.loads(archive.read("cards/en-fr-x.json")) == {"note": "é"}
    page = archive.read("index.html").decode()
    assert "<h1>Title</h1>" in page and "&lt;b&gt;sentence&lt;/b&gt;" in page and "<script" not in page
    links = set(re.findall(r'href="([^"]+)"', page))
    assert links == set(archive.namelist()) - {"index.html", "figures/plotly.min.js"}
    assert re.findall(r'src="([^"]+)"', page) == ["figures/heatmap-a.png"]
    assert '<a href="weights.csv">weights.csv</a>: every weight of every head; counted from 0</li>' in page
    assert '<a href="traces/en-fr-luong.json">traces/en-fr-luong.json</a></li>' in page
