"""Names of models that are none: said in a sentence, and no folder beside the checkpoints is read."""

import pytest
import tiny

import attnviz
from attnviz.models import checkpoint_files


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return tiny.write_models(tmp_path_factory.mktemp("names") / "checkpoints")


@pytest.mark.parametrize(
    "name", ["", "/", "..", "../..", "./en-fr", "en-fr/", "/bahdanau", "a/b/c", "a/\0", "x" * 5000]
)
def test_no_such_name(root, name):
    with pytest.raises(checkpoint_files.CheckpointError) as error:
        attnviz.load(name, root)
    assert str(error.value).startswith("no checkpoint ") and "available: en-fr/bahdanau" in str(error.value)
    assert len(str(error.value)) < 400


def test_a_way_out_of_the_folder(root):
    with pytest.raises(checkpoint_files.CheckpointError, match="no checkpoint '../checkpoints'"):
        attnviz.load("../checkpoints", root)
    with pytest.raises(checkpoint_files.CheckpointError, match="no checkpoint"):
        attnviz.load("../en-fr", root / "en-fr")


@pytest.mark.parametrize("name", [None, 5, b"en-fr/bahdanau", ["en-fr/bahdanau"]])
def test_a_name_is_text(root, name):
    with pytest.raises(checkpoint_files.CheckpointError) as error:
        attnviz.load(name, root)
    assert str(error.value) == f"the name of a model must be text, such as 'en-fr/bahdanau'; got {name!r}"


def test_a_config_with_a_key_too_few_or_too_many(root):
    path = root / "en-fr" / "bahdanau" / "config.json"
    whole = path.read_text()
    for content, wanted in (
        ('{"vocabulary": 60}', "it must say mechanism"),
        ("{}", "it must say mechanism and vocabulary"),
        (
            '{"mechanism": "bahdanau", "vocabulary": 60, "x": 1}',
            "it may say mechanism, vocabulary, options; got 'x' too",
        ),
    ):
        path.write_text(content)
        with pytest.raises(checkpoint_files.CheckpointError) as error:
            attnviz.load("en-fr/bahdanau", root)
        assert str(error.value) == f"{path} does not describe a model: {wanted}"
    path.write_text(whole)
    attnviz.load("en-fr/bahdanau", root)
