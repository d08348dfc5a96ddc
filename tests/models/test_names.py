"""The name of a trained model."""

import pytest

import attnviz
from attnviz.data import tasks
from attnviz.models.names import ModelName


def test_a_name_is_its_two_parts():
    name = ModelName.parse("en-fr/bahdanau")
    assert name == ModelName("en-fr", "bahdanau") and (name.pair, name.mechanism) == ("en-fr", "bahdanau")
    assert str(name) == "en-fr/bahdanau" and name.task is tasks.TASKS["en-fr"]


def test_a_moment_of_its_training_has_a_number():
    name = ModelName.parse("en-fr/bahdanau@12")
    assert (name.mechanism, name.moment, name.trained) == ("bahdanau", 12, "en-fr/bahdanau")
    assert str(name) == "en-fr/bahdanau@12" and name != ModelName.parse("en-fr/bahdanau")
    assert ModelName.parse("en-fr/a@b").mechanism == "a@b"  # a folder may be called so


@pytest.mark.parametrize("text", attnviz.available())
def test_every_shipped_name_comes_back(text):
    assert str(ModelName.parse(text)) == text


@pytest.mark.parametrize("text", ["", "en-fr", "en-fr/", "/bahdanau", "/", "a/b/c", "en-fr/bahdanau/"])
def test_another_form_is_refused(text):
    with pytest.raises(ValueError) as caught:
        ModelName.parse(text)
    assert str(caught.value).startswith("a model name must be PAIR/MECHANISM, such as en-fr/bahdanau; got '")
