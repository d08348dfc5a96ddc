"""What leaves the page must open elsewhere: offline, with any token, the same bytes each time."""

import csv
import hashlib
import io
import json
import re
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from attnviz import figures
from attnviz.export import bundle
from attnviz.select import Grid
from attnviz.trace import AttentionMap, Token, Trace

NASTY = (
    "</script><b>x</b>",
    "<!--",
    "]]>",
    '"',
    "'",
    "\\",
    "שלום",
    "عالم",
    "日本",
    "👩\u200d🚀",
    "\u2028",
    "$x$",
    "&amp;",
    "=1+1",
)


def nasty_grid():
    tokens = tuple(Token(text, 0, len(text), word=i) for i, text in enumerate(NASTY))
    size = len(tokens)
    visible = np.ones((size, size), dtype=bool)
    return Grid("en-fr/x", "bahdanau", "cross", 0, None, tokens, tokens, np.eye(size), np.zeros(size), visible)


def trace(model="en-fr/bahdanau", text="a\ud800"):
    tokens = (Token(text[0], 0, 1, word=0), Token("<eos>", 1, 1, special=True))
    weights = np.array([[[0.1, 0.9], [1 / 3, 2 / 3]]], dtype=np.float32)
    return Trace(
        model, "bahdanau", text, text, False, tokens, tokens, (-0.1, -0.2), (), (AttentionMap("cross", 0, weights),)
    )


def drawn(name):
    """The figures that the browser checks open, by name."""
    grid = nasty_grid()
    values = {"entropy_nats": 1.0, "max_weight": 0.5, "effective_entropy": 2.7}
    steps = pd.DataFrame({"step": range(len(NASTY)), "token": NASTY, **values})
    table = pd.DataFrame({"mechanism": NASTY, "statistic": "gini", "mean": 1.0, "std": 0.5})
    return {
        "heatmap": lambda: figures.heatmap(grid, 1, NASTY[0]),
        "bars": lambda: figures.step_bars(grid, 1, NASTY[0], dark=True),
        "difference": lambda: figures.difference(np.eye(len(NASTY)), grid, NASTY[:2]),
        "steps": lambda: figures.by_step(dict.fromkeys(NASTY[:3], steps), len(NASTY)),
        "table": lambda: figures.comparison(table, dark=True),
    }[name]()


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


def test_config_offers_one_button_that_saves_the_picture():
    made = bundle.config("Step 3: ‘noir’", "svg")
    assert made["toImageButtonOptions"] == {"format": "svg", "filename": "step-3-noir", "scale": 2}
    assert made["displaylogo"] is False and made["modeBarButtons"] == [["toImage"]]
    assert bundle.config("x")["toImageButtonOptions"]["format"] == "png"


def test_config_refuses_other_formats():
    with pytest.raises(ValueError, match="^fmt must be png or svg; got 'pdf'$"):
        bundle.config("x", "pdf")


# --- HTML


@pytest.mark.parametrize("name", ["heatmap", "bars", "difference", "steps", "table"])
def test_no_token_can_end_the_script(name):
    """The file has as many script elements as with harmless tokens, and the tokens' markup appears nowhere."""
    page = bundle.figure_html(drawn(name), name=NASTY[0]).decode()
    after = page[page.rindex("Plotly.newPlot") :]
    assert after.count("</script>") == 1 and "<b>x</b>" not in page and "<!--" not in after


def test_html_needs_nothing_else_and_says_what_it_shows():
    figure = drawn("heatmap")
    page = bundle.figure_html(figure, "Heatmap").decode()
    assert not re.search(r"<(script|link|img)[^>]+(src|href)=", page)
    assert "<title>Heatmap</title>" in page and 'lang="en"' in page
    assert "14 target tokens by 14 source tokens" in page and page == bundle.figure_html(figure, "Heatmap").decode()


def test_html_takes_the_page_colour_of_its_theme():
    assert "background: #0e1117" in bundle.figure_html(drawn("bars")).decode()
    assert "background: #ffffff" in bundle.figure_html(drawn("heatmap")).decode()


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
        ("'=1", "''=1"),
        ("'", "'"),
        ("l'", "l'"),
        ("a=b", "a=b"),
    ],
)
def test_csv_cells_are_no_formulas_and_can_be_undone(text, cell):
    shown = read(bundle.frame_csv(pd.DataFrame({"token": [text]})))[1][0]
    assert shown == cell
    assert re.sub(r"^'(?='*[=+\-@\t\r＝＋－＠])", "", shown) == text


def test_csv_leaves_the_frame_alone():
    frame = pd.DataFrame({"token": ["=x", None], "token2": pd.Categorical(["-", "b"])})
    before = frame.copy(deep=True)
    assert read(bundle.frame_csv(frame)) == [["token", "token2"], ["'=x", "'-"], ["", "b"]]
    pd.testing.assert_frame_equal(frame, before)


# --- JSON and the zip


@pytest.mark.parametrize("text", ["aé", "a\ud800", "a😀", "aש"])
def test_trace_json_returns_the_same_trace(text):
    assert Trace.from_json(bundle.trace_json(trace(text=text)).decode()) == trace(text=text)


@pytest.fixture
def pack():
    made = {"Heatmap: a": drawn("heatmap"), "heatmap a": drawn("bars")}
    frames = {"statistics": pd.DataFrame({"a": [1]}), "weights": pd.DataFrame({"token": ["="]})}
    return made, [trace(), trace("en-fr/luong")], frames, {"text": "été", "models": {"b": 1, "a": 2}}


def test_bundle_holds_everything_under_safe_names(pack):
    archive = zipfile.ZipFile(io.BytesIO(bundle.bundle(*pack)))
    assert archive.namelist() == [
        "figures/heatmap-a-2.html",
        "figures/heatmap-a.html",
        "figures/plotly.min.js",
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


def test_an_empty_bundle_is_a_manifest():
    archive = zipfile.ZipFile(io.BytesIO(bundle.bundle({}, [], {}, {})))
    assert archive.namelist() == ["manifest.json"]


# --- a real chrome, offline


@pytest.fixture(scope="session")
def offline(chrome, tmp_path_factory):
    """A browser without a network: a page that stays open keeps the scripts compiled for those that follow."""
    context, file = chrome.new_context(offline=True), tmp_path_factory.mktemp("open") / "figure.html"
    file.write_bytes(bundle.figure_html(drawn("heatmap"), "x"))
    context.new_page().goto(file.as_uri())
    return context


def opened(offline, path):
    """A page of the file, drawn; no network, no console message, no failed request."""
    page, troubles = offline.new_page(), []
    page.on("console", lambda message: troubles.append(message.text) if message.type in ("error", "warning") else None)
    page.on("pageerror", lambda error: troubles.append(str(error)))
    page.on("requestfailed", lambda request: troubles.append(request.url))
    page.on("dialog", lambda dialog: troubles.append(dialog.message) or dialog.dismiss())
    page.goto(path.as_uri())
    page.wait_for_selector(".main-svg")
    assert troubles == []
    return page


@pytest.mark.parametrize("name", ["heatmap", "bars", "difference", "steps", "table"])
def test_exported_html_draws_offline_in_a_browser(offline, tmp_path, name):
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(drawn(name), NASTY[0]))
    page = opened(offline, file)
    assert page.locator("svg b, figcaption b").count() == 0 and page.locator(".main-svg").count() >= 1
    page.close()


def test_tokens_read_in_the_browser_as_they_were_typed(offline, tmp_path):
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(drawn("heatmap"), "x"))
    page = opened(offline, file)
    shown = page.locator(".ytick text").all_text_contents()
    assert {'"', "'", "\\", "<!--", "$x$", "&amp;", "\u2068שלום\u2069"} <= set(shown) and "</script><b…" in " ".join(
        shown
    )
    page.close()


@pytest.mark.parametrize("count", [9, 17, 18, 40])
def test_labels_of_keys_do_not_meet_in_a_narrow_column(offline, tmp_path, count):
    """The boxes of the drawn texts, turned with them, side by side across the direction in which they run."""
    keys = [Token(word, 0, 1) for word in ("grass", "jumping", "É", "anticonstitutionnel") * count][:count]
    grid = replace(
        nasty_grid(),
        queries=(keys[1],),
        keys=tuple(keys),
        weights=np.full((1, count), 1 / count),
        removed=np.zeros(1),
        visible=np.ones((1, count), bool),
    )
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(figures.heatmap(grid), "x"))
    page = opened(offline, file)
    spans = page.evaluate("""async () => {
        await Plotly.relayout(document.querySelector(".js-plotly-plot"), {width: 310});
        return [...document.querySelectorAll(".xtick text")].map((text) => {
            const {x, y, width, height} = text.getBBox(), turn = text.getScreenCTM();
            const across = [[x, y], [x + width, y], [x, y + height], [x + width, y + height]]
                .map(([x, y]) => new DOMPoint(x, y).matrixTransform(turn)).map((p) => p.y * turn.a - p.x * turn.b);
            return [Math.min(...across), Math.max(...across)];
        });
    }""")
    spans.sort()
    assert len(spans) >= min(count, 9) and all(one[1] <= other[0] for one, other in zip(spans, spans[1:]))
    page.close()


def test_a_click_tells_the_cell_under_the_pointer_gaps_included(offline, tmp_path):
    masked = replace(nasty_grid(), visible=np.tri(len(NASTY), dtype=bool))
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(figures.heatmap(masked), "x"))
    page = opened(offline, file)
    page.evaluate("""() => {
        const chart = document.querySelector(".js-plotly-plot");
        chart.on("plotly_click", event => { window.picked = event.points.map(point => [point.x, point.y]); });
    }""")
    box, size = page.locator(".nsewdrag").bounding_box(), len(NASTY)
    for key, query in ((0, 0), (3, 9), (9, 3), (size - 1, size - 1)):
        corner = {
            "x": box["x"] + box["width"] * (key + 0.1) / size,
            "y": box["y"] + box["height"] * (query + 0.9) / size,
        }
        page.mouse.move(**corner)
        page.wait_for_timeout(100)
        page.mouse.click(**corner)
        page.wait_for_function(
            "expected => JSON.stringify(window.picked) === JSON.stringify([expected])", arg=[key, query]
        )
    page.close()


def test_figures_of_the_zip_open_from_the_unpacked_folder(offline, pack, tmp_path):
    zipfile.ZipFile(io.BytesIO(bundle.bundle(*pack))).extractall(tmp_path)
    for name in ("heatmap-a", "heatmap-a-2"):
        opened(offline, tmp_path / "figures" / f"{name}.html").close()


@pytest.mark.parametrize("fmt, start", [("svg", b"<svg"), ("png", b"\x89PNG")])
def test_the_browser_saves_the_picture(offline, tmp_path, fmt, start):
    file = tmp_path / "figure.html"
    file.write_bytes(bundle.figure_html(drawn("heatmap"), "Heat map"))
    page = opened(offline, file)
    with page.expect_download() as download:
        options = bundle.config("Heat map", fmt)["toImageButtonOptions"]
        page.evaluate("options => Plotly.downloadImage('heat-map', options)", options)
    assert download.value.suggested_filename == f"heat-map.{fmt}"
    assert Path(download.value.path()).read_bytes().startswith(start)
    page.close()
