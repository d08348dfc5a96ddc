"""The numbers of each study: by hand, and against other code that computes the same."""

import statistics
from dataclasses import replace

import numpy as np
import pytest
import tiny

from attnviz import alignment, gold, studies
from attnviz.alignment import Counts
from attnviz.data import corpora
from attnviz.evaluation import translation
from attnviz.mechanisms import ALL
from attnviz.models.translator import Translator
from attnviz.studies import dropout, measured_models, mechanisms, order
from attnviz.training import saved_run
from attnviz.training.recipes import training_config
from attnviz.training.trainer import Trainer

LINKED = gold.shipped("en-fr")[:9]


@pytest.fixture(autouse=True)
def fewer_links(monkeypatch):
    monkeypatch.setattr(gold, "shipped", lambda pair: LINKED)


@pytest.fixture(scope="module")
def corpus(data):
    return corpora.load("en-fr", data)


@pytest.fixture(scope="module")
def config(root, corpus, tmp_path_factory):
    return studies.StudyConfig(root, tmp_path_factory.mktemp("out"), corpus)


@pytest.fixture(scope="module", params=["bahdanau", "transformer", "fixed-context"])
def model(request, root):
    return measured_models.load(f"en-fr/{request.param}", root, 1)


# --- order


def test_samples_of_pairs_by_other_code():
    counts = [Counts(3, 3, 2, 3), Counts(2, 1, 1, 1), Counts(4, 2, 0, 1)]
    generator = np.random.default_rng(0)
    wanted = []
    for chosen in generator.integers(3, size=(order.SAMPLES, 3)).tolist():
        total = counts[chosen[0]] + counts[chosen[1]] + counts[chosen[2]]
        wanted.append(total.error_rate)
    rates = order.resampled(counts)
    assert rates.tolist() == pytest.approx(wanted)
    wanted = sorted(wanted)
    assert order.interval(rates) == pytest.approx({"low": wanted[25], "high": wanted[974]}, abs=0.05)
    assert order.interval(order.resampled([counts[0]] * 5)) == {
        "low": 0.1667,
        "high": 0.1667,
    }  # 1 - 5 / 6, whatever is drawn


def test_error_rates_are_those_of_the_report(config):
    results = order.measure(config)
    for mechanism in order.ORDERS:
        report = alignment.report(Translator.load(f"en-fr/{mechanism}", config.root), LINKED)
        rows = {row["shift"]: row for row in results["rows"] if row["mechanism"] == mechanism}
        for shift, wanted in ((0, report["best_head"]), (1, report["shifted"]["1"]), (-1, report["shifted"]["-1"])):
            assert {key: rows[shift][key] for key in ("error_rate", "precision", "recall", "links")} == {
                key: wanted[key] for key in ("error_rate", "precision", "recall", "links")
            }
            assert rows[shift]["low"] <= rows[shift]["error_rate"] <= rows[shift]["high"]
        assert (
            results["links"]["diagonal"] == report["diagonal"]["error_rate"]
            and results["links"]["sure"] == report["sure"]
        )
    rates = {(row["mechanism"], row["shift"]): row["error_rate"] for row in results["rows"]}
    assert [row["shift"] for row in results["differences"]] == [-1, 0, 1]
    for row in results["differences"]:
        wanted = rates["bahdanau", row["shift"]] - rates["luong-concat", row["shift"]]
        assert row["difference"] == pytest.approx(wanted, abs=2e-4) and row["low"] <= row["difference"] <= row["high"]


# --- mechanisms


def test_scores_are_the_cards_when_it_has_them_all_of_the_same_files(config, model, monkeypatch):
    whole = dict.fromkeys(mechanisms._SCORES, 12.5)
    cards = {
        "complete": ({"scores": {measured_models.TEST: whole}, "data": config.corpus.files}, True),
        "a score lacks": ({"scores": {measured_models.TEST: {**whole} | {"chrf": None}}, "data": {}}, False),
        "other files": (
            {
                "scores": {measured_models.TEST: whole},
                "data": {**config.corpus.files, f"multi30k/{measured_models.TEST}.en": "0"},
            },
            False,
        ),
        "nothing": ({}, False),
    }
    measured = translation.score(model.translator, *zip(*config.test))
    for name, (card, usable) in cards.items():
        monkeypatch.setitem(model.translator.__dict__, "card", card)
        scores = mechanisms.scores_on_test(model, config)
        assert {key: scores[key] for key in whole} == (whole if usable else {key: measured[key] for key in whole}), name


def test_a_row_of_a_mechanism(config, model):
    row = mechanisms.measure_model(model, config, LINKED)
    report = alignment.report(model.translator, LINKED)
    assert row["error_rate"] == (report and report["best_head"]["error_rate"])
    assert row["parameters"] == sum(value.numel() for value in model.translator.model.state_dict().values())
    assert row["ms_per_sentence"] > 0 and row["seconds"] is None and row["peak_memory_mb"] is None


def test_training_counts_the_runs_that_it_began_with(config, model, monkeypatch):
    first = {"epochs": 20, "seconds": 60.5}
    for card, epochs, seconds in (
        (first, 20, 60.5),
        ({"epochs": 10, "seconds": 30, "start": first}, 30, 90.5),
        ({"epochs": 4, "seconds": 1, "start": {"epochs": 10, "seconds": 30, "start": first}}, 34, 91.5),
        ({"epochs": 10, "seconds": 30, "start": {"epochs": "20", "seconds": 5}}, None, 35),
        ({}, None, None),
    ):
        monkeypatch.setitem(model.translator.__dict__, "card", card)
        row = mechanisms.measure_model(model, config, ())
        assert (row["epochs"], row["seconds"]) == (epochs, seconds)


# --- dropout


def test_runs_of_attention_dropout(config, monkeypatch):
    """Two rates and two seeds, tiny: what is measured, that it was trained with the rate, and only once."""
    monkeypatch.setattr(dropout, "RATES", (0.0, 0.3))
    monkeypatch.setattr(dropout, "CAPTIONS", 40)
    monkeypatch.setattr(dropout, "EPOCHS", {"bahdanau": 2})
    recipe = {"batch_tokens": 100, "vocabulary": 120, "warmup": 5, "options": tiny.WIDTHS["bahdanau"]}
    monkeypatch.setitem(ALL, "bahdanau", replace(ALL["bahdanau"], training=recipe))
    two = studies.StudyConfig(config.root, config.out, config.corpus, seeds=2)
    results = dropout.measure(two)
    assert [(row["seed"], row["attention_dropout"]) for row in results["rows"]] == [(1, 0), (1, 0.3), (2, 0), (2, 0.3)]
    assert (
        len({entry["weights_sha256"] for entry in results["models"]}) == 4
        and results["captions"] == 40
        and results["compared"] == 12
    )
    folder = config.out / "dropout-0.3" / "seed-2"
    state = saved_run.read(folder / "en-fr/bahdanau")
    assert state["settings"]["options"]["attention_dropout"] == 0.3 and state["settings"]["seed"] == 2
    row, model = results["rows"][-1], Translator.load("en-fr/bahdanau", folder)
    losses = []
    for pairs in (config.corpus.train[:12], config.corpus.val):
        forced = [model.trace(*pair) for pair in pairs]
        losses.append(-sum(t.log_prob for t in forced) / sum(len(t.target) for t in forced))
    assert (row["train_loss"], row["val_loss"]) == pytest.approx(losses, abs=1e-3)
    assert row["gap"] == pytest.approx(losses[1] - losses[0], abs=1e-3)
    best = max(state["history"], key=lambda epoch: epoch["val_bleu_lc"])
    assert (row["best_epoch"], row["epochs"]) == (best["epoch"], 2)
    assert row["val_bleu_lc"] == translation.score(model, *zip(*config.corpus.val))["bleu_lc"]
    monkeypatch.setattr(Trainer, "update", lambda *_: pytest.fail("it is trained already"))
    assert dropout.measure(two)["rows"] == results["rows"]
    text, panels = dropout.text(results), dropout.panels(results)
    assert "first 40 captions" in text and "2 seeds each" in text and "Bahdanau · additive 2; on cpu" in text
    gaps = [row["gap"] for row in results["rows"] if row["attention_dropout"] == 0.3]
    assert panels[3].series[0].y[1] == statistics.fmean(gaps) and panels[3].series[0].low[1] == min(gaps)
    assert f"{statistics.fmean(gaps):.3f} ± {statistics.stdev(gaps):.3f}" in text


def test_the_recipes_of_the_study_can_be_built():
    for mechanism, epochs in dropout.EPOCHS.items():
        plan = training_config("en-fr", mechanism, {"attention_dropout": 0.2}, epochs=epochs)
        assert plan.options["attention_dropout"] == 0.2 and plan.epochs == epochs
