"""The training configuration of every mechanism, pair and change; and what cannot be."""

from dataclasses import replace

import pytest
import tiny
import torch

from attnviz import mechanisms
from attnviz.data import tasks
from attnviz.networks import registry
from attnviz.training import recipes
from attnviz.training.recipes import TrainingConfig, training_config


def test_every_mechanism_has_a_recipe():
    assert all(training_config("en-fr", name) == recipes.recipe(name) for name in mechanisms.MECHANISMS)
    assert all(
        training_config("sst2", name) == recipes.recipe(name)
        for name, mechanism in mechanisms.ALL.items()
        if mechanism.classifies
    )


@pytest.mark.parametrize("mechanism", mechanisms.ALL)
def test_every_recipe_names_parameters_of_its_model(mechanism):
    options = tiny.WIDTHS.get(mechanism, tiny.CLASSIFIER)
    model = registry.build(mechanisms.Config(mechanism, 50, options))
    assert set(mechanisms.find(mechanism).training.get("rates", {})) <= dict(model.named_parameters()).keys()


def test_a_pair_changes_the_recipe_and_the_caller_changes_both(monkeypatch):
    changed = replace(
        mechanisms.find("bahdanau"),
        training={"epochs": 7, "options": {"dropout": 0.3, "width": 10}},
        training_on={"xx-yy": {"epochs": 3, "options": {"width": 30}}},
    )
    monkeypatch.setitem(mechanisms.ALL, "bahdanau", changed)
    changes = {"vocabulary": 50, "options": {"width": 20, "cell": "lstm", "heads": 4}}  # it has no heads
    monkeypatch.setitem(tasks.TASKS, "xx-yy", replace(tasks.find("xx-yy"), recipe_changes=changes))
    of_pair = training_config("xx-yy", "bahdanau", {"embedding_width": 40}, seed=9)
    options = {"dropout": 0.3, "width": 30, "cell": "lstm", "embedding_width": 40}
    assert of_pair == TrainingConfig("bahdanau", epochs=3, vocabulary=50, seed=9, options=options)
    changed = training_config("xx-yy", "bahdanau", {"cell": "gru", "width": 5}, epochs=1, vocabulary=60)
    assert (changed.epochs, changed.vocabulary, changed.options["cell"], changed.options["width"]) == (1, 60, "gru", 5)


@pytest.mark.parametrize(
    "options, reason",
    [
        (
            {"colour": "red"},
            "bahdanau has no option colour; it has width, embedding_width, dropout, attention_dropout, cell",
        ),
        ({"width": "abc"}, "width must be a whole number; got abc"),
        ({"width": 10**7}, "width must be from 1 to 16,384; got 10000000 (this machine has "),
        ({"cell": "elm"}, "cell must be one of"),
        ({"width": 0}, "width must be from 1 to 16,384; got 0"),
    ],
)
def test_a_model_that_cannot_be_built(options, reason):
    before = torch.get_rng_state()
    with pytest.raises(ValueError, match="^bahdanau cannot be built with {.*}: ") as caught:
        training_config("en-fr", "bahdanau", options)
    assert reason in str(caught.value) and torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("name", ["batch_tokens", "learning_rate", "vocabulary"])
def test_settings_are_checked(name):
    with pytest.raises(ValueError) as caught:
        TrainingConfig("bahdanau", **{name: 0})
    assert str(caught.value) == f"{name} must be positive and finite; got 0"


def test_unknown_mechanism():
    with pytest.raises(ValueError) as caught:
        training_config("en-fr", "telepathy")
    assert str(caught.value) == (
        "unknown mechanism 'telepathy'; for your own set ATTNVIZ_MECHANISMS=FILE.py:NAME; else "
        f"choose one of {', '.join(mechanisms.ALL)}"
    )
