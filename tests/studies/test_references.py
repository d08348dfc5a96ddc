"""The reference of a tiny model, and the command that writes it."""

import json

import numpy as np
import pytest
import tiny
import torch

from attnviz import loading, select, stats
from attnviz.__main__ import main
from attnviz.across import reference, sentence
from attnviz.across.reference import COMPARED, MODELS, SHOWN
from attnviz.mechanisms import find
from attnviz.models import checkpoint_files, checkpoints
from attnviz.models.names import ModelName
from attnviz.studies import references

TEXTS = [english for english, _ in tiny.sentences(12, 5)]


@pytest.fixture(scope="module")
def transformer(root):
    return references.measure("en-fr/transformer", root, "twelve", TEXTS)


def test_it_is_measured_on_the_model_s_own_translations(transformer, root):
    model = loading.load("en-fr/transformer", root)
    traces = [trace for text in TEXTS if (trace := model.trace(text)).translation.strip()]
    values = [sentence(stats.steps(trace).to_dict("series"))["normalised_entropy"] for trace in traces]
    assert transformer.sentences == len(traces) and transformer.test == "twelve"
    assert transformer.quantiles["cross"]["normalised_entropy"][[0, -1]] == pytest.approx([min(values), max(values)])
    assert transformer.weights_sha256 == checkpoint_files.fingerprint("en-fr/transformer", root)
    assert set(transformer.quantiles) == {"cross", "encoder", "decoder"}
    assert all(set(levels) == {"cross", "encoder", "decoder", SHOWN} for levels in transformer.levels.values())
    shown = [stats.of_grid(select.select(trace))["max_weight"].mean() for trace in traces]
    assert transformer.levels["trained"][SHOWN]["max_weight"].mean() == pytest.approx(np.mean(shown), abs=0.05)


def test_the_untrained_model_is_the_same_network_with_other_weights(root):
    state = torch.random.get_rng_state()
    model = loading.load("en-fr/bahdanau", root)
    first, second = (references.untrained(model, root) for _ in range(2))
    assert torch.equal(torch.random.get_rng_state(), state)
    weights = [dict(translator.model.state_dict()) for translator in (model, first, second)]
    assert checkpoints.same(weights[1], weights[2]) and not checkpoints.same(weights[0], weights[1])
    assert {name: value.shape for name, value in weights[0].items()} == {
        name: value.shape for name, value in weights[1].items()
    }
    assert not first.model.training


def test_shuffled_words_are_the_same_words():
    text = "a b c d e f g h"
    assert references.shuffled(text) == references.shuffled(text) != text
    assert sorted(references.shuffled(text).split()) == sorted(text.split())


def test_nothing_to_measure_is_an_error(root):
    with pytest.raises(ValueError) as error:
        references.measure("en-fr/bahdanau", root, "none", [""])
    assert str(error.value) == "none must hold at least one sentence that en-fr/bahdanau can translate; got none"


def test_the_command_writes_a_file_that_the_page_reads(tmp_path, data, capsys):
    root = tiny.write_models(tmp_path / "models")
    words = ["reference", "--data", str(data), "--root", str(root), "--sentences", "6"]
    assert main([*words, "--model", "en-fr/bahdanau"]) == 0
    made = reference.read(root / "en-fr" / "bahdanau" / reference.FILE)
    assert made.test == "test_2016_flickr" and "sentences of test_2016_flickr" in capsys.readouterr().out
    assert not (root / "en-fr" / "transformer" / reference.FILE).exists()
    assert main([*words, "--model", "en-fr/fixed-context"]) != 0
    assert "there is no model that translates and attends" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path", sorted(checkpoint_files.ROOT.glob("*/*/sentences.json")), ids=lambda path: path.parent.name
)
def test_shipped_references_are_of_the_shipped_weights(path):
    """Where this fails: python -m attnviz reference --data DIR --pair PAIR."""
    made, card = reference.read(path), json.loads((path.parent / "card.json").read_text(encoding="utf-8"))
    assert made.weights_sha256 == card["weights_sha256"]
    assert made.sentences >= 400 and path.stat().st_size < 20_000
    for model in MODELS:
        for statistics in made.levels[model].values():
            assert set(statistics) == set(COMPARED)
    entropies = [made.levels[model]["cross"]["normalised_entropy"].mean() for model in ("trained", "untrained")]
    assert entropies[0] < entropies[1] - 0.2


def test_every_shipped_model_that_translates_and_attends_has_one():
    names = [ModelName.parse(name) for name in checkpoint_files.names()]
    names = [name for name in names if name.task.translates and find(name.mechanism).kinds]
    assert [name for name in names if not (checkpoint_files.ROOT / str(name) / reference.FILE).exists()] == []
