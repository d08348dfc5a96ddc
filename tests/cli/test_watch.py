"""`python -m attnviz watch`: what it prints and writes, of a real training."""

import io
import json
import re

import numpy as np
import pytest
from PIL import Image

import attnviz
from attnviz.__main__ import main
from attnviz.cli import watch
from attnviz.training.seen import PRESETS, Settings

FEW = ["--batches", "1", "--every", "1", "--width", "16"]


def test_it_prints_what_it_sees_and_writes_what_is_asked_for(tmp_path, capsys):
    names = {kind: str(tmp_path / f"a.{kind}") for kind in ("svg", "gif", "html")}
    files = ["--strip", names["svg"], "--gif", names["gif"], "--html", names["html"], "--keep", str(tmp_path / "kept")]
    assert main(["watch", "bahdanau", "transformer", "--task", "dates", *FEW, *files]) == 0
    printed = capsys.readouterr().out
    lines = [line for line in printed.splitlines() if line.startswith("batch")]
    assert [int(line.split()[1].rstrip(",")) for line in lines] == [0, 1]
    assert all(re.search(r"bahdanau: loss \d+\.\d\d, exact \d+%, alignment error [01]\.\d\d", line) for line in lines)
    assert printed.startswith("Toy task: write a date as year, month and day.")
    assert sorted(attnviz.available(tmp_path / "kept")) == ["dates/bahdanau", "dates/transformer"]
    svg = (tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "3 m a r c h 2 0 2 1 → 2 0 2 1 - 0 3 - 0 3" in svg and "batch 1" in svg
    film = Image.open(io.BytesIO((tmp_path / "a.gif").read_bytes()))
    assert film.n_frames == 2
    shown = []
    for place in (0, 1):
        film.seek(place)
        shown.append(np.asarray(film.convert("RGB")))
    assert (shown[0] != shown[1]).any()
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    assert "https://" not in re.sub(r"<script>.*?</script>|<style>.*?</style>", "", page, flags=re.S)
    values = json.loads(re.search(r"values = (\[.*\]);", page)[1])
    assert len(values) == 2 and values[0] != values[1]


def test_pairs_of_ones_own(tmp_path, capsys):
    file = tmp_path / "mine.tsv"
    file.write_text(
        "".join(f"{a} {b}\t{b} =1 {a}</script>\n" for a in "ab cd ef gh".split() for b in "kl mn op".split())
    )
    page = tmp_path / "a.html"
    assert main(["watch", "luong-dot", "--pairs", str(file), *FEW, "--html", str(page)]) == 0
    assert "alignment error" not in capsys.readouterr().out
    assert page.read_text(encoding="utf-8").count("</script>") == page.read_text(encoding="utf-8").count("<script")


def test_the_presets_are_those_that_there_are(capsys):
    assert tuple(PRESETS) == watch.PRESETS
    assert all(Settings(**preset.settings) != Settings() for name, preset in PRESETS.items() if name != "none")
    assert main(["watch", "--preset", "rate", *FEW[:4]]) == 0
    assert PRESETS["rate"].why in capsys.readouterr().out


@pytest.mark.parametrize(
    "words, message",
    [
        (["bahdanau", "--strip", "a.gif"], "--strip must end in .svg or .pdf or .png; got a.gif"),
        (["bahdanau", "--html", "/none/a.html"], "cannot write /none/a.html"),
        (["bahdanau", "--pairs", "a.tsv", "--task", "sort"], "use only one of them"),
        (["bahdanau", "--sequence", "4"], "--sequence must be 1, 2 or 3; got 4"),
        ([], "name one to three mechanisms, or a --preset"),
        (["bahdanau", "--width", "9"], "width must be a multiple of heads"),
        (["bahdanau", "--seconds", "0"], "must be positive"),
    ],
)
def test_what_cannot_be_is_refused_before_it_trains(words, message, capsys):
    assert main(["watch", *words]) == 2
    assert message in capsys.readouterr().err
