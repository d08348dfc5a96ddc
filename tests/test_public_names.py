"""What notebooks, scripts and shells use keeps its name: the package's root, its modules and the command line."""

import importlib

import pytest

import attnviz
from attnviz.cli import COMMANDS
from attnviz.models.checkpoint_files import ROOT

MODULES = (
    "figures",
    "select",
    "stats",
    "heads",
    "patterns",
    "rollout",
    "ablation",
    "alignment",
    "gold",
    "inside",
    "intervene",
    "own",
    "corpus",
    "training",
    "faithfulness",
)


@pytest.mark.parametrize("name", MODULES)
def test_modules_of_the_root(name, monkeypatch):
    """Each is there after `import attnviz`."""
    module = importlib.import_module(f"attnviz.{name}")
    monkeypatch.delattr(attnviz, name)
    assert getattr(attnviz, name) is module and module.__doc__


@pytest.mark.parametrize("name", ["load", "available", "from_arrays", "save_trace", "load_trace", "view"])
def test_functions_of_the_root(name):
    assert callable(getattr(attnviz, name))
    assert name in attnviz.__all__


def test_a_notebook_completes_the_functions_and_nothing_else():
    assert {name for name in dir(attnviz) if not name.startswith("_")} == set(attnviz.__all__)


def test_the_trace_is_where_it_was():
    from attnviz.trace import AttentionMap, Token, Trace

    assert [value.__name__ for value in (Trace, AttentionMap, Token)] == ["Trace", "AttentionMap", "Token"]


def test_the_commands():
    assert set(COMMANDS) >= {"models", "trace", "evaluate", "align", "download", "train", "study", "corpus"}


def test_the_models_that_ship():
    assert {"en-fr/bahdanau", "en-fr/transformer", "reverse/luong-general", "sst2/self-attention"} <= set(
        attnviz.available()
    )


@pytest.mark.parametrize("name", attnviz.available())
def test_the_files_of_a_checkpoint(name):
    """As others read them, without this code: weights, configuration and card of a model, the tokenizer of its pair."""
    folder = ROOT / name
    assert {path.name for path in folder.iterdir()} >= {"model.safetensors", "config.json", "card.json"}
    assert (folder.parent / "tokenizer.json").is_file()


def test_the_list_of_changes_begins_with_this_version():
    text = (ROOT.parent / "CHANGELOG.md").read_text(encoding="utf-8")
    assert text.split("\n## ", 2)[1].startswith(attnviz.__version__)
