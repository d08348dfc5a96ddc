"""What all studies share: sections of README.md, tables with their spread, pictures, and which models are measured."""

import json
import math
import shutil
import statistics
from dataclasses import asdict

import pytest
import runs
import tiny

from attnviz import gold, studies
from attnviz.cli.study import STUDIES
from attnviz.data import corpora
from attnviz.export.printed.canvas import dash
from attnviz.export.printed.traces import MARKERS
from attnviz.mechanisms import MECHANISMS
from attnviz.models import checkpoint_files
from attnviz.studies import measured_models, report
from attnviz.studies.report import Panel, Series


def row(mechanism="bahdanau", seed=1, **numbers):
    return {"mechanism": mechanism, "seed": seed, **numbers}


# --- sections


def test_a_section_goes_to_the_end_and_then_keeps_its_place():
    text = "# Models\n\nAbout them.\n"
    once = report.insert(text, "order", "first")
    assert once == "# Models\n\nAbout them.\n\n<!-- study:order -->\nfirst\n<!-- /study:order -->\n"
    two = report.insert(once, "length", "other") + "\nAfter.\n"
    again = report.insert(two, "order", r"second \1 \g<0>")
    assert again == two.replace("\nfirst\n", "\nsecond \\1 \\g<0>\n")
    assert report.insert(again, "order", r"second \1 \g<0>") == again


@pytest.mark.parametrize(
    ("text", "counts"),
    [
        ("<!-- study:order -->", "1 and 0"),
        ("<!-- /study:order -->", "0 and 1"),
        ("<!-- /study:order --><!-- study:order -->", "1 and 1"),
        ("<!-- study:order -->" * 2 + "<!-- /study:order -->", "2 and 1"),
    ],
)
def test_broken_marks_are_refused(text, counts):
    with pytest.raises(ValueError) as error:
        report.insert(text, "order", "new", "README.md")
    assert str(error.value) == (
        f"README.md must have <!-- study:order --> and after it <!-- /study:order -->, each once; got {counts}"
    )


def test_json_has_a_line_for_each_record():
    results = {"study": "x", "rows": [{"a": 1, "b": None}, {"a": 2.5, "b": "é"}], "missing": [], "data": {"f": "0"}}
    text = report.dumps(results)
    assert json.loads(text) == results and text.count("\n") == 9 and '  {"a":2.5,"b":"é"}\n' in text
    with pytest.raises(ValueError):
        report.dumps({"rows": [{"a": math.nan}]})


# --- tables


def test_the_spread_is_that_of_the_seeds():
    rows = [row(seed=seed, x=x) for seed, x in ((1, 54.0), (2, 56.0), (3, None), (4, 55.5))]
    mean, off = statistics.fmean([54, 56, 55.5]), math.sqrt((1.1667**2 + 0.8333**2 + 0.3333**2) / 2)
    assert report.spread(rows, "x", 2) == f"{mean:.2f} ± {off:.2f}" == "55.17 ± 1.04"
    assert report.spread(rows[:1], "x", 1) == "54.0" and report.spread(rows[2:3], "x") == "–" == report.spread(
        rows, "y"
    )
    assert (
        report.spread([row(x=120), row(x=60)], "x", 0, 1 / 60) == "2 ± 1"
        and report.spread([row(x=1234567)], "x", 0) == "1,234,567"
    )


def test_the_number_of_seeds_is_said():
    rows = [row(), row("transformer")]
    assert report.seeds(rows).startswith("One seed: each row is a single training run")
    assert report.seeds([*rows, row(seed=2), row("transformer", 2)]).startswith("2 seeds each;")
    uneven = report.seeds([*rows, row(seed=2)])
    assert (
        uneven.startswith("Seeds: Bahdanau · additive: 2; Transformer · multi-head: 1;")
        and "standard deviation" in uneven
    )
    assert report.seeds([]) == "No model was measured."


def test_a_table_in_markdown():
    assert report.table(("", "a"), [("x", "1"), ("y", "2")]) == "|  | a |\n| --- | ---: |\n| x | 1 |\n| y | 2 |"
    assert (report.listed([]), report.listed(["a"]), report.listed(["a", "b", "c"])) == ("", "a", "a, b and c")


# --- pictures


def drawings():
    names = [mechanism.title for mechanism in MECHANISMS.values()]
    upright = tuple(Series(name, (1, 2), (i, i + 1), (i - 1, i), (i + 1, i + 2)) for i, name in enumerate(names))
    along = tuple(Series(name, (5 * i,), (i,), (5 * i - 1,), (5 * i + 2,), line=False) for i, name in enumerate(names))
    uniform = ("uniform", (1, 2), (0, 1))
    return [
        Panel("By length", upright, reference=uniform, log=True, ticks=(1, 2)),
        Panel("Rows", along, rows=tuple(names)),
    ]


def test_a_picture_is_svg_on_white_and_the_same_every_time():
    drawn = report.draw_picture(drawings(), 2, "What is seen")
    assert drawn == report.draw_picture(drawings(), 2, "What is seen") and b"<svg" in drawn and b"What is seen" in drawn
    assert b"fill: #ffffff" in drawn and all(color.encode() in drawn for color in report.LIGHT.lines)


def test_mechanisms_differ_in_more_than_colour():
    styles = report.lines(MECHANISMS).values()
    assert len({str(dash(style.dash)) for style in styles}) == len(MECHANISMS)
    assert len({MARKERS[style.marker] for style in styles}) == len(MECHANISMS)


# --- models


@pytest.fixture
def models(root, tmp_path):
    """A folder with two of the tiny models, one of which says how it was trained."""
    (tmp_path / "few" / "en-fr").mkdir(parents=True)
    for name in ("tokenizer.json", "bahdanau", "fixed-context"):
        path, target = root / "en-fr" / name, tmp_path / "few" / "en-fr" / name
        shutil.copytree(path, target) if path.is_dir() else shutil.copy(path, target)
    card = {"seed": 1, "settings": asdict(runs.config(epochs=1))}
    checkpoint_files.write_json(tmp_path / "few" / "en-fr" / "bahdanau" / "card.json", card)
    return tmp_path / "few"


def test_more_seeds_are_trained_once_as_the_first_one_was(models, data, tmp_path, monkeypatch):
    monkeypatch.setattr(gold, "shipped", lambda pair: ())
    corpus = corpora.load("en-fr", data)
    config = studies.StudyConfig(models, tmp_path / "out", corpus, seeds=2)
    assert config.missing(("bahdanau", "luong-dot", "transformer")) == ["luong-dot", "transformer"]
    first, second = measured_models.models(config, ("bahdanau", "luong-dot"))
    assert (first.seed, second.seed) == (1, 2) and first.sha256 != second.sha256
    card = second.translator.card
    assert (
        card["settings"] == {**first.translator.card["settings"], "seed": 2} and card["weights_sha256"] == second.sha256
    )
    assert (tmp_path / "out/seed-2/en-fr/tokenizer.json").read_bytes() == (models / "en-fr/tokenizer.json").read_bytes()
    monkeypatch.setattr(measured_models, "train", lambda *_, **__: pytest.fail("it is trained already"))
    assert [model.sha256 for model in measured_models.models(config, ("bahdanau",))] == [first.sha256, second.sha256]
    made = measured_models.record(config, [first, second], ("bahdanau", "luong-dot"))
    assert made["models"] == [row(seed=seed, weights_sha256=model.sha256) for seed, model in ((1, first), (2, second))]
    assert made["missing"] == ["luong-dot"] and made["data"] == corpus.files and made["seeds"] == 2


def test_more_seeds_take_as_many_runs_as_the_first_one(models, data, tmp_path, monkeypatch):
    monkeypatch.setattr(gold, "shipped", lambda pair: ())
    corpus, path = corpora.load("en-fr", data), models / "en-fr" / "bahdanau" / "card.json"
    first, second = asdict(runs.config(epochs=2)), asdict(runs.config(epochs=1, learning_rate=1e-3, start="0123"))
    checkpoint_files.write_json(
        path, {"seed": 1, "settings": second, "data": corpus.files, "start": {"settings": first, "data": corpus.files}}
    )
    _, other = measured_models.models(studies.StudyConfig(models, tmp_path / "out", corpus, seeds=2), ("bahdanau",))
    begun = checkpoint_files.read_card("en-fr/bahdanau", tmp_path / "out/seed-2/run-1")
    card = other.translator.card
    assert begun["settings"] == {**first, "seed": 2} and begun["epochs"] == 2 and "start" not in begun
    assert card["settings"] == {**second, "seed": 2, "start": begun["weights_sha256"]} and card["epochs"] == 1
    assert card["start"] == checkpoint_files.begun(tmp_path / "out/seed-2/run-1/en-fr/bahdanau")["start"]
    monkeypatch.setattr(measured_models, "train", lambda *_, **__: pytest.fail("it is trained already"))
    assert [
        model.seed
        for model in measured_models.models(
            studies.StudyConfig(models, tmp_path / "out", corpus, seeds=2), ("bahdanau",)
        )
    ] == [1, 2]


def test_a_model_with_another_seed_that_was_trained_otherwise_is_not_taken_for_it(models, data, tmp_path):
    config = studies.StudyConfig(models, tmp_path / "out", corpora.load("en-fr", data), seeds=2)
    checkpoint_files.write_json(
        tmp_path / "out/seed-2/en-fr/bahdanau/card.json", {"settings": asdict(runs.config(epochs=2, seed=2))}
    )
    with pytest.raises(
        ValueError,
        match="seed-2/en-fr/bahdanau was trained with different settings from en-fr/bahdanau; "
        "remove it, or choose another --out$",
    ):
        list(measured_models.models(config, ("bahdanau",)))


def card(start=None, data=(), **changes):
    """A card of a model that began with another's weights."""
    return {"settings": asdict(runs.config(start="0123")), "data": dict(data), "start": start} | changes


def begun(mechanism="bahdanau", data=(), **changes):
    return {"settings": asdict(runs.config(mechanism, **changes)), "data": dict(data)}


@pytest.mark.parametrize(
    "card",
    [
        {},
        {"settings": {}},
        {"settings": [1]},
        {"settings": asdict(runs.config()) | {"colour": "red"}},
        {"settings": {"seed": 1}},
        card(),
        card("0123"),
        card({"epochs": 3}),
        card(begun(start="4567")),
        card(begun(seed=2)),
        card(begun("scaled-dot")),
        card(begun(data=[("a", "89ab")])),
        card(begun(), data=[("a", "89ab")]),
    ],
)
def test_a_model_whose_training_is_not_known_has_no_other_seed(models, data, tmp_path, card):
    checkpoint_files.write_json(models / "en-fr" / "bahdanau" / "card.json", card)
    with pytest.raises(
        ValueError, match="^en-fr/bahdanau cannot be trained with seed 1: its card must have the settings of a run"
    ):
        list(
            measured_models.models(studies.StudyConfig(models, tmp_path, corpora.load("en-fr", data), 2), ("bahdanau",))
        )


def test_the_parser_knows_the_studies():
    assert tuple(studies.STUDIES) == STUDIES
    assert set(tiny.WIDTHS) == set(MECHANISMS)
