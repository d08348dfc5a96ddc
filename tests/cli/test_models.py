"""`python -m attnviz models`: what it lists, and models that are damaged."""

import json
import re

import tiny

from attnviz.__main__ import main
from attnviz.models import checkpoint_files

AVAILABLE = ", ".join(sorted(f"en-fr/{mechanism}" for mechanism in tiny.WIDTHS))


def test_models(cli):
    status, out, err = cli("models")
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0].split() == "model mechanism parameters score problem".split()
    assert [line.split()[0] for line in lines[1:]] == AVAILABLE.split(", ")
    assert all(re.search(r"  1,234  1\.50 bleu_lc, test_2016_flickr  none$", line) for line in lines[1:])
    assert "Bahdanau · additive" in lines[1]


def test_models_of_other_pairs_show_the_score_that_suits_them(tmp_path, capsys):
    root = tiny.write_models(tmp_path / "other")
    (root / "en-fr").rename(root / "en-ja")
    for mechanism, scores in (
        ("bahdanau", {"val": {"bleu_morphemes": 9.0}, "test": {"bleu_morphemes": 8.0, "chrf": 7.0}}),
        ("transformer", {"val": {"exact_match": 99.0}}),
    ):
        checkpoint_files.write_json(root / "en-ja" / mechanism / "card.json", {"scores": scores})
    assert main(["models", "--root", str(root)]) == 0
    lines = {line.split()[0]: line for line in capsys.readouterr().out.splitlines()}
    assert re.search(r"  –  +8\.00 bleu_morphemes, test  none$", lines["en-ja/bahdanau"])
    assert re.search(r"  –  +99\.00 exact_match, val +none$", lines["en-ja/transformer"])


def test_models_json(cli):
    status, out, err = cli("models", "--json")
    listed = json.loads(out)
    assert (status, err) == (0, "") and [entry["name"] for entry in listed] == AVAILABLE.split(", ")
    assert all(entry["problem"] is None and entry["title"] for entry in listed)


def test_models_that_are_damaged_or_not_there(tmp_path, capsys):
    assert main(["models", "--root", str(tmp_path)]) == 0
    assert capsys.readouterr().out == f"no checkpoints in {tmp_path}\n"
    root = tiny.write_models(tmp_path / "damaged")
    (root / "en-fr" / "bahdanau" / "config.json").write_text("")
    (root / "en-fr" / "luong-general" / "card.json").unlink()
    (root / "en-fr" / "transformer" / "model.safetensors").unlink()
    assert main(["models", "--root", str(root)]) == 0
    lines = {line.split()[0].removeprefix("en-fr/"): line for line in capsys.readouterr().out.splitlines()}
    assert f"{root / 'en-fr/bahdanau/config.json'} is damaged" in lines["bahdanau"] and lines["luong-general"].endswith(
        "none"
    )
    assert lines["transformer"].endswith(
        "transformer/model.safetensors is missing; restore it or train the model again"
    )
