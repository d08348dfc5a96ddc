"""Models that cost gigabytes for a config of a few bytes, files that are none, and cards that say anything."""

import json
import os
import resource
import shutil
import socket

import pytest
from safetensors.torch import load_file, save_file

import attnviz
from attnviz.__main__ import main as run_command
from attnviz.models import checkpoint_values
from attnviz.models.checkpoint_files import CheckpointError
from attnviz.models.huggingface.load import ModelError
from attnviz.models.model import describe
from dashboard.markup import card

pytestmark = pytest.mark.xdist_group("hf")  # one process imports the library
NAME = "en-fr/transformer"
HUGE = (10**400, -(10**400), 10**30, 2**63, 1e308, float("inf"), float("nan"))


@pytest.fixture
def copy(root, tmp_path):
    """A folder of checkpoints to damage."""
    return shutil.copytree(root, tmp_path / "checkpoints")


def change(path, **values):
    path.write_text(json.dumps(json.loads(path.read_text()) | values))


def refused(root, name=NAME):
    """The message; and no more memory was taken than it takes to say it."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CheckpointError) as error:
        attnviz.load(name, root)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # KiB
    assert len(str(error.value)) < 500 and "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    "option, value",
    [
        *[("layers", value) for value in (100_000, 64, 10**30, 1.5, "2", [], {}, True, -1, 0, None)],
        *[("heads", value) for value in (1.5, 10**30, "x", [1], 10**400)],
        *[("width", value) for value in (10**9, 16_384, 10**400, 0.5, "wide")],
        ("longest", 10**12),
        ("hidden", 10**8),
    ],
)
def test_options_that_no_model_here_has(copy, option, value):
    path = copy / NAME / "config.json"
    change(path, options=json.loads(path.read_text())["options"] | {option: value})
    assert "config.json" in refused(copy)


@pytest.mark.parametrize("value", [10**8, 2_000_000, 10**400, 1.5, "x", None, [], -5, True])
def test_vocabularies_that_the_weights_have_not(copy, value):
    change(copy / NAME / "config.json", vocabulary=value)
    assert "config.json" in refused(copy)


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def unix_socket(path):
    here = os.getcwd()
    os.chdir(path.parent)  # a socket's path may have 107 bytes
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind(path.name)
    finally:
        os.chdir(here)


@pytest.mark.parametrize("make", [pipe, device, unix_socket])
@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "card.json", "../tokenizer.json"])
def test_what_is_no_file_is_not_read(copy, make, file, capsys):
    path = copy / NAME / file
    path.unlink()
    make(path)
    assert "not a file but a" in refused(copy)
    assert run_command(["models", "--root", str(copy)]) == 0
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.parametrize("make", [pipe, device, unix_socket])
@pytest.mark.parametrize("file", ["config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"])
def test_nor_in_the_folder_of_a_foreign_model(tmp_path, folder, make, file):
    folder = shutil.copytree(folder("bert"), tmp_path / "bert")
    (folder / file).unlink()
    make(folder / file)
    with pytest.raises(ModelError) as error:
        attnviz.load(f"hf:{folder}")
    assert f"its {file} cannot be read: not a file but a" in str(error.value) or "is missing" in str(error.value)


@pytest.mark.parametrize(
    "family, values",
    [
        ("gpt2", {"n_layer": 10**6}),
        ("gpt2", {"n_positions": 10**6}),
        ("gpt2", {"vocab_size": 10**9}),
        ("bert", {"num_hidden_layers": 10**5}),
        ("bert", {"vocab_size": 10**8}),
        ("bert", {"hidden_size": 2**28, "num_attention_heads": 4}),
        ("bert", {"intermediate_size": 10**400}),
        ("bert", {"num_attention_heads": 10**6}),
        ("t5", {"num_layers": 10**5}),
        ("t5", {"relative_attention_num_buckets": 10**9}),
        ("bart", {"max_position_embeddings": 10**9}),
        ("bert", {"num_labels": 10**7}),
        ("bert", {"model_type": "albert", "inner_group_num": 10**7, "embedding_size": 16}),
        ("bert", {"model_type": "mobilebert", "num_feedforward_networks": 10**6}),
        (
            "bert",
            {"model_type": "encoder-decoder", **{side: {"model_type": "bert"} for side in ("encoder", "decoder")}},
        ),
        ("bert", {"model_type": "x" * 10**5}),
    ],
)
def test_configs_of_foreign_models(tmp_path, folder, family, values):
    folder = shutil.copytree(folder(family), tmp_path / family)
    change(folder / "config.json", **values)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(ModelError) as error:
        attnviz.load(f"hf:{folder}")
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 300_000  # KiB
    assert len(str(error.value)) < 600 and "\n" not in str(error.value)


def test_a_table_that_is_missing_is_not_made_first(tmp_path, folder):
    """The library fills what the files lack with random numbers: 10^8 × 16 of them here."""
    folder = shutil.copytree(folder("bert"), tmp_path / "bert")
    path = folder / "model.safetensors"
    save_file({key: value for key, value in load_file(path).items() if "word_embeddings" not in key}, path)
    change(folder / "config.json", vocab_size=10**8)
    with pytest.raises(
        ModelError, match="describes a model of [0-9,]+ numbers and its files hold [0-9,]+; they do not belong"
    ):
        attnviz.load(f"hf:{folder}")


FIELDS = [
    "parameters", "scores", "settings", "options", "data", "history", "best", "epochs", "seconds", "alignment", "start",
    "teachers", "command", "remark", "device", "training_pairs", "weights_sha256", "mechanism", "name", "problem",
    "title", "versions", "seed",
]  # fmt: skip
WRONG = [
    [],
    {},
    [[]],
    {"a": {}},
    "x",
    "\ud800",
    True,
    None,
    *HUGE,
    [{}, 1, "x"],
    {"": 10**400},
    {"test": {"bleu": 10**400}},
]


@pytest.fixture(scope="module")
def cards(root, tmp_path_factory):
    """A folder of two checkpoints whose cards the tests write."""
    place = tmp_path_factory.mktemp("two")
    (place / "en-fr").mkdir()
    shutil.copy(root / "en-fr" / "tokenizer.json", place / "en-fr")
    for name in (NAME, "en-fr/bahdanau"):
        shutil.copytree(root / name, place / name)
    return place


@pytest.mark.parametrize("field", FIELDS)
def test_cards_that_say_anything(cards, field, capsys):
    """One bad card takes nothing away: the model is listed, its card is drawn, and the other is as it was."""
    for wrong in WRONG:
        (cards / NAME / "card.json").write_text(json.dumps({"pair": "en-fr", "parameters": 1234, field: wrong}))
        described = describe(NAME, cards)
        assert described["name"] == NAME and json.dumps(described, allow_nan=False)
        card.show(checkpoint_values.card(json.loads((cards / NAME / "card.json").read_text())) | {"bytes": 5}).encode(
            "utf-8"
        )
        assert run_command(["models", "--root", str(cards)]) == 0
        out, err = capsys.readouterr()
        assert not err and out.count("\n") == 3


@pytest.mark.parametrize(
    "content", ["[]", "1", "null", '"x"', "{", "", "1" * 5000, '{"a": ' * 3000, '{"parameters": 1e999}']
)
def test_cards_that_are_no_cards(copy, content, capsys):
    (copy / NAME / "card.json").write_text(content)
    assert run_command(["models", "--root", str(copy)]) == 0
    out, err = capsys.readouterr()
    assert not err and out.count("en-fr/") >= len(attnviz.available(copy))
