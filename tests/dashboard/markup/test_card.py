"""The card of a model as the page shows it: everything that is known, nothing that is not, and no markup of others."""

import html
import re

import pytest

import attnviz
from attnviz.models import checkpoint_files
from dashboard.markup import card

FULL = {
    "parameters": 3392928,
    "bytes": 6_800_000,
    "data": {"multi30k/train.en": "aa", "multi30k/val.en": "bb", "tanaka/x": "cc"},
    "training_pairs": 29000,
    "seconds": 2506,
    "epochs": 11,
    "device": "cpu, 1 thread(s)",
    "best": {"epoch": 9},
    "remark": "<b>slow</b>",
    "command": "python -m attnviz train",
    "options": {"width": 192, "dropout": 0.3, "cell": "gru"},
    "settings": {
        "mechanism": "bahdanau",
        "epochs": 11,
        "batch_tokens": 2000,
        "start": "",
        "word_dropout": 0.0,
        "rates": {"v": 0.1},
    },
    "alignment": {"pairs": 40, "best_head": {"error_rate": 0.1234}, "diagonal": {"error_rate": 0.5}},
    "copied": {"beam_5": {"names": 83, "names_right": 5, "numbers": 51, "numbers_right": 40}},
    "confidence": {
        "sentences": 1014,
        "worst_tenth": 0.62,
        "best_half": 0.049,
        "bins": [[0.03, 0.02, 507], [0.4, 0.5, 507]],
    },
    "scores": {
        "val": {"beam": 1, "bleu": 52.21, "bleu_signature": "nrefs:1|case:mixed"},
        "test_2016": {"beam": 1, "bleu": 53.91, "unseen": {"sentences": 990, "bleu": 50}},
        "test_2016_beam_5": {"beam": 5, "bleu": 55.04, "bleu_tok_lc": 57.1},
    },
}


def facts(shown: str) -> dict[str, str]:
    return {name: html.unescape(text) for name, text in re.findall(r"<dt>(.*?)</dt><dd>(.*?)</dd>", shown)}


def rows(shown: str) -> list[list[str]]:
    return [re.findall(r">([^<>]+)</t[hd]>", row) for row in re.findall(r"<tr>.*?</tr>", shown)]


def test_all_that_a_card_can_say():
    shown = card.show(FULL)
    assert facts(shown) == {
        "Parameters": "3,392,928",
        "Weights": "6.8 MB on disk",
        "Trained on": "multi30k, tanaka · 29,000 sentence pairs",
        "Training": "42 min · 11 epochs (best: epoch 9) · cpu, 1 thread(s)",
        "Model": "width 192, dropout 0.3, cell gru",
        "Settings": "batch tokens 2000, learning rate of v × 0.1",
        "Alignment error": "0.123; of the diagonal 0.500 (forced decoding, 40 sentences aligned by hand)",
        "Flagged as unusual": "of 1,014 validation sentences, by chrF: 62% of the worst tenth, 4.9% of the best half",
        "Copied unchanged": "5 of 83 names, 40 of 51 numbers (beam 5)",
        "Remark": "<b>slow</b>",
        "Command": "python -m attnviz train",
    }
    assert "<b>slow" not in shown
    assert rows(shown) == [
        ["BLEU", "tok-lc"],
        ["val, greedy", "52.2", "–"],
        ["test 2016, greedy", "53.9", "–"],
        ["test 2016, greedy, 990 sentences not seen in training", "50.0", "–"],
        ["test 2016, beam 5", "55.0", "57.1"],
        ["risk", "actually poor", "sentences"],
        ["3%", "2%", "507"],
        ["40%", "50%", "507"],
    ]
    assert '<td style="--share:40.0%">40%</td><td style="--share:50.0%">50%</td>' in shown
    assert "<b>BLEU</b> nrefs:1|case:mixed" in shown


def test_names_that_no_translation_copies():
    copied = {"beam_5": {"names": 0, "names_right": 0, "numbers": 51, "numbers_right": 9}}
    assert facts(card.show({"copied": copied}))["Copied unchanged"] == (
        "9 of 51 numbers (beam 5); names are not counted, because this language writes them in a script of its own"
    )


def test_a_sign_that_misses_its_aims_says_so():
    shown = facts(card.show({"confidence": {"worst_tenth": 0.48, "best_half": 0.07}}))["Flagged as unusual"]
    assert shown == (
        "of the validation sentences, by chrF: 48% of the worst tenth, 7.0% of the best half. "
        "This misses the aim: at least 60% of the worst tenth and at most 5% of the best half"
    )


@pytest.mark.parametrize("bins", [7, [3], [[0.1, 0.2]], [["<b>", 0.2, 3]], [[0.1, 7.0, 3]], None])
def test_odd_bins_of_a_card_are_left_out(bins):
    assert card.show({"confidence": {"bins": bins, "worst_tenth": "x"}}) == card.show({})


def test_a_choice_against_something_is_said():
    """False, and no dropout, are choices of a model; a setting of the training that is 0 is not used."""
    options = {"width": 128, "norm_first": False, "activation_dropout": 0, "longest": None}
    assert facts(card.show({"options": options}))["Model"] == "width 128, norm first False, activation dropout 0"
    assert facts(card.show({"settings": {"warmup": 0, "clip": 1.0}}))["Settings"] == "clip 1.0"


def test_a_model_that_began_with_another_says_how_long_that_took():
    first = {
        "command": "python -m attnviz train --epochs 40",
        "epochs": 40,
        "seconds": 6000,
        "weights_sha256": "0" * 64,
    }
    start = {"command": "python -m attnviz train --epochs 12", "epochs": 12, "seconds": 600, "start": first}
    shown = card.show(FULL | {"start": first})
    assert facts(shown)["Training"].startswith(
        "started from weights trained for 100 min (40 epochs) · 42 min · 11 epochs"
    )
    assert facts(shown)["Started from"] == first["command"]
    shown = card.show(FULL | {"start": start})  # which itself began with another
    assert facts(shown)["Training"].startswith(
        "started from weights trained for 100 min (40 epochs) · started from weights trained for 10 min (12 epochs) · "
        "42"
    )
    assert re.findall(r"Started from</dt><dd>(.*?)</dd>", shown) == [first["command"], start["command"]]


def test_a_classifier_learnt_from_sentences_and_not_from_pairs():
    assert facts(card.show(FULL | {"pair": "sst2", "mechanism": "self-attention"}))["Trained on"].endswith(
        " · 29,000 sentences"
    )
    assert facts(card.show(FULL))["Trained on"].endswith(" · 29,000 sentence pairs")


def test_a_model_that_learnt_from_others_says_from_which():
    teachers = [{"command": f"python -m attnviz train --seed {seed}", "seconds": 90} for seed in range(4)]
    shown = card.show(
        FULL | {"teachers": [*teachers, {"seconds": None}], "settings": {"clip": 1.0, "teachers": "0123 4567"}}
    )
    assert facts(shown)["Training"].startswith(
        "distilled from 5 trained models (6 min of training in all) · 42 min · 11 epochs"
    )
    assert re.findall(r"Distilled from</dt><dd>(.*?)</dd>", shown) == [teacher["command"] for teacher in teachers]
    assert facts(shown)["Settings"] == "clip 1.0"
    for odd in ("0123", 5, {}, None, []):
        assert "istilled from" not in card.show(FULL | {"teachers": odd})


@pytest.mark.parametrize("missing", FULL)
def test_a_card_may_lack_anything(missing):
    """Any field may be missing, null, or of another shape."""
    whole = facts(card.show(FULL))
    for expected in (
        {k: v for k, v in FULL.items() if k != missing},
        *({**FULL, missing: v} for v in (None, "text", []) if missing != "bytes"),
    ):
        shown = facts(card.show(expected))
        assert set(shown) <= set(whole) and len(shown) >= len(whole) - 1


def test_no_card_is_said():
    assert "This model has no card" in card.show({})


@pytest.mark.parametrize("name", attnviz.available())
def test_shipped_cards_say_what_is_asked_of_them(name):
    shown = card.show(checkpoint_files.read_card(name))
    assert {"Parameters", "Trained on", "Training"} <= set(facts(shown)) and len(rows(shown)) > 1
