"""`python -m attnviz study` on tiny models: what it leaves behind, run twice, with models or libraries missing."""

import json
import re
import shutil

import pytest
import serving

from attnviz import gold, studies
from attnviz.__main__ import main
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.studies import StudyConfig, curves, length, order, report
from attnviz.studies.length import Bucket

KEPT = "# Trained models\n\nOurs.\n\n<!-- study:length -->\noutdated\n<!-- /study:length -->\n\nLast words.\n"
THREE = ("bahdanau", "fixed-context", "transformer")
LINKED = gold.shipped("en-fr")[:9]


@pytest.fixture
def models(root, tmp_path, monkeypatch):
    """A folder with three of the mechanisms, and a README.md with other text around a section."""
    monkeypatch.setattr(gold, "shipped", lambda pair: LINKED)
    folder = tmp_path / "few"
    for mechanism in THREE:
        shutil.copytree(root / "en-fr" / mechanism, folder / "en-fr" / mechanism)
    shutil.copy(root / "en-fr" / "tokenizer.json", folder / "en-fr")
    (folder / "README.md").write_text(KEPT, encoding="utf-8")
    return folder


def study(name, models, data, *more):
    return main(["study", name, "--root", str(models), "--data", str(data), "--out", str(models / "out"), *more])


def measured(models, name):
    return json.loads((models / "studies" / f"{name}.json").read_text(encoding="utf-8"))


def test_length_twice(models, data, capsys, monkeypatch):
    monkeypatch.setattr(length, "BUCKETS", (Bucket(3, 5, False), Bucket(8, 12, True), Bucket(50, 100, True)))
    assert study("length", models, data) == 0
    assert (
        capsys.readouterr().out
        == f"the study length is in {models / 'README.md'}, its numbers are in {models / 'studies/length'}.json\n"
    )
    text, results = (models / "README.md").read_text(encoding="utf-8"), measured(models, "length")
    start, end = text.index("<!-- study:length -->"), text.index("<!-- /study:length -->")
    assert text[:start] == "# Trained models\n\nOurs.\n\n" and text[end:] == "<!-- /study:length -->\n\nLast words.\n"
    assert (
        "outdated" not in text
        and "](studies/length.svg)" in text
        and (models / "studies/length.svg").read_bytes().startswith(b"<?xml")
    )
    assert [row["texts"] for row in results["rows"][:3]] == [10, 4, 0] and len(results["rows"]) == 9
    assert {row["mechanism"] for row in results["fits"]} == {"bahdanau", "transformer"}
    sizes = {
        name: sum(row["sentences"] for row in results["points"] if row["mechanism"] == name)
        for name in ("bahdanau", "transformer")
    }
    assert sizes == {"bahdanau": 14, "transformer": 14}
    missing = [name for name in MECHANISMS if name not in THREE]
    *first, last = [MECHANISMS[name].title for name in missing]
    assert results["missing"] == missing and f"{', '.join(first)} and {last}" in text
    for row in results["rows"]:  # nothing in the tables that is not in the results
        assert "bleu_lc" not in row or f"{row['bleu_lc']:.1f} / {row['bleu_tok_lc']:.1f}" in text
    assert {entry["weights_sha256"] for entry in results["models"]} == {
        checkpoint_files.fingerprint(name, models) for name in checkpoint_files.names(models)
    }
    assert study("length", models, data) == 0 and (models / "README.md").read_text(encoding="utf-8") == text


def test_mechanisms(models, data):
    checkpoint_files.write_json(
        models / "en-fr" / "bahdanau" / "card.json",
        {"seed": 1, "epochs": 20, "seconds": 3600, "peak_memory_mb": 512, "device": "abacus", "remark": "Slow."},
    )
    assert study("mechanisms", models, data) == 0
    text, results = (models / "README.md").read_text(encoding="utf-8"), measured(models, "mechanisms")
    line = next(line for line in text.splitlines() if line.startswith("| Bahdanau")).split(" | ")
    row = results["rows"][1]
    assert (
        row["mechanism"] == "bahdanau" and line[5] == f"{row['error_rate']:.2f}" and line[8] == f"{row['parameters']:,}"
    )
    assert line[9:12] == ["20", "60", "512"] and "abacus" in text and "Bahdanau · additive: Slow." in text
    fixed = next(line for line in text.splitlines() if line.startswith("| Fixed context")).split(" | ")
    assert fixed[4:8] == ["–"] * 4 and fixed[9:12] == ["–"] * 3  # no everyday test, no attention, no card
    assert text.startswith(KEPT) and text.count("<!-- study:") == 2 and "One seed" in text


def history(key, scores):
    return [
        {"epoch": i, key: score, "val_loss": 3 - score / 50, "train_loss": 3.0, "seconds": 9.0}
        for i, score in enumerate(scores, 1)
    ]


def two_kinds(key, scores):
    """A history whose validation has captions and everyday sentences."""
    kinds = {"captions": 1, "everyday": -1}
    return [
        epoch | {f"{key}_{kind}": epoch[key] + more for kind, more in kinds.items()} for epoch in history(key, scores)
    ]


@pytest.fixture
def trained(models):
    """The folder with cards of a run, of two that began with others, and of a classifier."""
    (models / "studies").mkdir()
    (models / "sst2").mkdir()
    # The card is all that is read of it.
    shutil.copytree(models / "en-fr" / "bahdanau", models / "sst2" / "self-attention")
    other = {
        "epochs": 40,
        "data": {"mine.tsv": "01"},
        "history": history("val_bleu_lc", [70] * 40),
    }  # on other sentences
    begun = {"epochs": 3, "start": other, "history": history("val_bleu_lc", [11, 60, 13])}
    shutil.copytree(models / "en-fr" / "bahdanau", models / "en-fr" / "luong-dot")
    for name, card in {
        "en-fr/luong-dot": {"history": two_kinds("val_bleu_lc", [45, 55.5, 50]), "start": begun},
        "en-fr/bahdanau": {"seed": 4, "history": history("val_bleu_lc", [5, 20, 30.04, 40, 38, 37, 36, 35])},
        "en-fr/transformer": {"history": history("val_bleu_lc", [50.5, 51.5]), "start": {"epochs": 40}},
        "sst2/self-attention": {"history": history("val_accuracy", [71.0, 75.0, 74.0]), "teachers": [{"epochs": 9}]},
    }.items():
        checkpoint_files.write_json(models / name / "card.json", card)
    return models


def test_curves(trained):
    assert main(["study", "curves", "--root", str(trained)]) == 0  # it reads the cards alone
    text, results = (trained / "README.md").read_text(encoding="utf-8"), measured(trained, "curves")
    rows = [line for line in text.splitlines() if line.startswith("| ")][1:]
    assert [line[2:-2] for line in rows[1:]] == [
        "en-fr · Bahdanau · additive | BLEU lower-cased | 8 | 5.0 | 20.0 | 40.0 | 37.0 | 35.0 | 4 | 2.200 | 4 | –",
        "en-fr · Luong · dot * | BLEU lower-cased | 46 | 11.0 | 60.0 | 13.0 | 55.5 | 50.0 | 45 | 1.800 | 42 "
        "| captions 56.5, everyday 54.5",
        "en-fr · Transformer · multi-head * | BLEU lower-cased | 42 | 50.5 | 50.5 | 50.5 | 51.5 | 51.5 | 42 "
        "| 1.970 | 42 | –",
        "sst2 · Self-attention · classifier † | accuracy (%) | 3 | 71.0 | 71.0 | 75.0 | 74.0 | 74.0 | 2 | 1.500 | 2 "
        "| –",
    ]
    assert [
        (row["seed"], row["fine_tuned"], row["passes_before"], len(row["val_losses"])) for row in results["rows"]
    ] == [(4, False, 0, 8), (None, True, 40, 6), (None, True, 40, 2), (None, False, 0, 3)]
    assert [series.x for series in curves.panels(results)[0].series[1:]] == [(41, 42, 43, 44, 45, 46), (41, 42)]
    assert [(panel.title, [series.x for series in panel.series]) for panel in curves.panels(results)[1:]] == [
        ("en-fr, captions", [(44, 45, 46)]),
        ("en-fr, everyday", [(44, 45, 46)]),
    ]
    picture = (trained / "studies/curves.svg").read_text(encoding="utf-8")
    assert "Bahdanau · additive" in picture and ">en-fr<" in picture and "sst2" not in picture


def test_order_replaces_the_picture_of_an_earlier_run_or_removes_it(models, data, monkeypatch):
    (models / "studies").mkdir()
    (models / "studies" / "order.svg").write_text("of an earlier run")
    assert study("order", models, data) == 0
    text = (models / "README.md").read_text(encoding="utf-8")
    assert "order.svg" in text and (models / "studies/order.svg").read_bytes().startswith(b"<?xml")
    assert re.search(r"\| Bahdanau · additive \| −1 step \| 0\.\d{3} \| 0\.\d{3} to [01]\.\d{3} \|", text)
    assert "These models were missing: Luong · concat." in text and measured(models, "order")["differences"] == []
    monkeypatch.setattr(order, "panels", lambda results: [])
    report.write("order", order, measured(models, "order"), models)
    assert "order.svg" not in (models / "README.md").read_text() and not (models / "studies/order.svg").exists()


@pytest.mark.parametrize("name", ["mechanisms", "length", "order", "curves"])
def test_no_models_at_all(tmp_path, data, capsys, name):
    """A folder that is none of checkpoints, given by mistake, stays as it is."""
    empty = tmp_path / "empty"
    empty.mkdir()
    assert study(name, empty, data) == 2 and not list(empty.iterdir())
    assert capsys.readouterr().err.endswith(
        f"{empty} has no trained model for the study {name}; give a folder of checkpoints with --root\n"
    )


def test_curves_are_of_one_run(models, data, capsys):
    assert study("curves", models, data, "--seeds", "2") == 2
    assert capsys.readouterr().err.endswith(
        "the curves come from the cards, which have one run each; --seeds must be 1, got 2\n"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("order",), "there is no data folder; give it with --data DIR or set ATTNVIZ_DATA"),
        (
            ("order", "--data", "/nowhere"),
            "no train.en or train.en.gz in /nowhere/multi30k; point --data at the folder that holds the "
            "corpora, or fetch them: python -m attnviz download",
        ),
        (("order", "--root", "/nowhere"), "there is no folder /nowhere; --root must be a folder of checkpoints"),
        (
            ("order", "--seeds", "0"),
            "argument --seeds: must be a whole number of at least 1; got '0'; see python -m attnviz study --help",
        ),
    ],
)
def test_errors(models, capsys, arguments, message):
    try:
        status = main(["study", *arguments])
    except SystemExit as stop:
        status = stop.code
    assert (status, *capsys.readouterr()) == (2, "", f"python -m attnviz study: {message}\n")


def test_an_unknown_study_is_answered_with_those_there_are(capsys):
    with pytest.raises(SystemExit):
        main(["study", "phrenology"])
    error = capsys.readouterr().err
    assert all(name in error for name in ("phrenology", "mechanisms", "length", "dropout", "order", "curves"))


SHIPPED = serving.ROOT / "checkpoints"


@pytest.mark.parametrize("name", studies.STUDIES)
def test_what_is_shipped_is_what_the_command_writes(name):
    """From the shipped numbers: a run of a study changes nothing but what was measured anew."""
    results = json.loads((SHIPPED / "studies" / f"{name}.json").read_text(encoding="utf-8"))
    text = (SHIPPED / "README.md").read_text(encoding="utf-8")
    picture = SHIPPED / "studies" / f"{name}.svg"
    assert report.insert(text, name, report.section(name, studies.STUDIES[name], results, picture.exists())) == text


def test_curves_of_the_shipped_models_are_the_shipped_numbers():
    """On any machine: nothing is measured."""
    measured = curves.measure(StudyConfig(SHIPPED, SHIPPED, None))
    command = {"study": "curves", "command": "python -m attnviz study curves"}
    assert report.dumps(command | measured) == (SHIPPED / "studies" / "curves.json").read_text(encoding="utf-8")
