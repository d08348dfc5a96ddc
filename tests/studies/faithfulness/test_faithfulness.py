"""The study of faithfulness: summaries by hand, its words, and a run on a tiny model."""

import json
import shutil

import numpy as np
import pytest

from attnviz.__main__ import main
from attnviz.data import corpora
from attnviz.faithfulness.sentence import QUANTILES
from attnviz.studies import faithfulness
from attnviz.studies.faithfulness import MeasuredSentences, summary
from attnviz.studies.measured_models import StudyConfig

add = MeasuredSentences.add


def test_a_value_is_over_all_tokens_and_its_interval_over_sentences():
    """Two sentences with 1 of 1 and 1 of 3 tokens: 2 of 4; samples of two sentences have 1 of 1, 2 of 4 or 1 of 3."""
    summed = summary([(1.0, 1), (1.0, 3)])
    assert summed["value"] == 0.5 and summed["tokens"] == 4
    assert (summed["low"], summed["high"]) == (0.3333, 1.0)
    assert len(summed["quantiles"]) == len(QUANTILES) and summed["quantiles"][10] == pytest.approx(2 / 3, abs=1e-4)


def test_nothing_measured_is_none():
    nothing = {"value": None, "low": None, "high": None, "tokens": 0, "sentences": 0, "quantiles": []}
    assert summary([(0.0, 0)]) == nothing


def row(measure, value, mechanism="bahdanau", pair="en-fr"):
    numbers = {"value": value, "low": value - 0.01, "high": value + 0.01}
    return {
        "mechanism": mechanism,
        "seed": 1,
        "pair": pair,
        "measure": measure,
        **numbers,
        "tokens": 9,
        "quantiles": [],
    }


def test_the_words_have_the_numbers():
    rows = [
        row("preserved uniform function", 0.68),
        row("preserved uniform content", 0.21),
        row("tau integrated", -0.1),
        row("top1 integrated", 0.5),
        row("preserved every content", 0.15),
        row("preserved uniform all", 0.4),
        row("preserved uniform all", 1.0, "self-attention", "sst2"),
    ]
    results = {"rows": rows, "sentences": 500, "samples": 1000, "pair": "en-fr"}
    text = faithfulness.text(results)
    assert "500 test sentences of each model that attends; integrated gradients of one target token of each" in text
    function, content = (text.split(f"**{kind} words**")[1].split("\n\n")[1] for kind in ("Function", "Content"))
    assert "| en-fr · Bahdanau · additive | 68 (67–69) | –" in function and "sst2" not in function + content
    assert "| en-fr · Bahdanau · additive | 21 (20–22) | –" in content and "| 15 (14–16) |" in content
    assert "−0.10 (−0.11–−0.09) · 50 (49–51) %" in text
    assert "| en-fr · Bahdanau · additive | 40 (39–41) |" in text
    assert "| **sst2 · Self-attention · classifier** | 100 (99–101) | –" in text
    alone = faithfulness.text(results | {"rows": rows[:-1]})
    assert "Translation against classification" in text and "Translation against" not in alone
    function, content, agreement, first, erased, preserved = faithfulness.panels(results)
    assert [series.name for series in function.series] == ["Bahdanau · additive"]
    assert function.series[0].x == (68,) and content.series[0].x == (21,)
    assert agreement.series[0].x == (-0.1,) and first.series[0].x == (50,)
    assert erased.series == preserved.series == () and first.rows == agreement.rows


def test_a_run_on_a_tiny_model(root, data, tmp_path):
    """A model without attention, and a pair without data in the folder, are left out."""
    folder = tmp_path / "checkpoints"
    for name in ("en-fr/bahdanau", "en-fr/fixed-context"):
        shutil.copytree(root / name, folder / name)
        shutil.copytree(root / name, folder / name.replace("en-fr", "en-de"))
    for pair in ("en-fr", "en-de"):
        shutil.copy(root / "en-fr" / "tokenizer.json", folder / pair)
    arguments = ["--root", str(folder), "--data", str(data), "--sentences", "1"]
    assert main(["study", "faithfulness", *arguments]) == 0
    results = json.loads((folder / "studies/faithfulness.json").read_text(encoding="utf-8"))
    assert {(row["pair"], row["mechanism"]) for row in results["rows"]} == {("en-fr", "bahdanau")}
    by_measure = {row["measure"]: row for row in results["rows"]}
    assert by_measure["variation median"]["tokens"] > 3 and 0 <= by_measure["variation uniform"]["value"] <= 1
    assert np.isclose(
        by_measure["tau random"]["value"], by_measure["tau random"]["low"]
    )  # one sentence has no interval
    assert results["sentences"] == 1
    text = (folder / "README.md").read_text(encoding="utf-8")
    assert "## Does attention matter?" in text and (folder / "studies/faithfulness.svg").is_file()


def test_a_folder_without_models(tmp_path, data, capsys):
    assert main(["study", "faithfulness", "--root", str(tmp_path), "--data", str(data)]) == 2
    assert "has no trained model for the study faithfulness" in capsys.readouterr().err


def test_a_run_that_was_stopped_goes_on(root, data, tmp_path, monkeypatch):
    """Of the file of a finished run a part is cut off, in the middle of a line: the same numbers, and nothing that was
    kept is measured again."""
    folder, out = tmp_path / "checkpoints", tmp_path / "out"
    shutil.copytree(root / "en-fr/bahdanau", folder / "en-fr/bahdanau")
    shutil.copy(root / "en-fr" / "tokenizer.json", folder / "en-fr")
    config = StudyConfig(folder, out, corpora.load("en-fr", data), sentences=3, data=data)
    whole = faithfulness.measure(config)
    [path] = (out / "faithfulness").iterdir()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7]) + lines[7][:20])
    parts = []
    monkeypatch.setattr(
        MeasuredSentences, "add", lambda self, part, *rest: parts.append(part) or add(self, part, *rest)
    )
    assert faithfulness.measure(config) == whole
    assert "changed" not in parts and len(parts) == len(lines) - 7


def test_weights_of_another_hash_have_a_file_of_their_own(tmp_path):
    first, second = (MeasuredSentences(tmp_path, "en-fr/bahdanau", sha256) for sha256 in ("a", "b"))
    first.add("changed", "A dog.", {"x": (1.0, 2)})
    second.add("changed", "A dog.", None)
    assert MeasuredSentences(tmp_path, "en-fr/bahdanau", "a").sums == {("changed", "A dog."): {"x": (1.0, 2)}}
    assert MeasuredSentences(tmp_path, "en-fr/bahdanau", "b").sums == {("changed", "A dog."): None}


def test_a_model_with_the_weights_of_an_earlier_run_is_not_measured_again(root, data, tmp_path, monkeypatch):
    """Its rows stay as they are; with other weights, or asked for more sentences, it is measured."""
    folder = tmp_path / "checkpoints"
    shutil.copytree(root / "en-fr/bahdanau", folder / "en-fr/bahdanau")
    shutil.copy(root / "en-fr" / "tokenizer.json", folder / "en-fr")
    config = StudyConfig(folder, tmp_path / "out", corpora.load("en-fr", data), sentences=2, data=data)
    results = faithfulness.measure(config)
    results["rows"][0]["value"] = 0.123  # of another machine
    (folder / "studies").mkdir()
    path = folder / faithfulness.PATH
    path.write_text(json.dumps(results), encoding="utf-8")
    parts = []
    monkeypatch.setattr(faithfulness, "_measure", lambda measured, part: parts.append(part))
    assert faithfulness.measure(config) == results and parts == []
    assert faithfulness.Earlier(config, 3, faithfulness.SAMPLES).rows == {}
    path.write_text(json.dumps(results | {"models": [{"weights_sha256": "0" * 64}]}), encoding="utf-8")
    assert faithfulness.measure(config)["rows"][0]["value"] != 0.123 and "changed" in parts
    for damaged in ("", "[1]", "{}", json.dumps(results | {"models": 3})):
        path.write_text(damaged, encoding="utf-8")
        assert faithfulness.Earlier(config, 2, faithfulness.SAMPLES).rows_of("en-fr/bahdanau", "0" * 64) == []
