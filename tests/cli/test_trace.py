"""`python -m attnviz trace`: tables, pictures, JSON and pages."""

import json
import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import judged
import pytest
import synthetic
import tiny

import attnviz
from attnviz.__main__ import main
from attnviz.cli import tables
from attnviz.confidence import Judge
from attnviz.trace import Trace

ATTENTIVE = [name for name in tiny.WIDTHS if name != "fixed-context"]
MODEL = ("--model", "en-fr/bahdanau")
SENTENCE = "The black dog runs."


@pytest.mark.parametrize("mechanism", ATTENTIVE)
def test_trace_prints_a_table(cli, root, mechanism):
    trace = attnviz.load(f"en-fr/{mechanism}", root).trace(SENTENCE)
    status, out, err = cli("trace", SENTENCE, "--model", f"en-fr/{mechanism}")
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert lines[0].startswith("translation: ") and lines[1] == f"log-probability: {trace.log_prob:.3f}"
    place, heads = (
        ("1 (the last", "mean of 2 heads") if mechanism == "transformer" else ("0 (the only one", "its one head")
    )
    assert f"attention: cross, layer {place}; layers count from 0), {heads}" in lines
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == "step token probability attends most to weight".split()
    weights = trace.map().weights.mean(0)
    assert [line.split()[0] for line in table[1:]] == [str(i + 1) for i in range(len(trace.target))]
    assert [line.split()[-1] for line in table[1:]] == [f"{row.max():.2f}" for row in weights]
    assert [line.split()[-2] for line in table[1:]] == [trace.source[row.argmax()].text for row in weights]


def test_an_empty_translation_is_said_to_be_empty():
    empty = replace(synthetic.trace("a", ""), translation="")
    assert tables.summary(empty).startswith("translation: (empty: the model ended at once)\n")


def test_layers_are_the_same_numbers_in_text_and_json(cli, root):
    command = ("trace", SENTENCE, "--model", "en-fr/transformer")
    values = json.loads(cli(*command, "--json", "-")[1])
    last = max(m["layer"] for m in values["maps"] if m["kind"] == "cross")
    assert values["counted_from"] == 0
    assert f"attention: cross, layer {last} (the last; layers count from 0), mean of 2 heads" in cli(*command)[1]


def test_without_attention_the_table_says_so(cli, root, tmp_path):
    trace = attnviz.load("en-fr/fixed-context", root).trace(SENTENCE)
    status, out, err = cli("trace", SENTENCE, "--model", "en-fr/fixed-context")
    lines = out.splitlines()
    assert ((status, err) == (0, "") and lines[2] == "attention: none") or lines[3] == "attention: none"
    table = lines[lines.index("") + 1 :]
    assert table[0].split() == ["step", "token", "probability"] and len(table) == 1 + len(trace.target)
    assert cli("trace", SENTENCE, "--model", "en-fr/fixed-context", "--html", tmp_path / "x") == (
        2,
        "",
        "python -m attnviz trace: en-fr/fixed-context has no attention to show; leave --html and --picture out\n",
    )


def test_trace_picture(cli, tmp_path):
    arguments = ("trace", SENTENCE, "--model", "en-fr/transformer", "--picture")
    assert cli(*arguments, tmp_path / "x.svg", "--size", "column") == (0, "", f"{tmp_path / 'x.svg'} is written\n")
    assert "mean of 2 heads</text>" in (tmp_path / "x.svg").read_text()
    assert cli(*arguments, "x.gif") == (
        2,
        "",
        "python -m attnviz trace: --picture must end in .svg, .pdf, .png, .tex; got x.gif\n",
    )


def svg_texts(path) -> list[str]:
    """The texts of an SVG."""
    nodes = ElementTree.parse(path).iter("{http://www.w3.org/2000/svg}text")
    return ["".join(node.itertext()).strip() for node in nodes]


def test_trace_picture_of_bars(cli, root, tmp_path):
    trace = attnviz.load("en-fr/luong-local", root).trace(SENTENCE)
    place = tmp_path / "x.svg"
    arguments = ("trace", SENTENCE, "--model", "en-fr/luong-local", "--picture", place, "--draw", "bars", "--step")
    assert cli(*arguments, "2") == (0, "", f"{place} is written\n")
    assert f"Step 2 of {len(trace.target)}: ‘{trace.target[1].text}’" in svg_texts(place)
    beyond = len(trace.target) + 1
    message = f"--step must be 1 to {len(trace.target)} for this text; got {beyond}"
    assert cli(*arguments, str(beyond)) == (2, "", f"python -m attnviz trace: {message}\n")


def test_trace_picture_of_two_models(cli, root, tmp_path):
    first = attnviz.load("en-fr/bahdanau", root).trace(SENTENCE)
    place = tmp_path / "x.svg"
    arguments = ("trace", SENTENCE, *MODEL, "--picture", place, "--beside", "en-fr/luong-dot", "--draw")
    assert cli(*arguments, "difference") == (0, "", f"{place} is written\n")
    assert "attention weight of en-fr/bahdanau minus that of en-fr/luong-dot" in svg_texts(place)
    assert cli(*arguments, "statistics") == (0, "", f"{place} is written\n")
    assert {"en-fr/bahdanau", "en-fr/luong-dot", f"→ {first.translation}"} <= set(svg_texts(place))  # the same text


@pytest.mark.parametrize(
    ("name", "title"),
    [
        ("heads", "Transformer · multi-head (en-fr/transformer): cross-attention, all heads"),
        ("lines", "Transformer · multi-head (en-fr/transformer): cross-attention, layer 2 of 2, mean of 2 heads"),
        ("distances", "Weight by distance: Transformer · multi-head (en-fr/transformer)"),
    ],
)
def test_trace_picture_of_a_model_with_heads(cli, tmp_path, name, title):
    place = tmp_path / "x.svg"
    arguments = ("trace", SENTENCE, "--model", "en-fr/transformer", "--picture", place, "--draw", name)
    assert cli(*arguments) == (0, "", f"{place} is written\n")
    assert title in " ".join(svg_texts(place))
    assert "<image" not in place.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--draw", "bars"), "--draw is for a picture; add --picture FILE"),
        (("--picture", "x.svg", "--step", "2"), "--step is for bars; add --draw bars"),
        (("--picture", "x.svg", "--draw", "difference"), "--draw difference needs another model; add --beside MODEL"),
        (
            ("--picture", "x.svg", "--beside", "en-fr/luong-dot"),
            "--beside is for a difference or statistics; add --draw difference or --draw statistics",
        ),
        (
            ("--picture", "x.svg", "--draw", "statistics", "--beside", "en-fr/bahdanau"),
            "--beside must be another model than --model; got en-fr/bahdanau twice",
        ),
        (
            ("--picture", "x.svg", "--draw", "statistics", "--beside", "en-fr/fixed-context"),
            "en-fr/fixed-context has no attention to show; choose another model for --beside",
        ),
    ],
)
def test_options_of_pictures_that_do_not_go_together(cli, options, message):
    assert cli("trace", SENTENCE, *MODEL, *options) == (2, "", f"python -m attnviz trace: {message}\n")


def test_trace_json(cli, root, tmp_path):
    expected = attnviz.load("en-fr/transformer", root).trace(SENTENCE, beam=3)
    arguments = ("trace", SENTENCE, "--model", "en-fr/transformer", "--beam", "3", "--json")
    status, out, err = cli(*arguments, "-")
    assert (status, err) == (0, "") and Trace.from_json(out) == expected
    assert cli(*arguments, tmp_path / "trace.json") == (0, "", f"{tmp_path / 'trace.json'} is written\n")
    assert Trace.from_json((tmp_path / "trace.json").read_text()) == expected


def test_trace_forced(cli):
    status, out, _ = cli("trace", SENTENCE, *MODEL, "--target", "Le chien noir court.", "--json", "-")
    written = json.loads(out)
    assert status == 0 and written["forced"] and written["translation"] == "Le chien noir court."
    assert cli("trace", SENTENCE, *MODEL, "--target", "Le chien.")[1].startswith("target: Le chien.\n")


@pytest.mark.parametrize("mechanism", ["bahdanau", "luong-local", "transformer"])
def test_trace_html(cli, tmp_path, mechanism):
    nasty = 'The </script><b>x</b> "dog" runs.'
    path = tmp_path / "page.html"
    assert cli("trace", nasty, "--model", f"en-fr/{mechanism}", "--target", nasty, "--html", path) == (
        0,
        "",
        f"{path} is written\n",
    )
    page = path.read_text(encoding="utf-8")
    ids = ["cross", "bars", "by-step"] + (["encoder", "decoder"] if mechanism == "transformer" else [])
    assert set(ids) <= set(re.findall(r'<div id="([a-z-]+)"', page))
    assert "&lt;/script&gt;&lt;b&gt;x&lt;/b&gt;" in page and "<b>x" not in page
    assert page.count("<script") == page.count("</script>") and not re.search(
        r"<(?:script|link)[^>]+(?:src|href)=", page
    )


def test_awkward_texts(cli):
    for text in ("<b>x</b> </script>", "שלום عالم 日本 👩\u200d🚀", "a\x1b[31mb\nc", "=1+1"):
        status, out, err = cli("trace", text, *MODEL)
        assert (status, err) == (0, "") and "\x1b" not in out


def test_a_model_with_thresholds_says_how_usual_its_translation_is(tmp_path, capsys):
    root = judged.write_models(tmp_path / "models")
    command = ["trace", "The Narita is running.", *MODEL, "--root", str(root)]
    assert main(command) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "This translation is outside what this model has learnt."
    why = "“Narita” is in no training sentence and was cut into "
    assert any(line.startswith(why) for line in lines)
    assert main([*command, "--html", str(tmp_path / "page.html")]) == 0
    assert why in (tmp_path / "page.html").read_text(encoding="utf-8")
    assert main([*command, "--target", "Le chien."]) == 0
    assert "This translation is" not in capsys.readouterr().out


def test_other_translations_are_drawn_where_the_thresholds_need_them(tmp_path, capsys):
    scale = judged.SCALE | {"intercept": 5.0, "weights": {"agreement": -0.01}}
    root = judged.write_models(tmp_path / "models", scale, (judged.NAME, "en-fr/transformer"))
    assert main(["trace", "The dog is running.", *MODEL, "--root", str(root)]) == 0
    trace = attnviz.load(judged.NAME, root=root).trace("The dog is running.")
    printed = capsys.readouterr().out.splitlines()
    assert set(Judge.load(judged.NAME, root)(trace).lines) <= set(printed)
    assert any(line.startswith("Translations that models of this pair drew at random") for line in printed)
