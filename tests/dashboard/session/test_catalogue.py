"""What the page says before a model is read."""

import os
import shutil

import pytest

from attnviz.models import checkpoint_files
from dashboard.session import catalogue

NAME = "en-fr/transformer"


@pytest.fixture
def root(tmp_path, monkeypatch):
    shutil.copytree(checkpoint_files.ROOT / NAME, tmp_path / NAME)
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    return tmp_path


def test_the_name_of_a_model_of_the_transformers_library_shows_no_folder(tmp_path, monkeypatch):
    """Two folders of one name differ, and a name of the hub stays; each leads back to its place."""
    monkeypatch.setattr(catalogue, "_places", {})
    for place in ("a/opus", "b/opus", "org"):
        (tmp_path / place).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    places = [f"{tmp_path}/a/opus", f"{tmp_path}/b/opus#eng:fra", "b/opus", "Helsinki-NLP/opus", "opus", "/gone/nllb"]
    names = [catalogue.guest(place) for place in (*places, f"hf:{places[0]}")]
    assert names[:3] == ["hf:opus", "hf:opus-2#eng:fra", "hf:opus-3"]
    assert names[3:] == ["hf:Helsinki-NLP/opus", "hf:opus-4", "hf:nllb", "hf:opus"]
    assert [catalogue.place_of(name) for name in names] == [*places, places[0]]


def test_layers_and_heads_are_the_models(root):
    options = checkpoint_files.read_config(NAME).options
    assert catalogue.layers_and_heads(NAME) == (options["layers"], options["heads"])


@pytest.mark.parametrize(
    "options",
    [
        None,
        [1],
        "x",
        {},
        {"layers": "3", "heads": 4},
        {"layers": 0, "heads": 4},
        {"layers": 3, "heads": None},
        {"layers": True, "heads": 2},
        {"layers": 3.0, "heads": 4},
    ],
)
def test_a_damaged_config_takes_no_more_than_its_own_model(root, options):
    config = checkpoint_files.read_json(root / NAME / "config.json")
    checkpoint_files.write_json(root / NAME / "config.json", config | {"options": options})
    assert catalogue.layers_and_heads(NAME) == (1, 1)


def test_no_checkpoint_at_all(tmp_path, monkeypatch):
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    assert catalogue.layers_and_heads(NAME) == (1, 1)


def test_many_headed_models_are_those_whose_mechanism_has_several_heads(monkeypatch):
    monkeypatch.delenv("ATTNVIZ_CHECKPOINTS", raising=False)
    pairs = ["en-fr", "en-de", "en-ja", "reverse"]
    assert catalogue.many_headed() == [f"{pair}/transformer" for pair in pairs] + [
        "en/writer",
        "shakespeare/writer",
        "sst2/self-attention",
    ]
    assert [catalogue.many_headed_of(pair) for pair in pairs] == [[f"{pair}/transformer"] for pair in pairs]
    assert catalogue.many_headed_of("sst2") == catalogue.many_headed_of("en-xx") == []
    assert catalogue.layers_and_heads(None) == (1, 1)


@pytest.mark.parametrize(
    "name", [b"\xff-fr/transformer", b"en-fr/\xff", b"sst2/unknown", b"sst2/transformer", b"en-fr/unknown"]
)
def test_a_folder_that_no_page_can_name_takes_no_other_off(root, name):
    """The first two are no text, which Streamlit cannot send; a label is given by classifiers alone."""
    before = catalogue.offered(), catalogue.attending(), catalogue.many_headed()
    folder = root / os.fsdecode(name)
    try:
        shutil.copytree(root / NAME, folder)
    except OSError:
        pytest.skip("this file system has no such names")
    assert os.fsdecode(name) in checkpoint_files.names(root)
    assert (catalogue.offered(), catalogue.attending(), catalogue.many_headed()) == before


def test_learn_has_the_models_of_this_project_beside_a_pair_of_ones_own(tmp_path, monkeypatch):
    (own := tmp_path / "en-nl" / "bahdanau").mkdir(parents=True)
    shutil.copyfile(checkpoint_files.ROOT / "en-fr" / "bahdanau" / "config.json", own / "config.json")
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", str(tmp_path))
    assert list(catalogue.offered()) == ["en-nl"]
    assert catalogue.root_of("en-nl/bahdanau") == tmp_path
    assert catalogue.root_of(NAME) == checkpoint_files.ROOT and catalogue.is_there(NAME)
    (tmp_path / "en-fr").mkdir()  # models of this pair that are missing are missing
    assert catalogue.root_of(NAME) == tmp_path and not catalogue.is_there(NAME)
    monkeypatch.setenv("ATTNVIZ_CHECKPOINTS", os.pathsep.join([str(tmp_path), str(checkpoint_files.ROOT)]))
    assert next(iter(catalogue.offered())) == "en-fr" and "en-nl" in catalogue.offered()
    assert catalogue.root_of(NAME) == checkpoint_files.ROOT


def test_a_run_looks_for_a_model_once_and_the_next_run_sees_what_has_changed():
    calls = []
    look = catalogue.once(lambda name: calls.append(name) or len(calls))
    assert (look("a"), look("a")) == (1, 2)  # outside of a run
    with catalogue.run():
        assert (look("a"), look("b"), look("a")) == (3, 4, 3)
        with catalogue.run():  # a part of it
            assert look("a") == 3
        assert look("b") == 4
    with catalogue.run():
        assert look("a") == 5
    with pytest.raises(ValueError), catalogue.run():
        raise ValueError
    assert look("a") == 6
